"""How messages travel between GPUs: chosen here, once.

========  =====================================================================================
nccl      NCCL send and receive on device buffers; needs a GPU of its own for every rank
cuda-mpi  MPI on device buffers, where the MPI library says that it can (a wrong guess would be a
          segmentation fault, so nothing is tried)
mpi       MPI on page-locked host memory; works everywhere
========  =====================================================================================
"""

from typing import TYPE_CHECKING, Any

from cusp.errors import InputError, together

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

CHOICES = ("auto", "nccl", "cuda-mpi", "mpi")


class TransportError(InputError):
    """A transport was asked for that cannot be used here."""


def open_transport(wanted: str, comm: "Intracomm", device: str) -> Any:
    """The transport for ranks that compute on ``device``: ``auto`` takes the first of the table that works. Collective.

    Returns
    -------
    object with ``name`` and ``exchange(out, out_starts, out_words, into, in_starts, in_words)``, or None on CPUs

    Raises
    ------
    TransportError
        On every rank, if the one asked for cannot be used.
    """
    if device == "cpu":
        with together(comm):
            if wanted not in ("auto", "mpi"):
                raise TransportError(f"--transport {wanted} is for ranks on GPUs; those on CPUs use mpi")
        return None
    from cusp.runtime import exchange_gpu
    from gluon import transport_mpi, transport_nccl

    ways: dict[str, Any] = {
        "nccl": (transport_nccl.why_unusable, transport_nccl.Nccl),
        "cuda-mpi": (transport_mpi.why_not_cuda_aware, transport_mpi.CudaAwareMpi),
        "mpi": (lambda comm: None, transport_mpi.StagedMpi),
    }
    for name in [wanted] if wanted != "auto" else list(ways):
        why_unusable, make = ways[name]
        reasons = [why for why in comm.allgather(why_unusable(comm)) if why]
        if not reasons:
            transport = make(comm)
            exchange_gpu.use(comm, transport if name == "nccl" else None)  # edges travel the same way
            return transport
        with together(comm):
            if wanted != "auto":
                raise TransportError(f"--transport {wanted} cannot be used: {reasons[0]}")
    raise AssertionError("mpi can always be used")
