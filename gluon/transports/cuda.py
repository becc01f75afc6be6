"""Messages between GPUs by MPI from device to device, where the MPI library can."""

import ctypes
from collections.abc import Sequence

import cupy as cp

from cusp.runtime.exchange import tell_counts, wait_all
from cusp.runtime.mpi import MPI
from gluon.transports.memory import Buffers, Memory

MPI_EXTENSION = MPI.__file__


class CudaAwareMpi(Memory):
    """MPI gets the device's addresses."""

    name, xp = "cuda-mpi", cp

    @staticmethod
    def why_unusable(comm: MPI.Intracomm) -> str | None:
        """None if the MPI library says that it takes device addresses, by a call that Open MPI and MPICH have."""
        try:
            query = ctypes.CDLL(MPI_EXTENSION).MPIX_Query_cuda_support  # also finds what the extension is linked with
        except (OSError, AttributeError):
            return "the MPI library does not say that it supports CUDA (it has no MPIX_Query_cuda_support)"
        return None if query() == 1 else "the MPI library was built without CUDA support"

    def exchange(
        self, out: Buffers, out_words: Sequence[int], into: Buffers, in_words: Sequence[int] | None = None
    ) -> Sequence[int]:
        in_words = tell_counts(self.comm, out_words) if in_words is None else in_words
        cp.cuda.get_current_stream().synchronize()  # MPI does not know of streams
        requests = [self.comm.Irecv(into.pieces[rank][:words], rank) for rank, words in enumerate(in_words) if words]
        requests += [self.comm.Isend(out.pieces[rank][:words], rank) for rank, words in enumerate(out_words) if words]
        wait_all(requests)
        return in_words
