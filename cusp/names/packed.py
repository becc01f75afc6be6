"""Many names as bytes, one after the other: taken in any order, and sorted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cusp.runtime.compiled_code import njit

WORD = 8  # bytes of each name that are compared at a time
OFFSETS, TEXT = "names/offsets", "names/bytes"  # what the two arrays are called in files
WHOLE = "names_are_numbers"  # the attribute of a graph file


@dataclass(frozen=True)
class Packed:
    """Names in UTF-8; that of place i is ``text[offsets[i] : offsets[i + 1]]``.

    >>> names = Packed.of(["Valjean", "Javert", "Cosette"])
    >>> names.take(sort_names(names)[0]).strings()
    ['Cosette', 'Javert', 'Valjean']

    Attributes
    ----------
    offsets : (names + 1,) int64
    text : (bytes,) uint8
    """

    offsets: np.ndarray
    text: np.ndarray

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """The names of a list."""
        encoded = [name.encode("utf-8", "surrogateescape") for name in names]
        return cls.of_parts([np.array([len(name) for name in encoded], np.int64)], [b"".join(encoded)])

    @classmethod
    def of_arrow(cls, texts: Any) -> Self:
        """The names of an Arrow array of large strings without nulls."""
        offsets = np.frombuffer(texts.buffers()[1] or bytes(8), np.int64)[texts.offset :][: len(texts) + 1]
        return cls(offsets, np.frombuffer(texts.buffers()[2] or b"", np.uint8))

    @classmethod
    def of_numbers(cls, numbers: np.ndarray) -> Self:
        """Whole numbers as they are written."""
        import pyarrow

        return cls.of_arrow(pyarrow.array(numbers).cast(pyarrow.large_string()))

    @classmethod
    def of_parts(cls, lengths: list[np.ndarray], texts: list[np.ndarray] | list[bytes]) -> Self:
        """From the lengths of names and the bytes of names, each in several parts."""
        ends = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        parts = [np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part for part in texts]
        return cls(np.concatenate([np.zeros(1, np.int64), ends]), np.concatenate(parts))

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, place: int) -> bytes:
        """The bytes of one name."""
        return self.text[self.offsets[place] : self.offsets[place + 1]].tobytes()

    def take(self, places: np.ndarray) -> "Packed":
        """The names of some places, in their order."""
        lengths = self.offsets[places + 1] - self.offsets[places]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        text = np.empty(int(offsets[-1]), np.uint8)
        _copy(self.offsets[places], self.text, offsets, text)
        return Packed(offsets, text)

    def strings(self) -> list[str]:
        """All names as strings; bytes that are not UTF-8 are replaced."""
        text, ends = self.text.tobytes(), (self.offsets - self.offsets[0]).tolist()
        return [text[begin:end].decode(errors="replace") for begin, end in zip(ends[:-1], ends[1:])]


def sort_names(names: Packed) -> tuple[np.ndarray, np.ndarray]:
    """Places of the names in the order of their bytes, and which of these names differ from the one before.

    In UTF-8 that is the order of code points. Names are compared a word at a time; only those that are still alike are
    looked at again.

    Returns
    -------
    order : (names,) int64
    first : (names,) bool
        Of ``order[i]``: its name is not that of ``order[i - 1]``.
    """
    order, lengths = np.arange(len(names)), np.diff(names.offsets)
    first = np.arange(len(names)) == 0
    tied, depth = order.copy(), 0  # positions in the order of names that are alike so far
    while tied.size:
        places = order[tied]
        words = np.empty(tied.size, np.uint64)
        _words(names.offsets, names.text, places, depth, words)
        left = np.minimum(lengths[places] - depth, WORD + 1)
        keys = (left, words, np.cumsum(first[tied]))
        by = np.lexsort(keys)
        order[tied] = places[by]
        same = np.ones(tied.size + 1, bool)  # as the one before, in this word too
        same[[0, -1]] = False
        for key in keys:
            same[1:-1] &= key[by][1:] == key[by][:-1]
        first[tied] = ~same[:-1]
        tied = tied[(same[:-1] | same[1:]) & (left[by] > WORD)]
        depth += WORD
    return order, first


@njit(cache=True, nogil=True)
def _copy(begins, text, offsets, copied):  # type: ignore[no-untyped-def]
    """Copy the names that begin at ``begins`` to where ``offsets`` says, which also gives their lengths."""
    for i in range(begins.size):
        shift = begins[i] - offsets[i]
        for at in range(offsets[i], offsets[i + 1]):
            copied[at] = text[at + shift]


@njit(cache=True, nogil=True)
def _words(offsets, text, places, depth, words):  # type: ignore[no-untyped-def]
    """Bytes ``depth`` to ``depth + 8`` of each name as a number, the first byte highest; zeros after the end."""
    for i in range(places.size):
        begin, end = offsets[places[i]] + depth, offsets[places[i] + 1]
        word = np.uint64(0)
        for at in range(begin, begin + WORD):
            word = word << np.uint64(8) | np.uint64(text[at] if at < end else 0)
        words[i] = word
