"""The blocks of code in docs/tutorial/algorithms.md, run as they are."""

import heapq
import importlib.util
import re
from pathlib import Path

import graphs
import h5py
import numpy as np
import parts
import pytest
import spawn

from cusp.apps import harness
from cusp.apps.library import partition_graph
from cusp.apps.verify.check import VerificationError

TUTORIAL = Path(harness.__file__).resolve().parents[1] / "docs" / "tutorial" / "algorithms.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)


def likely(num_nodes: int = 80, num_edges: int = 300) -> graphs.Graph:
    """A random graph whose weights are probabilities, but for a few."""
    graph = graphs.random_directed(num_nodes, num_edges, seed=11)
    weights = np.random.default_rng(4).random(num_edges)
    weights[::40], weights[7::40] = 1.5, -0.5
    return graph._replace(weights=weights)


def serial_chances(graph: graphs.Graph, source: int) -> np.ndarray:
    """Dijkstra with a heap: the likeliest node that is left is final."""
    chances = np.zeros(graph.num_nodes)
    heap, done = [(-1.0, source)], set()
    while heap:
        chance, node = heapq.heappop(heap)
        if node in done:
            continue
        done.add(node)
        chances[node] = -chance
        for edge in range(graph.indptr[node], graph.indptr[node + 1]):
            if 0 <= graph.weights[edge] <= 1 and chance * graph.weights[edge] < 0:
                heapq.heappush(heap, (chance * graph.weights[edge], int(graph.targets[edge])))
    return chances


@pytest.fixture
def tutorial(comm, shared_tmp):
    """The first block, which is an app, as a module with the other blocks behind it."""
    if comm.rank == 0:
        (shared_tmp / "reliable.py").write_text(BLOCKS[0])
    comm.Barrier()
    spec = importlib.util.spec_from_file_location("reliable", shared_tmp / "reliable.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for block in BLOCKS[1:]:
        exec(compile(block, TUTORIAL.name, "exec"), vars(module))
    return module


def test_app_is_short():
    """30 lines that are not empty."""
    assert len([line for line in BLOCKS[0].splitlines() if line.strip()]) <= 30


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "iec"])
def test_app(comm, shared_tmp, tutorial, policy):
    """Through the harness with its command line: partition, verify, output; and the loop that is written out."""
    graph = likely()
    path = graphs.write(shared_tmp / "g.h5", graph, weight="f8")
    output = str(shared_tmp / "chance.h5")
    arguments = [path, "--policy", policy, "--source", "5", "--verify", "--output", output, "--device", parts.WANTED]
    assert harness.main(tutorial.APP, comm, arguments) == 0
    with h5py.File(output) as file:
        found = file["chance"][:]
    np.testing.assert_allclose(found, serial_chances(graph, 5), rtol=1e-12)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    by_hand = tutorial.reliable_by_hand(part, parts.make_sync(part), 5)
    np.testing.assert_array_equal(parts.gather(part, by_hand.labels["chance"]), found)


@pytest.mark.mpi
def test_its_verifier(comm, shared_tmp, tutorial):
    """An answer that is too low somewhere is refused."""
    graph = likely()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph, weight="f8"), parts.policy_of("oec"), comm)
    sync = parts.make_sync(part)
    answer = tutorial.reliable(part, sync, 5)
    tutorial.verify(part, sync, answer)
    neighbor = graph.targets[graph.indptr[5]]
    answer.labels["chance"][part.gids[: part.num_masters] == neighbor] /= 2
    with pytest.raises(VerificationError, match="there is a better way to node"):
        tutorial.verify(part, sync, answer)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "mixed"])
def test_blocks_with_an_order(comm, shared_tmp, tutorial, policy):
    """The same chances in another order; energies are the distances along squared weights."""
    graph = likely()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph, weight="f8"), parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    found = parts.gather(part, tutorial.reliable_in_order(part, sync, 5).labels["chance"])
    np.testing.assert_allclose(found, serial_chances(graph, 5), rtol=1e-12)
    graph = graphs.HARD["random"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "h.h5", graph), parts.policy_of(policy), comm)
    found = parts.gather(part, tutorial.least_energy(part, parts.make_sync(part), 3).labels["energy"])
    squared = graph._replace(weights=graph.weights.astype(np.int64) ** 2)
    np.testing.assert_array_equal(np.where(np.isinf(found), -1, found), graphs.serial_distances(squared, 3))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "mixed"])
def test_other_blocks(comm, shared_tmp, tutorial, policy):
    """What leaves a node, and the number of shortest paths: walks of that length, by powers of the matrix."""
    graph = graphs.HARD["random"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    strength = parts.gather(part, tutorial.strength(part, sync))
    np.testing.assert_array_equal(strength, np.bincount(graph.sources, graph.weights, graph.num_nodes))
    labels = tutorial.count_paths(part, sync, 3).labels
    hops, paths = (parts.gather(part, labels[name]) for name in ("hops", "paths"))
    expected = graphs.serial_hops(graph, 3)
    np.testing.assert_array_equal(np.where(hops == tutorial.FAR, -1, hops), expected)
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(matrix, (graph.sources, graph.targets), 1)
    walks = np.eye(graph.num_nodes)[3]
    for level in range(expected.max() + 1):
        np.testing.assert_array_equal(paths[expected == level], walks[expected == level])
        walks = walks @ matrix


@pytest.mark.mpi
def test_values_between_rounds(comm, shared_tmp, tutorial):
    """What falls below is 0 and leads no further; the option is a keyword."""
    graph = likely()
    path = graphs.write(shared_tmp / "g.h5", graph, weight="f8")
    part = partition_graph(path, "cvc", comm=comm, device=parts.WANTED)
    serial = serial_chances(graph, 5)
    for least in (0.0, 0.3):
        found = tutorial.above(part, source=5, least=least).chance
        np.testing.assert_allclose(found, np.where(serial >= least, serial, 0), rtol=1e-12)


def test_app_as_a_program(shared_tmp, tutorial):
    """Saved to a file and started as the text says."""
    path = graphs.write(shared_tmp / "g.h5", likely(), weight="f8")
    done = spawn.mpirun(1, shared_tmp / "reliable.py", path, "--source", "5", "--verify")
    assert (
        (done.returncode, done.stderr) == (0, "") and "reliable from 5: " in done.stdout and "verified" in done.stdout
    )
