"""Components across ranks, each named by a global id of one of its nodes."""

import numpy as np

from cusp.kernels.arrays import distinct
from cusp.runtime.exchange import all_to_all, pieces
from gluon.sync import Sync


def largest_component(sync: Sync, labels: np.ndarray, members: np.ndarray, alone: int = 0) -> int:
    """Size of the largest component, parts of which may be on many ranks. Collective.

    Parameters
    ----------
    labels : (parts,) integers, not negative
        The names of components; one may occur several times.
    members : (parts,) integers
        Nodes of each part.
    alone : int
        Size of the largest of this rank of which no other rank has a part.
    """
    labels, members = _at_keepers(sync, labels, members)
    _, which = distinct(labels)
    sizes = np.bincount(which, members)
    return sync.highest(max(int(sizes.max()), alone) if sizes.size else alone)


class Directory:
    """For each name, the lowest known name of the same component. Rank ``n % ranks`` keeps that of name n.

    Names are followed from one to the next as in FastSV (Zhang, Azad, Hu, PP 2020), so what is known of a component
    doubles its reach with each round.

    Attributes
    ----------
    lowest : (nodes / ranks,) int64
    """

    def __init__(self, sync: Sync, num_nodes: int) -> None:
        self.sync = sync
        self.lowest = np.arange(sync.comm.rank, num_nodes, sync.comm.size)

    def record(self, names: np.ndarray, lower: np.ndarray) -> None:
        """Record that ``lower[i]`` is in the same component as ``names[i]``. Collective."""
        names, lower = _at_keepers(self.sync, names, lower)
        np.minimum.at(self.lowest, names // self.sync.comm.size, lower)

    def look_up(self, names: np.ndarray) -> np.ndarray:
        """The lowest known name for each name. Collective."""
        places = _by_rank(names, self.sync.comm.size)
        requests = all_to_all(self.sync.comm, [names[sent] for sent in places])
        answers = all_to_all(self.sync.comm, [self.lowest[some // self.sync.comm.size] for some in requests])
        lowest = np.empty_like(names)
        for sent, values in zip(places, answers):
            lowest[sent] = values
        return lowest

    def unite(self, one: np.ndarray, other: np.ndarray) -> None:
        """Make the lowest name of a component known of all names in it; ``one[i]`` joins ``other[i]``. Collective."""
        first = ends = np.concatenate([one, other])
        while True:
            last, ends = ends, self.look_up(ends)
            lower = np.tile(np.minimum(*ends.reshape(2, -1)), 2)
            if self.sync.total(np.count_nonzero((ends != lower) | (ends != last))) == (0,):
                return
            higher, older = ends != lower, (first != lower) & (first != ends)
            self.record(np.append(ends[higher], first[older]), np.append(lower[higher], lower[older]))


def come_first(sync: Sync, names: np.ndarray, keys: list[np.ndarray]) -> np.ndarray:
    """Of candidates, at most one for each name on a rank: which come first of those of all ranks. Collective.

    Parameters
    ----------
    names : (n,) int64
    keys : list of (n,) uint64
        By what they are ordered, lowest first: by the first, then the next; and of equals, by rank.

    Returns
    -------
    (n,) bool
    """
    places, table = _by_rank(names, sync.comm.size), np.stack([names.view(np.uint64), *keys], axis=1)
    came = all_to_all(sync.comm, [table[sent].ravel() for sent in places])
    rows = np.concatenate(came).reshape(-1, table.shape[1])
    order = np.lexsort(rows.T[::-1])
    first, answer = np.zeros(len(rows), np.bool_), np.empty(names.size, np.bool_)
    first[order] = np.diff(rows[order, 0], prepend=rows[order[:1], 0] + np.uint64(1)) != 0
    ends = np.cumsum([some.size // table.shape[1] for some in came])
    for sent, won in zip(places, all_to_all(sync.comm, pieces(first, ends))):
        answer[sent] = won
    return answer


def _at_keepers(sync: Sync, names: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Names and their values of all ranks, at the rank that keeps each name. Collective."""
    pairs = np.stack([names, values], axis=1).astype(np.int64)
    sent = [pairs[places].ravel() for places in _by_rank(names, sync.comm.size)]
    received = np.concatenate(all_to_all(sync.comm, sent)).reshape(-1, 2)
    return received[:, 0], received[:, 1]


def _by_rank(names: np.ndarray, ranks: int) -> list[np.ndarray]:
    rank = names % ranks
    return [np.flatnonzero(rank == other) for other in range(ranks)]
