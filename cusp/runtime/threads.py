"""Threads over kernels that release Python's lock: how many this rank may use, and maps that keep the order.

A kernel that several threads call at once writes what belongs to its own range only, or what no order can change. So
the number of threads changes no bit of any result.
"""

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from typing import Any, TypeVar

import numpy as np

from cusp.errors import OptionError
from cusp.runtime.signals import local_ranks
from cusp.runtime.teams.helpers import Helpers

MOST = 1024
ALL = 1 << 62  # more entries than there are anywhere
LEAST = 1 << 14  # entries that are worth a range of their own: about as long as it takes to wake a thread
RANGES = 8  # of rows for each thread: who is done early takes another
ALIKE, UNEVEN = 2, 64  # the same, where entries take about as long as each other; where they say little of the time
BLOCK = 1 << 16  # entries that are added up one after the other, whatever the number of threads

Item = TypeVar("Item")
Result = TypeVar("Result")
Range = tuple[int, int]


class _Chosen:
    """What the user has asked for, for this process."""

    threads: int | None = None


class _Here(threading.local):
    """Whether this thread is in a piece."""

    busy = False


_here = _Here()


def use_threads(number: int | None) -> int:
    """Let this rank use ``number`` threads from now on, or the default; returns how many that is.

    Raises
    ------
    OptionError
        ``$CUSP_THREADS`` is the default and no such number.
    """
    _Chosen.threads = number
    return num_threads()


def num_threads() -> int:
    """Threads for this rank: as chosen, else ``$CUSP_THREADS``, else its share of the cores this process may use."""
    if _Chosen.threads:
        return _Chosen.threads
    text = os.environ.get("CUSP_THREADS")
    if not text:
        return max(1, len(os.sched_getaffinity(0)) // local_ranks())
    if not (text.isdecimal() and 1 <= int(text) <= MOST):
        raise OptionError(f"CUSP_THREADS={text[:20]}: expected a number of threads from 1 to {MOST}")
    return int(text)


def have_cores() -> bool:
    """Whether each thread of the ranks of this host may have a core of its own, so that one that waits takes none."""
    return num_threads() * local_ranks() <= len(os.sched_getaffinity(0))


def ranges(size: int, each: int = ALIKE) -> list[Range]:
    """Cut ``size`` entries into ranges of about the same size, for :func:`in_parallel`; there is at least one."""
    return cut(size, _pieces(size, each))


def cut(size: int, number: int) -> list[Range]:
    """The same, into so many."""
    bounds = [size * piece // number for piece in range(number)]
    return list(zip(bounds, [*bounds[1:], size], strict=True))


def row_ranges(offsets: np.ndarray, each: int = RANGES) -> list[Range]:
    """Cut rows into ranges with about as many edges each, for :func:`in_parallel`; there is at least one.

    Parameters
    ----------
    offsets : (rows + 1,) int64
    each : int
        How many for each thread, at most.
    """
    return cut_rows(offsets, _pieces(int(offsets.size - 1 + offsets[-1] - offsets[0]), each))


def cut_rows(offsets: np.ndarray, number: int) -> list[Range]:
    """The same, into so many."""
    rows, edges = offsets.size - 1, int(offsets[-1] - offsets[0])
    bounds = np.searchsorted(offsets, offsets[0] + edges * np.arange(number) // number).tolist()
    return list(zip([0, *bounds[1:]], [*bounds[1:], rows], strict=True))


def numbered(pieces: Sequence[Range]) -> list[tuple[int, int, int]]:
    """Ranges, each with its number before it, for pieces that have a result each."""
    return [(number, *piece) for number, piece in enumerate(pieces)]


def tables(entries: int, size: int) -> int:
    """For how many threads a table of ``size`` numbers of its own pays, if they share so many entries."""
    return max(1, min(num_threads(), entries // (2 * size + 1))) if entries >= many() else 1


def row_spans(offsets: np.ndarray, begin: int, end: int) -> list[Range]:
    """As :func:`row_ranges`, for the rows ``begin`` to ``end - 1``."""
    return [(begin + first, begin + last) for first, last in row_ranges(offsets[begin : end + 1])]


def whole_words(pieces: list[Range]) -> list[Range]:
    """The same ranges, moved a little so that each word of 64 bits, one for each entry, belongs to one of them."""
    size = pieces[-1][1]
    bounds = sorted({0, size, *(min(-(-last // 64) * 64, size) for _, last in pieces)})
    return list(pairwise(bounds)) or pieces


def spans_of_blocks(size: int) -> list[Range]:
    """Ranges of blocks of ``BLOCK`` entries: who sums floats block by block gets the same for any number of threads."""
    inner = {last // BLOCK for _, last in ranges(size)[:-1]}
    return list(pairwise(sorted({0, -(-size // BLOCK), *inner}))) or [(0, 0)]


def many() -> int:
    """From how many entries on work is cut into more than one range."""
    return ALL if num_threads() == 1 else 2 * LEAST


def few() -> int:
    """From how many entries on threads that are awake do them together."""
    return max(1, LEAST >> 4)


@contextmanager
def ranges_of_any_size() -> Iterator[None]:
    """Cut even small arrays meanwhile, so that a rehearsal calls all that large ones need."""
    global LEAST
    kept, LEAST = LEAST, 1
    try:
        yield
    finally:
        LEAST = kept


def threads_for(entries: int) -> int:
    """How many threads so many entries are worth, each of which is one range of :func:`in_parallel`."""
    return 1 if entries < many() else min(num_threads(), entries // LEAST)


def longer() -> int:
    """How many times as long pieces are for many threads: each waits for Python's lock, 10 us for one after the other.

    16 threads take 1.4 ms for 128 pieces in which nothing is done, and 0.4 for 16.
    """
    return min(LEAST, max(1, num_threads() // 4))


def _pieces(entries: int, each: int) -> int:
    return 1 if entries < many() else max(1, min(each * num_threads(), entries // (LEAST * longer())))


def in_parallel(function: Callable[..., Result], pieces: Sequence[tuple[Any, ...]]) -> list[Result]:
    """``function(*piece)`` of every piece, in their order. The calling thread works, too.

    A thread takes the next piece as soon as it has finished one. When the pieces have run out, a thread that has not
    woken up yet is no longer waited for: so short work takes hardly longer than alone. A call in a piece is done by its
    thread alone, as the others have pieces of their own. After an exception, in a piece or from outside, no further
    piece begins, and those that run are waited for. Of several exceptions, that of the first piece is raised: the one
    that a single thread would have met, as all pieces before it had begun.
    """
    threads = num_threads() if len(pieces) > 1 else 1
    others = min(threads, len(pieces)) - 1
    if others <= 0 or _here.busy:
        return [function(*piece) for piece in pieces]
    results: list[Any] = [None] * len(pieces)
    errors: dict[int, Exception] = {}
    turns = iter(range(len(pieces)))

    def work() -> None:
        _here.busy = True
        try:
            for turn in turns:
                results[turn] = function(*pieces[turn])
        except Exception as error:
            errors[turn] = error
        finally:
            _here.busy = False
            deque(turns, maxlen=0)

    with _helped(work, threads - 1, others):
        work()
    if errors:
        raise errors[min(errors)]
    return results


@contextmanager
def _helped(work: Callable[[], None], size: int, number: int) -> Iterator[None]:
    """Some of ``size`` threads do the same work meanwhile; whoever wakes up wakes two more."""
    others, left = helpers(size), iter(range(number))
    begun: list[threading.Lock] = []  # of threads that have woken up in time, held until they have finished
    over: list[bool] = []

    def wake() -> None:
        for _ in islice(left, 2):
            others.call(take_part)

    def take_part() -> None:
        working = threading.Lock()
        with working:
            begun.append(working)
            if not over:  # else nobody waits for it
                wake()
                work()

    wake()
    try:
        yield
    finally:
        over.append(True)
        for working in begun:
            with working:
                pass


@functools.cache
def helpers(size: int) -> Helpers:
    """So many threads beside those that call, for all passes."""
    return Helpers(size, have_cores())


def is_busy() -> bool:
    """Whether this thread is in a piece, so that the others have pieces of their own."""
    return _here.busy


@contextmanager
def start_threads(function: Callable[..., None], pieces: Sequence[tuple[Any, ...]]) -> Iterator[None]:
    """Call ``function(*piece)`` of each piece, fewer than there are threads, on a thread of its own meanwhile.

    It has to end soon after the block has; a thread that has not woken up by then is no longer waited for, except in a
    rehearsal, which calls all that a run may.
    """
    left, errors = iter(pieces), list[Exception]()

    def work() -> None:
        try:
            for piece in islice(left, 1):
                function(*piece)
        except Exception as error:
            errors.append(error)

    with _helped(work, num_threads() - 1, len(pieces)):
        yield
    for piece in left if LEAST == 1 else ():
        function(*piece)
    if errors:
        raise errors[0]


os.register_at_fork(after_in_child=helpers.cache_clear)  # a child has none of these threads


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``function(item)`` in the order of the items.

    At most ``threads + 1`` results are in progress or waiting. The calling thread consumes ``items`` and gets
    the first exception of a call. A single item needs no thread: starting one takes longer than a small graph.
    """
    threads = num_threads()
    items = iter(items)
    first = list(islice(items, 2))
    if len(first) < 2:
        yield from map(function, first)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in chain(first, items):
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
