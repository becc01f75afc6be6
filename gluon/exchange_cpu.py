"""Labels travel between ranks that compute on CPUs: one message per partner, for all labels together."""

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from cusp.runtime.mpi import MPI
from gluon import device_cpu as device
from gluon.reduction import ASSIGN
from gluon.transports.memory import WORD

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport
    from gluon.transports.memory import Buffers

HALF = np.dtype(np.uint32)  # of a word: positions


class Route(NamedTuple):
    """One exchange along the lists of a plan.

    Attributes
    ----------
    out, into : (ranks,) int
        Words of the largest message to, and from, each rank; 0 if there is no list.
    targets : list of (rank, Listed)
    sources : list of (rank, lids)
        Those that there is a list for, in the order of ranks.
    """

    out: tuple[int, ...]
    into: tuple[int, ...]
    targets: list[tuple[int, device.Listed]]
    sources: list[tuple[int, np.ndarray]]


class Exchange:
    def __init__(self, comm: MPI.Intracomm, transport: "Transport") -> None:
        self.comm, self.transport = comm, transport
        self._routes: WeakKeyDictionary[Lists, dict[Any, Route]] = WeakKeyDictionary()

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        route = self._route(kind, labels, lists)
        out, into = self.transport.buffers("out", route.out), self.transport.buffers("in", route.into)
        words = [0] * self.comm.size
        for rank, where in route.targets:
            words[rank] = _extract(kind, labels, where, implied, out, rank)
        self.transport.exchange(out, words, into)
        for rank, lids in route.sources:  # in the order of ranks: the same in every run
            _combine(kind, labels, lids, implied, into, rank)
        return [WORD * count for count in words if count]

    def _route(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists") -> Route:
        known = self._routes.get(lists)
        if known is None:
            known = self._routes[lists] = {}
        key = kind, *[label.values.itemsize for label in labels]
        if key not in known:
            ends = [[(rank, lids) for rank, lids in enumerate(side) if lids.size] for side in lists.ends(kind)]
            words = [
                tuple(sum(device.block_words(lids.size, size) for size in key[1:]) if lids.size else 0 for lids in side)
                for side in lists.ends(kind)
            ]
            targets = [(rank, device.listed(lids)) for rank, lids in ends[0]]
            known[key] = Route(words[0], words[1], targets, ends[1])
        return known[key]


def _extract(
    kind: str, labels: "tuple[Label, ...]", where: device.Listed, implied: float | None, out: "Buffers", rank: int
) -> int:
    """Write the message for a rank; returns its words."""
    at, words, halves = 0, out.pieces[rank], out.seen_as(HALF)[rank]
    for label in labels:
        values, dtype = label.values, label.values.dtype
        reset = kind == "reduce" and not label.reduction.idempotent
        identity = label.reduction.identity(dtype) if reset else dtype.type(0)
        items = out.seen_as(dtype)[rank]
        own = where.of(label.updated)
        at = device.extract(*where, values, own, implied is None, reset, identity, words, halves, items, at)
    return at


def _combine(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, into: "Buffers", rank: int
) -> None:
    """Apply the message from a rank."""
    at, words, halves = 0, into.pieces[rank], into.seen_as(HALF)[rank]
    for label in labels:
        values, dtype = label.values, label.values.dtype
        combine = device.combine_by(label.reduction if kind == "reduce" else ASSIGN)
        value, items = dtype.type(implied or 0), into.seen_as(dtype)[rank]
        at = combine(lids, values, label.updated, implied is None, value, words, halves, items, at)
