"""Labels travel between ranks that compute on GPUs: one kernel writes the messages for all ranks.

Where every rank knows the value of what is updated (the level of a BFS), a message is one bit per entry of
the list: its length is known in advance, so nothing waits for the host. Otherwise the host reads the lengths
first, and the transport tells them to the receivers.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Sums, many_threads
from cusp.runtime.mpi import MPI
from gluon import device_gpu as device
from gluon.reduction import ASSIGN
from gluon.transports.memory import WORD

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport

TILE, EACH = 1024, 4  # entries of a block and of a thread, as in device.cuh; pieces of joined lists begin at multiples
ITEM_SIZES = (1, 2, 4, 8)  # bytes of a value


@dataclass(frozen=True)
class Joined:
    """The lists for all ranks one after the other, on the device; gaps hold -1.

    Attributes
    ----------
    entries : int
        Of all lists, with the gaps.
    lids : (entries,) int32, on the device
    starts : (ranks + 1,) int64, on the device
        The list for rank r begins at entry ``starts[r]``.
    sizes : (ranks,) int64, on the device
    pieces : list of (n_r,) int32, on the device
        The list for each rank.
    bit_buffers, bit_words : tuple of int
        Words of the buffer for each message of one bit per entry, with the gap, and of the message itself.
    value_buffers : dict of tuple of int
        Words of the largest message of values to each rank, by the bytes of a value.
    """

    entries: int
    lids: Any
    starts: Any
    sizes: Any
    pieces: list[Any]
    bit_buffers: tuple[int, ...]
    bit_words: tuple[int, ...]
    value_buffers: dict[int, tuple[int, ...]]

    @staticmethod
    def of(lists: tuple[np.ndarray, ...]) -> "Joined":
        """Join one list per rank."""
        sizes = np.array([lids.size for lids in lists], np.int64)
        lengths = -(-sizes // TILE) * TILE
        starts = np.concatenate([[0], np.cumsum(lengths)])
        joined = np.full(int(starts[-1]), -1, np.int32)
        for start, lids in zip(starts, lists):
            joined[start : start + lids.size] = lids
        on_device = cp.asarray(joined)
        bits = -(-sizes // 64)
        # A word more than bits and all values: positions and values are fewer bytes, but both are padded to words.
        values = {size: np.where(sizes > 0, 2 + bits + -(-sizes * size // WORD), 0) for size in ITEM_SIZES}
        return Joined(
            joined.size, on_device, cp.asarray(starts), cp.asarray(sizes),
            [on_device[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())],
            tuple((lengths // 64).tolist()), tuple(bits.tolist()),
            {size: tuple(words.tolist()) for size, words in values.items()},
        )  # fmt: skip


def most_entries(size: int, words: int, itemsize: int) -> int:
    """Entries of a list of ``size`` that need a thread at most, if the message about them has ``words`` words."""
    every = 1 + -(-size // 64) + -(-size * itemsize // WORD)
    return size if words >= every else (words - 1) * WORD // (4 + itemsize)


class Exchange:
    def __init__(self, comm: MPI.Intracomm, transport: "Transport") -> None:
        self.comm, self.transport = comm, transport
        self._joined: WeakKeyDictionary[Lists, tuple[Joined, Joined, bool]] = WeakKeyDictionary()
        self._lengths = Sums(comm.size)  # of the messages of values
        self._counts, self._taken = cp.zeros(comm.size, np.int64), cp.zeros(comm.size, np.int64)

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        """The labels one after the other."""
        mirrors, masters, anywhere = self._join(lists)
        outgoing, incoming = (mirrors, masters) if kind == "reduce" else (masters, mirrors)
        sent: list[int] = []
        for label in labels if anywhere else ():
            if implied is None or (kind == "reduce" and not label.reduction.idempotent):
                sent += self._values(kind, label, outgoing, incoming)
            else:
                sent += self._bits(kind, label, outgoing, incoming, implied)
        return sent

    def _bits(self, kind: str, label: "Label", outgoing: Joined, incoming: Joined, implied: float) -> list[int]:
        """Messages of one bit per entry."""
        kernels, combiners, dtype, ranks = *self._kernels(kind, label), label.values.dtype, self.comm.size
        into = self.transport.buffers("in", incoming.bit_buffers)
        out = self.transport.buffers("out", outgoing.bit_buffers)
        kernels.extract_bits(
            outgoing.entries, outgoing.entries, outgoing.lids, outgoing.starts, ranks, label.updated, out.addresses
        )
        self.transport.exchange(out, outgoing.bit_words, into, incoming.bit_words)
        combiners.combine_bits(
            incoming.entries, incoming.entries, incoming.lids, incoming.starts, ranks, into.addresses,
            dtype.type(implied), label.values, label.updated,
        )  # fmt: skip
        return [WORD * words for words in outgoing.bit_words if words]

    def _values(self, kind: str, label: "Label", outgoing: Joined, incoming: Joined) -> list[int]:
        """Messages of positions and values."""
        kernels, combiners, dtype, ranks = *self._kernels(kind, label), label.values.dtype, self.comm.size
        into = self.transport.buffers("in", incoming.value_buffers[dtype.itemsize])
        out = self.transport.buffers("out", outgoing.value_buffers[dtype.itemsize])
        entries, lists, lengths = outgoing.entries, (outgoing.lids, outgoing.starts, outgoing.sizes), self._lengths
        kernels.count_updated(
            min(max(entries // EACH, 1), many_threads()), entries, *lists, ranks, label.updated, lengths.counters,
            self._counts, self._taken, lengths.address,
        )  # fmt: skip
        reset = kind == "reduce" and not label.reduction.idempotent
        kernels.extract_values(
            entries // EACH, *lists, ranks, out.addresses, self._counts, self._taken, label.values, label.updated,
            int(reset), label.reduction.identity(dtype) if reset else dtype.type(0),
        )  # fmt: skip
        words = lengths.read()
        arrived = self.transport.exchange(out, words, into)
        for lids, buffer, count in zip(incoming.pieces, into.pieces, arrived):
            if count:
                threads = most_entries(lids.size, count, dtype.itemsize)
                combiners.combine_values(threads, lids.size, lids, buffer, label.values, label.updated)
        return [WORD * size for size in words if size]

    @staticmethod
    def _kernels(kind: str, label: "Label") -> tuple[Any, Any]:
        """What extracts a label, and what combines into it."""
        reduction, dtype = label.reduction if kind == "reduce" else ASSIGN, label.values.dtype
        return device.kernels(dtype), device.combine_by(reduction, dtype)

    def _join(self, lists: "Lists") -> tuple[Joined, Joined, bool]:
        """The mirrors and masters on the device, sent there once, and whether any rank has some. Collective."""
        if lists not in self._joined:
            mirrors, masters = Joined.of(lists.mirrors), Joined.of(lists.masters)
            anywhere = self.comm.allreduce(mirrors.entries, MPI.MAX) > 0
            self._joined[lists] = mirrors, masters, anywhere
        return self._joined[lists]
