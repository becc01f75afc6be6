"""Messages between GPUs by NCCL: grouped sends and receives on device buffers, ordered by the stream."""

import warnings
from typing import Any

import cupy as cp

from cusp.runtime.exchange import tell_counts
from cusp.runtime.mpi import MPI
from gluon.transports.memory import Buffers, Transport, Words


class Nccl(Transport):
    """One NCCL communicator over the ranks of ``comm``."""

    name, xp = "nccl", cp

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        steps = range(1, comm.size)
        self._partners = [((comm.rank + step) % comm.size, (comm.rank - step) % comm.size) for step in steps]
        self._nccl = _nccl()
        self._word = self._nccl.NCCL_UINT64
        unique = comm.bcast(self._nccl.get_unique_id() if comm.rank == 0 else None)
        self._connection = self._nccl.NcclCommunicator(comm.size, unique, comm.rank)
        one = (1,) * comm.size  # pairs of GPUs are connected when they first exchange
        out, into = self.buffers(one, one)
        self.exchange(out, one, into, one)
        cp.cuda.get_current_stream().synchronize()

    @staticmethod
    def why_unusable(comm: MPI.Intracomm) -> str | None:
        """None if NCCL can connect the ranks, else the reason why not. Collective."""
        nccl = _nccl()
        place = None if nccl is None else (MPI.Get_processor_name(), cp.cuda.Device().pci_bus_id)
        places = comm.allgather(place)
        if None in places:
            return f"rank {places.index(None)} has no NCCL: pip install nvidia-nccl-cu12 or nvidia-nccl-cu13"
        if len(set(places)) < comm.size:
            return f"{comm.size} ranks use {len(set(places))} GPUs, and NCCL needs one for each"
        return None if comm.size > 1 else "there is one rank"

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        """Returns at once: what follows on the current stream sees what has arrived."""
        in_words = tell_counts(self.comm, out_words) if in_words is None else in_words
        if not (any(out_words) or any(in_words)):
            return in_words
        leaving, landing, stream = out.pieces, into.pieces, cp.cuda.get_current_stream().ptr
        self._nccl.groupStart()
        for to, source in self._partners:
            if out_words[to]:
                self._connection.send(leaving[to].data.ptr, out_words[to], self._word, to, stream)
            if in_words[source]:
                self._connection.recv(landing[source].data.ptr, in_words[source], self._word, source, stream)
        self._nccl.groupEnd()
        return in_words

    def all_to_all(self, send: list[Any], receive: list[Any]) -> None:
        """Send ``send[r]`` to each rank r, fill ``receive[r]`` with what it sent; sizes are agreed. Collective."""
        stream = cp.cuda.get_current_stream().ptr
        self._nccl.groupStart()
        for rank, (leaving, coming) in enumerate(zip(send, receive)):
            if leaving.nbytes:
                self._connection.send(leaving.data.ptr, leaving.nbytes, self._nccl.NCCL_UINT8, rank, stream)
            if coming.nbytes:
                self._connection.recv(coming.data.ptr, coming.nbytes, self._nccl.NCCL_UINT8, rank, stream)
        self._nccl.groupEnd()


def _nccl() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from cupy.cuda import nccl
        except ImportError:
            return None
    return nccl if nccl.available else None
