"""More than 2**31 edges on one rank, for real: only where $CUSP_TEST_LARGE names a folder with space for 9 GB.

In memory it takes 18 GB and a few minutes; with a limit, 2 GB. ``python -m pytest -s`` shows what it took.
"""

import os
import time
from pathlib import Path

import numpy as np
import pytest
import ranks

from cusp.apps.bfs import bfs
from cusp.output.dataset_writer import writing_graph
from cusp.partitioner import partition_graph
from cusp.runtime.storage import peak_mb
from gluon.plan import make_plan
from gluon.sync import Sync

NODES, DEGREE = 2**20, 2050  # 2,149,580,800 edges
SOURCE = 777_777
STEP = 2**10  # rows written at a time

pytestmark = [
    pytest.mark.skipif("CUSP_TEST_LARGE" not in os.environ, reason="CUSP_TEST_LARGE is not set"),
    pytest.mark.limit(3600),
]


@pytest.fixture(scope="module")
def path():
    """A graph file in which node v has edges to the ``DEGREE`` nodes that follow it in a circle."""
    path = Path(os.environ["CUSP_TEST_LARGE"]) / "circle.h5"
    with writing_graph(path, ranks.MPI.COMM_SELF, num_nodes=NODES, num_edges=NODES * DEGREE) as writer:
        writer.write("indptr", 0, np.arange(NODES + 1, dtype=np.int64) * DEGREE)
        for first in range(0, NODES, STEP):
            nodes = np.arange(first, first + STEP, dtype=np.uint32)[:, None]
            targets = (nodes + np.arange(1, DEGREE + 1, dtype=np.uint32)) % np.uint32(NODES)
            writer.write("indices", first * DEGREE, targets.reshape(-1))
    yield str(path)
    path.unlink()


@pytest.mark.parametrize("limit", [2 << 30, None], ids=["limited", "in memory"])
def test_bfs(path, limit):
    """Every edge is where it belongs, and hops are those of the formula."""
    comm, started = ranks.MPI.COMM_SELF, time.monotonic()
    part = partition_graph(path, "oec", comm, order="natural", memory_limit=limit)
    partitioned, peak = time.monotonic(), peak_mb()
    assert part.num_local_edges == part.offsets[-1] == NODES * DEGREE > 2**31
    for row in (0, SOURCE, 2**31 // DEGREE, NODES - 1):
        ends = part.targets[part.offsets[row] : part.offsets[row + 1]]
        assert np.array_equal(ends, (row + np.arange(1, DEGREE + 1)) % NODES)
    answer = bfs(part, Sync(make_plan(part, comm), comm), SOURCE, "push", parents=False)
    distance = (np.arange(NODES) - SOURCE) % NODES
    assert np.array_equal(answer.labels["hops"], -(-distance // DEGREE))
    print(
        f"\n{part.num_local_edges:,} edges, limit {limit}: "
        f"partitioned in {partitioned - started:.0f} s, {peak:,.0f} MB, "
        f"searched in {time.monotonic() - partitioned:.0f} s, {peak_mb():,.0f} MB"
    )
