"""Sync: mirrors -> master by the reduction, master -> mirrors by broadcast, between two operators."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from cusp.exchange import wait_all
from gluon import device_cpu as device
from gluon.label import Label
from gluon.plan import SyncPlan
from gluon.reduction import ASSIGN

TAGS = {"reduce": 11, "broadcast": 12}


@dataclass
class Traffic:
    """What one rank sent in one exchange."""

    kind: str
    messages: int
    bytes: int


class Sync:
    """Keeps labels consistent where an operator writes at ``write`` and the next one reads at ``read``.

    Parameters
    ----------
    plan : SyncPlan
    comm : Intracomm
    write, read : {'src', 'dst', 'any'}
        Which end of an edge u -> v the operators write and read: push and pull along an edge both
        read u and write v.

    Attributes
    ----------
    traffic : list of Traffic
        One entry an exchange.
    """

    def __init__(self, plan: SyncPlan, comm: MPI.Intracomm, write: str = "dst", read: str = "src") -> None:
        self.plan, self.comm = plan, comm
        self.write, self.read = write, read
        self.traffic: list[Traffic] = []
        self._buffers: dict[tuple[str, int], np.ndarray] = {}

    def __call__(self, *labels: Label) -> None:
        """Reduce, then broadcast. Collective."""
        self.reduce(*labels)
        self.broadcast(*labels)

    def bytes_sent(self, kind: str) -> int:
        """Bytes that this rank sent in all exchanges of a kind, ``reduce`` or ``broadcast``."""
        return sum(exchange.bytes for exchange in self.traffic if exchange.kind == kind)

    def total(self, *values: Any) -> tuple:
        """Sums over the ranks. Collective."""
        mine = np.array(values)
        everywhere = np.empty_like(mine)
        self.comm.Allreduce(mine, everywhere)
        return tuple(everywhere.tolist())

    def lowest(self, value: Any) -> Any:
        """Minimum over the ranks. Collective."""
        return self.comm.allreduce(value.item() if isinstance(value, np.generic) else value, MPI.MIN)

    def reduce(self, *labels: Label, write: str | None = None, implied: float | None = None) -> None:
        """Combine the updated mirrors into their masters. Collective.

        Parameters
        ----------
        labels : Label
            They share one message a partner.
        write : str, optional
            Where the operator wrote, if not where it usually does.
        implied : number, optional
            The value of everything updated, when all ranks know it: then no values travel.
        """
        lists = self.plan.lists(write or self.write)
        self._exchange("reduce", labels, lists.mirrors, lists.masters, implied)

    def broadcast(self, *labels: Label, read: str | None = None, implied: float | None = None) -> None:
        """Give the values of updated masters to their mirrors. Collective."""
        lists = self.plan.lists(read or self.read)
        self._exchange("broadcast", labels, lists.masters, lists.mirrors, implied)

    def _exchange(
        self,
        kind: str,
        labels: tuple[Label, ...],
        send: list[np.ndarray],
        receive: list[np.ndarray],
        implied: float | None,
    ) -> None:
        """One message to each rank with a list in common, one from each."""
        comm, requests, arriving = self.comm, [], []
        sent = Traffic(kind, 0, 0)
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
                message = buffer[: self._extract(kind, labels, send[rank], implied, buffer)]
                requests.append(comm.Isend(message, rank, TAGS[kind]))
                sent.messages += 1
                sent.bytes += message.nbytes
        wait_all(requests)
        for rank, buffer in sorted(arriving, key=lambda item: item[0]):  # the same order in every run
            self._combine(kind, labels, receive[rank], implied, buffer)
        self.traffic.append(sent)

    def _buffer(self, way: str, rank: int, entries: int, labels: tuple[Label, ...]) -> np.ndarray:
        words = sum(device.block_words(entries, label.values.itemsize) for label in labels)
        buffer = self._buffers.get((way, rank))
        if buffer is None or buffer.size < words:
            buffer = self._buffers[way, rank] = np.empty(words, np.uint64)
        return buffer

    @staticmethod
    def _extract(
        kind: str, labels: tuple[Label, ...], lids: np.ndarray, implied: float | None, buffer: np.ndarray
    ) -> int:
        at = 0
        for label in labels:
            reset = kind == "reduce" and not label.reduction.idempotent
            at = device.extract(
                lids, label.values, label.updated, implied is None, reset,
                label.reduction.identity(label.values.dtype), buffer, *_views(buffer, label), at,
            )  # fmt: skip
        return at

    @staticmethod
    def _combine(
        kind: str, labels: tuple[Label, ...], lids: np.ndarray, implied: float | None, buffer: np.ndarray
    ) -> None:
        at = 0
        for label in labels:
            reduction = label.reduction if kind == "reduce" else ASSIGN
            at = device.combine(
                lids, label.values, label.updated, implied is None, label.values.dtype.type(implied or 0),
                reduction.code, buffer, *_views(buffer, label), at,
            )  # fmt: skip


def _views(buffer: np.ndarray, label: Label) -> tuple[np.ndarray, np.ndarray]:
    """The message seen as uint32 (positions) and as the label's type (values)."""
    return buffer.view(np.uint32), buffer.view(label.values.dtype)
