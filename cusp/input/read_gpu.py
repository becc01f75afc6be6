"""Reads a rank's slice into the memory of its GPU, through page-locked buffers, and checks it there.

Several threads read pieces of the file into buffers while other buffers are copied to the GPU and what has arrived is
checked there. Page-locked memory is slow to allocate (0.4 ms per MB), so the process keeps the buffers.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

import cupy as cp
import h5py
import numpy as np

from cusp.input.checksum import as_bits
from cusp.input.graph_file import Fetch, fetching
from cusp.kernels.cuda import c_type, load, many_threads, pinned, threads_for_edges
from cusp.runtime.storage import Storage
from cusp.runtime.threads import num_threads

PIECE = 8 << 20  # bytes of a buffer
STRETCH = 8  # pieces that a thread reads one after the other, at most; they are checked together
EVENLY = 4  # stretches for each thread, at least, where there are as many pieces
THREADS = 12  # at most: of 16 cores; more of them, or smaller pieces, would wait for Python's lock
NOTHING_WRONG = (1 << 63) - 1
NO_LIMIT = -1  # as an unsigned number: the largest
Visit = Callable[[int, int], None]


def read_offsets(dataset: h5py.Dataset, begin: int, end: int) -> Any:
    return _read(dataset, begin, cp.empty(end - begin, np.int64))


def read_checked(
    dataset: h5py.Dataset,
    begin: int,
    end: int,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int | None,
) -> tuple[Any, int]:
    """``check`` gets the first entry that the GPU found wrong."""
    values = storage.empty(end - begin, dataset.dtype.newbyteorder("="))
    return values, _read_checked(dataset, begin, values, check, most)


def read_targets(
    dataset: h5py.Dataset,
    begin: int,
    first_node: int,
    indptr: Any,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int,
    symmetric: bool,
) -> tuple[Any, int, int]:
    targets = storage.empty(int(indptr[-1]), dataset.dtype.newbyteorder("="))
    unpaired, bits = cp.zeros(1, cp.uint64), as_bits(targets)
    kernel = load("cusp/input/check.cuh", VALUE=c_type(bits.dtype)).asymmetry

    def pair(begin: int, end: int) -> None:
        kernel(threads_for_edges(end - begin), first_node, indptr, indptr.size - 1, bits, begin, end, unpaired)

    total = _read_checked(dataset, begin, targets, check, most, *([pair] if symmetric else []))
    return targets, total, int(unpaired[0])


class Lane:
    """Two page-locked buffers that are sent to the GPU in turn; an event says when each has arrived."""

    def __init__(self, size: int) -> None:
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.halves = [(pinned(size, np.uint8), cp.cuda.Event(disable_timing=True)) for _ in range(2)]

    def send(self, values: Any, places: range, fetch: Fetch, first: int) -> Any:
        """Fill ``values`` from each place to the next with what ``fetch`` reads; ``values[0]`` is entry ``first``.

        Returns the event after which all of it is there.
        """
        copy, to_device = cp.cuda.runtime.memcpyAsync, cp.cuda.runtime.memcpyDefault
        for turn, at in enumerate(places):
            buffer, arrived = self.halves[turn % 2]
            piece = buffer.view(values.dtype)[: min(places.step, places.stop - at)]
            arrived.synchronize()
            fetch(piece, first + at)
            copy(values.data.ptr + at * piece.itemsize, piece.ctypes.data, piece.nbytes, to_device, self.stream.ptr)
            arrived.record(self.stream)
        return arrived


@functools.cache
def _lanes(device: int, size: int) -> list[Lane]:
    """One lane per thread, with buffers of ``size`` bytes, made when the process first reads."""
    return [Lane(size) for _ in range(most_threads(True))]


def most_threads(past_hdf5: bool) -> int:
    """How many threads read: HDF5 lets one in."""
    return min(THREADS, num_threads()) if past_hdf5 else 1


def _read(dataset: h5py.Dataset, begin: int, values: Any, *visits: Visit) -> Any:
    """``values``, filled from entry ``begin`` on; the visits start kernels on what has arrived.

    Threads take one stretch after the other. The current stream goes on once all is there.
    """
    size, current = values.size, cp.cuda.get_current_stream()
    current.synchronize()  # nothing uses the memory of the new array any more
    step, device = max(PIECE // values.dtype.itemsize, 1), cp.cuda.Device().id
    with fetching(dataset, values.dtype) as (fetch, past_hdf5):
        lanes = _lanes(device, PIECE)[: most_threads(past_hdf5)]
        stretch = step * max(min(STRETCH, size // (step * len(lanes) * EVENLY)), 1)
        free: SimpleQueue[Lane] = SimpleQueue()
        for lane in lanes:
            free.put(lane)

        def work(places: range) -> Any:
            lane = free.get()
            try:
                with cp.cuda.Device(device):
                    return lane.send(values, places, fetch, begin)
            finally:
                free.put(lane)

        stretches = [range(at, min(at + stretch, size), step) for at in range(0, size, stretch)]
        try:
            with ThreadPoolExecutor(len(lanes)) as pool:
                tasks = {pool.submit(work, places): places for places in stretches}
                for task in as_completed(tasks):
                    current.wait_event(task.result())
                    for visit in visits:
                        visit(tasks[task].start, tasks[task].stop)
        finally:
            for lane in lanes:
                lane.stream.synchronize()
    return values


def _read_checked(
    dataset: h5py.Dataset, begin: int, values: Any, check: Callable[[np.ndarray, int], None], most: int | None,
    *visits: Visit,
) -> int:  # fmt: skip
    """Fill ``values`` as :func:`_read`, check what arrives as :func:`read_checked`; returns the checksum."""
    mask, limit = _all_numbers(values.dtype) if most is None else (-1, most)
    checks = Checks(values, begin, mask, limit)
    _read(dataset, begin, values, checks.visit, *visits)
    total, wrong = checks.result()
    if wrong >= 0:
        check(cp.asnumpy(values[wrong : wrong + 1]), begin + wrong)
    return total


class Checks:
    """The checksum of entries of a dataset from ``first`` on, and which of them is the first with too large bits."""

    def __init__(self, values: Any, first: int, mask: int, limit: int) -> None:
        self._bits, self._of_all = as_bits(values), (first, mask, limit)
        self._total, self._wrong = cp.zeros(1, cp.uint64), cp.full(1, NOTHING_WRONG, cp.int64)
        self._check = load("cusp/input/check.cuh", VALUE=c_type(self._bits.dtype)).check

    def visit(self, begin: int, end: int) -> None:
        """Start on ``values[begin:end]``."""
        threads = min(end - begin, many_threads())
        self._check(threads, self._bits, begin, end, *self._of_all, self._total, self._wrong)

    def result(self) -> tuple[int, int]:
        """The sum, and the index of the first that is wrong, or -1."""
        return int(self._total[0]), _index(self._wrong)


def checksum(values: Any, first: int = 0) -> int:
    checks = Checks(values, first, 0, NO_LIMIT)
    checks.visit(0, values.size)
    return checks.result()[0]


def _all_numbers(dtype: np.dtype) -> tuple[int, int]:
    """A mask for the bits of a weight, without its sign, and the largest masked value of a number: infinity."""
    if dtype.kind != "f":
        return 0, NO_LIMIT
    infinity = int(as_bits(np.array([np.inf], dtype))[0])
    return (1 << (8 * dtype.itemsize - 1)) - 1, infinity


def first_descent(indptr: Any, num_edges: int) -> int:
    wrong = cp.full(1, NOTHING_WRONG, cp.int64)
    load("cusp/input/check.cuh", VALUE="unsigned").check_rising(indptr.size, indptr, indptr.size, num_edges, wrong)
    return _index(wrong)


def _index(wrong: Any) -> int:
    index = int(wrong[0])
    return -1 if index == NOTHING_WRONG else index
