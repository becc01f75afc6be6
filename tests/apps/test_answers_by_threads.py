"""Any number of threads gives the answer of one, bit for bit, where all of them have much to do and meet at the hubs.

On one rank each algorithm drains, on several it goes from round to round. tests/house/test_determinism.py compares the
rows and files of every app, on a small graph.
"""

import numpy as np
import parts
import pytest

from cusp.apps import library
from cusp.runtime import threads

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
    found = []
    for number in 1, 2, 3:
        monkeypatch.setattr(threads._Chosen, "threads", number)
        result = getattr(library, name.split()[0])(graph, gather=False, **RUNS[name])
        answer = {label: values.tobytes() for label, values in result.local.items()}
        found.append((answer, result.figures, 0 if name == "sssp" else result.rounds))  # threads open buckets together
    assert all(other == found[0] for other in found)
