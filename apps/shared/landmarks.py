"""Landmarks: nodes whose distances to and from others bound those of all pairs, by the triangle inequality."""

from typing import Any

import numpy as np

from cusp import MIN, Partition, Sync
from cusp.apps.shared.graphs.reversal import reversed_graph
from cusp.apps.shared.lengths import Lengths
from cusp.apps.shared.splitmix64 import distinct_lots
from cusp.apps.sssp import sssp
from cusp.runtime import progress
from cusp.runtime.devices import to_host
from cusp.runtime.mpi import MPI


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
    away : (k, nodes) int64 or float64
        Distances from each to some nodes, the largest int64 or inf where there is no path.
    """
    landmarks, rounds = with_most_edges(part, sync, 1, seed), 0
    far = MIN.identity(np.dtype(np.float64 if lengths.dtype.kind == "f" else np.int64))
    nearest, away = np.full(part.num_masters, far), np.full((k, nodes.size), far)
    here, lids = part.masters_among(nodes)
    while True:
        answer = sssp(part, sync, landmarks[-1], lengths)
        found, rounds = to_host(answer.labels["distance"]), rounds + int(answer.rounds)
        found = np.where(found < 0, far, found)
        away[len(landmarks) - 1, here] = found[lids]
        progress.update(len(landmarks), k, "landmark")
        if len(landmarks) == k:
            sync.comm.Allreduce(MPI.IN_PLACE, away, MPI.MIN)
            return landmarks, away, rounds
        nearest = np.minimum(nearest, found)
        scores = np.where(nearest < far, nearest, 0)
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
    """Lower and upper bounds of the distances from each of some nodes to each of others, (n, m) int64 or float64.

    Potamias, Bonchi, Castillo and Gionis, Fast shortest path distance estimation in large networks, CIKM 2009. Both are
    -1 or inf where there is no path, as a landmark leads to u and not to v, or v leads to it and u does not.

    Parameters
    ----------
    away, back : (landmarks, nodes) numbers
        Distances from each landmark to some nodes, and from these to it: -1, or the highest, where there is no path.
    u, v : (n,) and (m,) int64
        Places of nodes in these.
    shortest : int
        No edge is shorter.
    """
    far, same = MIN.identity(np.dtype(np.float64 if away.dtype.kind == "f" else np.int64)), u[:, None] == v
    lower, upper = np.where(same, 0, shortest), np.where(same, 0, far)

    def beyond(longer: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        return np.where(shorter < far, np.where(longer < far, longer - shorter, far), 0)

    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, which is not taken; a sum that is too large
        for out, into in zip(*(np.where(each < 0, far, each) for each in (away, back))):
            lower = np.maximum(lower, np.maximum(beyond(out[v], out[u, None]), beyond(into[u, None], into[v])))
            through = into[u, None] + np.minimum(out[v], far - into[u, None])
            upper = np.minimum(upper, np.where(into[u, None] < far, through, far))
    lower = np.minimum(lower, upper)  # floats that are rounded
    return (lower, upper) if far == np.inf else (np.where(lower < far, lower, -1), np.where(upper < far, upper, -1))
