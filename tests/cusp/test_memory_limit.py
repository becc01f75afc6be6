"""Partitions under --memory-limit: the same bit for bit, in bounded memory, or refused in words."""

import functools
import json
from dataclasses import replace

import graphs
import h5py
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st
from spawn import mpirun
from test_partition import SPLITS, assert_same

from cusp.__main__ import main as cusp
from cusp.apps.bfs import APP
from cusp.apps.harness import main as run_app
from cusp.commands.generate import main as generate
from cusp.errors import GraphFileError, InputError, OptionError
from cusp.input import edge_slice
from cusp.input.edge_slice import read_slice
from cusp.kernels import build_cpu
from cusp.output import part_file
from cusp.output.saved import load_partition, save_partition
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.runtime import storage
from cusp.runtime.files import ScratchError
from cusp.runtime.storage import IN_MEMORY, FileStorage, storage_for

bfs = functools.partial(run_app, APP)
EXAMPLES = 40 if ranks.COMM.size == 1 else 15
LIMIT = 10**6
PROBE = """
import sys
from cusp.launch import run_main
from cusp.policies import load_policy
from cusp.partitioner import partition_graph
from cusp.runtime.storage import peak_mb

def main(comm, argv):
    path, policy, limit, small = argv[0], load_policy(argv[1]), int(argv[2]) or None, argv[3]
    partition_graph(small, policy, comm, csc=True, memory_limit=limit)
    before = peak_mb()
    partition_graph(path, policy, comm, csc=True, memory_limit=limit)
    grown = comm.gather(peak_mb() - before)
    if comm.rank == 0:
        print(max(grown))
    return 0

run_main(main)
"""


class Tiny(FileStorage):
    """Files, walked through a few edges at a time; longer rows are allowed."""

    def check_rows(self, indptr: np.ndarray) -> None:
        """Any length will do."""


@pytest.fixture
def tiny(monkeypatch):
    """A function that sets the number of edges of a chunk for wherever a limit is given."""

    def use(chunk: int) -> None:
        def tiny_storage(limit, num_nodes, rows):
            return IN_MEMORY if limit is None else Tiny(chunk)

        for module in (edge_slice, part_file):
            monkeypatch.setattr(module, "storage_for", tiny_storage)

    return use


def partition(path: str, policy: str, limit: int | None, **options) -> Partition:
    """A partition in a form that can be compared."""
    part = partition_graph(path, parts.policy_of(policy), ranks.COMM, csc=True, memory_limit=limit, **options)
    assert (part.storage is IN_MEMORY) == (limit is None)
    return replace(part, storage=IN_MEMORY)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("policy", "chunk"),
    [(policy, 7) for policy in parts.share(parts.POLICIES)]
    + [(policy, chunk) for policy in ("cvc", "fec") for chunk in (1, 10**6)],
)
def test_same_partition_under_every_policy(comm, shared_tmp, tiny, policy, chunk):
    """Every policy, by single edges, by a few, and all at once."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(), sums=True, transpose=True)
    tiny(chunk)
    assert_same(partition(path, policy, None), partition(path, policy, LIMIT))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, "cvc") for name in parts.share(graphs.HARD)]
    + [(name, other) for name in parts.FEW for other in ("oec", "hvc-2", "fec")],
)
def test_same_partition_of_hard_graphs(comm, shared_tmp, tiny, name, policy):
    """Hubs longer than a chunk, empty slices, no edges at all; with weights and without."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    tiny(3)
    for weights in (True, False):
        limited = partition(path, policy, LIMIT, weights=weights)
        assert_same(partition(path, policy, None, weights=weights), limited)
        parts.check_partition(limited, graph, weighted=weights)


@pytest.mark.mpi
@settings(max_examples=EXAMPLES)
@given(
    graph=graphs.small_graphs(),
    policy=st.sampled_from([name for name in parts.POLICIES if name != "mixed"]),
    split=st.sampled_from(SPLITS),
    order=st.sampled_from(["degree", "natural"]),
    chunk=st.integers(1, 40),
)
def test_any_graph(comm, shared_tmp, graph, policy, split, order, chunk):
    """Any small graph, policy, split, order and size of chunks."""
    path = graphs.write(shared_tmp / "g.h5", graph)
    whole = partition(path, policy, None, split=split, order=order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_slice, "storage_for", lambda limit, num_nodes, rows: Tiny(chunk))
        patch.setattr(build_cpu, "CHUNK", 11)
        assert_same(whole, partition(path, policy, LIMIT, split=split, order=order))


@pytest.mark.mpi
@pytest.mark.parametrize("passes", [1, 3])
def test_several_passes(comm, shared_tmp, tiny, passes):
    """Restreaming reads the edges again in each pass."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(100, 900))
    tiny(13)
    policy = load_policy("fec", threshold=20, passes=passes, rounds=5)
    whole, limited = (partition_graph(path, policy, comm, memory_limit=limit) for limit in (None, LIMIT))
    assert_same(whole, replace(limited, storage=IN_MEMORY))


@pytest.mark.mpi
def test_rule_may_ask_about_other_nodes(comm, shared_tmp, tiny):
    """out_neighbors of a node far from the one being assigned: the whole slice stays accessible."""
    rule = parts.user_file(
        "def get_master(prop, node, mstate, masters):\n"
        "    total = 0\n"
        "    first = prop.bounds[prop.reader(node)]\n"
        "    for neighbor in prop.out_neighbors(first):\n"
        "        total += neighbor\n"
        "    return (total + prop.out_degree(first) + node) % prop.num_parts\n"
    )
    graph = graphs.random_directed(100, 900)
    path = graphs.write(shared_tmp / "g.h5", graph)
    tiny(5)
    whole, limited = (partition_graph(path, load_policy(rule), comm, memory_limit=n) for n in (None, LIMIT))
    assert_same(whole, replace(limited, storage=IN_MEMORY))
    parts.check_partition(limited, graph)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("index", "weight", "storage"),
    parts.share(
        [("u4", "f8", {}), ("u4", ">i4", {}), ("u4", "u1", {}), ("u4", None, {}), ("i8", "f8", {}), (">u4", ">i4", {})]
        + [("u2", None, {}), ("u4", "f8", {"chunks": (16,)}), ("u4", ">i4", {"compression": "gzip"})]
    ),
    ids=str,
)
def test_forms_of_files(comm, shared_tmp, tiny, index, weight, storage):
    """What the file has as memory would is mapped; the rest is unpacked into a scratch file."""
    sums = ">" not in f"{index}{weight}"
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(), index=index, weight=weight, sums=sums, **storage)
    tiny(9)
    assert_same(partition(path, "mixed", None), partition(path, "mixed", LIMIT))


@pytest.mark.mpi
def test_user_block(comm, shared_tmp, tiny):
    """Offsets count from the beginning of the file, even if something precedes the HDF5 part."""
    graph = graphs.random_directed()
    path = shared_tmp / "g.h5"
    if comm.rank == 0:
        with h5py.File(path, "w", userblock_size=1024) as file:
            file["indptr"], file["indices"] = graph.indptr, graph.targets.astype(np.uint32)
            file["data"] = graph.weights
    comm.Barrier()
    tiny(9)
    parts.check_partition(partition(str(path), "cvc", LIMIT), graph)


@pytest.mark.mpi
def test_odd_offsets(comm, shared_tmp, tiny):
    """Numbers that begin at an odd byte of the file are read instead of mapped."""
    graph = graphs.random_directed()
    path = shared_tmp / "g.h5"
    if comm.rank == 0:
        with h5py.File(path, "w") as file:
            file["data"] = graph.weights.astype(np.uint8)
            file["odd"] = np.zeros(3, np.uint8)
            file["indices"], file["indptr"] = graph.targets.astype(np.uint32), graph.indptr
    comm.Barrier()
    tiny(9)
    parts.check_partition(partition(str(path), "iec", LIMIT), graph)


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["indices", "data"])
def test_damage_is_found(comm, shared_tmp, tiny, name):
    """Checksums are verified on mapped arrays, too."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph, sums=True)
    if comm.rank == 0:
        with h5py.File(path, "r+") as file:
            file[name][77] = (file[name][77] + 1) % 60
    comm.Barrier()
    tiny(9)
    with pytest.raises(GraphFileError, match=f"checksum of /{name}"):
        read_slice(path, comm, memory_limit=LIMIT)


@pytest.mark.mpi
def test_file_is_not_changed(comm, shared_tmp, tiny):
    """The slice is a private map of the file: what a careless rule writes to it stays in memory."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    tiny(9)
    edges = read_slice(path, comm, memory_limit=LIMIT)
    before = edges.targets.copy()
    edges.targets[:] = 0
    edges.storage.release()
    np.testing.assert_array_equal(edges.targets, before)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "fec"])
def test_saved_and_loaded(comm, shared_tmp, tiny, policy):
    """A partition that was made, saved or loaded under a limit is the same as without one."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(100, 900))
    whole = partition(path, policy, None)
    tiny(6)
    part = partition_graph(path, parts.policy_of(policy), comm, memory_limit=LIMIT)
    folder = str(shared_tmp / "parts")
    save_partition(folder, part, comm, graph=path, policy=policy, parameters={}, order="degree", split="edges")
    for limit in (None, LIMIT):
        loaded = load_partition(folder, comm, memory_limit=limit).with_csc()
        assert (loaded.storage is IN_MEMORY) == (limit is None)
        assert_same(whole, replace(loaded, storage=IN_MEMORY))


@pytest.mark.mpi
def test_limit_too_small_for_nodes(comm, shared_tmp):
    """Refused on every rank, with what is needed, and accepted with that much."""
    graph = graphs.make(200_000, [(v, v + 1) for v in range(1000)])
    path = graphs.write(shared_tmp / "g.h5", graph)
    with pytest.raises(OptionError, match=r"--memory-limit: 100,000 bytes are not enough for the .* nodes") as caught:
        read_slice(path, comm, "nodes", memory_limit=100_000)
    assert len(set(comm.allgather(str(caught.value)))) == 1
    needed = int(str(caught.value).split("at least ")[1].split()[0].replace(",", ""))
    assert 100_000 < needed < 4_000_000
    with pytest.raises(OptionError):
        read_slice(path, comm, "nodes", memory_limit=needed - 1)
    read_slice(path, comm, "nodes", memory_limit=needed)


@pytest.mark.mpi
def test_limit_too_small_for_a_row(comm, shared_tmp):
    """A node whose edges do not fit is refused before any edge is read."""
    graph = graphs.make(30_000, [(0, v) for v in range(30_000)])
    path = graphs.write(shared_tmp / "g.h5", graph)
    with pytest.raises(OptionError, match="a node with 30,000 edges") as caught:
        read_slice(path, comm, memory_limit=LIMIT)
    needed = int(str(caught.value).split("at least ")[1].split()[0].replace(",", ""))
    with pytest.raises(OptionError):
        read_slice(path, comm, memory_limit=needed - storage.EDGE_BYTES)
    read_slice(path, comm, memory_limit=needed)


def test_no_space_for_scratch_files(tmp_path, monkeypatch):
    """A full disk is found when the file is made, not when its pages are written."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ScratchError, match=f"{tmp_path}: no space for a scratch file of 9,.* bytes: .*; set TMPDIR"):
        FileStorage(10).empty(1 << 50, np.int64)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(ScratchError, match="missing: .* 80 bytes: No such file .*; set TMPDIR to a folder on a larger"):
        FileStorage(10).empty(10, np.int64)
    assert not list(tmp_path.iterdir())


def test_storage_keeps_what_was_written(tmp_path, monkeypatch):
    """Pages that were released are there again; scratch files have no name."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = FileStorage(10)
    values = files.empty(1 << 20, np.int64)
    values[:] = np.arange(values.size)
    files.release()
    assert not list(tmp_path.iterdir())
    np.testing.assert_array_equal(values, np.arange(values.size))
    assert files.empty(0, np.uint8).size == 0


@given(degrees=st.lists(st.integers(0, 9), max_size=30), chunk=st.integers(1, 12), data=st.data())
def test_rows_are_walked_once(degrees, chunk, data):
    """Chunks follow one another, none longer than it may be unless it is one row, none shorter than it could be."""
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    begin = data.draw(st.integers(0, len(degrees)))
    end = data.draw(st.integers(begin, len(degrees)))
    found = list(storage.Storage(chunk).rows(indptr, begin, end))
    assert found[0][0] == begin and found[-1][1] == end
    assert [first for first, _ in found[1:]] == [last for _, last in found[:-1]]
    for first, last in found:
        assert indptr[last] - indptr[first] <= chunk or last == first + 1
        assert last == end or last > first and indptr[last + 1] - indptr[first] > chunk


def test_without_a_limit_nothing_is_cut():
    """Normally there is one chunk, in memory."""
    home = storage_for(None, 10, 10)
    assert list(home.rows(np.array([0, 5, 9]))) == [(0, 2)]
    assert list(home.parts(10**9)) == [slice(0, 10**9)]
    assert type(home.empty(3, np.int8).base) is type(None)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    """A small and a large graph file."""
    made = {}
    for name, scale in (("small", 8), ("large", 19)):
        made[name] = str(tmp_path_factory.mktemp("graphs") / f"{name}.h5")
        options = ["--edge-factor", "16", "--weights", "1:100000", "--seed", "1", "--output", made[name]]
        assert generate(ranks.MPI.COMM_SELF, ["rmat", "--scale", str(scale), *options]) == 0
    return made


@pytest.mark.slow
@pytest.mark.limit(600)
@pytest.mark.parametrize(("policy", "size"), [("cvc", 1), ("hash+hybrid", 2)])
def test_peak_memory(files, policy, size):
    """Limited to a third of its slice, a rank never has a slice in memory; without a limit, it has more than two."""
    slice_mb = 2**19 * 16 * 8 / 1e6 / size
    peaks = []
    for limit in (0, int(slice_mb * 1e6 / 3)):
        done = mpirun(size, "-c", PROBE, files["large"], policy, str(limit), files["small"], timeout=300)
        assert done.returncode == 0, done.stderr
        peaks.append(float(done.stdout))
    assert peaks[0] > 2 * slice_mb
    assert peaks[1] < slice_mb / 3 + 2**19 * 40 / 1e6 / (size / 2), peaks


def test_command_line(tmp_path):
    """python -m cusp and an app with a limit, from the graph file and from a saved partition."""
    path = str(tmp_path / "g.h5")
    graphs.write_here(path, graphs.both_ways(graphs.random_directed(2000, 20_000)), symmetric=True)
    folder, figures = tmp_path / "parts", tmp_path / "figures.json"
    limit = ("--memory-limit", "1M")
    made = mpirun(2, "-m", "cusp", path, "--policy", "cvc", *limit, "--save", folder, "--json", figures)
    assert made.returncode == 0, made.stderr
    assert "memory: up to" in made.stdout
    assert json.loads(figures.read_text())["peak_mb"] > 10
    for size, graph in ((1, path), (2, folder)):
        run = mpirun(size, "-m", "cusp.apps.bfs", graph, *limit, "--source", "17", "--verify")
        assert run.returncode == 0, run.stderr
        assert ", verified" in run.stdout


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        (cusp, "{} --memory-limit 10K", "--memory-limit: 10,240 bytes are not enough"),
        (bfs, "{} --memory-limit 10K", "--memory-limit: 10,240 bytes are not enough"),
        (bfs, "--memory-limit 10M", "--memory-limit: needs a graph file"),
        (cusp, "{} --memory-limit much", "invalid number of bytes value"),
        (cusp, "{} --memory-limit 0", "invalid number of bytes value"),
    ],
)
def test_errors(comm, shared_tmp, capsys, program, arguments, message):
    """One message on every rank; what argparse refuses, rank 0 says."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(2000, 20_000))
    with pytest.raises((InputError, SystemExit)) as caught:
        program(comm, arguments.format(path).split())
    refused = isinstance(caught.value, SystemExit)
    assert message in comm.bcast(capsys.readouterr().err if refused else str(caught.value))
    assert not refused or caught.value.code == 2
