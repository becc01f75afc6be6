"""Graph500: the edge list, what is made of it, searches against serial ones, each rule of validation, the output."""

import json
from argparse import Namespace

import graphs
import numpy as np
import parts
import pytest
import ranks
from spawn import mpirun

from cusp.apps.graph500 import __main__ as graph500
from cusp.apps.graph500.output import rates, statistics
from cusp.apps.graph500.validate import EdgeTuples, Validator
from cusp.apps.verify.check import VerificationError
from cusp.edge_lists.generators import rmat
from cusp.policies import load_policy
from cusp.runtime.devices import move, to_host
from cusp.runtime.mpi import MPI

COMM = ranks.COMM
OPTIONS = Namespace(
    scale=6, edgefactor=4, seed=3, order="degree", split="edges", transport="auto", keys=5, skip_sssp=False
)
POLICIES = ["oec", "cvc"]


def all_edges(tuples: EdgeTuples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The list of all ranks. Collective."""
    mine = [to_host(array) for array in (tuples.sources, tuples.targets, tuples.weights)]
    return tuple(np.concatenate(arrays) for arrays in zip(*COMM.allgather(mine)))


def undirected(sources, targets, weights, dedup: bool, num_nodes: int = 64) -> graphs.Graph:
    """Both directions without loops; of parallel edges the one of the smallest weight, on request."""
    kept = sources != targets
    ends = [np.r_[a[kept], b[kept]].astype(np.int64) for a, b in ((sources, targets), (targets, sources))]
    values = np.r_[weights[kept], weights[kept]]
    order = np.lexsort([values, ends[1], ends[0]])
    ends, values = [array[order] for array in ends], values[order]
    first = np.ones(values.size, bool)
    if dedup:
        first[1:] = (np.diff(ends[0]) != 0) | (np.diff(ends[1]) != 0)
    return graphs.make(num_nodes, np.stack([array[first] for array in ends], axis=1), values[first])


@pytest.mark.mpi
def test_the_edge_list_does_not_depend_on_the_ranks(comm):
    alone = graph500.generate(OPTIONS, True, parts.DEVICE, MPI.COMM_SELF)
    tuples = graph500.generate(OPTIONS, True, parts.DEVICE, comm)
    for mine, whole in zip(all_edges(tuples), (alone.sources, alone.targets, alone.weights)):
        np.testing.assert_array_equal(mine, to_host(whole))
    sources, targets = rmat(3, 6, 4).edges(0, 256)
    np.testing.assert_array_equal(to_host(alone.sources), sources)
    weights = to_host(alone.weights).astype(np.float64) / graph500.UNIT
    assert weights.min() >= 0 and weights.max() < 2**24 and (weights == np.floor(weights)).all()
    assert abs(weights.mean() / 2**24 - 0.5) < 0.1 and np.unique(weights).size > 250
    assert graph500.generate(OPTIONS, False, parts.DEVICE, comm).weights is None


@pytest.mark.mpi
@pytest.mark.parametrize("policy", POLICIES)
def test_construction_and_searches(comm, policy):
    """Kernel 1 gives the undirected graph of the list, kernels 2 and 3 what serial searches give; input edges count."""
    tuples = graph500.generate(OPTIONS, True, parts.DEVICE, comm)
    graph = graph500.construct(tuples, load_policy(policy), OPTIONS, comm)
    sources, targets, weights = all_edges(tuples)
    units = (weights / np.float32(graph500.UNIT)).astype(np.int64)
    expected = undirected(sources, targets, units, dedup=parts.DEVICE == "cpu")
    parts.check_partition(graph.part.on("cpu"), expected)
    validator = Validator(tuples, graph.part, comm)
    for source in np.flatnonzero(expected.degrees)[:3].tolist():
        parents, hops = graph500.search(graph, comm, source, False)
        serial = graphs.serial_hops(expected, source)
        np.testing.assert_array_equal(parts.gather(graph.part, hops), serial)
        component = int((serial[sources] >= 0).sum())
        assert validator.check(source, parents, hops, False) == component
        parents, distances = graph500.search(graph, comm, source, True)
        serial = graphs.serial_distances(expected, source)
        whole = parts.gather(graph.part, distances)
        np.testing.assert_array_equal(whole, np.where(serial < 0, np.inf, serial * graph500.UNIT))
        assert validator.check(source, parents, distances, True) == component


# A component of nodes 0 to 5 and one of 6 and 7: (source, target, weight), with a loop and a parallel edge.
EDGES = [(1, 0, 0.25), (1, 2, 0.25), (0, 2, 1.0), (2, 3, 0.0), (4, 3, 0.5), (4, 5, 0.0), (5, 3, 0.5), (2, 2, 0.5),
         (0, 1, 0.75), (6, 7, 0.5)]  # fmt: skip
HOPS = [0, 1, 1, 2, 3, 3, -1, -1], [0, 0, 0, 2, 3, 3, -1, -1]  # and parents
DISTANCES = [0, 0.25, 0.5, 0.5, 1.0, 1.0, np.inf, np.inf], [0, 0, 1, 2, 3, 4, -1, -1]


def validate(depths, parents, weighted) -> int:
    """Check an answer on the edges above, which the ranks share out. Collective."""
    mine = [np.array(column) for column in zip(*EDGES[COMM.rank :: COMM.size])] or [np.empty(0)] * 3
    arrays = [move(array.astype(kind), parts.DEVICE) for array, kind in zip(mine, ("u4", "u4", "f4"))]
    tuples = EdgeTuples(8, len(EDGES), *arrays, parts.DEVICE)
    part = graph500.construct(tuples, load_policy("cvc"), OPTIONS, COMM).part
    own = to_host(part.gids[: part.num_masters])
    values = np.array(depths, np.float64 if weighted else np.int32)[own], np.array(parents, np.int64)[own]
    return Validator(tuples, part, COMM).check(0, *(move(array, parts.DEVICE) for array in values[::-1]), weighted)


WRONG = {  # what is wrong: message, weighted, {node: (depth, parent)}
    "the source's parent": ("rule 1: the source 0 has the parent 1", False, {0: (0, 1)}),
    "the source's depth": ("rule 1: the source 0 .* depth 1", False, {0: (1, 0)}),
    "a parent of what is not reached": ("rule 1: reached without .* node 7", False, {7: (-1, 6)}),
    "no parent": ("rule 1: reached without .* node 4", True, {4: (1.0, -1)}),
    "no such parent": ("rule 1: reached without .* node 4", True, {4: (1.0, 8)}),
    "a cycle": ("rule 1: node [45] is its own ancestor", True, {4: (1.0, 5), 5: (1.0, 4)}),
    "a level left out": ("rule 2: not one hop .* node 3", False, {3: (2, 0), 4: (3, 3)}),
    "lengths of tree edges": ("rules 2 and 5: .* node 3", True, {3: (0.5, 4)}),
    "no shortest path": ("rule 3: .* node 1 at depth 0.25 and node 2 at depth 1.0", True,
                         {2: (1.0, 0), 3: (1.0, 2), 4: (1.5, 3), 5: (1.5, 4)}),
    "too many hops": ("rule 3: .* length 1 joins", False, {2: (2, 1), 3: (3, 2), 4: (4, 3), 5: (4, 3)}),
    "a node left out": ("rule 4: .* node 5 at depth", False, {5: (-1, -1)}),
    "another component": ("rules 2 and 5: .* node 6", False, {6: (1, 0), 7: (2, 6)}),
    "no edge to the parent": ("rules 2 and 5: .* node 3", False, {3: (2, 1)}),
}  # fmt: skip


@pytest.mark.mpi
def test_right_answers_are_valid(comm):
    """Nine of the ten input edges lie in the component, with the loop and the parallel edge."""
    assert validate(*HOPS, False) == 9
    assert validate(*DISTANCES, True) == 9


@pytest.mark.mpi
@pytest.mark.parametrize("name", WRONG)
def test_every_rule_is_checked(comm, name):
    message, weighted, changes = WRONG[name]
    depths, parents = (list(values) for values in (DISTANCES if weighted else HOPS))
    for node, (depth, parent) in changes.items():
        depths[node], parents[node] = depth, parent
    with pytest.raises(VerificationError, match=message):
        validate(depths, parents, weighted)


def test_statistics():
    """Against figures worked out by hand."""
    found = statistics(np.array([4.0, 1, 3, 2]))
    assert [found[key] for key in ("min", "firstquartile", "median", "thirdquartile", "max", "mean")] == [
        1, 1.5, 2.5, 3.5, 4, 2.5
    ]  # fmt: skip
    assert found["stddev"] == pytest.approx((5 / 3) ** 0.5)
    assert statistics(np.array([7.0]))["thirdquartile"] == 7
    found = rates(np.array([1.0, 2, 4]), np.array([8.0, 8, 8]))
    assert (found["min"], found["median"], found["max"]) == (2, 4, 8)
    assert found["harmonic_mean"] == pytest.approx(24 / 7)
    slow = np.array([1, 2, 4]) / 8
    assert found["harmonic_stddev"] == pytest.approx(slow.std(ddof=1) / slow.mean() ** 2 / 2**0.5)


@pytest.mark.parametrize("n", [1, 2])
def test_the_program(tmp_path, n):
    """The lines of the official output in their order, and a row for each search."""
    rows = tmp_path / "rows.jsonl"
    done = mpirun(n, "-m", "cusp.apps.graph500", "--scale", "7", "--keys", "4", "--policy", "cvc", "--rows", rows)
    assert done.returncode == 0, done.stderr
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert names[:7] == ["SCALE", "edgefactor", "NBFS", "NSSSP", "graph_generation", "num_mpi_processes",
                         "construction_time"]  # fmt: skip
    assert names[7:10] == ["bfs  min_time", "bfs  firstquartile_time", "bfs  median_time"]
    assert "bfs  harmonic_mean_TEPS" in names and "sssp harmonic_stddev_TEPS" in names and "median_nedge" in names
    values = {line.split(":")[0]: float(line.split()[-1]) for line in done.stdout.splitlines()}
    assert (values["SCALE"], values["NBFS"], values["num_mpi_processes"]) == (7, 4, n)
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [row["app"] for row in found] == ["graph500-bfs"] * 4 + ["graph500-sssp"] * 4
    assert len({row["source"] for row in found}) == 4
    teps = 4 / sum(row["seconds"] / row["input_edges"] for row in found[:4])
    assert values["bfs  harmonic_mean_TEPS"] == pytest.approx(teps, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scale", "0"], "argument --scale: 0: expected a whole number from 1 to 40"),
        (["--scale", "4", "--memory-limit", "1G"], "made in memory"),
        (["--scale", "4", "--grid", "2x2"], "--grid 2x2 is for 4 ranks"),
    ],
)
def test_options_that_do_not_fit(options, message):
    done = mpirun(1, "-m", "cusp.apps.graph500", *options, launcher=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2 if "--help" in done.stderr else 1, False)
    assert message in done.stderr
