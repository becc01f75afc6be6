"""Any number of threads gives the answer of one, bit for bit, where all of them have much to do and meet at the hubs.

On one rank each algorithm drains, on several it goes from round to round. tests/house/test_determinism.py compares the
rows and files of every app, on a small graph.
"""

import numpy as np
import parts
import pytest

from cusp.apps import library
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.operators.expressions import edges_cpu
from cusp.apps.operators.structure import kcore_cpu
from cusp.runtime import threads
from gluon.label import Label
from gluon.reduction import ADD, MIN

pytestmark = pytest.mark.skipif(parts.WANTED != "cpu", reason="threads of a CPU")
NODES, EDGES = 6_000, 60_000
RUNS = {
    "bfs": {"source": 3},
    "bfs parents": {"source": 3, "parents": True},
    "bfs push": {"source": 3, "parents": True, "direction": "push"},
    "bfs pull": {"source": 3, "parents": True, "direction": "pull"},
    "sssp": {"source": 3},
    "cc": {},
    "kcore": {},
    "coloring": {},
    "msf": {},
    "triangles": {"per_node": True},
    "pagerank": {},
    "pagerank float32": {"precision": "float32"},
    "betweenness": {"sources": 2},
}


@pytest.fixture(scope="module")
def graph(comm):
    """Few nodes have most of the edges; a part of the nodes is apart."""
    random = np.random.default_rng(1)
    ends = (NODES * random.random((2, EDGES)) ** 3).astype(np.int64)
    weights = random.integers(1, 256, EDGES)
    return library.partition_graph((*ends, weights), comm=comm, policy="cvc", symmetrize=True, num_nodes=NODES)


@pytest.mark.mpi
@pytest.mark.parametrize("name", RUNS)
def test_same_answer_with_any_number_of_threads(comm, graph, monkeypatch, name):
    monkeypatch.setattr(threads, "LEAST", 256)
    monkeypatch.setattr(threads, "BLOCK", 500)
    monkeypatch.setattr(kcore_cpu, "OF_HUBS", 2)
    monkeypatch.setattr(kcore_cpu, "MOST_HUBS", 64)
    found = []
    for number in 1, 2, 3:
        monkeypatch.setattr(threads._Chosen, "threads", number)
        result = getattr(library, name.split()[0])(graph, gather=False, **RUNS[name])
        answer = {label: values.tobytes() for label, values in result.local.items()}
        found.append((answer, result.figures, 0 if name == "sssp" else result.rounds))  # threads open buckets together
    assert all(other == found[0] for other in found)


PASSES = {
    "push whole numbers": (EdgeOperator("src.x * 3 + weight", into="dst.y"), np.int64, ADD, False),
    "push floats": (EdgeOperator("src.x * 0.1", into="dst.y"), np.float64, ADD, False),
    "push the lowest": (EdgeOperator("src.x * 0.1", into="dst.y", where="weight > 7"), np.float32, MIN, True),
    "pull floats": (EdgeOperator("dst.x * 0.1 + weight", into="src.y"), np.float64, ADD, True),
    "flood": (EdgeOperator("src.y", into="dst.y"), np.int64, MIN, True),
}


@pytest.mark.mpi
@pytest.mark.parametrize("name", PASSES)
def test_passes_of_an_operator(comm, graph, monkeypatch, name):
    """``cut``: whether several threads share the rows."""
    operator, dtype, reduction, cut = PASSES[name]
    part, found, pieces = graph.part, [], []
    in_parallel = threads.in_parallel
    monkeypatch.setattr(
        edges_cpu, "in_parallel", lambda call, each: pieces.append(len(each)) or in_parallel(call, each)
    )
    monkeypatch.setattr(threads, "LEAST", 256)
    for number in 1, 2, 3:
        monkeypatch.setattr(threads._Chosen, "threads", number)
        label = Label(part, dtype, reduction.identity(np.dtype(dtype)).item(), reduction)
        if name == "flood":
            label.values[:] = part.gids
            label.mark_all()
            while label.device.count_bits(label.updated, part.num_proxies):
                operator(part, frontier=label.swap_updated(), y=label)
        else:
            operator(part, x=part.gids % 1000, y=label)
        found.append((label.values.tobytes(), label.updated.tobytes()))
    assert all(other == found[0] for other in found)
    assert (max(pieces) > 1) == cut


@pytest.mark.mpi
def test_strong_components_with_any_number_of_threads(comm, monkeypatch):
    random = np.random.default_rng(2)
    ends = (NODES * random.random((2, 2 * NODES)) ** 2).astype(np.int64)
    directed = library.partition_graph((*ends,), comm=comm, policy="oec", num_nodes=NODES)
    monkeypatch.setattr(threads, "LEAST", 256)
    found = []
    for number in 1, 2, 3:
        monkeypatch.setattr(threads._Chosen, "threads", number)
        result = library.scc(directed, gather=False)
        found.append((result.local["component"].tobytes(), result.figures))
    assert all(other == found[0] for other in found)
