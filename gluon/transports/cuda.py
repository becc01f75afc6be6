"""Messages between GPUs by MPI from device to device, where the MPI library can."""

import ctypes
from collections.abc import Sequence

import cupy as cp

from cusp.runtime.mpi import MPI
from gluon.transports.host import HostMpi
from gluon.transports.memory import Buffers

MPI_EXTENSION = MPI.__file__


class CudaAwareMpi(HostMpi):
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
        cp.cuda.get_current_stream().synchronize()  # MPI does not know of streams
        return super().exchange(out, out_words, into)
