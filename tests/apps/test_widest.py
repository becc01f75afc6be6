"""Widest paths on hard graphs under several policies, against a heap of the widest."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.paths import verify_widths
from cusp.apps.widest import widest
from cusp.runtime.devices import to_host


def solve(comm, path, policy, source):
    """Widths of all nodes, and what verifies others. Collective."""
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
    answer = widest(part, sync, source).on_host()
    verify_widths(part, sync, source, answer.labels["width"])
    found = parts.gather(part, answer.labels["width"])
    np.testing.assert_array_equal(
        parts.gather(part, answer.reached), found > (-np.inf if found.dtype.kind == "f" else -(2**63))
    )
    return found, lambda widths: verify_widths(part, sync, source, widths[gids])


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed"])
def test_hard_graphs(comm, shared_tmp, policy):
    """From the node of the largest degree; one that is not reached among them, or the source alone."""
    for name in ("star_inwards", "loops_and_doubles", "hub", "random_symmetric", "last_isolated", "one_node"):
        graph = graphs.HARD[name]()
        source = int(graph.degrees.argmax()) if graph.num_edges else 0
        found, _ = solve_all(comm, shared_tmp, graph, policy, source)
        np.testing.assert_array_equal(found, graphs.serial_widths(graph, source))


def solve_all(comm, shared_tmp, graph, policy, source, weight="i8"):
    """As `solve`, of a graph that is written first."""
    return solve(comm, graphs.write(shared_tmp / "g.h5", graph, weight=weight), policy, source)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "weight", parts.share(["u8", "f4", *(pytest.param(weight, marks=pytest.mark.slow) for weight in (None, "i1"))])
)
def test_types_of_weights(comm, shared_tmp, weight):
    """Negative ones too, and such as int64 cannot hold; none are all 1."""
    graph = graphs.random_directed(60, 200)
    weights = graph.weights - (10 if weight in ("i1", "f4") else 0)
    if weight == "u8":
        weights = weights.astype(np.uint64) << np.uint64(59)
    graph = graph._replace(weights=weights.astype(weight) if weight else np.ones_like(weights))
    found, _ = solve_all(comm, shared_tmp, graph, "cvc", 5, weight)
    np.testing.assert_array_equal(found, graphs.serial_widths(graph, 5))


@pytest.mark.mpi
def test_wrong_answers_are_found(comm, shared_tmp):
    """One width too large, too small, made up where there is no path, left out where there is one, or of the source."""
    graph = graphs.HARD["last_isolated"]()
    found, verify = solve_all(comm, shared_tmp, graph, "cvc", 0)
    verify(found)
    inside = int(np.flatnonzero((found > 0) & (found < 9))[3])
    wrong = {
        inside: [found[inside] + 1, found[inside] - 1, -(2**63)], graph.num_nodes - 1: [5], 0: [9],
    }  # fmt: skip
    for node, values in wrong.items():
        for value in values:
            changed = found.copy()
            changed[node] = value
            with pytest.raises(VerificationError, match="the answer is wrong: width"):
                verify(changed)
    everything = np.where(found > -(2**63), 9, found)  # widths that explain each other, from no source
    everything[0] = found[0]
    with pytest.raises(VerificationError, match="the answer is wrong: width"):
        verify(everything)
