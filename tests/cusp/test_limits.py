"""What counts in 32 bits, or in parts of a word, says so before it overflows: with small data and lower limits."""

import graphs
import parts
import pytest

from cusp import allocate
from cusp.apps.bfs import bfs
from cusp.errors import GraphFileError, OptionError


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc"])
def test_a_row_that_is_too_long(comm, shared_tmp, monkeypatch, policy):
    """Places in a row are 32-bit numbers; a row just as long as that is fine."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["star"]())
    monkeypatch.setattr(allocate, "LONGEST_ROW", 20)
    parts.partition_graph(path, parts.policy_of(policy), comm)
    monkeypatch.setattr(allocate, "LONGEST_ROW", 19)
    with pytest.raises(GraphFileError, match="node 0 has 20 out-edges, but a node may have 19"):
        parts.partition_graph(path, parts.policy_of(policy), comm)


@pytest.mark.skipif(parts.DEVICE != "gpu", reason="--device gpu was not asked for")
@pytest.mark.parametrize(("name", "limit"), [("star", 20), ("star_inwards", 20)])
def test_more_nodes_than_a_queue_counts(comm, shared_tmp, monkeypatch, name, limit):
    """A pull counts nodes that it finds, also those without out-edges; a push those that have some."""
    from cusp.apps.operators import frontier_gpu

    path = graphs.write(shared_tmp / "g.h5", graphs.HARD[name]())
    part = parts.partition_graph(path, "oec", comm, weights=False, csc=True)
    monkeypatch.setattr(frontier_gpu, "MAX_NODES", limit)
    with pytest.raises(OptionError, match="nodes and 20 edges on one GPU"):
        bfs(part, parts.make_sync(part), 0)
