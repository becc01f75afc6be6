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

from cusp.cuda import many_threads
from cusp.exchange import exchange_counts
from gluon import device_gpu as device
from gluon.reduction import ASSIGN

if TYPE_CHECKING:
    from gluon.label import Label

WARP = 32  # pieces of the joined lists begin at multiples of it


@dataclass(frozen=True)
class Joined:
    """The lists for all ranks one after the other, on the device; gaps hold -1.

    Attributes
    ----------
    lids : (entries,) int32, on the device
    starts : (ranks + 1,) int64
        The list for rank r begins at entry ``starts[r]``.
    sizes : (ranks,) int64
    on_device : (2, ranks + 1) int64
        ``starts`` and ``sizes``.
    anywhere : bool
        Some rank has a list with an entry.
    """

    lids: Any
    starts: np.ndarray
    sizes: np.ndarray
    on_device: Any
    anywhere: bool
    _boxes: dict[int, tuple[list[int], Any]] = field(default_factory=dict)

    @cached_property
    def bit_words(self) -> int:
        """Length in words of the messages of one bit an entry for all ranks."""
        return int(self.starts[-1]) // 64

    @cached_property
    def bit_starts(self) -> list[int]:
        """Words at which they begin."""
        return (self.starts[:-1] // 64).tolist()

    @cached_property
    def bit_lengths(self) -> list[int]:
        """Lengths in words."""
        return (-(-self.sizes // 64)).tolist()

    @staticmethod
    def of(lists: list[np.ndarray], comm: MPI.Intracomm) -> "Joined":
        """Join one list a rank. Collective."""
        sizes = np.array([lids.size for lids in lists], np.int64)
        starts = np.zeros(sizes.size + 1, np.int64)
        starts[1:] = np.cumsum(-(-sizes // (2 * WARP)) * (2 * WARP))
        lids = np.full(int(starts[-1]), -1, np.int32)
        for start, part in zip(starts, lists):
            lids[start : start + part.size] = part
        anywhere = comm.allreduce(int(starts[-1]), MPI.MAX) > 0
        return Joined(cp.asarray(lids), starts, sizes, cp.asarray(np.stack([starts, np.append(sizes, 0)])), anywhere)

    def boxes(self, itemsize: int) -> tuple[list[int], Any]:
        """(ranks + 1) words at which the messages of values have room for each rank; also on the device."""
        if itemsize not in self._boxes:
            lengths = np.where(self.sizes > 0, 2 + -(-self.sizes // 64) + -(-self.sizes * itemsize // 8), 0)
            starts = np.concatenate([[0], np.cumsum(lengths)])
            self._boxes[itemsize] = starts.tolist(), cp.asarray(starts)
        return self._boxes[itemsize]


class Exchange:
    """Extract, send, receive, combine; buffers are kept from one round to the next."""

    def __init__(self, comm: MPI.Intracomm, transport: Any) -> None:
        self.comm, self.transport = comm, transport
        self._joined: dict[int, tuple[list[np.ndarray], Joined]] = {}
        self._boxes: dict[str, Any] = {}

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
        out = self._box("out", outgoing.bit_words)
        into = self._box("in", incoming.bit_words)
        entries = outgoing.lids.size
        kernels.extract_bits(entries, entries, outgoing.lids, label.updated, out.view(cp.uint32))
        self.transport.exchange(
            out, outgoing.bit_starts, outgoing.bit_lengths, into, incoming.bit_starts, incoming.bit_lengths
        )
        reduction = label.reduction if kind == "reduce" else ASSIGN
        bits, value, entries = into.view(cp.uint32), label.values.dtype.type(implied), incoming.lids.size
        kernels.combine_bits(entries, entries, incoming.lids, bits, value, reduction.code, label.values, label.updated)
        return [8 * words for words in outgoing.bit_lengths if words]

    def _values(self, kind: str, label: "Label", outgoing: Joined, incoming: Joined) -> list[int]:
        """Messages of positions and values."""
        kernels, dtype, ranks = device.kernels(label.values.dtype), label.values.dtype, self.comm.size
        (out_boxes, boxes), (in_boxes, _) = outgoing.boxes(dtype.itemsize), incoming.boxes(dtype.itemsize)
        out, into = self._box("out", out_boxes[-1]), self._box("in", in_boxes[-1])
        counts = cp.zeros((2, ranks), np.int64)
        starts, sizes = outgoing.on_device
        entries = outgoing.lids.size
        kernels.count_updated(
            min(entries, many_threads()), entries, outgoing.lids, starts, ranks, label.updated, counts[0]
        )
        reset = kind == "reduce" and not label.reduction.idempotent
        kernels.extract_values(
            entries, entries, outgoing.lids, starts, sizes, ranks, boxes, counts[0], counts[1],
            label.values, label.updated, int(reset), label.reduction.identity(dtype), out,
        )  # fmt: skip
        words = message_words(device.read(counts[0]), outgoing.sizes, dtype.itemsize)
        coming = exchange_counts(self.comm, words)
        self.transport.exchange(out, out_boxes[:-1], words.tolist(), into, in_boxes[:-1], coming.tolist())
        reduction = label.reduction if kind == "reduce" else ASSIGN
        for rank in np.flatnonzero(coming).tolist():
            lids = self._piece(incoming, rank)
            box = into[in_boxes[rank] :]
            kernels.combine_values(lids.size, lids.size, lids, box, reduction.code, label.values, label.updated)
        return [8 * int(size) for size in words if size]

    def _join(self, lists: list[np.ndarray]) -> Joined:
        """The lists on the device, sent there once."""
        found = self._joined.get(id(lists))
        if found is None:
            found = self._joined[id(lists)] = (lists, Joined.of(lists, self.comm))
        return found[1]

    @staticmethod
    def _piece(joined: Joined, rank: int) -> Any:
        start = int(joined.starts[rank])
        return joined.lids[start : start + int(joined.sizes[rank])]

    def _box(self, way: str, words: int) -> Any:
        if way not in self._boxes or self._boxes[way].size < words:
            self._boxes[way] = cp.empty(max(words, 1), np.uint64)
        return self._boxes[way]


def message_words(counts: np.ndarray, sizes: np.ndarray, itemsize: int) -> np.ndarray:
    """Length in words of the messages that ``extract_values`` makes; 0 where nothing was updated or no list is."""
    offsets = -(-counts * 4 // 8) + -(-counts * itemsize // 8)
    everything = -(-sizes // 64) + -(-sizes * itemsize // 8)
    body = np.where(counts * (4 + itemsize) < -(-sizes // 64) * 8 + sizes * itemsize, offsets, everything)
    return np.where(counts > 0, 1 + body, 0)
