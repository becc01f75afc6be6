"""Reads a rank's slice into the memory of its GPU, through page-locked buffers, and checks it there.

Several threads read pieces of the file into buffers while other buffers are copied to the GPU. The entries are checked
there once all have arrived, which takes a hundredth of the time. Page-locked memory is slow to allocate (0.4 ms per
MB), so the process keeps the buffers.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.input.checksum import as_bits
from cusp.input.graph_file import Fetch, fetching
from cusp.kernels.cuda import c_type, load, many_threads, pinned, threads_for_rows
from cusp.runtime.storage import Storage
from cusp.runtime.threads import num_threads

if TYPE_CHECKING:
    import h5py

PIECE = 4 << 20  # bytes of a buffer
THREADS = 16  # at most: more of them, or smaller pieces, would wait for Python's lock
NOTHING_WRONG = (1 << 63) - 1
NO_LIMIT = -1  # as an unsigned number: the largest


def read_offsets(dataset: "h5py.Dataset", begin: int, end: int) -> Any:
    """Entries ``begin`` to ``end - 1`` as int64."""
    return _read(dataset, begin, cp.empty(end - begin, np.int64))


def read_checked(
    dataset: "h5py.Dataset",
    begin: int,
    end: int,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int | None,
) -> tuple[Any, int]:
    """Entries ``begin`` to ``end - 1`` and their checksum.

    ``check(chunk, begin)`` raises if an entry of a chunk is wrong: above ``most``, or, if that is None, not a number.
    It gets the first entry that the GPU found wrong, on the host.
    """
    dtype = dataset.dtype.newbyteorder("=")
    values = _read(dataset, begin, storage.empty(end - begin, dtype))
    mask, limit = _all_numbers(values.dtype) if most is None else (-1, most)
    total, wrong = _check(values, begin, mask, limit)
    if wrong >= 0:
        check(cp.asnumpy(values[wrong : wrong + 1]), begin + wrong)
    return values, total


class Lane:
    """Two page-locked buffers that are sent to the GPU in turn; an event says when each has arrived."""

    def __init__(self, size: int) -> None:
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.halves = [(pinned(size, np.uint8), cp.cuda.Event(disable_timing=True)) for _ in range(2)]

    def send(self, values: Any, places: range, step: int, fetch: Fetch, first: int) -> None:
        """Fill ``values[at : at + step]`` for each place ``at`` with what ``fetch`` reads from ``first + at`` on."""
        copy, to_device = cp.cuda.runtime.memcpyAsync, cp.cuda.runtime.memcpyDefault
        try:
            for turn, at in enumerate(places):
                buffer, arrived = self.halves[turn % 2]
                piece = buffer.view(values.dtype)[: min(step, values.size - at)]
                if turn > 1:
                    arrived.synchronize()
                fetch(piece, first + at)
                copy(values.data.ptr + at * piece.itemsize, piece.ctypes.data, piece.nbytes, to_device, self.stream.ptr)
                arrived.record(self.stream)
        finally:
            self.stream.synchronize()


@functools.cache
def _lanes(device: int, size: int) -> list[Lane]:
    """One lane per thread, with buffers of ``size`` bytes, made when the process first reads."""
    return [Lane(size) for _ in range(most_threads(True))]


def most_threads(past_hdf5: bool) -> int:
    """How many threads read: HDF5 lets one in."""
    return min(THREADS, num_threads()) if past_hdf5 else 1


def _read(dataset: "h5py.Dataset", begin: int, values: Any) -> Any:
    """``values``, filled from entry ``begin`` on: each thread reads pieces into the two buffers of its lane in turn."""
    size, dtype = values.size, values.dtype
    cp.cuda.get_current_stream().synchronize()  # nothing uses the memory of the new array any more
    step, device = max(PIECE // dtype.itemsize, 1), cp.cuda.Device().id
    with fetching(dataset, dtype) as (fetch, past_hdf5):
        lanes = _lanes(device, PIECE)[: most_threads(past_hdf5)]

        def work(number: int) -> None:
            with cp.cuda.Device(device):
                lanes[number].send(values, range(number * step, size, len(lanes) * step), step, fetch, begin)

        with ThreadPoolExecutor(len(lanes)) as pool:
            for done in [pool.submit(work, number) for number in range(min(len(lanes), -(-size // step)))]:
                done.result()
    return values


def checksum(values: Any, first: int = 0) -> int:
    """See :func:`cusp.input.checksum.checksum`."""
    return _check(values, first, 0, NO_LIMIT)[0]


def _all_numbers(dtype: np.dtype) -> tuple[int, int]:
    """A mask for the bits of a weight, without its sign, and the largest masked value of a number: infinity."""
    if dtype.kind != "f":
        return 0, NO_LIMIT
    infinity = int(as_bits(np.array([np.inf], dtype))[0])
    return (1 << (8 * dtype.itemsize - 1)) - 1, infinity


def _check(values: Any, first: int, mask: int, limit: int) -> tuple[int, int]:
    bits = as_bits(values)
    total, wrong = cp.zeros(1, cp.uint64), cp.full(1, NOTHING_WRONG, cp.int64)
    kernels = load("cusp/input/check.cuh", VALUE=c_type(bits.dtype))
    kernels.check(min(bits.size, many_threads()), bits, bits.size, first, mask, limit, total, wrong)
    return int(total[0]), _index(wrong)


def first_descent(indptr: Any, num_edges: int) -> int:
    """See :func:`cusp.input.read_cpu.first_descent`."""
    wrong = cp.full(1, NOTHING_WRONG, cp.int64)
    load("cusp/input/check.cuh", VALUE="unsigned").check_rising(indptr.size, indptr, indptr.size, num_edges, wrong)
    return _index(wrong)


def asymmetry(first_node: int, indptr: Any, targets: Any) -> int:
    """See :func:`cusp.input.read_cpu.asymmetry`."""
    total = cp.zeros(1, cp.uint64)
    kernels = load("cusp/input/check.cuh", VALUE=c_type(targets.dtype))
    kernels.asymmetry(threads_for_rows(indptr), first_node, indptr, indptr.size - 1, targets, total)
    return int(total[0])


def _index(wrong: Any) -> int:
    index = int(wrong[0])
    return -1 if index == NOTHING_WRONG else index
