"""cusp convert: edges of any format -> graph file, at any number of ranks."""

import gzip
import json
import os
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
import spawn

from cusp.commands.convert import main, make_parser, request_of
from cusp.commands.info import describe
from cusp.convert.conversion import convert
from cusp.errors import GraphFileError, InputError, OptionError
from cusp.input.checksum import checksum

RNG = np.random.default_rng(7)
NODES = 60
EDGES = RNG.integers(0, NODES, (500, 2))  # with loops and parallel edges
WEIGHTS = RNG.integers(1, 200, 500)
BOTH_OPTIONS = ["--symmetrize", "--drop-loops", "--dedup"]


def run(comm, source: Path, output: Path, *options: str) -> tuple[int, int]:
    """Convert on all ranks."""
    chosen = make_parser().parse_args([str(source), *map(str, options)])
    return convert(comm, request_of(chosen), str(output), chosen.transpose)


def rows(path: Path, group: str = "") -> list[tuple]:
    """All edges of a graph file in their order, after a check of its layout."""
    with h5py.File(path, "r") as file:
        indptr, indices = file[group + "indptr"][...], file[group + "indices"][...]
        columns = [np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), indices]
        names = ["indptr", "indices"] + ["data"] * (group + "data" in file)
        if len(names) > 2:
            columns.append(file[group + "data"][...])
        assert (file.attrs["num_nodes"], file.attrs["num_edges"]) == (indptr.size - 1, indices.size)
        assert file.attrs["format_version"] == 1
        for name in names:
            assert int(file[group + name].attrs["checksum"]) == checksum(file[group + name][...])
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == sorted(found)
    return found


def expected(symmetrize=False, drop_loops=False, dedup=False, weights=True) -> list[tuple]:
    """What the options make of our edges, by sets and dicts."""
    edges = [(u, v, w) for (u, v), w in zip(EDGES.tolist(), WEIGHTS.tolist(), strict=True)]
    if symmetrize:
        edges += [(v, u, w) for u, v, w in edges if u != v]
    if drop_loops:
        edges = [edge for edge in edges if edge[0] != edge[1]]
    if dedup:
        least: dict[tuple[int, int], int] = {}
        for u, v, w in edges:
            least[u, v] = min(w, least.get((u, v), w))
        edges = [(u, v, w) for (u, v), w in least.items()]
    return sorted(edge if weights else edge[:2] for edge in edges)


def write(comm, path: Path, content: str | bytes) -> Path:
    """Write a file on rank 0 and wait for it."""
    if comm.rank == 0:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    comm.Barrier()
    return path


def lines(weights: bool = True) -> str:
    table = np.column_stack([EDGES, WEIGHTS]) if weights else EDGES
    return "".join(" ".join(map(str, row)) + "\n" for row in table.tolist())


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("options", "packed"),
    [([], False), (["--symmetrize"], False), (["--drop-loops"], True), (["--dedup"], False), (BOTH_OPTIONS, True)],
)
def test_options_on_an_edge_list(comm, shared_tmp, options, packed):
    content = gzip.compress(lines().encode()) if packed else lines()
    path = write(comm, shared_tmp / ("a.wel.gz" if packed else "a.wel"), content)
    num_nodes, num_edges = run(comm, path, shared_tmp / "a.h5", "--transpose", *options)
    wanted = expected(**{option[2:].replace("-", "_"): True for option in options})
    assert rows(shared_tmp / "a.h5") == wanted
    assert rows(shared_tmp / "a.h5", "csc/") == sorted((v, u, w) for u, v, w in wanted)
    assert (num_nodes, num_edges) == (EDGES.max() + 1, len(wanted))
    with h5py.File(shared_tmp / "a.h5") as file:
        assert bool(file.attrs["symmetric"]) == ("--symmetrize" in options)


@pytest.mark.mpi
@pytest.mark.parametrize("format", ["pairs32", "pairs64", "npy", "parquet", "csv"])
def test_same_graph_from_each_format(comm, shared_tmp, format):
    path = shared_tmp / ("a.bin" if format.startswith("pairs") else f"a.{format}")
    if format in ("csv", "parquet"):
        pandas = pytest.importorskip("pandas")
    if comm.rank == 0:
        if format.startswith("pairs"):
            EDGES.astype("<i4" if format == "pairs32" else "<i8").tofile(path)
        elif format == "npy":
            np.save(path, EDGES)
        elif format == "csv":
            pandas.DataFrame(EDGES, columns=["from", "to"]).to_csv(path, index=False)
        else:
            pandas.DataFrame(EDGES, columns=["from", "to"]).to_parquet(path, row_group_size=90)
    comm.Barrier()
    run(comm, path, shared_tmp / "a.h5", "--format", format, *BOTH_OPTIONS)
    assert rows(shared_tmp / "a.h5") == expected(True, True, True, weights=False)


@pytest.mark.mpi
def test_memory_limit_changes_nothing(comm, shared_tmp):
    edges = np.random.default_rng(3).integers(0, 5000, (200_000, 2), dtype=np.int32)
    path = write(comm, shared_tmp / "a.bin", edges.tobytes())
    for name, options in (("wide.h5", []), ("narrow.h5", ["--memory-limit", "1M", "--scratch", shared_tmp])):
        run(comm, path, shared_tmp / name, "--format", "pairs32", *BOTH_OPTIONS, *options)
    assert rows(shared_tmp / "wide.h5") == rows(shared_tmp / "narrow.h5")
    assert sorted(os.listdir(shared_tmp)) == ["a.bin", "narrow.h5", "wide.h5"]


@pytest.mark.mpi
def test_rewriting_our_own_file(comm, shared_tmp):
    """HDF5 -> HDF5 keeps edges, weights and isolated nodes; options apply; the input may be the output."""
    path = write(comm, shared_tmp / "a.wel", lines())
    graph = shared_tmp / "a.h5"
    run(comm, path, graph, "--nodes", NODES + 9)
    assert run(comm, graph, shared_tmp / "b.h5") == (NODES + 9, 500)
    assert rows(shared_tmp / "b.h5") == rows(graph) == expected()
    run(comm, graph, graph, "--weight-type", "uint8", *BOTH_OPTIONS)
    assert rows(graph) == expected(True, True, True)
    assert run(comm, graph, shared_tmp / "c.h5", "--symmetrize") == (
        NODES + 9,
        len(expected(True, True, True)),
    )
    with h5py.File(shared_tmp / "c.h5") as file:
        assert file["data"].dtype == np.uint8
        assert file.attrs["symmetric"]


@pytest.mark.mpi
def test_weights(comm, shared_tmp):
    """None, narrowed, of a column, and random: the same in both directions and from every format."""
    path = write(comm, shared_tmp / "a.txt", "".join(f"{u} {v} 1 {u + v}.5\n" for u, v in EDGES.tolist()))
    run(comm, path, shared_tmp / "none.h5", "--weights", "none")
    assert rows(shared_tmp / "none.h5") == expected(weights=False)
    run(comm, path, shared_tmp / "column.h5", "--weights", "4", "--weight-type", "float32")
    assert rows(shared_tmp / "column.h5") == sorted((u, v, u + v + 0.5) for u, v in EDGES.tolist())
    run(comm, path, shared_tmp / "random.h5", "--weights", "1:255", *BOTH_OPTIONS)
    run(comm, shared_tmp / "none.h5", shared_tmp / "again.h5", "--weights", "1:255", *BOTH_OPTIONS)
    found = rows(shared_tmp / "random.h5")
    assert rows(shared_tmp / "again.h5") == found
    assert sorted((v, u, w) for u, v, w in found) == found
    assert [edge[:2] for edge in found] == expected(True, True, True, weights=False)
    weights = [edge[2] for edge in found]
    assert 1 <= min(weights) < 20 and 235 < max(weights) <= 255
    with h5py.File(shared_tmp / "random.h5") as file:
        assert file["data"].dtype == np.uint8


@pytest.mark.mpi
def test_guesses_that_prove_wrong(comm, shared_tmp):
    """A fraction after many integers, and a comment that counts only the nodes that occur."""
    content = "# Nodes: 3 Edges: 20001\n" + "0 1 5\n" * 20_000 + "1 3 6.5\n"
    run(comm, write(comm, shared_tmp / "a.txt", content), shared_tmp / "a.h5", "--dedup")
    assert rows(shared_tmp / "a.h5") == [(0, 1, 5.0), (1, 3, 6.5)]
    table = write(comm, shared_tmp / "a.csv", "u,v,w\n" + "0,1,5\n" * 20_000 + "1,3,6.5\n")
    run(comm, table, shared_tmp / "a.h5", "--dedup")
    assert rows(shared_tmp / "a.h5") == [(0, 1, 5.0), (1, 3, 6.5)]
    dense = write(comm, shared_tmp / "b.txt", "# Nodes: 30 Edges: 1\n0 1\n")
    assert run(comm, dense, shared_tmp / "b.h5") == (30, 1)
    assert run(comm, dense, shared_tmp / "b.h5", "--nodes", 40) == (40, 1)
    assert run(comm, dense, shared_tmp / "b.h5", "--nodes", 2) == (2, 1)


def gap(edges: list[tuple[int, int]], nodes: int) -> bytes:
    """An undirected GAP graph of the edges as they are."""
    offsets = np.searchsorted([u for u, _ in edges], np.arange(nodes + 1)).astype("<i8")
    return struct.pack("<Bqq", 0, len(edges), nodes) + offsets.tobytes() + np.array(edges, "<i4")[:, 1].tobytes()


WRONG = [
    ("a.txt", "0 1\n1 x\n", [], GraphFileError, "line 2: expected 'source target', found '1 x'"),
    ("a.txt", "0 1\n1 99999999999999\n", ["--ids", "numbers"], GraphFileError, "number the nodes from 0 without gaps"),
    ("a.txt", "0 1\n1 9\n", ["--nodes", "9"], OptionError, "--nodes 9"),
    ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 3\n1 2\n2 1\n", [], GraphFileError,
     "states 3 edges but the file holds 2"),
    ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 1\n1 2\n", ["--nodes", "5"], OptionError,
     "states 9 nodes"),
    ("a.gr", "p sp 99999999999999 1\na 1 2 3\n", [], GraphFileError, "of this computer"),
    ("a.graph", "3 2\n2\n3 1\n1\n", [], GraphFileError, "at both ends"),
    ("a.sg", gap([(0, 1), (1, 2)], 3), [], GraphFileError, "at both ends"),
    ("a.txt", "0 1 7\n1 2 300\n", ["--weight-type", "uint8"], GraphFileError, "300"),
    ("a.txt", "0 1 7\n1 2 3.5\n", ["--weight-type", "uint8"], OptionError, "fractions"),
    ("a.txt", "0 1\n", ["--weight-type", "uint8"], OptionError, "no weights"),
    ("a.txt", "0 1\n", ["--weights", "cost"], OptionError, "columns 1 to 2"),
    ("a.txt", "0 1\n", ["--weights", "9:1"], OptionError, "9:1"),
    ("a.txt", "0 1\n", ["--format", "npz"], GraphFileError, "the .npz file cannot be read"),
    ("a.txt", "0 1\n", ["--format", "parquet"], GraphFileError, "the Parquet table cannot be read"),
    ("a.txt", "", [], GraphFileError, "is empty"),
    ("a.txt", "# nothing\n", [], GraphFileError, "give their number with --nodes"),
    ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(90), [], GraphFileError, "a.h5"),
]  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "content", "options", "kind", "message"),
    WRONG,
    ids=[f"{i}-{w[0]}" for i, w in enumerate(WRONG)],
)
def test_wrong_input(comm, shared_tmp, name, content, options, kind, message):
    """The same error on every rank, and neither output nor temporary file."""
    path = write(comm, shared_tmp / name, content)
    with pytest.raises(kind) as caught:
        run(comm, path, shared_tmp / "out.h5", *options)
    assert message in str(caught.value)
    assert os.listdir(shared_tmp) == [name]


@pytest.mark.mpi
def test_missing_input(comm, shared_tmp):
    """One line on every rank, for each format that the name may stand for."""
    for name in ("none.csv", "none.txt", "none.h5", "none"):
        with pytest.raises(GraphFileError, match=f"{name}: no such file .looked in"):
            main(comm, [str(shared_tmp / name), "--output", str(shared_tmp / "g.h5")])


@pytest.mark.mpi
def test_wrong_output(comm, shared_tmp):
    path = write(comm, shared_tmp / "a.txt", "0 1\n")
    for output, message in [(shared_tmp / "no" / "a.h5", "no folder"), (shared_tmp, "is a folder")]:
        with pytest.raises(InputError, match=message):
            run(comm, path, output)
    with pytest.raises(InputError, match="-o"):
        main(comm, [str(path)])


@pytest.mark.mpi
def test_info(comm, shared_tmp, capsys):
    path = write(comm, shared_tmp / "a.gr", "p sp 4 3\na 1 2 9\na 1 3 8\na 2 1 7\n")
    assert main(comm, [str(path), "-o", str(shared_tmp / "a.h5"), "--transpose"]) == 0
    capsys.readouterr()
    assert main(comm, [str(path), "--info"]) == 0
    assert main(comm, [str(shared_tmp / "a.h5"), "--info", "--check"]) == 0
    printed = capsys.readouterr().out
    words = " ".join(printed.split())
    assert ("dimacs" in words) == (comm.rank == 0)
    if comm.rank == 0:
        for fact in ("stored edges 3", "edges 3", "nodes 4", "weights int64", "transpose stored yes",
                     "compared and right (all)", "max 2, mean 0.75", "isolated nodes 1 (25.0 %)"):  # fmt: skip
            assert fact in words


def test_info_of_a_damaged_file(comm, tmp_path):
    run(comm, write(comm, tmp_path / "a.wel", lines()), tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["data"][100] += 1
    assert "present (all)" in describe(tmp_path / "a.h5")
    with pytest.raises(GraphFileError, match="the checksum of /data"):
        describe(tmp_path / "a.h5", check=True)


@pytest.mark.slow
def test_edge_list_in_bounded_memory(comm, tmp_path):
    """The command reads 80 MB of text in less memory than its edges and text would take."""
    block = np.random.default_rng(5).integers(10**6, 2 * 10**6, (500_000, 2))
    text = "".join(f"{u} {v}\n" for u, v in block.tolist())
    (tmp_path / "a.txt").write_text(text * 10)
    script = (
        "import sys; from cusp.apps.harness import peak_mb; from mpi4py.MPI import COMM_WORLD;"
        "from cusp.commands.convert import main; main(COMM_WORLD, sys.argv[1:]); print(peak_mb())"
    )
    done = spawn.mpirun(
        1, "-c", script, tmp_path / "a.txt", "-o", tmp_path / "a.h5", "--memory-limit", "32M",
        "--scratch", tmp_path, launcher=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 600


@pytest.mark.parametrize(("content", "code", "ranks"), [("0 1\n", 0, 3), ("0 1\n0 x\n", 1, 1), ("0 1\n0 x\n", 1, 3)])
def test_command(tmp_path, content, code, ranks):
    """Exit code, and one line of error without a traceback."""
    (tmp_path / "a.txt").write_text(content)
    done = spawn.mpirun(ranks, "-m", "cusp.commands.convert", tmp_path / "a.txt", "-o", tmp_path / "a.h5")
    assert done.returncode == code
    assert (tmp_path / "a.h5").exists() == (code == 0)
    if code:
        error = f"error: {tmp_path}/a.txt, line 2: expected 'source target', found '0 x'; if node ids are names"
        assert done.stderr.startswith(error)
        assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "reference"),
    [("usa-road-ny.gr.gz", "usa-road-ny"), ("cnr-2000.txt.gz", "cnr-2000"), ("wiki-Vote.txt.gz", "wiki-vote"),
     ("rome99.gr.gz", "rome99"), ("4elt.graph.gz", "mesh-4elt")],
)  # fmt: skip
def test_real_graph(comm, shared_tmp, real_graphs, name, reference):
    """Nodes, edges and the largest degree are those of the reference."""
    facts = json.loads((real_graphs / f"{reference}.reference.json").read_text())
    found = run(comm, real_graphs / name, shared_tmp / "a.h5", "--drop-loops", "--dedup")
    assert found == (facts["num_nodes"], facts["arcs"])
    with h5py.File(shared_tmp / "a.h5") as file:
        assert np.diff(file["indptr"][...]).max() == facts["out_degree"]["max"]
        assert ("data" in file) == facts["weighted"]
        assert bool(file.attrs["symmetric"]) == (not facts["directed"])


@pytest.mark.mpi
def test_formats_of_the_gap_test_graph_agree(comm, shared_tmp, real_graphs):
    """Six files of one graph give the same edges, and the same least weights."""
    folder = real_graphs / "formats"
    for names, weights in ((["el", "mtx", "graph"], "none"), (["wel", "gr"], "keep")):
        found = []
        for name in names:
            run(comm, folder / f"gapbs-4.{name}", shared_tmp / "a.h5", "--weights", weights,
                "--drop-loops", "--dedup", "--nodes", "14")  # fmt: skip
            found.append(rows(shared_tmp / "a.h5"))
            comm.Barrier()
        assert all(other == found[0] for other in found)
        assert len(found[0]) == 53
