"""Verifier of communities: see apps/verify/check.py."""

import numpy as np

from apps.verify.check import everywhere, raise_first, tell_node
from cusp.partition import Partition
from cusp.runtime.exchange import all_to_all
from gluon.plan import make_plan
from gluon.sync import Sync


def verify_communities(
    graph: Partition, sync: Sync, community: np.ndarray, modularity: float, communities: int, least: bool
) -> None:
    """Check communities of an undirected graph. Collective.

    1. A community is named by a node that is in it, and not above any that is. 2. There are as many as is said. 3. The
    modularity is what edges, strengths and communities give. 4. It is not below that of all nodes on their own, if
    ``least`` is set: for algorithms that promise it.

    Parameters
    ----------
    graph : Partition
        See :func:`~apps.shared.undirected.as_undirected`.
    community : (masters,) int64

    Raises
    ------
    VerificationError
        On every rank.
    """
    comm, own = sync.comm, graph.num_masters
    gids = graph.gids[:own]
    tell_node(graph, sync, "community: not a node at or below node", (community < 0) | (community > gids))
    names, numbers = np.unique(community, return_inverse=True)
    weights = np.ones(graph.num_local_edges) if graph.weights is None else graph.weights
    sources = np.repeat(np.arange(graph.num_proxies), np.diff(graph.offsets))
    strengths = np.bincount(sources, weights, graph.num_proxies)[:own]
    # Entry c of all that ranks keep together: what is known of community c.
    bounds = np.array([graph.num_nodes * rank // comm.size for rank in range(comm.size + 1)])
    first = bounds[comm.rank]

    def add(places: np.ndarray, values: np.ndarray) -> np.ndarray:
        values = values.astype(np.float64)  # as on ranks that have some, where bincount has met none
        keeper = np.searchsorted(bounds, places, side="right") - 1
        came = [all_to_all(comm, [what[keeper == rank] for rank in range(comm.size)]) for what in (places, values)]
        return np.bincount(np.concatenate(came[0]) - first, np.concatenate(came[1]), int(bounds[comm.rank + 1] - first))

    members = add(names, np.bincount(numbers, minlength=names.size))
    named = add(gids[community == gids], np.ones(np.count_nonzero(community == gids)))
    bad = np.flatnonzero((members > 0) & (named == 0))
    raise_first(sync, f"node {first + bad[0]} is not in the community that has its name" if bad.size else None)
    found = sync.total(int(np.count_nonzero(members)))[0]
    raise_first(sync, None if found == communities else f"there are {found} communities, not {communities}")
    totals = add(names, np.bincount(numbers, strengths, names.size))
    labels = _labels(graph, sync, community)
    inside = weights[labels[sources] == labels[graph.targets]].sum()
    whole, within, squares, alone = sync.total(
        float(strengths.sum()), float(inside), float((totals**2).sum()), float((strengths**2).sum())
    )
    expected = within / whole - squares / whole**2 if whole else 0.0
    right = np.isclose(modularity, expected, atol=1e-9)
    raise_first(sync, None if right else f"the modularity is {expected}, not {modularity}")
    floor = -alone / whole**2 if whole else 0.0
    low = least and expected < floor - 1e-9
    raise_first(sync, f"the modularity {expected} is below {floor}, that of single nodes" if low else None)


def _labels(graph: Partition, sync: Sync, community: np.ndarray) -> np.ndarray:
    """(proxies,) int64: the community of each. Collective."""
    return everywhere(graph, Sync(make_plan(graph, sync.comm), sync.comm), community, -1).values
