"""Weights whose sums or squares are beyond the floats: the answer that other weights have, or an error."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps import library, semiring
from cusp.apps.run.function import function_of
from cusp.apps.shared.communities.graph import round_weights
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.paths import verify_distances
from cusp.errors import GraphFileError
from cusp.runtime import watchdog
from cusp.runtime.devices import to_host

EXTREME = [1e308, 5e-324, 1e-200]
BOTH_WAYS = [(0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2)]
PATH = [(0, 1), (1, 2), (2, 3)]
SEMIRING = function_of(semiring.APP)


@pytest.fixture
def divided(comm, shared_tmp):
    """Function (edges, weights) -> a graph divided among the ranks."""

    def divide(pairs, weights, kind="f8"):
        graph = graphs.make(4, pairs, weights)
        path = graphs.write(shared_tmp / "g.h5", graph, weight=kind)
        return library.partition_graph(str(path), policy="cvc", comm=comm, device=parts.WANTED)

    return divide


@pytest.mark.mpi
@pytest.mark.parametrize("weight", EXTREME)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_pagerank(divided, weight, precision):
    """The ranks of equal weights; also where a node has the largest of all weights and another one the smallest."""
    options = {"verify": True, "precision": precision}
    expected = library.pagerank(divided(BOTH_WAYS, [1.0] * 6), **options).pagerank
    assert library.pagerank(divided(BOTH_WAYS, [weight] * 6), **options).pagerank == pytest.approx(expected)
    of_sources = np.array([1e308, 5e-324, 1.0, 5e-324, 1.0, 1e-40])  # the edges of a node weigh the same
    assert library.pagerank(divided(BOTH_WAYS, of_sources), **options).pagerank == pytest.approx(expected)


@pytest.mark.mpi
def test_pagerank_by_weights_above_int64(divided):
    """Two edges of 2^64 - 1 and 2^63 - 1 share a rank two to one."""
    whole = np.array([2**64 - 1, 2**63 - 1, 1], np.uint64)
    found = library.pagerank(divided([(0, 1), (0, 2), (1, 0)], whole, "u8"), verify=True).pagerank
    third = library.pagerank(divided([(0, 1), (0, 2), (1, 0)], [2, 1, 1]), verify=True).pagerank
    assert found == pytest.approx(third)


@pytest.mark.mpi
def test_ranks_that_do_not_add_up(divided, monkeypatch):
    """An error, whatever made them."""
    from cusp.apps.shared import walk

    monkeypatch.setattr(walk, "LARGE", np.inf)
    with pytest.raises(GraphFileError, match="the ranks add up to"):
        library.pagerank(divided(BOTH_WAYS, [1e308] * 6))


@pytest.mark.mpi
@pytest.mark.parametrize("weight", [*EXTREME, 1e200])
@pytest.mark.parametrize("algorithm", ["louvain", "label-propagation"])
def test_communities(divided, weight, algorithm):
    """Those of other weights."""
    expected = library.communities(divided(PATH, [1.0] * 3), algorithm=algorithm, verify=True)
    found = library.communities(divided(PATH, [weight] * 3), algorithm=algorithm, verify=True)
    assert found.community.tolist() == expected.community.tolist()
    assert found.figures == pytest.approx(expected.figures)


@pytest.mark.mpi
def test_rounded_weights_are_whole(divided):
    """At most 2^53 in all; halves and doubles of whole numbers keep their proportions."""
    graph = divided(PATH, [3.0, 1e-3, 7.5]).part
    sync = parts.make_sync(graph)
    weights = to_host(round_weights(graph, sync).weights)
    assert (weights == np.rint(weights)).all()
    (total,) = sync.total(float(weights.sum()))
    assert 2**51 <= total <= 2**53
    given = to_host(graph.weights)
    assert weights / total == pytest.approx(given / 10.501)


@pytest.mark.mpi
def test_distances_beyond_all_floats(divided):
    """No answer in which nodes are not reached, but an error that names one, as for whole numbers."""
    graph = divided(PATH, [1e308] * 3)
    for ask in (library.sssp, library.path, lambda graph, source: SEMIRING(graph, source, algorithm="sssp")):
        with pytest.raises(GraphFileError, match=r"from node 0 to node 2 is above 1\.8e308"):
            ask(graph, 0)
    with pytest.raises(GraphFileError, match=r"above 1\.8e308"):
        library.betweenness(graph, source=[0], weighted=True)
    assert library.sssp(graph, 2, verify=True).distance.tolist() == [np.inf, np.inf, 0, 1e308]


@pytest.mark.mpi
def test_the_verifier_sees_that_a_path_goes_on(divided):
    """A node behind an edge from a reached one is reached, whatever the sum."""
    part = divided(PATH, [1e308] * 3).part
    gids = to_host(part.gids[: part.num_masters])
    with pytest.raises(VerificationError, match="distance of node 1 is 1e.308, but that of its out-neighbour 2 is inf"):
        verify_distances(part, parts.make_sync(part), 0, np.array([0, 1e308, np.inf, np.inf])[gids])


def test_rounds_in_which_nothing_changes_are_no_progress(monkeypatch):
    """Exchanges count again once something changes; facts that are no number are none."""
    monkeypatch.setattr(watchdog, "_Progress", type("Progress", (), {"phase": "", "steps": 0, "vain": 0}))
    for _ in range(watchdog.VAIN + 2):
        watchdog.step()
        watchdog.end_round({"moved": 0, "change": float("nan")})
    assert watchdog._Progress.steps == watchdog.VAIN
    watchdog.end_round({"moved": 1})
    watchdog.step()
    assert watchdog._Progress.steps == watchdog.VAIN + 1
    for _ in range(watchdog.VAIN + 1):
        watchdog.end_round({})
        watchdog.step()
    assert watchdog._Progress.steps == 2 * watchdog.VAIN + 2
