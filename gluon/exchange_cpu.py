"""Labels travel between ranks that compute on CPUs: one message per partner, for all labels together."""

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from gluon import device_cpu as device
from gluon.reduction import ASSIGN
from gluon.transports.memory import WORD

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport


class Exchange:
    def __init__(self, comm: MPI.Intracomm, transport: "Transport") -> None:
        self.comm, self.transport = comm, transport

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        send, receive = lists.ends(kind)
        out, into = (
            self.transport.buffers(direction, tuple(_most_words(lids, labels) for lids in side))
            for direction, side in (("out", send), ("in", receive))
        )
        words = [_extract(kind, labels, lids, implied, buffer) for lids, buffer in zip(send, out.pieces)]
        self.transport.exchange(out, words, into)
        for lids, buffer in zip(receive, into.pieces):  # in the order of ranks: the same in every run
            _combine(kind, labels, lids, implied, buffer)
        return [WORD * count for count in words if count]


def _most_words(lids: np.ndarray, labels: "tuple[Label, ...]") -> int:
    return sum(device.block_words(lids.size, label.values.itemsize) for label in labels) if lids.size else 0


def _extract(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, buffer: np.ndarray
) -> int:
    """Write the message; returns its words."""
    at = 0
    if not lids.size:
        return at
    for label in labels:
        dtype, reset = label.values.dtype, kind == "reduce" and not label.reduction.idempotent
        identity = label.reduction.identity(dtype) if reset else dtype.type(0)
        at = device.extract(
            lids, label.values, label.updated, implied is None, reset, identity, buffer, *_views(buffer, label), at
        )
    return at


def _combine(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, buffer: np.ndarray
) -> None:
    at = 0
    if not lids.size:
        return
    for label in labels:
        combine = device.combine_by(label.reduction if kind == "reduce" else ASSIGN)
        value = label.values.dtype.type(implied or 0)
        at = combine(lids, label.values, label.updated, implied is None, value, buffer, *_views(buffer, label), at)


def _views(buffer: np.ndarray, label: "Label") -> tuple[np.ndarray, np.ndarray]:
    """The message seen as uint32 (positions) and as the label's type (values)."""
    return buffer.view(np.uint32), buffer.view(label.values.dtype)
