"""Reads and checks a rank's slice in the memory of its GPU: from the file through page-locked buffers, a few at a time.

Several threads read pieces of the file into buffers while others are on their way to the GPU. The entries are checked
there, when all have come: that takes a hundredth of the time.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.checksum import as_bits
from cusp.cuda import c_type, load, pinned
from cusp.errors import GraphFileError
from cusp.graph_file import place_in_file, read_direct
from cusp.storage import Storage

if TYPE_CHECKING:
    import h5py

PIECE = 8 << 20  # bytes of a buffer
THREADS = 8
NOTHING_WRONG = (1 << 63) - 1
NO_LIMIT = -1  # as a number without sign: the largest
RUN, EACH = 1024, 8  # edges of a warp, as in walk.cuh; entries of a thread, as in check.cuh

Fetch = Callable[[np.ndarray, int], None]


def read_offsets(dataset: "h5py.Dataset", begin: int, end: int) -> Any:
    """Entries ``begin`` to ``end - 1`` as int64."""
    return _read(dataset, begin, end - begin, np.dtype(np.int64))


def read_checked(
    dataset: "h5py.Dataset",
    begin: int,
    end: int,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int | None,
) -> tuple[Any, int]:
    """Entries ``begin`` to ``end - 1`` and their checksum.

    ``check(chunk, begin)`` raises if an entry of a chunk is wrong: above ``most``, or without that not a number. It is
    given, on the host, the first that the GPU found wrong.
    """
    values = _read(dataset, begin, end - begin, dataset.dtype.newbyteorder("="))
    mask, limit = _all_numbers(values.dtype) if most is None else (-1, most)
    total, wrong = _check(values, begin, mask, limit)
    if wrong >= 0:
        check(cp.asnumpy(values[wrong : wrong + 1]), begin + wrong)
    return values, total


def _read(dataset: "h5py.Dataset", begin: int, size: int, dtype: np.dtype) -> Any:
    """Entries in the memory of the GPU: every thread reads pieces into two buffers in turn and sends them on."""
    values = cp.empty(size, dtype)
    fetch, threads, close = fetcher(dataset, np.dtype(dtype))
    cp.cuda.get_current_stream().synchronize()  # nobody uses the memory of the new array any more
    step, device = max(PIECE // dtype.itemsize, 1), cp.cuda.Device().id
    lanes = range(min(threads, -(-size // step)))
    buffers = [[pinned(step, dtype), pinned(step, dtype)] for _ in lanes]

    def work(lane: int) -> None:
        with cp.cuda.Device(device):
            stream = cp.cuda.Stream(non_blocking=True)
            sent: list[Any] = [None, None]
            for turn, at in enumerate(range(lane * step, size, len(lanes) * step)):
                half = turn % 2
                if sent[half] is not None:
                    sent[half].synchronize()
                piece = buffers[lane][half][: min(step, size - at)]
                fetch(piece, begin + at)
                copy, to_device = cp.cuda.runtime.memcpyAsync, cp.cuda.runtime.memcpyHostToDevice
                copy(values.data.ptr + at * dtype.itemsize, piece.ctypes.data, piece.nbytes, to_device, stream.ptr)
                sent[half] = stream.record()
            stream.synchronize()

    try:
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            for done in [pool.submit(work, lane) for lane in lanes]:
                done.result()
    finally:
        close()
    return values


def fetcher(dataset: "h5py.Dataset", dtype: np.dtype) -> tuple[Fetch, int, Callable[[], None]]:
    """A function that fills an array with the entries from some place on, how many threads may call it, and its end."""
    offset = place_in_file(dataset, dtype)
    if offset is None:
        return lambda into, at: read_direct(dataset, into, at), 1, lambda: None
    path, name = dataset.file.filename, dataset.name
    descriptor = os.open(path, os.O_RDONLY)

    def fetch(into: np.ndarray, at: int) -> None:
        rest, position = into.view(np.uint8).data, offset + at * dtype.itemsize
        while rest:
            try:
                done = os.preadv(descriptor, [rest], position)
            except OSError as error:
                raise GraphFileError(f"{path}: {name} cannot be read: {error}") from None
            if done == 0:
                raise GraphFileError(f"{path}: {name} cannot be read: the file ends at byte {position:,}")
            rest, position = rest[done:], position + done

    threads = min(THREADS, len(os.sched_getaffinity(0)))
    return fetch, threads, lambda: os.close(descriptor)


def checksum(values: Any, first: int = 0) -> int:
    """See :func:`cusp.checksum.checksum`."""
    return _check(values, first, 0, NO_LIMIT)[0]


def _all_numbers(dtype: np.dtype) -> tuple[int, int]:
    """A mask for the bits of a weight and the most that is left of them if it is a number: infinity, without sign."""
    if dtype.kind != "f":
        return 0, NO_LIMIT
    infinity = int(as_bits(np.array([np.inf], dtype))[0])
    return (1 << (8 * dtype.itemsize - 1)) - 1, infinity


def _check(values: Any, first: int, mask: int, limit: int) -> tuple[int, int]:
    bits = as_bits(values)
    total, wrong = cp.zeros(1, cp.uint64), cp.full(1, NOTHING_WRONG, cp.int64)
    kernels = load("cusp/check.cuh", VALUE=c_type(bits.dtype))
    kernels.check(-(-bits.size // EACH), bits, bits.size, first, mask, limit, total, wrong)
    return int(total[0]), _index(wrong)


def first_descent(indptr: Any, num_edges: int) -> int:
    """See :func:`cusp.checks.first_descent`."""
    wrong = cp.full(1, NOTHING_WRONG, cp.int64)
    load("cusp/check.cuh", VALUE="unsigned").check_rising(indptr.size, indptr, indptr.size, num_edges, wrong)
    return _index(wrong)


def asymmetry(first_node: int, indptr: Any, targets: Any) -> int:
    """See :func:`cusp.checks.asymmetry`."""
    total = cp.zeros(1, cp.uint64)
    kernels = load("cusp/check.cuh", VALUE=c_type(targets.dtype))
    kernels.asymmetry(32 * -(-targets.size // RUN), first_node, indptr, indptr.size - 1, targets, total)
    return int(total[0])


def _index(wrong: Any) -> int:
    found = int(wrong[0])
    return -1 if found == NOTHING_WRONG else found
