"""Generated graphs: the right shape, and the same on any number of ranks."""

import hashlib

import h5py
import numpy as np
import pytest
from spawn import mpirun
from test_csr_builder import gathered

from cusp.commands import generate as script
from cusp.edge_lists import generators, random_kernels
from cusp.edge_lists.generators import STREAMS, generate
from cusp.edge_lists.random_kernels import WeightRule
from cusp.errors import InputError, OptionError
from cusp.output.whole_file import OutputError

SMALL = {
    "rmat": {"scale": 9, "edge_factor": 8},
    "uniform": {"nodes": 100, "edges": 3000},
    "road": {"width": 30, "height": 20, "keep": 0.6},
    "grid": {"width": 5, "height": 4},
    "star": {"nodes": 9},
    "path": {"nodes": 9},
    "cycle": {"nodes": 9},
    "complete": {"nodes": 9},
    "tree": {"nodes": 9},
}


def edges_of(result):
    """The set of (source, target) of a whole graph."""
    indptr, indices, _ = gathered(result)
    return set(zip(np.repeat(np.arange(result.num_nodes), np.diff(indptr)).tolist(), indices.tolist(), strict=True))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("star", {(0, v) for v in range(1, 9)}),
        ("path", {(v, v + 1) for v in range(8)}),
        ("cycle", {(v, (v + 1) % 9) for v in range(9)}),
        ("complete", {(v, w) for v in range(9) for w in range(9) if v != w}),
        ("tree", {((v - 1) // 2, v) for v in range(1, 9)}),
        (
            "grid",
            {
                (5 * y + x, 5 * (y + dy) + x + dx)
                for y in range(4)
                for x in range(5)
                for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0))
                if 0 <= y + dy < 4 and 0 <= x + dx < 5
            },
        ),
    ],
)
def test_regular(comm, kind, expected):
    result = generate(kind, comm, **SMALL[kind]).build()
    assert result.num_edges == len(expected)
    assert edges_of(result) == expected


@pytest.mark.mpi
@pytest.mark.parametrize("kind", ["star", "path", "cycle", "complete", "tree"])
def test_one_node(comm, kind):
    result = generate(kind, comm, nodes=1, drop_loops=True).build()
    assert (result.num_nodes, result.num_edges) == (1, 0)


DIGESTS = {
    "rmat": "e1074fc780cdaeac",
    "uniform": "173dba811d7aef8d",
    "road": "610fb02a05b07b3c",
}


@pytest.mark.mpi
@pytest.mark.parametrize("kind", DIGESTS)
def test_same_for_ever(comm, monkeypatch, kind):
    """The same graph for any number of ranks, batch size, and version of this program."""
    monkeypatch.setattr(generators, "BATCH", 100 * comm.size + 17)
    result = generate(kind, comm, seed=3, weights="1:255", **SMALL[kind]).build()
    indptr, indices, weights = gathered(result)
    digest = hashlib.sha256(indptr.tobytes() + indices.tobytes() + weights.tobytes()).hexdigest()
    assert digest[:16] == DIGESTS[kind]


@pytest.mark.mpi
def test_seeds_differ(comm):
    for kind in ("rmat", "uniform", "road"):
        first, second = (edges_of(generate(kind, comm, seed=seed, **SMALL[kind]).build()) for seed in (1, 2))
        assert len(first & second) < 0.8 * len(first)


@pytest.mark.mpi
def test_clean_rmat(comm):
    """Symmetric with its weights, no loops, no parallel edges, and as skewed as RMAT should be."""
    clean = {"symmetrize": True, "drop_loops": True, "dedup": True}
    result = generate("rmat", comm, weights="1:9", scale=12, **clean).build()
    indptr, indices, weights = gathered(result)
    sources = np.repeat(np.arange(4096), np.diff(indptr))
    matrix = np.zeros((4096, 4096), np.uint8)
    matrix[sources, indices] = weights
    assert result.symmetric and np.count_nonzero(matrix) == indices.size
    assert (matrix == matrix.T).all() and not matrix.diagonal().any()
    assert set(np.unique(weights)) == set(range(1, 10))
    assert np.diff(indptr).max() > 20 * np.diff(indptr).mean()


def test_rmat_quadrants():
    """With ids permuted back, the highest bits of source and target have the probabilities A, B, C, D."""
    scale, size = 8, 200_000
    key = random_kernels.key_of(1)
    sources, targets = generators.rmat(1, scale, 1000).edges(0, size)
    with np.errstate(over="ignore"):
        permuted = random_kernels._permuted.py_func
        place = permuted(np.arange(2**scale, dtype=np.uint64), np.uint64(scale), key).astype(np.int64)
    assert sorted(place) == list(range(2**scale))
    node = np.argsort(place)
    for bit in range(scale):
        quadrant = 2 * (node[sources] >> bit & 1) + (node[targets] >> bit & 1)
        shares = np.bincount(quadrant, minlength=4) / size
        np.testing.assert_allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.006)


def test_edges_do_not_depend_on_range():
    """Any range of edge numbers gives the same edges as the whole."""
    for kind in ("rmat", "uniform"):
        stream = STREAMS[kind](5, **SMALL[kind])
        whole = stream.edges(0, 2000)
        for first, last in ((0, 1), (511, 514), (1000, 1999)):
            for part, all_ends in zip(stream.edges(first, last), whole, strict=True):
                np.testing.assert_array_equal(part, all_ends[first:last])


def test_road_keeps_its_share():
    sources, _ = generators.road(1, 300, 200, 0.6).edges(0, 2 * 300 * 200)
    assert abs(sources.size / (299 * 200 + 300 * 199) - 0.6) < 0.01


def test_uniform_is_uniform():
    for ends in generators.uniform(1, 10, 100_000).edges(0, 100_000):
        assert abs(np.bincount(ends, minlength=10) / 10_000 - 1).max() < 0.05


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("1:255", "u1"),
        ("0:256", "u2"),
        ("1:65536", "u4"),
        ("7:7", "u1"),
        ("0:4294967295", "u4"),
        ("0.0:1.0", "f4"),
    ],
)
def test_weights(text, dtype):
    rule = WeightRule.parse(text)
    sources, targets = np.random.default_rng(0).integers(0, 1000, (2, 100_000))
    weights = rule.weights(sources, targets, 1)
    assert weights.dtype == dtype
    np.testing.assert_array_equal(weights, rule.weights(targets, sources, 1))
    assert weights.min() >= rule.low and weights.max() <= rule.high
    middle = (rule.low + rule.high) / 2
    assert abs(weights.mean() - middle) <= 0.01 * (rule.high - rule.low)


@pytest.mark.parametrize("text", ["", "1", "1:2:3", "5:4", "-1:3", "a:b", "nan:1.0", "0.0:inf", "0:4294967296"])
def test_bad_weights(text):
    with pytest.raises(OptionError, match="weights"):
        WeightRule.parse(text)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("no-such", {}),
        ("star", {"nodes": 0}),
        ("star", {}),
        ("star", {"nodes": 3, "edges": 2}),
        ("rmat", {"scale": 41}),
        ("rmat", {"scale": 4, "edge_factor": -1}),
        ("uniform", {"nodes": 2**32 + 1, "edges": 3}),
        ("uniform", {"nodes": 3, "edges": -1}),
        ("road", {"width": 0, "height": 3}),
        ("road", {"width": 3, "height": 3, "keep": 1.5}),
    ],
)
def test_bad_parameters(comm, kind, parameters):
    with pytest.raises(OptionError):
        generate(kind, comm, **parameters)


def test_script_knows_all_kinds():
    """Every generator has its subcommand, with the function's parameters."""
    for kind, parameters in SMALL.items():
        options = [text for name, value in parameters.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        found = vars(script.make_parser().parse_args([kind, *options, "--output", "x"]))
        assert {name: found[name] for name in parameters} == parameters
    assert set(script.KINDS) == set(STREAMS) == set(SMALL)


@pytest.mark.mpi
def test_the_suffix_decides_the_format(comm, shared_tmp):
    """Edges as a table where the name says so; other suffixes are refused with the list."""
    output = shared_tmp / "star.csv"
    assert script.main(comm, ["star", "--nodes", "4", "-o", str(output)]) == 0
    comm.Barrier()
    assert output.read_text().split() == ['"source","target"', "0,1", "0,2", "0,3"]
    with pytest.raises(OutputError, match="use one of .h5, .hdf5, .csv, .tsv, .json, .parquet"):
        script.main(comm, ["star", "--nodes", "4", "-o", str(shared_tmp / "star.txt")])


@pytest.mark.parametrize(("text", "number"), [("17", 17), ("3K", 3072), ("1.5g", 3 * 2**29), ("2MiB", 2**21)])
def test_num_bytes(text, number):
    assert script.num_bytes(text) == number


def run(num_ranks, *arguments):
    return mpirun(num_ranks, "-m", "cusp.commands.generate", *arguments)


@pytest.mark.limit(200)
def test_command(tmp_path):
    """The same file, byte for byte, from one rank and from three with very little memory."""
    options = "rmat --scale 10 --symmetrize --drop-loops --dedup --weights 1:255 --seed 4 --transpose".split()
    files = [tmp_path / "one.h5", tmp_path / "three.h5"]
    one = run(1, *options, "--output", files[0])
    assert one.returncode == 0, one.stderr
    assert "1,024 nodes" in one.stdout and one.stdout.count("\n") == 1
    three = run(3, *options, "--output", files[1], "--memory-limit", "100K", "--scratch", tmp_path)
    assert three.returncode == 0, three.stderr
    assert files[0].read_bytes() == files[1].read_bytes()
    with h5py.File(files[0]) as file:
        assert file["data"].dtype == np.uint8 and file.attrs["symmetric"] and "csc" in file


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("star --nodes 0 --output graph.h5", "nodes is 0"),
        (
            "rmat --scale 4 --edge-factor 576460752303423488 --output graph.h5",
            "edges with scale 4, not fewer than 2^63",
        ),
        ("star --nodes 4 --output missing/graph.h5", "missing/graph.h5: there is no folder missing"),
        ("star --nodes many --output graph.h5", "invalid int value"),
        ("star --nodes 4 --memory-limit 0 --output graph.h5", "invalid number of bytes value"),
        ("star --nodes 4", "required: -o/--output"),
        ("", "required: KIND"),
    ],
)
def test_command_errors(comm, capsys, options, message):
    """One message on every rank; what argparse refuses, rank 0 says."""
    with pytest.raises((InputError, SystemExit)) as caught:
        script.main(comm, options.split())
    refused = isinstance(caught.value, SystemExit)
    assert comm.bcast(capsys.readouterr().err if refused else str(caught.value)).count(message) == 1
    assert not refused or caught.value.code == 2
