"""Reads a rank's slice into the memory of the host and checks each chunk while it is in the cache."""

from collections.abc import Callable

import h5py
import numpy as np

from cusp.input.checksum import as_bits, combine, sum_and_highest
from cusp.input.checksum import checksum as of_part
from cusp.input.graph_file import fetching, map_entries, read_ahead, read_direct
from cusp.runtime.compiled_code import njit
from cusp.runtime.storage import Storage
from cusp.runtime.threads import in_parallel, ranges, row_spans

__all__ = ["asymmetry", "checksum", "first_descent", "read_checked", "read_offsets", "read_targets"]

CHUNK = 1 << 21  # entries read and checked at a time, where HDF5 reads them or they are mapped: a call costs much there
SHORT = 1 << 18  # otherwise: few enough to stay in a core's own cache in between


def read_offsets(dataset: h5py.Dataset, begin: int, end: int) -> np.ndarray:
    values = np.empty(end - begin, np.int64)
    read_direct(dataset, values, begin)
    return values


def checksum(values: np.ndarray, first: int = 0) -> int:
    pieces = ranges(values.size)
    return combine(in_parallel(lambda begin, end: of_part(values[begin:end], first + begin), pieces))


def read_checked(
    dataset: h5py.Dataset,
    begin: int,
    end: int,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int | None,
    visit: Callable[[np.ndarray], None] = lambda chunk: None,
) -> tuple[np.ndarray, int]:
    """The system reads ahead. ``visit`` gets every chunk that passed; several threads may be in it at once."""
    dtype = dataset.dtype.newbyteorder("=")
    mapped = map_entries(dataset, begin, end, storage)
    values = storage.empty(end - begin, dtype) if mapped is None else mapped
    read_ahead(dataset, begin, end)
    with fetching(dataset, dtype) as (fetch, past_hdf5):

        def read(part: slice) -> int:
            chunk, first = values[part], begin + part.start
            if mapped is None:
                fetch(chunk, first)
            if most is None:
                total = of_part(chunk, first)
                check(chunk, first)
            else:
                total, highest = sum_and_highest(chunk, first)
                if highest > most:
                    check(chunk, first)
            visit(chunk)
            return total

        if past_hdf5 and mapped is None:
            return values, combine(in_parallel(read, [(part,) for part in storage.parts(values.size, SHORT)]))
        return values, combine([read(part) for part in storage.parts(values.size, CHUNK)])


def first_descent(indptr: np.ndarray, num_edges: int) -> int:
    def some(first: int, last: int) -> int:
        found = int(_first_descent(indptr[first:last], indptr[first - 1] if first else 0, num_edges))
        return found + first if found >= 0 else -1

    return next((found for found in in_parallel(some, ranges(indptr.size)) if found >= 0), -1)


@njit(cache=True, nogil=True)
def _first_descent(indptr, before, num_edges):  # type: ignore[no-untyped-def]
    for i in range(indptr.size):
        if indptr[i] < before or indptr[i] > num_edges:
            return i
        before = indptr[i]
    return -1


@njit(cache=True, nogil=True, inline="always")
def _mix(x, factor):  # type: ignore[no-untyped-def]
    product = (x + np.uint64(1)) * factor
    return product ^ (product >> np.uint64(32))


def read_targets(
    dataset: h5py.Dataset,
    begin: int,
    first_node: int,
    indptr: np.ndarray,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int,
    symmetric: bool,
) -> tuple[np.ndarray, int, int]:
    targets, total = read_checked(dataset, begin, begin + int(indptr[-1]), storage, check, most)
    bits = as_bits(targets)

    def some(row: int, end: int) -> int:
        return int(asymmetry(first_node + row, indptr[row : end + 1], bits))

    chunks = storage.rows(indptr) if symmetric else ()
    return targets, total, combine([part for chunk in chunks for part in in_parallel(some, row_spans(indptr, *chunk))])


@njit(cache=True, nogil=True)
def asymmetry(first_node, indptr, targets):  # type: ignore[no-untyped-def]
    """A rank's part of a sum that is 0 (mod 2**64) over a symmetric graph, and almost surely not over any other.

    ``sum(f(u) g(v) - g(u) f(v))`` over the edges u -> v with two mixing functions f and g: an edge
    and its reverse cancel out, whichever ranks read them.
    """
    f_factor, g_factor = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
    total = np.uint64(0)
    for row in range(indptr.size - 1):
        f_sum, g_sum = np.uint64(0), np.uint64(0)
        for edge in range(indptr[row], indptr[row + 1]):
            target = np.uint64(targets[edge])
            f_sum += _mix(target, f_factor)
            g_sum += _mix(target, g_factor)
        source = np.uint64(first_node + row)
        total += _mix(source, f_factor) * g_sum - _mix(source, g_factor) * f_sum
    return total
