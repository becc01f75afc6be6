"""Messages about labels, as ranks on GPUs write and read them; message_cpu.py describes their form.

One kernel writes the blocks of a label for all ranks. Where every rank knows the value of what is updated (the level
of a BFS), a block has one bit per entry of the list: its length is known in advance, so nothing waits for the host.
Otherwise a kernel before it counts; the host reads the lengths, and the transport tells them to the receivers.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Sums, c_type, load, many_threads, pinned
from gluon import device_gpu as device
from gluon.reduction import Reduction
from gluon.transports.memory import WORD, block_words

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports.memory import Buffers

COMBINE = "gluon/kernels/combine.cuh"
TILE = 1024  # entries of a block, as in device.cuh; pieces of joined lists begin at multiples


@functools.cache
def combine_by(reduction: Reduction, dtype: Any) -> Any:
    """The kernels that apply messages by a reduction to a label of a type."""
    return load(COMBINE, VALUE=c_type(dtype), **reduction.macros())


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
    bit_words : (ranks,) int
        Words of a block of one bit per entry; 0 if there is no list.
    """

    entries: int
    lids: Any
    starts: Any
    sizes: Any
    pieces: list[Any]
    bit_words: tuple[int, ...]

    @staticmethod
    def of(lists: tuple[Any, ...]) -> "Joined":
        """Join one list per rank."""
        sizes = np.array([lids.size for lids in lists], np.int64)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // TILE) * TILE)])
        joined = cp.full(int(starts[-1]), -1, np.int32)
        for start, lids in zip(starts.tolist(), lists):
            joined[start : start + lids.size] = lids
        return Joined(
            joined.size, joined, cp.asarray(starts), cp.asarray(sizes),
            [joined[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())],
            tuple(np.where(sizes > 0, 1 + -(-sizes // 64), 0).tolist()),
        )  # fmt: skip


class Room:
    """What the kernels that write blocks of several labels for some ranks hand to each other."""

    def __init__(self, ranks: int, labels: int) -> None:
        self.labels = labels
        self.lengths = Sums(ranks)
        # Of each block: where it begins (the first ones at 0), how many entries it has, how many are written; then
        # the words of each message.
        self.arrays = tuple(cp.zeros(rows * ranks, np.int64) for rows in (labels + 1, labels, labels, 1))


class Route:
    """The lists along which labels are reduced or broadcast: see interfaces.py."""

    def __init__(self, lists: "Lists", kind: str) -> None:
        self._kind = kind
        self._out, self._in = map(Joined.of, lists.ends(kind))
        self._room = Room(len(self._out.pieces), 1)
        self._cursors = cp.zeros(2, np.int64)

    def pack(
        self, labels: "tuple[Label, ...]", with_values: bool, out: "Buffers"
    ) -> tuple[Sequence[int], Sequence[int] | None]:
        if self._are_bits(labels, with_values):
            lists, ranks = self._out, len(self._out.pieces)
            for number, label in enumerate(labels):
                device.kernels(label.values.dtype).extract_bits(
                    lists.entries, lists.entries, lists.lids, lists.starts, lists.sizes, ranks, number, label.updated,
                    out.addresses,
                )  # fmt: skip
            return _times(len(labels), lists.bit_words), _times(len(labels), self._in.bit_words)
        if self._room.labels < len(labels):
            self._room = Room(len(self._out.pieces), len(labels))
        updated = [(label, label.updated) for label in labels]
        return write_blocks(self._kind, self._out, updated, with_values, out.addresses, self._room), None

    def unpack(
        self, labels: "tuple[Label, ...]", implied: float | None, into: "Buffers", arrived: Sequence[int]
    ) -> None:
        lists, ranks = self._in, len(self._in.pieces)
        # No block is longer than that of all bits: where the messages have this length, all blocks are bits.
        bits = self._are_bits(labels, implied is None) and tuple(arrived) == _times(len(labels), lists.bit_words)
        for number, label in enumerate(labels) if bits else ():
            combine_by(label.reduction_of(self._kind), label.values.dtype).combine_bits(
                lists.entries, lists.entries, lists.lids, lists.starts, lists.sizes, ranks, number, into.addresses,
                label.values.dtype.type(implied), label.values, label.updated,
            )  # fmt: skip
        if bits:
            return
        if self._cursors.size <= len(labels):
            self._cursors = cp.zeros(len(labels) + 1, np.int64)
        chosen = [(label, label.reduction_of(self._kind), label.updated) for label in labels]
        for lids, piece, words in zip(lists.pieces, into.pieces, arrived):  # in the order of ranks
            if words:
                read_blocks(lids, piece, words, chosen, implied, self._cursors)

    def _are_bits(self, labels: "tuple[Label, ...]", with_values: bool) -> bool:
        """Whether ranks on GPUs send one bit per entry: then it does not matter which rank's is applied first."""
        return not with_values and not any(label.reset(self._kind)[0] for label in labels)


def listed(lids: Any) -> tuple[Joined, Room, Any]:
    """The list, and what kernels that write and read messages about it hand to each other."""
    return Joined.of((lids,)), Room(1, 1), cp.zeros(2, np.int64)


class _Landing:
    """Room for the largest message about a list: on the device, and page-locked on the host; most are never needed."""

    def __init__(self, where: tuple[Joined, Room, Any], label: "Label") -> None:
        (self._lists, self._room, self._cursors), self._label = where, label
        self._words = block_words(self._lists.pieces[0].size, label.values.itemsize)

    @cached_property
    def buffer(self) -> Any:
        return cp.empty(self._words, np.uint64)

    @cached_property
    def landing(self) -> np.ndarray:
        return pinned(self._words, np.uint64)


class Outgoing(_Landing):
    def __init__(self, where: tuple[Joined, Room, Any], kind: str, label: "Label") -> None:
        super().__init__(where, label)
        self._kind, self._unsent, self.marked = kind, cp.zeros_like(label.updated), False

    def mark(self, bits: Any) -> None:
        self._unsent |= bits
        self.marked = True

    def write(self) -> np.ndarray | None:
        address = cp.array([self.buffer.data.ptr], np.uint64)
        (words,) = write_blocks(self._kind, self._lists, [(self._label, self._unsent)], True, address, self._room)
        device.clear(self._unsent)
        self.marked = False
        if words == 0:
            return None
        self.buffer[:words].get(out=self.landing[:words])
        return self.landing[:words]


class Incoming(_Landing):
    def read(self, words: int, arrived: Any) -> None:
        self.buffer[:words].set(self.landing[:words])
        labels = [(self._label, self._label.reduction, arrived)]
        read_blocks(self._lists.pieces[0], self.buffer, words, labels, None, self._cursors)
        cp.cuda.get_current_stream().synchronize()  # the next message may be written into the same memory


def write_blocks(
    kind: str, lists: Joined, labels: "Sequence[tuple[Label, Any]]", with_values: bool, addresses: Any, room: Room
) -> list[int]:
    """Write the blocks of labels, whose updated bits are given, for all ranks; returns the words of each message."""
    ranks, lengths = len(lists.pieces), room.lengths
    where = lists.lids, lists.starts, lists.sizes, ranks
    for number, (label, updated) in enumerate(labels):
        device.kernels(label.values.dtype).count_updated(
            min(max(lists.entries // device.EACH, 1), many_threads()), lists.entries, *where, updated, lengths.counters,
            number, int(with_values), *room.arrays, lengths.address,
        )  # fmt: skip
    for number, (label, updated) in enumerate(labels):
        reset, identity = label.reset(kind)
        device.kernels(label.values.dtype).extract_values(
            lists.entries // device.EACH, *where, addresses, number, int(with_values), *room.arrays[:3], label.values,
            updated, int(reset), identity,
        )  # fmt: skip
    return lengths.read()


def read_blocks(
    lids: Any, message: Any, words: int, labels: "Iterable[tuple[Label, Reduction, Any]]", implied: float | None,
    cursors: Any,
) -> None:  # fmt: skip
    """Combine the blocks of a message into labels, each by a reduction, and set the bits of what it changes.

    ``cursors``, one more than labels, say to the next kernel where its block begins.
    """
    for number, (label, reduction, updated) in enumerate(labels):
        dtype = label.values.dtype
        width = 0 if implied is not None else dtype.itemsize
        every = words > -(-lids.size * width // WORD)
        threads = lids.size if every else max((words - 1) * WORD // (4 + width), 1)
        combine_by(reduction, dtype).combine_block(
            threads, lids.size, lids, message, words, number, cursors, int(implied is None), dtype.type(implied or 0),
            label.values, updated,
        )  # fmt: skip


def _times(labels: int, words: tuple[int, ...]) -> tuple[int, ...]:
    return words if labels == 1 else tuple(labels * count for count in words)
