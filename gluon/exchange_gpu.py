"""Labels travel between ranks that compute on GPUs: one kernel writes the messages for all ranks.

Where every rank knows the value of what is updated (the level of a BFS), a message is a bit an entry of
the list: its length is known in advance, so nothing waits for the host. Otherwise the lengths are read
back and exchanged first.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np
from mpi4py import MPI

from cusp.kernels.cuda import Sums, many_threads
from cusp.runtime.exchange import exchange_counts
from gluon import device_gpu as device
from gluon.reduction import ASSIGN

if TYPE_CHECKING:
    from gluon.label import Label

WORD = 8  # bytes
TILE, EACH = 1024, 4  # entries of a block and of a thread, as in device.cuh; pieces of joined lists begin at multiples


@dataclass(frozen=True)
class Joined:
    """The lists for all ranks one after the other, on the device; gaps hold -1.

    Attributes
    ----------
    lids : (entries,) int32, on the device
    starts : (ranks + 1,) int64
        The list for rank r begins at entry ``starts[r]``.
    sizes : (ranks,) int64
    on_device : (ranks + 1,) and (ranks,) int64
        ``starts`` and ``sizes``.
    anywhere : bool
        Some rank has a list with an entry.
    """

    lids: Any
    starts: np.ndarray
    sizes: np.ndarray
    on_device: tuple[Any, Any]
    anywhere: bool
    _boxes: dict[int, tuple[list[int], Any]] = field(default_factory=dict)

    @cached_property
    def entries(self) -> int:
        """Entries of all lists, with the gaps."""
        return int(self.starts[-1])

    @cached_property
    def pieces(self) -> list[Any]:
        """The list for each rank."""
        return [self.lids[start : start + size] for start, size in zip(self.starts.tolist(), self.sizes.tolist())]

    @cached_property
    def bit_words(self) -> int:
        """Length in words of the messages of one bit an entry for all ranks."""
        return self.entries // 64

    @cached_property
    def bit_starts(self) -> list[int]:
        """Words at which they begin."""
        return (self.starts[:-1] // 64).tolist()

    @cached_property
    def bit_lengths(self) -> list[int]:
        """Their lengths in words."""
        return (-(-self.sizes // 64)).tolist()

    @cached_property
    def bit_bytes(self) -> list[int]:
        """Bytes of each, but those that are empty, which are not sent."""
        return [WORD * words for words in self.bit_lengths if words]

    @staticmethod
    def of(lists: list[np.ndarray], comm: MPI.Intracomm) -> "Joined":
        """Join one list a rank. Collective."""
        sizes = np.array([lids.size for lids in lists], np.int64)
        starts = np.zeros(sizes.size + 1, np.int64)
        starts[1:] = np.cumsum(-(-sizes // TILE) * TILE)
        lids = np.full(int(starts[-1]), -1, np.int32)
        for start, part in zip(starts, lists):
            lids[start : start + part.size] = part
        anywhere = comm.allreduce(int(starts[-1]), MPI.MAX) > 0
        return Joined(cp.asarray(lids), starts, sizes, (cp.asarray(starts), cp.asarray(sizes)), anywhere)

    def boxes(self, itemsize: int) -> tuple[list[int], Any]:
        """(ranks + 1) words at which the messages of values have room for each rank; also on the device."""
        if itemsize not in self._boxes:
            lengths = np.where(self.sizes > 0, 2 + -(-self.sizes // 64) + -(-self.sizes * itemsize // 8), 0)
            starts = np.concatenate([[0], np.cumsum(lengths)])
            self._boxes[itemsize] = starts.tolist(), cp.asarray(starts)
        return self._boxes[itemsize]


def most_entries(size: int, words: int, itemsize: int) -> int:
    """At most so many entries of a list of ``size`` need a thread, if the message about them has ``words`` words."""
    every = 1 + -(-size // 64) + -(-size * itemsize // WORD)
    return size if words >= every else (words - 1) * WORD // (4 + itemsize)


class Exchange:
    """Extract, send, receive, combine; buffers are kept from one round to the next."""

    def __init__(self, comm: MPI.Intracomm, transport: Any) -> None:
        self.comm, self.transport = comm, transport
        self._joined: dict[int, tuple[list[np.ndarray], Joined]] = {}
        self._boxes: dict[str, tuple[Any, Any]] = {}
        self._lengths = Sums(comm.size)  # of the messages of values
        self._counts, self._taken = cp.zeros(comm.size, np.int64), cp.zeros(comm.size, np.int64)

    def __call__(
        self,
        kind: str,
        labels: "tuple[Label, ...]",
        send: list[np.ndarray],
        receive: list[np.ndarray],
        implied: float | None,
    ) -> list[int]:
        """Exchange the labels one after the other; returns the bytes of the messages sent. Collective."""
        outgoing, incoming = self._join(send), self._join(receive)
        if not outgoing.anywhere:
            return []
        if implied is None:
            return [size for label in labels for size in self._values(kind, label, outgoing, incoming)]
        return [size for label in labels for size in self._bits(kind, label, outgoing, incoming, implied)]

    def _bits(self, kind: str, label: "Label", outgoing: Joined, incoming: Joined, implied: float) -> list[int]:
        """Messages of one bit an entry."""
        kernels = device.kernels(label.values.dtype)
        out, out_bits = self._box("out", outgoing.bit_words)
        into, bits = self._box("in", incoming.bit_words)
        kernels.extract_bits(outgoing.entries, outgoing.entries, outgoing.lids, label.updated, out_bits)
        self.transport.exchange(
            out, outgoing.bit_starts, outgoing.bit_lengths, into, incoming.bit_starts, incoming.bit_lengths
        )
        reduction, value = label.reduction if kind == "reduce" else ASSIGN, label.values.dtype.type(implied)
        kernels.combine_bits(
            incoming.entries, incoming.entries, incoming.lids, bits, value, reduction.code, label.values, label.updated
        )
        return outgoing.bit_bytes

    def _values(self, kind: str, label: "Label", outgoing: Joined, incoming: Joined) -> list[int]:
        """Messages of positions and values."""
        kernels, dtype, ranks = device.kernels(label.values.dtype), label.values.dtype, self.comm.size
        (out_boxes, boxes), (in_boxes, _) = outgoing.boxes(dtype.itemsize), incoming.boxes(dtype.itemsize)
        (out, _), (into, _) = self._box("out", out_boxes[-1]), self._box("in", in_boxes[-1])
        entries, lids, lengths = outgoing.entries, outgoing.lids, self._lengths
        threads = min(max(entries // EACH, 1), many_threads())
        kernels.count_updated(
            threads, entries, lids, *outgoing.on_device, ranks, label.updated, lengths.counters, self._counts,
            self._taken, lengths.address,
        )  # fmt: skip
        reset = kind == "reduce" and not label.reduction.idempotent
        kernels.extract_values(
            entries // EACH, lids, *outgoing.on_device, ranks, boxes, self._counts, self._taken, label.values,
            label.updated, int(reset), label.reduction.identity(dtype), out,
        )  # fmt: skip
        words = lengths.read()
        coming = exchange_counts(self.comm, np.array(words)).tolist()
        self.transport.exchange(out, out_boxes[:-1], words, into, in_boxes[:-1], coming)
        reduction = label.reduction if kind == "reduce" else ASSIGN
        for rank, arrived in enumerate(coming):
            if arrived:
                there, box = incoming.pieces[rank], into[in_boxes[rank] :]
                threads = most_entries(there.size, arrived, dtype.itemsize)
                kernels.combine_values(threads, there.size, there, box, reduction.code, label.values, label.updated)
        return [WORD * size for size in words if size]

    def _join(self, lists: list[np.ndarray]) -> Joined:
        """The lists on the device, sent there once."""
        found = self._joined.get(id(lists))
        if found is None:
            found = self._joined[id(lists)] = (lists, Joined.of(lists, self.comm))
        return found[1]

    def _box(self, way: str, words: int) -> tuple[Any, Any]:
        """Room for messages: uint64, and the same as uint32."""
        if way not in self._boxes or self._boxes[way][0].size < words:
            room = cp.empty(max(words, 1), np.uint64)
            self._boxes[way] = room, room.view(np.uint32)
        return self._boxes[way]
