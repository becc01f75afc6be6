"""A copy of the whole graph on each rank: the edges of all, whatever the policy and the order of local ids."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.shared.whole_graph import whole_graph


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_edges(comm, shared_tmp, name, policy):
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    offsets, targets, weights = whole_graph(part, comm)
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(offsets))
    assert graphs.Graph(graph.num_nodes, sources, targets, weights).triples() == graph.triples()
    assert len(whole_graph(part.without_weights(), comm)) == 2
