"""Messages between GPUs by MPI: from device to device where the library can, else through page-locked host memory."""

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import pinned
from cusp.runtime.mpi import MPI
from gluon.transports.host import HostMpi
from gluon.transports.memory import WORD, Buffers, Transport, Words

if TYPE_CHECKING:
    from gluon.transports.hosts import Hosts

MPI_EXTENSION = MPI.__file__


class CudaAwareMpi(HostMpi):
    """MPI gets the device's addresses."""

    name, xp, overlaps = "cuda-mpi", cp, False

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

    def begin(
        self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None
    ) -> Callable[[], object]:  # fmt: skip
        cp.cuda.get_current_stream().synchronize()  # MPI does not know of streams
        return super().begin(out, out_words, into)


class LockedMpi(HostMpi):
    """From and to page-locked memory of the host."""

    def _new(self, words: int) -> np.ndarray:
        cp.cuda.get_current_stream().synchronize()  # a copy may still be reading what is let go
        return pinned(words, np.uint64)


class StagedMpi(Transport):
    """Device -> page-locked memory -> MPI -> page-locked memory -> device; the host sends as ranks on CPUs do."""

    name, xp = "mpi", cp

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        self._host = self._between(comm)

    def _between(self, comm: MPI.Intracomm) -> "HostMpi | Hosts":
        """What carries messages from and to memory of the host."""
        return LockedMpi(comm)

    def combine(self, how: int, *numbers: Any) -> tuple:
        return self._host.combine(how, *numbers)

    def buffers(self, out_words: tuple[int, ...], in_words: tuple[int, ...]) -> tuple[Buffers, Buffers]:
        self._staged = self._host.buffers(out_words, in_words)
        return super().buffers(out_words, in_words)

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        stream, (leaving, coming) = cp.cuda.get_current_stream(), self._staged
        for piece, staged, words in zip(out.pieces, leaving.pieces, out_words):
            if words:
                copy(staged.ctypes.data, piece.data.ptr, WORD * words, stream)
        stream.synchronize()  # also: what arrived in the last exchange has left the memory that is written now
        arrived = self._host.exchange(leaving, out_words, coming)
        for piece, staged, words in zip(into.pieces, coming.pieces, arrived):
            if words:
                copy(piece.data.ptr, staged.ctypes.data, WORD * words, stream)
        return arrived


class StagedHosts(StagedMpi):
    """The same by the memory of hosts and their couriers."""

    name = "hosts"

    @staticmethod
    def why_unusable(comm: MPI.Intracomm) -> str | None:
        """As that of ranks on CPUs. Collective."""
        from gluon.transports.hosts import Hosts  # with numba, which takes others half a second

        return Hosts.why_unusable(comm)

    def _between(self, comm: MPI.Intracomm) -> "HostMpi | Hosts":
        from gluon.transports.hosts import Hosts

        return Hosts(comm)


def copy(to: int, source: int, size: int, stream: Any) -> None:
    """Bytes from one address to another, on whatever devices, in the order of a stream."""
    cp.cuda.runtime.memcpyAsync(to, source, size, cp.cuda.runtime.memcpyDefault, stream.ptr)
