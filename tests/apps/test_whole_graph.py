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
    offsets, targets = whole_graph(part.on("cpu"), comm)
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(offsets))
    found, expected = ((of * graph.num_nodes + to) for of, to in ((sources, targets), (graph.sources, graph.targets)))
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))
