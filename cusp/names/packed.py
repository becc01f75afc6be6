"""Many names as bytes, one after the other: taken in any order, and sorted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cusp.kernels.arrays import offsets_of

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
        lengths = np.array([len(name) for name in encoded], np.int64)
        return cls.of_parts([lengths], [np.frombuffer(b"".join(encoded), np.uint8)])

    @classmethod
    def of_arrow(cls, texts: Any) -> Self:
        """The names of an Arrow array of large strings or binary values, without nulls."""
        offsets = np.frombuffer(texts.buffers()[1] or bytes(8), np.int64)[texts.offset :][: len(texts) + 1]
        text = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return cls(offsets - offsets[0], text)

    @classmethod
    def of_parts(cls, lengths: list[np.ndarray], texts: list[np.ndarray]) -> Self:
        """From the lengths of names and the bytes of names, each in several parts."""
        return cls(offsets_of(np.concatenate(lengths)), np.concatenate(texts))

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, place: int) -> bytes:
        """The bytes of one name."""
        return self.text[self.offsets[place] : self.offsets[place + 1]].tobytes()

    def arrow(self) -> Any:
        """The names as an array of Arrow, of large binary values, which shares the memory."""
        import pyarrow

        buffers = [None, *map(pyarrow.py_buffer, (self.offsets, self.text))]
        return pyarrow.LargeBinaryArray.from_buffers(pyarrow.large_binary(), len(self), buffers)

    def take(self, places: np.ndarray) -> "Packed":
        """The names of some places, in their order."""
        return Packed.of_arrow(self.arrow().take(places))

    def strings(self) -> list[str]:
        """All names as strings; bytes that are not UTF-8 are replaced."""
        text, ends = self.text.tobytes(), (self.offsets - self.offsets[0]).tolist()
        return [text[begin:end].decode(errors="replace") for begin, end in zip(ends[:-1], ends[1:])]


def sort_names(names: Packed) -> tuple[np.ndarray, np.ndarray]:
    """Places of the names in the order of their bytes, and which of these names differ from the one before.

    In UTF-8 that is the order of code points.

    Returns
    -------
    order : (names,) int64
    first : (names,) bool
        Of ``order[i]``: its name is not that of ``order[i - 1]``.
    """
    from pyarrow import compute

    texts = names.arrow()
    order = compute.sort_indices(texts)
    ordered = texts.take(order)
    differ = compute.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    return order.to_numpy().astype(np.int64), np.concatenate([np.ones(min(len(names), 1), bool), differ])


def unite(one: Packed, other: Packed) -> tuple[Packed, np.ndarray, np.ndarray]:
    """The names that are in either, sorted, and the places there of those of each; each has a name once.

    >>> united, _, places = unite(Packed.of(["Cosette", "Valjean"]), Packed.of(["Javert", "Cosette"]))
    >>> united.strings(), places
    (['Cosette', 'Javert', 'Valjean'], array([1, 0]))
    """
    both = Packed.of_parts([np.diff(names.offsets) for names in (one, other)], [one.text, other.text])
    order, first = sort_names(both)
    places = np.empty(len(both), np.int64)
    places[order] = np.cumsum(first) - 1
    return both.take(order[first]), places[: len(one)], places[len(one) :]
