"""What all transports do, and the memory of messages, which grows and stays."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

import numpy as np

from cusp.errors import Intracomm
from gluon.transports.numbers import MOST, Numbers, combine

Words = Sequence[int]  # of the message to, or from, each rank
WORD = 8  # bytes
MOST_KEPT = 64  # ways to divide the memory among the ranks


def block_words(entries: int, width: int) -> int:
    """Words of the largest block of a message for a list, with values of so many bytes."""
    return 1 + -(-entries // 64) + -(-entries * width // WORD)


@dataclass(frozen=True, eq=False)
class Buffers:
    """Memory for one message to, or from, each rank.

    Attributes
    ----------
    pieces : list of (words,) uint64
    addresses : (ranks,) uint64, or None on CPUs
        Of the pieces, on the device: for kernels.
    """

    pieces: list[Any]
    addresses: Any = None
    _views: dict[np.dtype, list[Any]] = field(default_factory=dict, init=False, repr=False)

    def seen_as(self, dtype: np.dtype) -> list[Any]:
        """The pieces as arrays of another type."""
        views = self._views.get(dtype)
        if views is None:
            views = self._views[dtype] = [piece.view(dtype) for piece in self.pieces]
        return views

    def move(self, rank: int, piece: Any) -> None:
        """The message from a rank is somewhere else."""
        self.pieces[rank] = piece
        for dtype, views in self._views.items():
            views[rank] = piece.view(dtype)


class Transport(ABC):
    """What carries messages between the ranks of a communicator; made once for it.

    One that also has ``all_to_all`` (:class:`cusp.kernels.exchange_gpu.Carrier`) carries the edges of partitions, too.
    Of messages that can be sent from anywhere, those of one direction share one piece of memory.

    Attributes
    ----------
    name : str
        For ``--transport`` and rows.
    xp : module
        NumPy or CuPy: where the memory is.
    overlaps : bool
        Messages are on their way between :meth:`begin` and :meth:`end`.
    """

    name: str
    xp: Any
    overlaps = False

    def __init__(self, comm: Intracomm) -> None:
        self.comm = comm
        self._whole: dict[str, Any] = {}
        self._by_words: dict[str, dict[tuple[int, ...], Buffers]] = {}
        self._numbers = Numbers()
        self._tables: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}  # by how many numbers

    @staticmethod
    def why_unusable(comm: Intracomm) -> str | None:
        """None if it can be used here, as by default, else the reason why not. Collective."""
        return None

    @abstractmethod
    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        """Send the first ``out_words[r]`` words of buffer r to rank r; returns how many came from each. Collective.

        Parameters
        ----------
        out, into : Buffers
            What :meth:`buffers` returned last. The pieces of ``into`` may be moved to where messages have arrived.
        in_words : (ranks,) int, optional
            How many come, where this rank knows that. In a mixed job it may be wrong.
        """

    def begin(
        self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None
    ) -> Callable[[], object]:  # fmt: skip
        """Begin an :meth:`exchange`; what is returned lets it go on, and is called now and then. Collective."""
        self._given = out, out_words, into, in_words
        return lambda: None

    def end(self) -> Words:
        """Return what :meth:`exchange` does, after :meth:`begin`. Collective."""
        return self.exchange(*self._given)

    def combine(self, how: int, *numbers: Any) -> tuple:
        """Combine numbers of all ranks, added in the order of ranks: the same bits by every transport. Collective.

        Parameters
        ----------
        how : SUM, LOWEST or HIGHEST
            Of :mod:`gluon.transports.numbers`.
        numbers : int or float
            They come back as Python's, as a float where some rank has one.
        """
        count = len(numbers)
        if count > MOST:
            pieces = (numbers[at : at + MOST] for at in range(0, count, MOST))
            return tuple(chain.from_iterable(self.combine(how, *piece) for piece in pieces))
        self._numbers.write(numbers)
        self._combine(how, count)
        return self._numbers.read(count)

    def _combine(self, how: int, count: int) -> None:
        """Combine the own numbers of all ranks into the result."""
        numbers, words, ranks = self._numbers, 1 + count, self.comm.size
        if ranks == 1:  # nothing to add up, for which a GPU's program would load numba: 0.5 s
            numbers.result[:words] = numbers.own[:words]
            return
        if count not in self._tables:
            table = np.empty(ranks * words, np.int64)
            self._tables[count] = numbers.own[:words], table, table.view(np.float64)
        own, table, floats = self._tables[count]
        self.comm.Allgather(own, table)
        combine(table, floats, 0, words, ranks, how, count, numbers.result, numbers.float_result)

    def buffers(self, out_words: tuple[int, ...], in_words: tuple[int, ...]) -> tuple[Buffers, Buffers]:
        """Memory for messages to all ranks and from all, valid until the next such call. Collective.

        It is on the device of the labels, which write their messages there; that for a rank may be memory of that rank.

        Parameters
        ----------
        out_words, in_words : (ranks,) int
            The largest message to, and from, each rank, in words of 8 bytes: the same on both sides, or 0.
        """
        return self._buffers_for("out", out_words), self._buffers_for("in", in_words)

    def _buffers_for(self, direction: str, words: tuple[int, ...]) -> Buffers:
        """Those for messages to all ranks (direction ``out``), or from all (``in``)."""
        known = self._by_words.setdefault(direction, {})
        if words not in known:
            whole, needed = self._whole.get(direction), sum(words)
            too_small = whole is None or whole.size < needed
            if too_small:
                whole = self._whole[direction] = self._new(max(needed, 1))
            if too_small or len(known) >= MOST_KEPT:
                known.clear()
            known[words] = self._divide(whole, words)
        return known[words]

    def _new(self, words: int) -> Any:
        return self.xp.empty(words, "u8")

    def _divide(self, whole: Any, words: tuple[int, ...]) -> Buffers:
        pieces = [whole[end - size : end] for end, size in zip(accumulate(words), words)]
        on_host = isinstance(whole, np.ndarray)
        return Buffers(pieces, None if on_host else self.xp.array([piece.data.ptr for piece in pieces], "u8"))
