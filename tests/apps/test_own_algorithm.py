"""An algorithm of one short file, with an operator and a priority of its own: every way to run it gives one answer."""

import heapq
from pathlib import Path

import graphs
import h5py
import numpy as np
import own_algorithm
import parts
import pytest

from cusp.apps import harness
from cusp.apps.operators.expressions.relaxing import BY_PRIORITY
from cusp.apps.verify.check import VerificationError
from cusp.partition import Partition
from gluon.plan import make_plan
from gluon.sync import Sync

WAYS = {  # --execution, edges, --transport
    "rounds": ("bulk", 2400, "auto"), "mail": ("async", 1200, "mpi"), "peers": ("auto", 1200, "auto"),
    "dense": ("auto", 2400, "auto"),
}  # fmt: skip


def roads(edges: int) -> graphs.Graph:
    """A random graph, a third of whose roads are closed."""
    graph = graphs.random_directed(400, edges, seed=4)
    return graph._replace(weights=np.random.default_rng(4).integers(1, 60, graph.num_edges))


def serial_costs(graph: graphs.Graph, source: int) -> np.ndarray:
    """Dijkstra with a heap."""
    costs, heap = np.full(graph.num_nodes, own_algorithm.FAR), [(0, source)]
    while heap:
        cost, node = heapq.heappop(heap)
        if cost >= costs[node]:
            continue
        costs[node] = cost
        for edge in range(graph.indptr[node], graph.indptr[node + 1]):
            if graph.weights[edge] < 40:
                heapq.heappush(heap, (cost + int(graph.weights[edge]) + node % 5, int(graph.targets[edge])))
    return costs


def start(graph: graphs.Graph) -> tuple[int, np.ndarray]:
    """A node with many roads, and what journeys from there cost."""
    costs = serial_costs(graph, source := int(graph.degrees.argmax()))
    assert (costs < own_algorithm.FAR).sum() > 100
    return source, costs


@pytest.mark.mpi
@pytest.mark.parametrize("way", WAYS)
def test_every_way(comm, shared_tmp, way):
    """Verified, and what Dijkstra finds: in rounds, by mail, among CPU ranks that share memory."""
    if len(set(parts.WANTED.split(","))) > 1 and way == "mail":
        pytest.skip("mixed jobs go in rounds")
    execution, edges, transport = WAYS[way]
    graph = roads(edges)
    source, costs = start(graph)
    path, output = graphs.write(shared_tmp / "g.h5", graph), str(shared_tmp / "cost.h5")
    arguments = [path, "--policy", "cvc", "--source", str(source), "--execution", execution, "--transport", transport]
    arguments += ["--device", parts.WANTED, "--verify", "--output", output]
    assert harness.main(own_algorithm.APP, comm, arguments) == 0
    with h5py.File(output) as file:
        np.testing.assert_array_equal(file["cost"][:], costs)
    if {*parts.WANTED.split(",")} == {"cpu"}:
        part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
        sync = Sync(make_plan(part, comm, transport), comm, execution=execution)
        expected = {1: "whole"}.get(comm.size, {"dense": "rounds"}.get(way, way))
        assert BY_PRIORITY.way(part, sync) == expected


@pytest.mark.mpi
def test_its_verifier(comm, shared_tmp):
    """Costs that are too low or too high are refused."""
    graph = roads(1200)
    part: Partition = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), comm)
    sync, (source, costs) = parts.make_sync(part), start(graph)
    node = int(np.flatnonzero((costs > 0) & (costs < own_algorithm.FAR))[-1])
    for change, message in (1, "cheaper way"), (-1, "no way explains|cheaper way"):
        answer = own_algorithm.journey(part, sync, source, None, None)
        answer.labels["cost"][part.gids[: part.num_masters] == node] += change
        with pytest.raises(VerificationError, match=message):
            own_algorithm.verify(part, sync, source, answer, None, None)


def test_it_is_short():
    assert len(Path(own_algorithm.__file__).read_text().splitlines()) <= 40
