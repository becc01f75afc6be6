"""The names that a rank reads, numbered as they come: a hash table over packed names."""

import os

import numpy as np

from cusp.errors import GraphFileError
from cusp.kernels.bits import mix
from cusp.names.packed import Packed
from cusp.runtime.compiled_code import njit

_FEW = 1 << 10  # names there is room for at first


class Dictionary:
    """Numbers names in the order in which they first appear; it grows with the names, not with the edges.

    >>> names = Dictionary()
    >>> names.number(Packed.of(["b", "a", "b"])), names.known().strings()
    (array([0, 1, 0]), ['b', 'a'])

    Attributes
    ----------
    limit : int or None
        Bytes that it may take; None: no limit.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self._seed = np.uint64(int.from_bytes(os.urandom(8)))  # nobody can choose names that collide
        self._count = 0
        self._offsets = np.zeros(_FEW + 1, np.int64)
        self._text = np.empty(16 * _FEW, np.uint8)
        self._hashes = np.empty(_FEW, np.uint64)
        self._table = np.full(2 * _FEW, -1, np.int64)

    def __len__(self) -> int:
        return self._count

    def number(self, names: Packed) -> np.ndarray:
        """(names,) int64: the number of each, a new one for what is not known yet.

        Raises
        ------
        GraphFileError
            All names together take more than the limit.
        """
        numbers = np.empty(len(names), np.int64)
        done = 0
        while True:
            done, self._count = _number(
                names.text, names.offsets, self._seed, self._offsets, self._text, self._hashes, self._table,
                self._count, numbers, done,
            )  # fmt: skip
            if done == numbers.size:
                return numbers
            self._grow(int(names.offsets[done + 1] - names.offsets[done]))

    def known(self) -> Packed:
        """All names, by number."""
        return Packed(self._offsets[: self._count + 1], self._text[: self._offsets[self._count]])

    def _grow(self, length: int) -> None:
        """Make room for more names, one of which has this length."""
        if self._count == self._hashes.size:
            self._offsets = np.concatenate([self._offsets, np.empty(self._count, np.int64)])
            self._hashes = np.concatenate([self._hashes, np.empty(self._count, np.uint64)])
            self._table = np.full(2 * self._hashes.size, -1, np.int64)
            _fill(self._hashes[: self._count], self._table)
        if self._offsets[self._count] + length > self._text.size:
            self._text = np.concatenate([self._text, np.empty(self._text.size + length, np.uint8)])
        taken = sum(array.nbytes for array in (self._offsets, self._text, self._hashes, self._table))
        if self.limit is not None and taken > self.limit:
            raise GraphFileError(
                f"the names of more than {self._count:,} nodes take {taken / 1e6:,.0f} MB of one rank; its limit "
                f"leaves {self.limit / 1e6:,.0f} MB for them; raise --memory-limit, or take more ranks"
            )


@njit(cache=True, nogil=True)
def _number(  # type: ignore[no-untyped-def]
    text, bounds, seed, offsets, known, hashes, table, count, numbers, done
):
    """Number names from ``done`` on, until all are or there is no room: how many are done, how many are known."""
    mask = table.size - 1
    for i in range(done, numbers.size):
        begin, length = bounds[i], bounds[i + 1] - bounds[i]
        value = seed
        for at in range(begin, bounds[i + 1]):
            value = (value ^ np.uint64(text[at])) * np.uint64(0x100000001B3)
        value = mix(value)
        slot = np.int64(value & np.uint64(mask))
        while True:
            number = table[slot]
            if number < 0:
                break
            if hashes[number] == value and offsets[number + 1] - offsets[number] == length:
                at = 0
                while at < length and known[offsets[number] + at] == text[begin + at]:
                    at += 1
                if at == length:
                    break
            slot = (slot + 1) & mask
        if number < 0:
            if count == hashes.size or offsets[count] + length > known.size:
                return i, count
            number = count
            for at in range(length):
                known[offsets[count] + at] = text[begin + at]
            offsets[count + 1] = offsets[count] + length
            hashes[number] = value
            table[slot] = number
            count += 1
        numbers[i] = number
    return numbers.size, count


@njit(cache=True, nogil=True)
def _fill(hashes, table):  # type: ignore[no-untyped-def]
    """Put the numbers of all hashes into an empty table."""
    mask = table.size - 1
    for number in range(hashes.size):
        slot = np.int64(hashes[number] & np.uint64(mask))
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = number
