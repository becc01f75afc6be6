"""Passes over whole arrays on both devices; on CPUs all threads share them, as NumPy lets go of Python's lock."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import device_of, to_host, xp_of
from cusp.runtime.teams.together import together
from cusp.runtime.threads import BLOCK, Range, cut, in_parallel, longer, numbered, ranges


def mapped(function: Callable[..., Any], *arrays: Any, dtype: Any = None) -> Any:
    """``function`` of arrays of the same size, entry by entry, of this type or that of the first."""
    dtype = dtype or arrays[0].dtype
    if device_of(arrays[0]) == "gpu":
        return function(*arrays).astype(dtype, copy=False)
    values = np.empty(arrays[0].size, dtype)

    def some(first: int, last: int) -> None:
        values[first:last] = function(*(array[first:last] for array in arrays))

    _share(some, values)
    return values


def take(values: Any, places: Any, dtype: Any = None) -> Any:
    """``values[places]``, of this type or that of the values."""
    return mapped(lambda some: values[some], places, dtype=dtype or values.dtype)


def put(values: Any, places: Any, into: Any) -> None:
    """``into[places] = values``; no two places are equal."""
    pieces = _pieces(places)

    def some(first: int, last: int) -> None:
        into[places[first:last]] = values[first:last]

    if len(pieces) == 1 or not (values.dtype == into.dtype and values.flags.c_contiguous and into.flags.c_contiguous):
        in_parallel(some, pieces)
    else:  # as words, whatever their type
        together(_put, pieces, places, *(array.view(f"u{into.itemsize}") for array in (values, into)))


@njit(cache=True, nogil=True)
def _put(first, last, places, values, into):  # type: ignore[no-untyped-def]
    places, values = places[first:last], values[first:last]
    for place in range(places.size):
        into[places[place]] = values[place]


def add(values: Any, places: Any, into: Any) -> None:
    """``into[places] += values``; no two places are equal."""

    def some(first: int, last: int) -> None:
        into[places[first:last]] += values[first:last]

    _share(some, places)


def add_rows(rows: np.ndarray, sums: np.ndarray) -> None:
    """Add the rows of a matrix, of which all threads have written some, to an array."""
    in_parallel(lambda a, b: np.add(sums[a:b], rows[:, a:b].sum(axis=0), out=sums[a:b]), ranges(sums.size))


def joined(parts: list[Any]) -> Any:
    """One array after the other."""
    bounds = np.cumsum([0] + [part.size for part in parts]).tolist()
    values = xp_of(device_of(parts[0])).empty(bounds[-1], parts[0].dtype)

    def some(begin: int, part: Any) -> None:
        values[begin : begin + part.size] = part

    in_parallel(some, list(zip(bounds, parts)))
    return values


def listed(kernel: Any, pieces: list[Range], offsets: Any, arguments: tuple[Any, ...], *lists: Any) -> list[Any]:
    """What a pass has written to lists, the pieces one after the other: copies, as lists have room for much more.

    A piece writes from its first row on, or from the place where that begins; to ``ends[number]`` where it has come to:
    it is ``kernel(number, first, last, *arguments, *lists, ends)``.
    """
    ends, begins = np.empty(len(pieces), np.int64), [first for first, _ in pieces]
    together(kernel, numbered(pieces), *arguments, *lists, ends)
    spans = [slice(begin, end) for begin, end in zip(begins if offsets is None else offsets[begins], ends)]
    return [joined([each[span] for span in spans]) for each in lists]


def by_rank(ranks: Any, size: int) -> tuple[Any, np.ndarray]:
    """Places of numbers below ``size`` in the order of these, equal ones as they are; and where those of each end."""
    xp = xp_of(device_of(ranks))
    ranks = ranks.astype(np.uint16 if size <= 2**16 else np.int64)  # of which NumPy sorts the short ones by digits
    order = xp.argsort(ranks, kind="stable")
    return order, to_host(xp.searchsorted(ranks[order], xp.arange(size, dtype=ranks.dtype), side="right"))


def occurring(values: Any) -> Any:
    """Which numbers occur, ascending. NumPy's own uses a hash table, which takes up to 15 times as long as to sort."""
    xp = xp_of(device_of(values))
    ordered = xp.sort(values)
    return ordered[xp.concatenate([ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]])]


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which numbers occur, ascending, and for each value its place among these.

    NumPy sorts stably if it is to say where they occur first, too. Where most are equal, as names of components are,
    that takes a fifth to a fourteenth of the time of its other sort.
    """
    names, _, places = np.unique(values, return_index=True, return_inverse=True)
    return names, places


def compress(mask: Any, values: Any) -> Any:
    """``values[mask]``, and those behind the end of the mask; the same array if that is all of it."""
    if device_of(values) == "gpu":
        kept, rest = values[: mask.size][mask], values[mask.size :]
        return xp_of("gpu").concatenate([kept, rest]) if rest.size else kept
    pieces = _pieces(mask)
    ends = np.cumsum(in_parallel(lambda first, last: np.count_nonzero(mask[first:last]), pieces))
    if ends[-1] == mask.size:
        return values
    kept = np.empty(ends[-1] + values.size - mask.size, values.dtype)
    kept[ends[-1] :] = values[mask.size :]

    def some(begin: int, end: int, first: int, last: int) -> None:
        kept[begin:end] = values[first:last][mask[first:last]]

    in_parallel(some, [(begin, end, *piece) for begin, end, piece in zip([0, *ends[:-1]], ends, pieces)])
    return kept


def add_up(values: Any) -> None:
    """Replace each number by the sum of all up to it, in any order."""
    if device_of(values) == "gpu":
        xp_of("gpu").cumsum(values, out=values)
        return
    pieces = ranges(values.size)
    sums = in_parallel(lambda first, last: values[first:last].sum(), pieces[:-1])
    for (first, _), before in zip(pieces[1:], np.cumsum(sums)):
        values[first] += before
    in_parallel(lambda first, last: np.cumsum(values[first:last], out=values[first:last]), pieces)


def offsets_of(sizes: Any) -> Any:
    """(n + 1,) int64: where each of n rows begins, and where the last one ends."""
    offsets = xp_of(device_of(sizes)).zeros(sizes.size + 1, np.int64)

    def some(first: int, last: int) -> None:
        offsets[first + 1 : last + 1] = sizes[first:last]

    _share(some, sizes)
    add_up(offsets)
    return offsets


def numbers(first: int, last: int, dtype: Any, device: str) -> Any:
    """The whole numbers from ``first`` to ``last - 1``."""
    if device == "gpu":
        return xp_of(device).arange(first, last, dtype=dtype)
    values = np.empty(last - first, dtype)

    def some(begin: int, end: int) -> None:
        values[begin:end] = np.arange(first + begin, first + end, dtype=dtype)

    _share(some, values)
    return values


def sizes_of(offsets: Any, rows: Any = None) -> Any:
    """(n,) of the same type: the sizes of the n rows that begin there, or of those named."""
    if rows is None:
        return mapped(lambda begin, end: end - begin, offsets[:-1], offsets[1:])
    return mapped(lambda some: offsets[some + 1] - offsets[some], rows, dtype=offsets.dtype)


def filled_rows(offsets: Any) -> Any:
    """(n,) bool: whether a row that begins there has entries."""
    return mapped(lambda begin, end: begin < end, offsets[:-1], offsets[1:], dtype=np.bool_)


def runs_of_rows(sizes: Any, capacity: int) -> list[slice]:
    """Runs of rows with up to ``capacity`` entries, or of one row."""
    offsets = to_host(offsets_of(sizes))
    cuts, first = [], 0
    while first < offsets.size - 1:
        last = max(int(np.searchsorted(offsets, offsets[first] + capacity, side="right")) - 1, first + 1)
        cuts.append(slice(first, last))
        first = last
    return cuts


def total_of(function: Callable[..., Any], values: Any) -> int:
    """:func:`total` of ``function`` of an array, entry by entry, of which a CPU stores only a few at a time."""
    if device_of(values) == "gpu":
        return total(function(values))
    return sum(in_parallel(lambda first, last: _sum(function(values[first:last])), _pieces(values)))


def total(values: Any) -> int:
    """The sum of whole numbers of any type, or how many entries of a mask are true; exact below 2**63.

    CuPy would compile a sum of its own for each type, for four seconds.
    """
    if device_of(values) == "cpu":
        return sum(in_parallel(lambda first, last: _sum(values[first:last]), ranges(values.size)))
    if values.size == 0:
        return 0
    cuda = importlib.import_module("cusp.kernels.cuda")
    sums, kernels = cuda.sums_of(1), cuda.load("cusp/kernels/total.cuh", VALUE=cuda.c_type(values.dtype))
    threads = min(values.size, cuda.many_threads())
    kernels.total(threads, cuda.cp.ascontiguousarray(values), values.size, sums.counters, sums.address)
    return int(np.uint64(sums.read()[0]).astype(np.int64))


def _sum(values: np.ndarray) -> int:
    return int(np.count_nonzero(values) if values.dtype == bool else values.sum(dtype=np.int64))


def extremes(values: Any) -> tuple[Any, Any]:
    """The lowest and the highest of at least one number, as Python's."""
    if device_of(values) == "gpu":
        return values.min().item(), values.max().item()
    pairs = in_parallel(lambda first, last: (values[first:last].min(), values[first:last].max()), ranges(values.size))
    return np.min([low for low, _ in pairs]).item(), np.max([high for _, high in pairs]).item()


def changed_rows(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(n,) int64, ascending: the rows of two contiguous arrays of the same shape that differ in a bit; on the host."""
    size = max(values.itemsize * values.shape[1], 1)
    word = np.dtype(f"u{min(size & -size, 8)}")  # the largest that a row has a whole number of
    words = [array.reshape(-1).view(word) for array in (values, known)]
    width = size // word.itemsize

    def some(first: int, last: int) -> np.ndarray:
        found = np.empty(last - first, np.int64)  # memory that is not written takes none
        return found[: _list_changed(*words, width, first, last, found)]

    return np.concatenate(in_parallel(some, ranges(len(values))))


@njit(cache=True, nogil=True)
def _list_changed(values, known, width, first, last, found):  # type: ignore[no-untyped-def]
    """Blocks without a change are passed quickly."""
    size = 0
    for begin in range(first, last, 64):
        end, change = min(begin + 64, last), values.dtype.type(0)
        for place in range(np.uint64(begin * width), np.uint64(end * width)):
            change |= values[place] ^ known[place]
        if change == 0:
            continue
        for row in range(begin, end):
            for place in range(row * width, (row + 1) * width):
                if values[place] != known[place]:
                    found[size] = row
                    size += 1
                    break
    return size


def total_of_floats(values: Any, function: Callable[..., Any] = lambda some: some) -> float:
    """The sum of ``function`` of floats of 32 or 64 bits as float64, the same for any number of threads."""
    if device_of(values) == "gpu":
        return float(function(values).astype(np.float64, copy=False).sum())

    sums = np.empty(-(-values.size // BLOCK))

    def some(first: int, last: int) -> None:
        _add_blocks(function(values[first * BLOCK : last * BLOCK]), BLOCK, sums[first:last])

    in_parallel(some, _pieces(sums, 1))
    return sum(sums.tolist())


@njit(cache=True, nogil=True)
def _add_blocks(values, size, sums):  # type: ignore[no-untyped-def]
    """The sum of each block of so many floats, by eight sums, so that no addition waits for the one before."""
    for block in range(sums.size):
        some = values[block * size : (block + 1) * size]
        a = b = c = d = e = f = g = h = 0.0
        whole = some.size & ~7
        for place in range(0, whole, 8):
            a += some[place]
            b += some[place + 1]
            c += some[place + 2]
            d += some[place + 3]
            e += some[place + 4]
            f += some[place + 5]
            g += some[place + 6]
            h += some[place + 7]
        for place in range(whole, some.size):
            a += some[place]
        sums[block] = ((a + b) + (c + d)) + ((e + f) + (g + h))


def _share(function: Callable[[int, int], None], values: Any) -> None:
    """``function`` of ranges of places in the array."""
    in_parallel(function, _pieces(values))


def _pieces(values: Any, block: int = BLOCK) -> list[Range]:
    """On CPUs a few blocks each, so that what is computed in between stays in a core's own cache."""
    return cut(values.size, max(1, values.size // (block * longer()) if device_of(values) == "cpu" else 1))
