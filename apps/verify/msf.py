"""Verifier of minimum spanning forests: see apps/verify/check.py. It works on the host."""

import numpy as np

from cusp import Answer, Partition, Sync
from cusp.apps.verify.check import raise_first, require, tell_node
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import to_host


def verify_msf(part: Partition, sync: Sync, answer: Answer, maximum: bool) -> None:
    """Check a spanning forest. Collective; every rank gets all edges of the forest.

    1. They close no cycle. 2. Each edge of the graph has both ends in one tree, and no edge on the path between them
    there is heavier (Tarjan, Data Structures and Network Algorithms, 1983, chapter 6). 3. Components and figures are
    those of this forest.

    Parameters
    ----------
    maximum : bool
        No edge on the path is lighter.
    """
    part = part.on("cpu")
    inside = to_host(answer.edges["in_forest"])
    require(sync, bool((inside <= 1).all()), "in_forest: neither 0 nor 1")
    weights = np.ones(part.num_local_edges, np.int8) if part.weights is None else part.weights
    every = np.repeat(part.gids, np.diff(part.offsets)), part.gids[part.targets], weights
    forest = [np.concatenate(sync.comm.allgather(each[inside == 1])) for each in every]
    order = np.argsort(forest[2], kind="stable")[:: -1 if maximum else 1]
    ends, others, lengths = (each[order] for each in forest)
    parents, links = np.arange(part.num_nodes), np.full(part.num_nodes, order.size)
    cycle = _link(ends, others, parents, links)
    if cycle >= 0:
        raise_first(sync, f"the edge {ends[cycle]} -> {others[cycle]} closes a cycle in the forest")
    raise_first(sync, _first_mistake(*every, lengths, _last_links(*every[:2], parents, links), maximum))
    roots = parents
    while (roots[roots] != roots).any():
        roots = roots[roots]
    smallest = np.full(part.num_nodes, part.num_nodes)
    np.minimum.at(smallest, roots, np.arange(part.num_nodes))
    gids = part.gids[: part.num_masters]
    component = to_host(answer.labels["component"])
    tell_node(part, sync, "component: not the smallest node of the tree of node", component != smallest[roots[gids]])
    figures, weight = answer.figures, float(lengths.sum(dtype=np.float64))
    require(sync, figures["members"] == order.size, f"the forest has {order.size} edges, not {figures['members']}")
    right = bool(np.isclose(figures["weight"], weight, rtol=1e-9))
    require(sync, right, f"the forest weighs {weight}, not {figures['weight']}")


def _first_mistake(sources, targets, weights, lengths, last, maximum) -> str | None:  # type: ignore[no-untyped-def]
    """The first edge that could be in the forest: it joins two trees, or is better than one between its ends there."""
    apart = np.flatnonzero(last == lengths.size)
    if apart.size:
        return f"the edge {sources[apart[0]]} -> {targets[apart[0]]} connects two trees"
    inner = np.flatnonzero(last >= 0)  # no loops
    own, others = weights[inner], lengths[last[inner]]
    better = np.flatnonzero(own > others if maximum else own < others)
    if not better.size:
        return None
    edge = inner[better[0]]
    return (
        f"the edge {sources[edge]} -> {targets[edge]} weighs {weights[edge]}, and one that weighs {others[better[0]]} "
        "joins its ends in the forest"
    )


@njit(cache=True, nogil=True)
def _link(ends, others, parents, links):  # type: ignore[no-untyped-def]
    """Join trees, the root of the smaller below the other, and note by which edge; the first that closes a cycle."""
    sizes = np.ones(parents.size, np.int64)
    for edge in range(ends.size):
        one, other = ends[edge], others[edge]
        while parents[one] != one:
            one = parents[one]
        while parents[other] != other:
            other = parents[other]
        if one == other:
            return edge
        if sizes[one] > sizes[other]:
            one, other = other, one
        parents[one], links[one] = other, edge
        sizes[other] += sizes[one]
    return -1


@njit(cache=True, nogil=True)
def _last_links(sources, targets, parents, links):  # type: ignore[no-untyped-def]
    """Of each edge, which link joined its ends: -1 for loops, all links if none did."""
    last = np.empty(sources.size, np.int64)
    for edge in range(sources.size):
        one, other, link = sources[edge], targets[edge], -1
        while one != other:
            if links[one] > links[other]:
                one, other = other, one
            link = links[one]
            if parents[one] == one:
                break
            one = parents[one]
        last[edge] = link
    return last
