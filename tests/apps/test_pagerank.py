"""PageRank on hard graphs against linear equations, and the sums over rows that it is made of."""

from typing import Any

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.apps.harness import parser_of, rehearse
from cusp.apps.operators.sums.interfaces import Rows
from cusp.apps.pagerank import APP, pagerank, prepare, push_residuals, run, verify
from cusp.apps.run.cli import weights_of
from cusp.apps.shared import neighbour_sums
from cusp.apps.verify.check import VerificationError
from cusp.errors import GraphFileError, OptionError
from cusp.names.names import SortedNames
from cusp.names.packed import Packed
from cusp.policies import load_policy
from cusp.runtime.devices import backend, move, to_host
from gluon.plan import make_plan
from gluon.sync import Sync


def matrix(graph: graphs.Graph, damping: float, teleport: np.ndarray, weights: Any = 1.0) -> np.ndarray:
    """The whole matrix of the walk, column by column: where a node's rank goes."""
    walk = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(walk, (graph.targets, graph.sources), weights)
    given = walk.sum(axis=0)
    walk[:, given > 0] /= given[given > 0]
    walk[:, given == 0] = teleport[:, None]
    return damping * walk + (1 - damping) * teleport[:, None]


def fixed_point(
    graph: graphs.Graph, damping: float = 0.85, teleport: np.ndarray | None = None, weights: Any = 1.0
) -> np.ndarray:
    """Ranks by the solution of linear equations: those of a fixed point, and that the sum is 1."""
    size = graph.num_nodes
    teleport = np.full(size, 1 / size) if teleport is None else teleport
    equations = np.vstack([matrix(graph, damping, teleport, weights) - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]


def rank(comm, part, expected, **options) -> np.ndarray:
    """Run, verify, compare; the ranks of all nodes. Collective."""
    options, sync = parts.options_of(APP, **options), parts.make_sync(part)
    walk = prepare(part, sync, options)
    answer = run(part, sync, walk, options)
    verify(part, sync, answer, walk, options)
    answer = answer.on_host()
    found = parts.gather(part, answer.labels["pagerank"])
    assert found.dtype == (options.precision if options.algorithm == "pull" else "float64")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 if found.dtype == np.float64 else 1e-6)
    return found


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_ranks(comm, shared_tmp, name, policy):
    """Both algorithms."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=True)
    expected = fixed_point(graph, 0.5)
    rank(comm, part, expected, damping=0.5, tolerance=2e-9)
    rank(comm, part, expected, damping=0.5, tolerance=2e-9, algorithm="push-residual")


@pytest.mark.mpi
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_what_the_tolerance_bounds(comm, shared_tmp, tolerance):
    """The changes in one more step, added up; so the distance from the right ranks, in the same norm."""
    graph = graphs.HARD["random"]()
    part = parts.partition_graph(
        graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, weights=False, csc=True
    )
    sync, options = parts.make_sync(part), parts.options_of(APP, algorithm="push-residual", tolerance=tolerance)
    answer = run(part, sync, prepare(part, sync, options), options).on_host()
    found = parts.gather(part, answer.labels["pagerank"])
    teleport = np.full(graph.num_nodes, 1 / graph.num_nodes)
    change = abs(matrix(graph, 0.85, teleport) @ found - found).sum()
    assert change == pytest.approx(answer.figures["l1_change"], rel=1e-6) and change <= tolerance
    assert abs(found - fixed_point(graph)).sum() <= tolerance / (1 - 0.85)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), list(zip(graphs.SYMMETRIC, ["cvc", "mixed", "iec", "oec", "cvc"])))
def test_symmetric(comm, shared_tmp, name, policy):
    """A graph that says it is symmetric is pulled along its own rows, without a transpose."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False)
    assert part.csc is None
    rank(comm, part, fixed_point(graph, 0.5), tolerance=1e-6, precision="float32", damping=0.5)
    rank(comm, part, fixed_point(graph), tolerance=1e-9)


@pytest.mark.mpi
@pytest.mark.parametrize(("weight", "policy"), [("i8", "cvc"), ("f8", "oec"), ("u1", "mixed"), ("f4", "iec")])
@pytest.mark.parametrize("symmetric", [False, True])
def test_weights(comm, shared_tmp, weight, policy, symmetric):
    """Edges count by weight: parallel ones, some of 0, all of some nodes 0, and not the same in both directions."""
    graph = graphs.random_directed(40, 200, seed=3)
    graph = graphs.both_ways(graph) if symmetric else graph
    weights = np.random.default_rng(4).integers(0, 9, graph.num_edges) * (graph.sources % 7 > 0)
    graph = graph._replace(weights=weights)
    path = graphs.write(shared_tmp / "g.h5", graph, weight=weight, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=not symmetric)
    expected = fixed_point(graph, weights=weights)
    assert abs(expected - fixed_point(graph)).sum() > 0.01
    rank(comm, part, expected, tolerance=1e-9)
    rank(comm, part, fixed_point(graph, 0.5, weights=weights), tolerance=1e-6, precision="float32", damping=0.5)
    rank(comm, part, fixed_point(graph), tolerance=1e-9, unweighted=True)


@pytest.mark.mpi
def test_weights_below_0(comm, shared_tmp):
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph._replace(weights=graph.weights - 5))
    part = parts.partition_graph(path, parts.policy_of("oec"), comm, csc=True)
    with pytest.raises(GraphFileError, match="has the weight -4; ranks need finite weights of 0 or more"):
        prepare(part, parts.make_sync(part), parts.options_of(APP))


@pytest.mark.mpi
def test_pushes_do_not_depend_on_the_policy(comm, shared_tmp):
    """Sums of whole numbers: one rank and many, and any policy, give the same bits."""
    graph = graphs.random_directed(80, 300)
    path = graphs.write(shared_tmp / "g.h5", graph)
    alone = parts.partition_graph(path, parts.policy_of("oec"), ranks.MPI.COMM_SELF, weights=False)
    found = []
    for part, sync in [(alone, parts.Sync(parts.make_plan(alone, ranks.MPI.COMM_SELF), ranks.MPI.COMM_SELF))] + [
        (part, parts.make_sync(part))
        for part in (parts.partition_graph(path, parts.policy_of(name), comm, weights=False) for name in ("iec", "cvc"))
    ]:
        options = parts.options_of(APP, algorithm="push-residual")
        answer = push_residuals(part, sync, prepare(part, sync, options), tolerance=1e-6).on_host()
        where = np.argsort(to_host(part.gids[: part.num_masters]))
        values = answer.labels["pagerank"]
        found.append(values[where] if part is alone else parts.gather(part, values))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.mpi
def test_given_number_of_iterations(comm, shared_tmp):
    """With tolerance 0, as many as were asked for; fewer where the tolerance is reached first."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    sync = parts.make_sync(part)
    walk = prepare(part, sync, parts.options_of(APP, tolerance=0.0, iterations=3, unweighted=True))
    answer = pagerank(part, sync, walk, tolerance=0, iterations=3).on_host()
    start = np.full(graph.num_nodes, 1 / graph.num_nodes)
    expected = np.linalg.matrix_power(matrix(graph, 0.85, start), 3) @ start
    np.testing.assert_allclose(parts.gather(part, answer.labels["pagerank"]), expected, rtol=1e-12)
    assert answer.rounds == 3
    assert pagerank(part, sync, walk, tolerance=1e-2, iterations=90).rounds < 10


@pytest.mark.mpi
def test_a_rehearsal_is_short(comm, shared_tmp):
    """However many iterations the run is to have."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["path"]())
    options = parser_of(APP).parse_args([path, "--iterations", str(10**9), "--tolerance", "0"])
    rehearse(APP, comm, load_policy("oec"), options, path, parts.DEVICE, "auto")


@pytest.mark.mpi
@pytest.mark.parametrize("algorithm", ["pull", "push-residual"])
def test_personalized(comm, shared_tmp, algorithm):
    """Walks start at nodes that are named, or that a file gives weights; those without out-edges lead back there."""
    graph = graphs.HARD["first_isolated"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    teleport = np.zeros(graph.num_nodes)
    teleport[[3, 41, 50]] = [0.25, 0.25, 0.5]
    if comm.rank == 0:
        (shared_tmp / "starts.txt").write_text("# node weight\n41\n\n50 2\n3 1.0\n")
    comm.Barrier()
    expected = fixed_point(graph, 0.7, teleport)
    for named in (["41", "50", "3", "50"], ["50:2", "41", "3:1"], [str(shared_tmp / "starts.txt")]):
        chosen = weights_of(named, None, graph.num_nodes, "--personalize")
        rank(
            comm, part, expected, damping=0.7, tolerance=2e-9, algorithm=algorithm, personalize=chosen, unweighted=True
        )


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "never ends: give --iterations"),
        ({"tolerance": 0.0, "iterations": 5, "algorithm": "push-residual", "unweighted": True}, "never ends"),
        ({"tolerance": 1e-9, "precision": "float32"}, "float32 are exact to 1e-06 only"),
        ({"tolerance": 1e-20, "algorithm": "push-residual", "unweighted": True}, "residuals on 300 edges are exact to"),
        ({"algorithm": "push-residual"}, "takes all edges to weigh the same: use --unweighted, or pull"),
        ({"personalize": {3: 1.0, 60: 1.0}}, "--personalize 60: the graph has the nodes 0 to 59"),
        ({"personalize": {3: 0.0}}, "a sum above 0"),
    ],
)
def test_options_that_do_not_fit(comm, shared_tmp, options, message):
    """They are refused on every rank."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    part = parts.partition_graph(path, parts.policy_of("oec"), comm, csc=True)
    with pytest.raises(OptionError, match=message):
        prepare(part, parts.make_sync(part), parts.options_of(APP, **options))


NAMED = SortedNames(Packed.of(["Anna", "Doe, John", "a:2", "b"]))


@pytest.mark.parametrize(
    ("words", "weights"),
    [
        (["Anna", "b:0.5", "Anna:2"], {0: 3.0, 3: 0.5}),
        (["a:2"], {2: 1.0}),  # a name as it stands
        (["a:2:3"], {2: 3.0}),
        ("Anna\n# none\n\nDoe, John 2\nDoe, John\n", {0: 1.0, 1: 3.0}),
        (["Ana"], "--personalize 'Ana': no node of the graph has this name; similar: Anna; nor is there such a file"),
        (["b", "Ana"], "no node of the graph has this name; similar: Anna$"),
        (["b:x"], "the weight 'x' is not a number"),
        ("b\nAnna -1\n", "line 2: the weight -1 is below 0"),
        ("b\nAna 1\n", "line 2 'Ana': no node of the graph"),
    ],
)
def test_nodes_by_name_with_weights(tmp_path, words, weights):
    """On a command line, or in a file."""
    if isinstance(words, str):
        (tmp_path / "starts.txt").write_text(words)
        words = [str(tmp_path / "starts.txt")]
    if isinstance(weights, dict):
        assert weights_of(words, NAMED, 4, "--personalize") == weights
    else:
        with pytest.raises(OptionError, match=weights):
            weights_of(words, NAMED, 4, "--personalize")


@pytest.mark.mpi
def test_verifier_finds_wrong_ranks(comm, shared_tmp):
    """Two ranks exchanged, a rank below 0, a sum that is not 1, and too few iterations."""
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graphs.random_directed()), parts.policy_of("cvc"),
                                 comm, csc=True)  # fmt: skip
    sync, options = parts.make_sync(part), parts.options_of(APP, tolerance=1e-9)
    walk = prepare(part, sync, options)
    right = pagerank(part, sync, walk, tolerance=1e-9)
    verify(part, sync, right, walk, options)

    def refused(message: str, change) -> None:
        answer = pagerank(part, sync, walk, tolerance=1e-9).on_host()
        change(answer.labels["pagerank"])
        with pytest.raises(VerificationError, match=message):
            verify(part, sync, answer, walk, options)

    def exchange(found: np.ndarray) -> None:
        order = np.argsort(found)
        found[order[[0, -1]]] = found[order[[-1, 0]]]

    refused("one more step changes the ranks by", exchange)
    refused("is -", lambda found: np.negative(found, out=found))
    refused("the sum of the ranks is", lambda found: np.multiply(found, 1.001, out=found))
    rounded = pagerank(part, sync, walk, tolerance=0, iterations=300)
    rounded.labels["pagerank"] *= 1 + 1e-12  # as rounding does in hundreds of iterations
    verify(part, sync, rounded, walk, parts.options_of(APP, tolerance=0, iterations=300))
    early = pagerank(part, sync, walk, tolerance=0, iterations=3)
    with pytest.raises(VerificationError, match="one more step changes"):
        verify(part, sync, early, walk, options)


@pytest.mark.parametrize("weight", [None, "u1", "f8"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_over_rows(monkeypatch, dtype, weight):
    """Rows that go over several warps, many in one, empty ones, in groups and in any order."""
    ops, rng = backend(Rows, parts.DEVICE), np.random.default_rng(1)
    if hasattr(ops, "MOST_WARPS"):
        monkeypatch.setattr(ops, "MOST_WARPS", 8)  # so that each goes through several tiles
    sizes = np.concatenate([[9000, 0, 700, 128, 64, 0, 3], rng.integers(0, 5, 900), [400] * 9, [0, 33, 2]])
    sizes = rng.permutation(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    columns = rng.integers(0, sizes.size, offsets[-1]).astype(np.int32)
    values = rng.random(sizes.size).astype(dtype)
    weights = np.ones(columns.size) if weight is None else rng.integers(0, 9, columns.size).astype(weight)
    given = () if weight is None else (move(weights, parts.DEVICE),)
    lids = rng.permutation(sizes.size).astype(np.int32)
    bounds = [0, 0, 1, 500, lids.size - 2]
    rows = ops.group_rows(move(lids, parts.DEVICE), bounds, move(offsets, parts.DEVICE))
    sums = move(np.full(sizes.size, -1, dtype), parts.DEVICE)
    expected = np.full(sizes.size, -1.0)
    for group in range(len(bounds) - 1):
        ops.sum_rows(rows, group, move(columns, parts.DEVICE), move(values, parts.DEVICE), sums, *given)
        for row in lids[bounds[group] : bounds[group + 1]]:
            if sizes[row]:
                edges = slice(offsets[row], offsets[row + 1])
                expected[row] = values[columns[edges]].astype(np.float64) @ weights[edges]
        np.testing.assert_allclose(to_host(sums), expected, rtol=1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_sums_that_travel_early(comm, shared_tmp, monkeypatch, policy):
    """Where messages travel by themselves, masters add up in many steps: the same bits as in one."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    options, found, groups = parts.options_of(APP, iterations=5), [], []
    for edges in (1 << 20, 7):
        monkeypatch.setattr(neighbour_sums, "EDGES_AT_ONCE", edges)
        sync = Sync(make_plan(part, comm, "mpi"), comm)
        walk = prepare(part, sync, options)
        groups.append(walk.neighbours.groups)
        found.append(to_host(run(part, sync, walk, options).labels["pagerank"]).tolist())
    assert found[0] == found[1]
    assert parts.DEVICE == "gpu" or groups[1] > 2 >= groups[0]
