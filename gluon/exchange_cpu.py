"""Labels travel between ranks that compute on CPUs: one MPI message a partner, for all labels together."""

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from cusp.runtime.exchange import wait_all
from gluon import device_cpu as device
from gluon.reduction import ASSIGN

if TYPE_CHECKING:
    from gluon.label import Label

TAGS = {"reduce": 11, "broadcast": 12}


class Exchange:
    """Extract, send, receive, combine; buffers are kept from one round to the next."""

    def __init__(self, comm: MPI.Intracomm, transport: None) -> None:
        self.comm, self.transport = comm, transport
        self._buffers: dict[tuple[str, int], np.ndarray] = {}

    def __call__(
        self,
        kind: str,
        labels: "tuple[Label, ...]",
        send: list[np.ndarray],
        receive: list[np.ndarray],
        implied: float | None,
    ) -> list[int]:
        """One message to each partner and one from each; returns the bytes of those sent. Collective."""
        comm, requests, arriving, sent = self.comm, [], [], []
        for step in range(1, comm.size):
            rank = (comm.rank - step) % comm.size
            if receive[rank].size:
                buffer = self._buffer("from", rank, receive[rank].size, labels)
                requests.append(comm.Irecv(buffer, rank, TAGS[kind]))
                arriving.append((rank, buffer))
        for step in range(1, comm.size):
            rank = (comm.rank + step) % comm.size
            if send[rank].size:
                buffer = self._buffer("to", rank, send[rank].size, labels)
                message = buffer[: _extract(kind, labels, send[rank], implied, buffer)]
                requests.append(comm.Isend(message, rank, TAGS[kind]))
                sent.append(message.nbytes)
        wait_all(requests)
        for rank, buffer in sorted(arriving, key=lambda item: item[0]):  # the same order in every run
            _combine(kind, labels, receive[rank], implied, buffer)
        return sent

    def _buffer(self, way: str, rank: int, entries: int, labels: "tuple[Label, ...]") -> np.ndarray:
        words = sum(device.block_words(entries, label.values.itemsize) for label in labels)
        buffer = self._buffers.get((way, rank))
        if buffer is None or buffer.size < words:
            buffer = self._buffers[way, rank] = np.empty(words, np.uint64)
        return buffer


def _extract(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, buffer: np.ndarray
) -> int:
    at = 0
    for label in labels:
        reset = kind == "reduce" and not label.reduction.idempotent
        at = device.extract(
            lids, label.values, label.updated, implied is None, reset,
            label.reduction.identity(label.values.dtype), buffer, *_views(buffer, label), at,
        )  # fmt: skip
    return at


def _combine(
    kind: str, labels: "tuple[Label, ...]", lids: np.ndarray, implied: float | None, buffer: np.ndarray
) -> None:
    at = 0
    for label in labels:
        reduction = label.reduction if kind == "reduce" else ASSIGN
        at = device.combine(
            lids, label.values, label.updated, implied is None, label.values.dtype.type(implied or 0),
            reduction.code, buffer, *_views(buffer, label), at,
        )  # fmt: skip


def _views(buffer: np.ndarray, label: "Label") -> tuple[np.ndarray, np.ndarray]:
    """The message seen as uint32 (positions) and as the label's type (values)."""
    return buffer.view(np.uint32), buffer.view(label.values.dtype)
