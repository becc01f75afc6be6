"""Paths and forests: on hard graphs under several policies, against serial searches."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps import path
from cusp.apps.forest import forest
from cusp.apps.harness import main
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.paths import verify_forest
from cusp.errors import OptionError
from cusp.runtime.devices import to_host

policies = pytest.mark.parametrize("policy", ["oec", "cvc", "mixed"])
NAMES = ("random", "loops_and_doubles", "two_islands", "path", "star", "last_isolated", "one_node", "random_symmetric")


def partition(comm, shared_tmp, name, policy, **options):
    """A hard graph, its partition and sync layer. Collective."""
    graph = graphs.HARD[name]()
    file = graphs.write(shared_tmp / "g.h5", graph, symmetric=options.pop("symmetric", False))
    part = parts.partition_graph(file, parts.policy_of(policy), comm, csc=True, **options)
    return graph, part, parts.make_sync(part)


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("name", NAMES)
def test_paths(comm, shared_tmp, name, policy):
    """Weights of each path add up to the distance that a serial search finds; zero-length edges too."""
    graph, part, sync = partition(comm, shared_tmp, name, policy)
    weight = {}
    for u, v, w in graph.triples():
        weight[u, v] = min(w, weight.get((u, v), w))
    source = int(graph.degrees.argmax())
    answer = path.shortest_tree(
        part, sync, source, *path.prepare(part, sync, parts.options_of(path.APP, hops=False))
    ).on_host()
    expected = graphs.serial_distances(graph, source)
    for node, (way, distance) in enumerate(path.paths_to(part, sync, answer, list(range(graph.num_nodes)))):
        assert distance == expected[node]
        assert way.size == 0 if distance < 0 else (way[0], way[-1]) == (source, node)
        assert distance < 0 or sum(weight[edge] for edge in zip(way[:-1].tolist(), way[1:].tolist())) == distance
    with pytest.raises(OptionError, match=f"target {graph.num_nodes}: the graph has the nodes 0 to "):
        path.paths_to(part, sync, answer, [graph.num_nodes])


@pytest.mark.mpi
@pytest.mark.parametrize("hops", [False, True])
def test_command(comm, shared_tmp, capsys, hops):
    """Each target has its line; the answer is verified; edges of length 0 make no circles."""
    pairs = [(v, v + 1) for v in range(40)] + [(v + 1, v) for v in range(40)] + [(0, 40)]
    graph = graphs.make(45, pairs, [0] * 80 + [7])
    file = graphs.write(shared_tmp / "g.h5", graph)
    more = ["--hops"] if hops else []
    assert main(path.APP, comm, [file, "--source", "0", "--targets", "40,2,44", "--verify", *more]) == 0
    said = comm.bcast(capsys.readouterr().out)
    assert "there is no path from 0 to 44" in said
    assert ("hops 1: 0 -> 40" if hops else "distance 0: 0 -> 1 -> 2 -> ") in said
    assert ("(11 more)" in said) == (not hops)


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("name", NAMES)
def test_forest(comm, shared_tmp, name, policy):
    """Every node has the nearest root, the lowest of equals; a wrong one is found out."""
    graph, part, sync = partition(comm, shared_tmp, name, policy, weights=False)
    roots = sorted({0, graph.num_nodes // 2, graph.num_nodes - 1})
    answer = forest(part, sync, roots).on_host()
    hops = np.array([graphs.serial_hops(graph, root) for root in roots])
    far = np.where(hops < 0, np.iinfo(np.int32).max, hops)
    expected = np.where((hops >= 0).any(axis=0), np.array(roots)[far.argmin(axis=0)], -1)
    np.testing.assert_array_equal(parts.gather(part, answer.labels["root"]), expected)
    np.testing.assert_array_equal(
        parts.gather(part, answer.labels["hops"]), np.where(expected < 0, -1, far.min(axis=0))
    )
    verify_forest(part, sync, roots, **answer.labels)
    if graph.num_nodes > 2:
        for wrong in "hops", "root":
            damaged = {key: values.copy() for key, values in answer.labels.items()}
            damaged[wrong][to_host(part.gids[: part.num_masters]) == roots[-1]] = (
                1 if wrong == "hops" else roots[-1] - 1
            )
            with pytest.raises(VerificationError, match="the answer is wrong"):
                verify_forest(part, sync, roots, **damaged)


@pytest.mark.mpi
def test_forest_without_such_a_root(comm, shared_tmp):
    _, part, sync = partition(comm, shared_tmp, "star", "oec")
    with pytest.raises(OptionError, match="root 21: the graph has the nodes 0 to 20"):
        forest(part, sync, [1, 21])
