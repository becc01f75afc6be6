"""Messages about labels, as ranks on CPUs write and read them; those on GPUs do so in ``kernels/message.cuh``.

A message is about one or several labels and a list of local ids that both sides have in the same order (Gluon, PLDI
2018, section 4.2: memoised order). For each label it has a block, in words of 8 bytes::

    header: mode + (number of entries << 8) | positions, padded to a word | values, padded to a word

    mode      positions                      values
    NONE      -                              -           no entry was updated
    ALL       -                              of all      every entry was
    BITSET    one bit per entry of the list  of the entries with a bit, in their order
    OFFSETS   uint32 places in the list      of these entries, in the same order
    SPREAD    one bit per entry of the list  a place for every entry; those with a bit are written

All ranks read all modes, and each writes the shortest of those that suit its device. A CPU walks through the list, so
it writes BITSET. On a GPU every thread of SPREAD and ALL knows where its value is, so these need no order among
threads; the places of OFFSETS are in any order. Values are left out where the receiver knows them (the level of a
BFS); then a GPU need not count: it writes all bits as SPREAD, 0 as their number, and the length is known before.
Blocks of NONE at the end of a message may be missing, so an empty message says that nothing was updated.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cusp.kernels.bits import first_bit, popcount
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import Range, in_parallel, many, ranges, whole_words
from gluon.device_cpu import count_bits, get_bit, no_bits
from gluon.reduction_cpu import compiled_with
from gluon.transports.memory import block_words

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.reduction import Reduction
    from gluon.transports.memory import Buffers

NONE, ALL, BITSET, OFFSETS, SPREAD = range(5)
HALF = np.dtype(np.uint32)  # of a word: positions
ALONE, FEW, SHARED = range(3)  # how a block is written
LONG = 16  # times as many entries as are worth waking threads, which takes longer than a pass over a shorter list


class Route:
    """The lists along which labels are reduced or broadcast: see interfaces.py."""

    def __init__(self, lists: "Lists", kind: str) -> None:
        self._kind = kind
        out, into = lists.ends(kind)
        self._ranks = len(out)
        self._targets = [(rank, listed(lids), _pieces(lids)) for rank, lids in enumerate(out) if lids.size]
        self._sources = [(rank, lids, _pieces(lids)) for rank, lids in enumerate(into) if lids.size]

    def pack(self, labels: "tuple[Label, ...]", with_values: bool, out: "Buffers") -> tuple[list[int], None]:
        words = [0] * self._ranks
        for rank, where, pieces in self._targets:
            at, memory, halves = 0, out.pieces[rank], out.seen_as(HALF)[rank]
            for label in labels:
                items = out.seen_as(label.values.dtype)[rank]
                what = label.values, where.of(label.updated), with_values, *label.reset(self._kind)
                at = write_block(pieces, where, *what, memory, halves, items, at)
            words[rank] = at
        return words, None

    def unpack(
        self, labels: "tuple[Label, ...]", implied: float | None, into: "Buffers", arrived: Sequence[int]
    ) -> None:
        for rank, lids, pieces in self._sources:  # in the order of ranks: the same in every run
            at, memory, halves = 0, into.pieces[rank], into.seen_as(HALF)[rank]
            for label in labels:
                if at == arrived[rank]:
                    break
                combine, value = combine_by(label.reduction_of(self._kind)), label.values.dtype.type(implied or 0)
                items, what = into.seen_as(label.values.dtype)[rank], (label.values, label.updated, implied is None)
                at = read_block(combine, pieces, lids, *what, value, memory, halves, items, at)


class Outgoing:
    def __init__(self, where: "Listed", kind: str, label: "Label") -> None:
        self._where, self._label, self._reset, self.marked = where, label, label.reset(kind), False
        self._unsent = np.zeros_like(where.members)
        self._room = np.empty(block_words(where.lids.size, label.values.itemsize), np.uint64)
        self._views = self._room, self._room.view(HALF), self._room.view(label.values.dtype)

    def mark(self, bits: np.ndarray) -> None:
        self.marked |= _mark(self._where.of(bits), self._where.members, self._unsent)

    def write(self) -> np.ndarray | None:
        what = self._label.values, self._unsent, True, *self._reset
        end = write_block([], self._where, *what, *self._views, 0)
        self._unsent.fill(0)
        self.marked = False
        return self._room[:end]


class Incoming:
    def __init__(self, where: "Listed", label: "Label") -> None:
        self._lids, self._values, self._combine = where.lids, label.values, combine_by(label.reduction)
        self.landing = room = np.empty(block_words(where.lids.size, label.values.itemsize), np.uint64)
        self._rest = True, label.values.dtype.type(0), room, room.view(HALF), room.view(label.values.dtype), 0

    def read(self, words: int, arrived: np.ndarray) -> None:
        read_block(self._combine, [], self._lids, self._values, arrived, *self._rest)


@njit(cache=True, nogil=True)
def _mark(bits, members, unsent):  # type: ignore[no-untyped-def]
    """Mark members that have a bit; whether any has."""
    any_bits = np.uint64(0)
    for word in range(members.size):
        new = bits[word] & members[word]
        unsent[word] |= new
        any_bits |= new
    return any_bits != 0


class Listed(NamedTuple):
    """A list of local ids, and where in it each of them is.

    Attributes
    ----------
    lids : (n,) int32, distinct
    first : int
        The first word of bits of proxies in which one of them is.
    members : (words,) uint64
        Their bits, from that word on.
    before : (words,) int32
        How many of them are in earlier words.
    places : (n,) int32
        Where in ``lids`` each is, in ascending order of local ids.
    """

    lids: np.ndarray
    first: int
    members: np.ndarray
    before: np.ndarray
    places: np.ndarray

    def of(self, bits: np.ndarray) -> np.ndarray:
        """Of the bits of proxies the words in which its members are, not a copy."""
        return bits[self.first : self.first + self.members.size]


def listed(lids: np.ndarray) -> Listed:
    first, end = (int(lids.min()) >> 6, (int(lids.max()) >> 6) + 1) if lids.size else (0, 0)
    members, before, places = no_bits(64 * (end - first)), np.empty(end - first, np.int32), np.empty_like(lids)
    _find_places(lids, first, members, before, places)
    return Listed(lids, first, members, before, places)


@njit(cache=True, nogil=True)
def _find_places(lids, first, members, before, places):  # type: ignore[no-untyped-def]
    for lid in lids:
        members[(lid >> 6) - first] |= np.uint64(1) << np.uint64(lid & 63)
    entries = 0
    for word in range(members.size):
        before[word] = entries
        entries += np.int64(popcount(members[word]))
    for place in range(lids.size):
        places[_rank_of(lids[place] - 64 * first, members, before)] = place


@njit(cache=True, nogil=True, inline="always")
def _rank_of(bit, members, before):  # type: ignore[no-untyped-def]
    """How many members come before that of a bit."""
    below = (np.uint64(1) << np.uint64(bit & 63)) - np.uint64(1)
    return before[bit >> 6] + np.int64(popcount(members[bit >> 6] & below))


def _pieces(lids: np.ndarray) -> list[Range]:
    """Ranges of a long list, whole words of a bit for each entry, that threads share; none if one thread is as fast."""
    return whole_words(ranges(lids.size)) if lids.size >= LONG * many() else []


def write_block(pieces: list[Range], where: Listed, values: np.ndarray, own: np.ndarray, *rest: Any) -> int:
    """Write one block of a message; see :func:`_extract`. Threads share the pieces of the list, if it has some."""
    lids, (with_values, reset, *_) = where.lids, rest
    end: int = _extract(*where, values, own, *rest, 0, lids.size, 0, FEW if pieces else ALONE)
    if end >= 0:
        return end

    def size(begin: int, end: int) -> int:
        return _count_listed(lids[begin:end], where.first, own) if with_values else 0  # type: ignore[no-any-return]

    entries = np.cumsum([0, *in_parallel(size, pieces[:-1])]).tolist()
    parts = [(*piece, entry, SHARED) for piece, entry in zip(pieces, entries)]
    ends = in_parallel(lambda *part: _extract(*where, values, own, *rest, *part), parts)
    if reset:
        own &= ~where.members
    return ends[0]


def read_block(combine: Any, pieces: list[Range], lids: np.ndarray, *rest: Any) -> int:
    """Apply one block of a message; see :func:`_combine`. Threads share the pieces of the list, if it has some."""
    *_, words, _, _, start = rest
    mode = int(words[start]) & 255
    if not pieces or mode not in (ALL, BITSET):
        return combine(lids, *rest, 0, lids.size, 0, True)  # type: ignore[no-any-return]

    def size(begin: int, end: int) -> int:
        at = start + 1 + (begin >> 6)
        return end - begin if mode == ALL else count_bits(words[at : at + (end - begin) // 64], end - begin)

    entries = np.cumsum([0, *in_parallel(size, pieces[:-1])]).tolist()
    parts = [(*piece, entry, False) for piece, entry in zip(pieces, entries)]
    return in_parallel(lambda *part: combine(lids, *rest, *part), parts)[0]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _count_listed(lids, first, own):  # type: ignore[no-untyped-def]
    """How many of some entries are updated."""
    count = np.int64(0)
    for lid in lids:
        count += np.int64(get_bit(own, lid - 64 * first))
    return count


@njit(cache=True, nogil=True)
def _extract(  # type: ignore[no-untyped-def]
    lids, first, members, before, places, values, own, with_values, reset, identity, words, halves, items, start,
    low, high, entry, how,
):  # fmt: skip
    """Write one block from word ``start`` on; returns the word after it. ``FEW``: not if threads may share it; -1 then.

    ``own`` says what was updated, from word ``first`` on, as ``members`` does. ``halves`` and ``items`` are the memory
    of ``words`` seen as uint32 and as the label's type. With ``reset``, what was sent goes back to the identity and, if
    it is not ``SHARED``, is no longer updated. A few entries are found by their bits, without a look at the whole list.
    Else just the entries of the list from ``low`` to ``high`` are written, whole words of bits, of which ``entry``
    updated ones come before.
    """
    marked = np.uint64(0)
    for word in range(members.size):
        marked += popcount(own[word] & members[word])
    count = np.int64(marked)
    mode = mode_of(count, lids.size)
    if how == FEW and (mode == ALL or mode == BITSET):
        return -1
    words[start] = np.uint64(mode | (count << 8))
    begin, half = start + 1, 2 * (start + 1)
    at = begin + position_words(mode, count, lids.size)
    item = at * 8 // values.itemsize + entry
    few = mode == OFFSETS
    low, high = (0, members.size) if few else (low >> 6, (high + 63) >> 6)
    for word in range(low, high if count else low):
        bits = own[word] & members[word] if few else _bits_of(lids[64 * word : 64 * word + 64], first, own)
        if mode == BITSET:
            words[begin + word] = bits
        while bits:
            bit = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            lid = first * 64 + bit if few else lids[bit]
            if few:
                halves[half] = places[_rank_of(bit, members, before)]
                half += 1
            if with_values:
                items[item] = values[lid]
                item += 1
            if reset:
                values[lid] = identity
                if how != SHARED:
                    own[(lid >> 6) - first] &= ~(np.uint64(1) << np.uint64(lid & 63))
    return at + ((count * values.itemsize + 7) // 8 if with_values else 0)


@njit(cache=True, nogil=True)
def _bits_of(lids, first, own):  # type: ignore[no-untyped-def]
    """Which of up to 64 local ids are updated, a bit for each."""
    bits = np.uint64(0)
    for i in range(lids.size):
        bits |= ((own[(lids[i] >> 6) - first] >> np.uint64(lids[i] & 63)) & np.uint64(1)) << np.uint64(i)
    return bits


@njit(cache=True, nogil=True)
def mode_of(count, entries):  # type: ignore[no-untyped-def]
    """The shortest mode, but SPREAD, of a block with ``count`` of the ``entries`` of a list."""
    if count == 0:
        return NONE
    if count == entries:
        return ALL
    return OFFSETS if (count + 1) // 2 < (entries + 63) // 64 else BITSET


@njit(cache=True, nogil=True)
def position_words(mode, count, entries):  # type: ignore[no-untyped-def]
    """Words that say which entries they are."""
    if mode == OFFSETS:
        return (count + 1) // 2
    return (entries + 63) // 64 if mode == BITSET or mode == SPREAD else 0


combine_one: Any = None  # compiled_with puts that of a reduction in its place


def _combine(  # type: ignore[no-untyped-def]
    lids, values, updated, with_values, implied, words, halves, items, start, low, high, entry, alone
):
    """Apply one block from word ``start`` on; returns the word after it.

    Of ALL and BITSET, just the entries of the list from ``low`` to ``high``, whole words of bits, of which ``entry``
    updated ones come before; if not ``alone``, other threads apply others.
    """
    mode = np.int64(words[start] & np.uint64(255))
    count = np.int64(words[start] >> np.uint64(8))
    at = start + 1
    bitset = at
    half = 2 * at
    at += position_words(mode, count, lids.size)
    item = at * 8 // values.itemsize
    if mode == BITSET or mode == SPREAD:
        first = item
        for word in range(low >> 6, (high + 63) >> 6):
            bits = words[bitset + word]
            while bits:
                i = word * 64 + first_bit(bits)
                bits &= bits - np.uint64(1)
                item = first + (i if mode == SPREAD else entry)
                combine_one(lids[i], items[item] if with_values else implied, values, updated, alone)
                entry += 1
    else:
        for i in range(low, high if mode == ALL else count):
            lid = lids[halves[half + i]] if mode == OFFSETS else lids[i]
            combine_one(lid, items[item + i] if with_values else implied, values, updated, alone)
    entries = lids.size if mode == SPREAD else count
    return at + ((entries * values.itemsize + 7) // 8 if with_values else 0)


@functools.cache
def combine_by(reduction: "Reduction") -> Callable[..., int]:
    """A function that applies one block of a message by a reduction; its parameters are those of ``_combine``."""
    return compiled_with(reduction, _combine)
