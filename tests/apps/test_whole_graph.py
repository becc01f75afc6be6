"""A copy of the whole graph on each rank: the edges of all, whatever the policy and the order of local ids."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.operators.interfaces import is_sparse
from cusp.apps.shared.graphs.whole_graph import whole_graph


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_edges(comm, shared_tmp, name, policy):
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    part = part.on("cpu")
    whole = whole_graph(part, comm)
    assert np.array_equal(whole.gids[whole.rows], np.arange(graph.num_nodes))
    assert is_sparse(part) or (np.diff(whole.offsets, n=2) <= 0).all()
    sources = np.repeat(whole.gids, np.diff(whole.offsets))
    found, expected, own = (
        sources * graph.num_nodes + targets
        for sources, targets in (
            (sources, whole.gids[whole.targets]),
            (graph.sources, graph.targets),
            (np.repeat(part.gids, np.diff(part.offsets)), part.gids[part.targets]),
        )
    )
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))
    np.testing.assert_array_equal(found[whole.places], own)
    np.testing.assert_array_equal(whole.weights[whole.places], part.weights)
