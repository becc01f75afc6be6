"""The k shortest paths, against NetworkX, and against all paths of small graphs, sorted."""

from argparse import Namespace
from itertools import islice

import graphs
import networkx
import numpy as np
import parts
import pytest

from cusp import partition_graph
from cusp.apps import library
from cusp.apps.harness import main
from cusp.apps.paths import APP, paths
from cusp.apps.shared.detours import graphs_of
from cusp.apps.verify.check import VerificationError
from cusp.errors import GraphFileError, OptionError

Routes = list[tuple[float, list[int]]]


def simple(graph: graphs.Graph, hops: bool) -> networkx.DiGraph:
    """The shortest of parallel edges."""
    known = networkx.DiGraph()
    known.add_nodes_from(range(graph.num_nodes))
    for source, target, weight in reversed(graph.triples()):
        known.add_edge(source, target, weight=1 if hops else weight)
    return known


def measured(graph: networkx.DiGraph, routes) -> Routes:
    """Lengths, and paths."""
    return [(networkx.path_weight(graph, route, "weight"), route) for route in routes]


def routes_of(answer) -> Routes:
    """The same of an answer."""
    path, node, far = answer.table.values()
    ends = np.flatnonzero(np.diff(path, append=-1)) + 1
    return [(far[end - 1].item(), nodes.tolist()) for end, nodes in zip(ends, np.split(node, ends))]


def find(part, source: int, target: int, k: int, hops: bool = False) -> Routes:
    """Run and verify. Collective."""
    sync, options = parts.make_sync(part), Namespace(source=source, target=target, k=k, hops=hops)
    given = graphs_of(part, sync, hops)
    answer = paths(sync, given, source, target, k)
    APP.check(part, sync, None, answer, given, options)
    return routes_of(answer)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_paths(comm, shared_tmp, name, policy):
    """Hard graphs: lengths as in NetworkX, of paths that the verifier accepts."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    for hops in (False, True):
        known = simple(graph, hops)
        for source, target in {(0, graph.num_nodes - 1), (graph.num_nodes // 2, 0)}:
            found = find(part, source, target, 4, hops)
            try:
                expected = [*islice(networkx.shortest_simple_paths(known, source, target, "weight"), 4)]
            except networkx.NetworkXNoPath:
                expected = []
            assert [length for length, _ in found] == [length for length, _ in measured(known, expected)]


@pytest.mark.mpi
@pytest.mark.parametrize("kind", parts.share([np.int64, np.float64, np.int64]))
def test_all_paths(comm, shared_tmp, kind):
    """Small graphs, to the last path, ascending also by nodes; of edges of length 0, by length."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        size, zeros = int(random.integers(3, 9)), seed % 3 == 0
        pairs = random.integers(0, size, (3 * size, 2))
        graph = graphs.make(
            size, pairs, random.integers(0 if zeros else 1, 5, 3 * size).astype(kind) / (3 if kind is np.float64 else 1)
        )
        graph = graph._replace(weights=graph.weights.astype(kind))
        part = parts.partition_graph(
            graphs.write(shared_tmp / f"{seed}.h5", graph, weight=kind), parts.policy_of("cvc"), comm
        )
        known = simple(graph, False)
        expected = sorted(measured(known, networkx.all_simple_paths(known, 0, size - 1)))
        found = find(part, 0, size - 1, 10**6)
        np.testing.assert_allclose([length for length, _ in found], [length for length, _ in expected])
        assert sorted(found) == expected if zeros or kind is np.float64 else found == expected


@pytest.mark.mpi
def test_command(comm, shared_tmp, capsys):
    """A line for each path; by name; the table in a file."""
    path = str(shared_tmp / "r.csv")
    if comm.rank == 0:
        (shared_tmp / "r.csv").write_text(
            "source,target,weight\nBern,Thun,1\nThun,Chur,4\nBern,Basel,2\nBasel,Chur,2\n"
        )
    comm.Barrier()
    run = [path, "--device", parts.WANTED, "--source", "Bern", "--target"]
    assert main(APP, comm, [*run, "Chur", "--k", "3", "--verify", "--output", str(shared_tmp / "p.tsv")]) == 0
    assert main(APP, comm, ["--hops", *run, "Chur"]) == 0
    assert main(APP, comm, [path, "--device", parts.WANTED, "--source", "Chur", "--target", "Bern"]) == 0
    said = comm.bcast(capsys.readouterr().out)
    for line in (
        "distance 4: Bern -> Basel -> Chur\ndistance 5: Bern -> Thun -> Chur\n",
        "hops 2: Bern -> Basel -> Chur\nhops 2: Bern -> Thun -> Chur\n",
        "there is no path from Chur to Bern",
    ):
        assert line in said
    lines = (shared_tmp / "p.tsv").read_text().splitlines()
    assert len(lines) == 7 and lines[3].replace('"', "") == "0\tChur\t4"
    found = library.paths(partition_graph(path, comm=comm, device=parts.WANTED), source="Bern", target="Chur")
    assert found.columns()["node"] == ["Bern", "Basel", "Chur", "Bern", "Thun", "Chur"]


@pytest.mark.mpi
def test_mistakes(comm, shared_tmp):
    """Nodes that are not there, weights without a sum; what the verifier finds."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    sync, options = parts.make_sync(part), Namespace(source=3, target=9, k=3, hops=False)
    given = graphs_of(part, sync, False)
    with pytest.raises(OptionError, match="--target 60: the graph has the nodes 0 to 59"):
        paths(sync, given, 3, 60, 1)
    huge = graph._replace(weights=np.full(graph.num_edges, 2**60))
    with pytest.raises(GraphFileError, match="through all 60 nodes may be too long"):
        graphs_of(
            parts.partition_graph(graphs.write(shared_tmp / "h.h5", huge), parts.policy_of("cvc"), comm), sync, False
        )
    right = paths(sync, given, 3, 9, 3)
    begins = np.flatnonzero(np.diff(right.table["number"], prepend=-1))
    for name, place, message in (
        ("distance", begins[1] - 1, "the first path is .* long, not"), ("node", 0, "is no path without circles"),
        ("distance", begins[1] + 1, "path 1 has other edges, or lengths"), ("distance", -1, "do not ascend"),
    ):  # fmt: skip
        wrong = {key: values.copy() for key, values in right.table.items()}
        wrong[name][place] = 0 if message.endswith("ascend") else wrong[name][place] + 1
        with pytest.raises(VerificationError, match=message):
            APP.verify(part, sync, None, Namespace(table=wrong), given, options)
    with pytest.raises(VerificationError, match="0 paths of 3"):
        none = {key: values[:0] for key, values in right.table.items()}
        APP.verify(part, sync, None, Namespace(table=none), given, options)
