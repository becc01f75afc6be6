"""Messages between GPUs by MPI: from device to device where the library can, else through page-locked host memory."""

import ctypes
from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import pinned
from cusp.runtime.mpi import MPI
from gluon.transports.host import HostMpi
from gluon.transports.memory import Buffers, Words

MPI_EXTENSION = MPI.__file__


class CudaAwareMpi(HostMpi):
    """MPI gets the device's addresses."""

    name, xp = "cuda-mpi", cp

    @staticmethod
    def why_unusable(comm: MPI.Intracomm) -> str | None:
        """None if the MPI library says that it takes device addresses, by a call that Open MPI and MPICH have.

        A wrong guess would be a segmentation fault, so nothing is tried.
        """
        try:
            query = ctypes.CDLL(MPI_EXTENSION).MPIX_Query_cuda_support  # also finds what the extension is linked with
        except (OSError, AttributeError):
            return "the MPI library does not say that it supports CUDA (it has no MPIX_Query_cuda_support)"
        return None if query() == 1 else "the MPI library was built without CUDA support"

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        cp.cuda.get_current_stream().synchronize()  # MPI does not know of streams
        return super().exchange(out, out_words, into)


class StagedMpi(HostMpi):
    """Device -> page-locked memory -> MPI -> page-locked memory -> device; the host sends as ranks on CPUs do."""

    xp = cp

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        self._host: dict[str, np.ndarray] = {}

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        stream, leaving, coming = cp.cuda.get_current_stream(), self._staged("out", out), self._staged("in", into)
        for piece, staged, words in zip(out.pieces, leaving.pieces, out_words):
            if words:
                copy(staged.ctypes.data, piece.data.ptr, 8 * words, stream)
        stream.synchronize()  # also: what arrived in the last exchange has left the memory that is written now
        arrived = super().exchange(leaving, out_words, coming)
        for piece, staged, words in zip(into.pieces, coming.pieces, arrived):
            if words:
                copy(piece.data.ptr, staged.ctypes.data, 8 * words, stream)
        return arrived

    def _staged(self, direction: str, buffers: Buffers) -> Buffers:
        """Host memory for each rank's message, one after the other."""
        words = [piece.size for piece in buffers.pieces]
        needed = sum(words)
        if direction not in self._host or self._host[direction].size < needed:
            cp.cuda.get_current_stream().synchronize()  # a copy may still be reading what is let go here
            self._host[direction] = pinned(needed, np.uint64)
        return Buffers(np.split(self._host[direction][:needed], np.cumsum(words)[:-1]))


def copy(to: int, source: int, size: int, stream: Any) -> None:
    """Bytes from one address to another, on whatever devices, in the order of a stream."""
    cp.cuda.runtime.memcpyAsync(to, source, size, cp.cuda.runtime.memcpyDefault, stream.ptr)
