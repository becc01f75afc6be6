"""Landmarks: nodes whose distances to and from others bound those of all pairs, by the triangle inequality."""

from typing import Any

import numpy as np

from cusp import Partition, Sync
from cusp.apps.shared.graphs.reversal import reversed_graph
from cusp.apps.shared.lengths import LONGEST, Lengths
from cusp.apps.shared.splitmix64 import distinct_lots
from cusp.apps.sssp import sssp
from cusp.runtime import progress
from cusp.runtime.devices import to_host
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import cut, in_parallel, threads_for


def with_most_edges(part: Partition, sync: Sync, k: int, seed: int) -> list[int]:
    """The k nodes with most in-edges times out-edges: so many paths of two edges lead through a node. Collective."""
    return _highest(part, sync, part.degrees * reversed_graph(part, sync)[0].degrees, k, seed)


def farthest(
    part: Partition, sync: Sync, lengths: Lengths, k: int, seed: int, nodes: np.ndarray
) -> tuple[list[int], np.ndarray, int]:
    """The node with most edges, then k - 1 times the one that is farthest from all before. Collective.

    Goldberg and Harrelson, Computing the shortest path: A* search meets graph theory, SODA 2005. Nodes to which no
    path leads come last, as most of them lead to few others.

    Returns
    -------
    landmarks, rounds : list of k int, and int
    away : (k, nodes) int64 with -1, or float64 with inf, where there is no path
        Distances from each to some nodes.
    """
    landmarks, rounds, nearest = with_most_edges(part, sync, 1, seed), 0, np.full(part.num_masters, np.inf)
    away = np.full((k, nodes.size), -1, np.float64 if lengths.dtype.kind == "f" else np.int64)
    here, lids = part.masters_among(nodes)
    while True:
        answer = sssp(part, sync, landmarks[-1], lengths)
        found, rounds = to_host(answer.labels["distance"]), rounds + int(answer.rounds)
        away[len(landmarks) - 1, here] = found[lids]
        progress.update(len(landmarks), k, "landmark")
        if len(landmarks) == k:
            sync.comm.Allreduce(MPI.IN_PLACE, away, MPI.MAX)
            return landmarks, away, rounds
        nearest = np.minimum(nearest, np.where(found < 0, np.inf, found))
        scores = np.where(nearest < np.inf, nearest, 0)
        scores[part.masters_among(np.array(landmarks))[1]] = -1
        landmarks += _highest(part, sync, scores, 1, seed)


def _highest(part: Partition, sync: Sync, values: Any, k: int, seed: int) -> list[int]:
    """The k nodes with the highest (masters,) values, by lot where these are equal. Collective."""
    values, gids = to_host(values), to_host(part.gids[: part.num_masters])
    some = np.flatnonzero(values >= np.partition(values, -k)[-k]) if values.size > k else np.arange(values.size)
    lots = distinct_lots(gids[some], seed, part.num_nodes)
    best = np.lexsort((lots, values[some]))[-k:]
    own = [*zip(values[some][best].tolist(), lots[best].tolist(), gids[some][best].tolist())]
    return [gid for *_, gid in sorted(sum(sync.comm.allgather(own), []), reverse=True)[:k]]


def bounds(
    away: np.ndarray, back: np.ndarray, u: np.ndarray, v: np.ndarray, shortest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the distances from each of some nodes to each of others.

    Potamias, Bonchi, Castillo and Gionis, Fast shortest path distance estimation in large networks, CIKM 2009. Where a
    landmark leads to u and not to v, or v leads to it and u does not, there is no path from u to v.

    Parameters
    ----------
    away, back : (landmarks, nodes) integers with -1, or floats with inf, where there is no path
        Distances from each landmark to some nodes, and from these to it.
    u, v : (n,) and (m,) int64
        Places of nodes in these.
    shortest : int
        No edge is shorter.

    Returns
    -------
    lower, upper : (n, m) int64 or float64
        -1 or inf: no path; no path through a landmark.
    """
    whole = away.dtype.kind == "i"
    wide = whole and max(away.max(), back.max()) >= 2**52  # whose sums float64 may round
    inf = np.longdouble(np.inf) if wide else np.float64(np.inf)
    out, into = (np.where(each < 0, inf, each) for each in (away, back))
    out_v, into_v = out[:, v], into[:, v]
    dtype, limit, none = (np.int64, LONGEST, -1) if whole else (np.float64, inf, inf)
    lower, upper = np.empty((2, u.size, v.size), dtype)

    def some(first: int, last: int) -> None:
        for place in range(first, last):
            out_u, into_u = out[:, u[place], None], into[:, u[place], None]
            with np.errstate(invalid="ignore", over="ignore"):  # inf - inf says nothing: fmax leaves it out
                low = np.fmax.reduce(np.fmax(out_v - out_u, into_u - into_v), initial=shortest)
                high = np.where(v == u[place], 0, (into_u + out_v).min(axis=0))
            low = np.minimum(low, high)  # floats are rounded
            lower[place], upper[place] = (np.where(each < limit, each, none) for each in (low, high))

    in_parallel(some, cut(u.size, threads_for(lower.size)))
    return lower, upper
