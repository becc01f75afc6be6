"""Labels travel between ranks that compute on CPUs: one message per partner, for all labels together."""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from mpi4py import MPI

from gluon import device_cpu as device
from gluon.reduction import ASSIGN
from gluon.transports.memory import WORD

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport
    from gluon.transports.memory import Buffers

HALF = np.dtype(np.uint32)  # of a word: positions


class Exchange:
    def __init__(self, comm: MPI.Intracomm, transport: "Transport") -> None:
        self.comm, self.transport = comm, transport
        self._words: WeakKeyDictionary[Lists, dict[Any, tuple[tuple[int, ...], ...]]] = WeakKeyDictionary()

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        send, receive = lists.ends(kind)
        most_out, most_in = self._most_words(kind, labels, lists)
        out, into = self.transport.buffers("out", most_out), self.transport.buffers("in", most_in)
        words = [0] * self.comm.size
        for rank, most in enumerate(most_out):
            if most:
                words[rank] = _extract(kind, labels, send[rank], implied, out, rank)
        self.transport.exchange(out, words, into)
        for rank, most in enumerate(most_in):  # in the order of ranks: the same in every run
            if most:
                _combine(kind, labels, receive[rank], implied, into, rank)
        return [WORD * count for count in words if count]

    def _most_words(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists") -> tuple[tuple[int, ...], ...]:
        """Words of the largest message to and from each rank."""
        known = self._words.setdefault(lists, {})
        key = kind, *(label.values.itemsize for label in labels)
        if key not in known:
            known[key] = tuple(
                tuple(sum(device.block_words(lids.size, size) for size in key[1:]) if lids.size else 0 for lids in side)
                for side in lists.ends(kind)
            )
        return known[key]


def _extract(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, out: "Buffers", rank: int
) -> int:
    """Write the message for a rank; returns its words."""
    at = 0
    for label in labels:
        values = label.values
        reset = kind == "reduce" and not label.reduction.idempotent
        identity = label.reduction.identity(values.dtype) if reset else values.dtype.type(0)
        at = device.extract(
            lids, values, label.updated, implied is None, reset, identity, out.pieces[rank],
            out.seen_as(HALF, rank), out.seen_as(values.dtype, rank), at,
        )  # fmt: skip
    return at


def _combine(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, into: "Buffers", rank: int
) -> None:
    """Apply the message from a rank."""
    at = 0
    for label in labels:
        values = label.values
        combine = device.combine_by(label.reduction if kind == "reduce" else ASSIGN)
        at = combine(
            lids, values, label.updated, implied is None, values.dtype.type(implied or 0), into.pieces[rank],
            into.seen_as(HALF, rank), into.seen_as(values.dtype, rank), at,
        )  # fmt: skip
