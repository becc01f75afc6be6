"""Labels travel between ranks on CPUs and ranks on GPUs: what a rank on a CPU does, in the messages of exchange_gpu.py.

A message is about one label. Where all ranks know the value of what is updated, it is one bit per entry of the list.
Otherwise it is empty if nothing is updated, or the shorter of two forms, after a header as in device_cpu.py: positions
and values, or a bit for each entry and space for the values of all of them.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from cusp.kernels.bits import first_bit, popcount
from cusp.runtime.compiled_code import njit
from cusp.runtime.mpi import MPI
from gluon.device_cpu import BITSET, OFFSETS
from gluon.reduction import ASSIGN
from gluon.reduction_cpu import compiled_with
from gluon.transports.memory import WORD

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.reduction import Reduction
    from gluon.transports import Transport

HALF = np.dtype(np.uint32)  # of a word: positions


class Exchange:
    def __init__(self, comm: MPI.Intracomm, transport: "Transport") -> None:
        self.comm, self.transport = comm, transport
        self._anywhere: WeakKeyDictionary[Lists, bool] = WeakKeyDictionary()

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        """The labels one after the other, as ranks on GPUs send them."""
        if lists not in self._anywhere:
            self._anywhere[lists] = self.comm.allreduce(max(lids.size for lids in lists.mirrors), MPI.MAX) > 0
        sent: list[int] = []
        for label in labels if self._anywhere[lists] else ():
            if implied is None or (kind == "reduce" and not label.reduction.idempotent):
                sent += self._values(kind, label, *lists.ends(kind))
            else:
                sent += self._bits(kind, label, *lists.ends(kind), implied)
        return sent

    def _bits(
        self, kind: str, label: "Label", outgoing: tuple[np.ndarray, ...], incoming: tuple[np.ndarray, ...],
        implied: float,
    ) -> list[int]:  # fmt: skip
        """Messages of one bit per entry."""
        leaving, coming = (tuple(bit_words(lids.size) for lids in side) for side in (outgoing, incoming))
        out, into = self.transport.buffers("out", leaving), self.transport.buffers("in", coming)
        for lids, words in zip(outgoing, out.pieces):
            extract_bits(lids, label.updated, words)
        self.transport.exchange(out, leaving, into, coming)
        combine = _combining(kind, label, _combine_bits)
        for lids, words in zip(incoming, into.pieces):
            combine(lids, words, label.values.dtype.type(implied), label.values, label.updated)
        return [WORD * count for count in leaving if count]

    def _values(
        self, kind: str, label: "Label", outgoing: tuple[np.ndarray, ...], incoming: tuple[np.ndarray, ...]
    ) -> list[int]:
        """Messages of positions and values."""
        values, updated, dtype = label.values, label.updated, label.values.dtype
        most = [tuple(most_words(lids.size, dtype.itemsize) for lids in side) for side in (outgoing, incoming)]
        out, into = self.transport.buffers("out", most[0]), self.transport.buffers("in", most[1])
        reset = kind == "reduce" and not label.reduction.idempotent
        identity = label.reduction.identity(dtype) if reset else dtype.type(0)
        leaving = [
            extract_values(lids, values, updated, reset, identity, *memory)
            for lids, *memory in zip(outgoing, out.pieces, out.seen_as(HALF), out.seen_as(dtype))
        ]
        arrived = self.transport.exchange(out, leaving, into)
        combine = _combining(kind, label, _combine_values)
        for count, lids, *memory in zip(arrived, incoming, into.pieces, into.seen_as(HALF), into.seen_as(dtype)):
            if count:
                combine(lids, *memory, values, updated)
        return [WORD * count for count in leaving if count]


def bit_words(entries: int) -> int:
    """Words of a message with a bit for each entry."""
    return -(-entries // 64)


def most_words(entries: int, itemsize: int) -> int:
    """Words of the longest message of values about a list; positions and values are padded to words, each of them."""
    return 2 + bit_words(entries) + -(-entries * itemsize // WORD) if entries else 0


def _combining(kind: str, label: "Label", loop: Callable) -> Callable[..., None]:
    return _combine_by(label.reduction if kind == "reduce" else ASSIGN, loop)


@functools.cache
def _combine_by(reduction: "Reduction", loop: Callable) -> Callable[..., None]:
    return compiled_with(reduction, loop)


@njit(cache=True, nogil=True, inline="always")
def _bits_of(lids, word, updated):  # type: ignore[no-untyped-def]
    """Which of 64 entries of a list, from entry ``64 * word`` on, are updated: a bit for each."""
    bits = np.uint64(0)
    for place in range(64 * word, min(64 * word + 64, lids.size)):
        lid = lids[place]
        bits |= ((updated[lid >> 6] >> np.uint64(lid & 63)) & np.uint64(1)) << np.uint64(place & 63)
    return bits


@njit(cache=True, nogil=True)
def extract_bits(lids, updated, words):  # type: ignore[no-untyped-def]
    """Write a message of one bit per entry."""
    for word in range((lids.size + 63) // 64):
        words[word] = _bits_of(lids, word, updated)


@njit(cache=True, nogil=True)
def extract_values(lids, values, updated, reset, identity, words, halves, items):  # type: ignore[no-untyped-def]
    """Write a message of values; returns its words. ``halves`` and ``items`` are the memory of ``words``.

    With ``reset``, what was sent goes back to the identity and is no longer updated.
    """
    all_bits, width = (lids.size + 63) // 64, values.itemsize
    count = np.int64(0)
    for word in range(all_bits):
        words[1 + word] = _bits_of(lids, word, updated)
        count += np.int64(popcount(words[1 + word]))
    if count == 0:
        return 0
    spread = count * (4 + width) >= all_bits * 8 + lids.size * width
    words[0] = np.uint64((BITSET if spread else OFFSETS) | (count << 8))
    first = 1 + (all_bits if spread else (count * 4 + 7) // 8)
    half, item = 2, first * 8 // width
    for word in range(all_bits):
        bits = words[1 + word] if spread else _bits_of(lids, word, updated)
        while bits:
            place = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            lid = lids[place]
            if spread:
                items[item + place] = values[lid]
            else:
                halves[half] = place
                items[item] = values[lid]
                half += 1
                item += 1
            if reset:
                values[lid] = identity
                updated[lid >> 6] &= ~(np.uint64(1) << np.uint64(lid & 63))
    return first + ((lids.size if spread else count) * width + 7) // 8


combine_one = None  # compiled_with puts that of a reduction in its place


@njit(cache=True, nogil=True, inline="always")
def _entries_of(word, bits, entries):  # type: ignore[no-untyped-def]
    """The bits of a word that are entries; a GPU leaves halves of a word as they were where there are none."""
    left = entries - 64 * word
    return bits if left >= 64 else bits & ((np.uint64(1) << np.uint64(left)) - np.uint64(1))


def _combine_bits(lids, words, implied, values, updated):  # type: ignore[no-untyped-def]
    """Apply a message of one bit per entry."""
    for word in range((lids.size + 63) // 64):
        bits = _entries_of(word, words[word], lids.size)
        while bits:
            combine_one(lids[word * 64 + first_bit(bits)], implied, values, updated)
            bits &= bits - np.uint64(1)


def _combine_values(lids, words, halves, items, values, updated):  # type: ignore[no-untyped-def]
    """Apply a message of values."""
    count, width = np.int64(words[0] >> np.uint64(8)), values.itemsize
    if words[0] & np.uint64(255) == BITSET:
        all_bits = (lids.size + 63) // 64
        item = (1 + all_bits) * 8 // width
        for word in range(all_bits):
            bits = _entries_of(word, words[1 + word], lids.size)
            while bits:
                place = word * 64 + first_bit(bits)
                bits &= bits - np.uint64(1)
                combine_one(lids[place], items[item + place], values, updated)
    else:
        item = (1 + (count * 4 + 7) // 8) * 8 // width
        for entry in range(count):
            combine_one(lids[halves[2 + entry]], items[item + entry], values, updated)
