"""Messages between GPUs by MPI: through page-locked host memory, or from device to device where MPI can."""

import ctypes
from typing import Any

import cupy as cp
import mpi4py.MPI
import numpy as np
from mpi4py import MPI

from cusp.kernels.cuda import pinned
from cusp.runtime.exchange import post, wait_all

WORD = 8  # bytes
MPI_EXTENSION = mpi4py.MPI.__file__


class StagedMpi:
    """Device -> page-locked memory -> MPI -> page-locked memory -> device; the buffers grow and stay."""

    name = "mpi"

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self._memory: dict[str, np.ndarray] = {}

    def exchange(
        self, out: Any, out_starts: list[int], out_words: list[int], into: Any, in_starts: list[int],
        in_words: list[int],
    ) -> None:  # fmt: skip
        """Words from ``out_starts[r]`` on of ``out`` go to rank r; what comes from it goes ``into``. Collective."""
        stream = cp.cuda.get_current_stream()
        leaving, coming = self._pieces("out", out_words), self._pieces("in", in_words)
        for start, piece in zip(out_starts, leaving):
            if piece.size:
                _copy(piece.ctypes.data, out.data.ptr + start * WORD, piece.nbytes, stream)
        stream.synchronize()  # also: what arrived in the last exchange has left the memory that is written now
        wait_all(post(self.comm, leaving, coming))
        for start, piece in zip(in_starts, coming):
            if piece.size:
                _copy(into.data.ptr + start * WORD, piece.ctypes.data, piece.nbytes, stream)

    def _pieces(self, way: str, words: list[int]) -> list[np.ndarray]:
        """Host memory for each rank's message, one behind the other."""
        needed = sum(words)
        if way not in self._memory or self._memory[way].size < needed:
            cp.cuda.get_current_stream().synchronize()  # a copy may still be reading what is let go here
            self._memory[way] = pinned(needed, np.uint64)
        return np.split(self._memory[way][:needed], np.cumsum(words)[:-1])


class CudaAwareMpi:
    """MPI gets the device's addresses."""

    name = "cuda-mpi"

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm

    def exchange(
        self, out: Any, out_starts: list[int], out_words: list[int], into: Any, in_starts: list[int],
        in_words: list[int],
    ) -> None:  # fmt: skip
        """As :meth:`StagedMpi.exchange`. Collective."""
        cp.cuda.get_current_stream().synchronize()  # MPI does not know of streams
        requests = []
        for rank, (start, words) in enumerate(zip(in_starts, in_words)):
            if words:
                requests.append(self.comm.Irecv(into[start : start + words], rank))
        for rank, (start, words) in enumerate(zip(out_starts, out_words)):
            if words:
                requests.append(self.comm.Isend(out[start : start + words], rank))
        wait_all(requests)


def why_not_cuda_aware(comm: MPI.Intracomm) -> str | None:
    """None if the MPI library says that it takes device addresses, by a call that Open MPI and MPICH have."""
    try:
        query = ctypes.CDLL(MPI_EXTENSION).MPIX_Query_cuda_support  # also finds what the extension is linked with
    except (OSError, AttributeError):
        return "the MPI library does not say that it supports CUDA (it has no MPIX_Query_cuda_support)"
    return None if query() == 1 else "the MPI library was built without CUDA support"


def _copy(to: int, source: int, size: int, stream: Any) -> None:
    cp.cuda.runtime.memcpyAsync(to, source, size, cp.cuda.runtime.memcpyDefault, stream.ptr)
