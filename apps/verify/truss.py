"""Verifier of trussness: see apps/verify/check.py. It works on the host."""

import numpy as np

from cusp import Answer, Partition, Sync
from cusp.apps.run.result import ends_of
from cusp.apps.verify.check import raise_first, require
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import to_host

FINE, TOO_HIGH, TOO_LOW = range(3)


def verify_truss(graph: Partition, sync: Sync, answer: Answer, k: int | None) -> None:
    """Check the trussness of edges, or which are in one k-truss. Collective; every rank gets all edges.

    1. The edges are those of the graph. 2. An edge of trussness t is in at least t - 2 triangles of edges whose
    trussness is t or higher; so no number is too large. 3. The edges of trussness t can be removed one after the other,
    each when it is in at most t - 2 triangles of edges of higher trussness or of the same that are still there; so none
    is too small. 4. The figures follow. For one k-truss, 2 holds for its edges, and 3 for all others with t = k - 1.

    Parameters
    ----------
    graph : Partition
        What :func:`~cusp.apps.shared.graphs.undirected.as_undirected` made.
    """
    comm = sync.comm

    def keys_of(source: np.ndarray, target: np.ndarray) -> np.ndarray:
        local = to_host(source).astype(np.uint64) * np.uint64(graph.num_nodes) + to_host(target).astype(np.uint64)
        return np.concatenate(comm.allgather(local))

    source, target = ends_of(graph).values()
    keys = np.sort(keys_of(source[source < target], target[source < target]))
    found = keys_of(answer.edges["source"], answer.edges["target"])
    known = bool(np.isin(found, keys).all()) and np.unique(found).size == found.size
    require(sync, known and (k is not None or found.size == keys.size), "these are not the edges of the graph")
    places, claims = np.searchsorted(keys, found), np.full(keys.size, 0 if k is None else k - 1, np.int64)
    claims[places] = k or np.concatenate(comm.allgather(to_host(answer.edges["truss"])))
    low, high = np.divmod(keys.astype(np.int64), graph.num_nodes)
    edge, why = _first_mistake(*_rows(low, high, graph.num_nodes), low, high, claims, k or 0, comm.rank, comm.size)
    what = {TOO_HIGH: "too few triangles for", TOO_LOW: "the trussness is too low of", FINE: ""}[why]
    raise_first(sync, f"truss: {what} the edge {low[edge]} - {high[edge]}" if why else None)
    highest = int(claims.max()) if claims.size else 0
    figure, right = ("highest", highest) if k is None else ("members", found.size)
    require(sync, answer.figures[figure] == right, f"{figure} is {right}, not {answer.figures[figure]}")


def _rows(low: np.ndarray, high: np.ndarray, num_nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, neighbours and edges of all nodes; rows ascend."""
    nodes, others, edges = (np.concatenate(pair) for pair in ((low, high), (high, low), 2 * (np.arange(low.size),)))
    order = np.lexsort((others, nodes))
    return np.searchsorted(nodes[order], np.arange(num_nodes + 1)), others[order], edges[order]


@njit(cache=True, nogil=True)
def _first_mistake(offsets, others, edges, low, high, claims, k, rank, size):  # type: ignore[no-untyped-def]
    """An edge that a share of the numbers claimed shows to be wrong, and why; every number is looked at alone."""
    counts, queue = np.zeros(claims.size, np.int64), np.empty(claims.size, np.int64)
    triangles = np.empty(((offsets[1:] - offsets[:-1]).max(), 2), np.int64)
    filled = 0
    for edge in range(claims.size):
        if claims[edge] % size == rank:
            counts[edge] = _triangles(edge, offsets, others, edges, low, high, claims, triangles)
            if counts[edge] < claims[edge] - 2 and claims[edge] >= k:
                return edge, TOO_HIGH
            if counts[edge] <= claims[edge] - 2 and (k == 0 or claims[edge] < k):
                queue[filled] = edge
                filled += 1
    place = 0
    while place < filled:
        edge = queue[place]
        place += 1
        own, counts[edge] = claims[edge], -1
        for found in range(_triangles(edge, offsets, others, edges, low, high, claims, triangles)):
            one, two = triangles[found]
            if (claims[one] == own and counts[one] < 0) or (claims[two] == own and counts[two] < 0):
                continue
            for other in (one, two):
                if claims[other] == own:
                    counts[other] -= 1
                    if counts[other] == own - 2:
                        queue[filled] = other
                        filled += 1
    for edge in range(claims.size):
        if claims[edge] % size == rank and (k == 0 or claims[edge] < k) and counts[edge] >= 0:
            return edge, TOO_LOW
    return -1, FINE


@njit(cache=True, nogil=True)
def _triangles(edge, offsets, others, edges, low, high, claims, triangles):  # type: ignore[no-untyped-def]
    """List the other two edges of each triangle of edges that claim as much as this one, or more; returns how many."""
    one, two, found = offsets[low[edge]], offsets[high[edge]], 0
    while one < offsets[low[edge] + 1] and two < offsets[high[edge] + 1]:
        if others[one] == others[two]:
            if min(claims[edges[one]], claims[edges[two]]) >= claims[edge]:
                triangles[found, 0], triangles[found, 1] = edges[one], edges[two]
                found += 1
            one, two = one + 1, two + 1
        elif others[one] < others[two]:
            one += 1
        else:
            two += 1
    return found
