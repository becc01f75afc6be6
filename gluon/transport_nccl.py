"""Messages between GPUs by NCCL: grouped sends and receives on device buffers, ordered by the stream."""

import warnings
from typing import Any

import cupy as cp
from mpi4py import MPI

WORD = 8  # bytes
_KEY = MPI.Comm.Create_keyval()  # a communicator takes seconds to make: it stays with the MPI communicator


class Nccl:
    """One NCCL communicator over the ranks of ``comm``."""

    name = "nccl"

    def __init__(self, comm: MPI.Intracomm) -> None:
        steps = range(1, comm.size)
        self._partners = [((comm.rank + step) % comm.size, (comm.rank - step) % comm.size) for step in steps]
        self._nccl = _nccl()
        self._word = self._nccl.NCCL_UINT64
        self._comm = _communicator(comm)
        one, place = [1] * comm.size, list(range(comm.size))  # pairs of GPUs are connected when they first exchange
        room = cp.zeros((2, comm.size), cp.uint64)
        self.exchange(room[0], place, one, room[1], place, one)
        cp.cuda.get_current_stream().synchronize()

    def exchange(
        self, out: Any, out_starts: list[int], out_words: list[int], into: Any, in_starts: list[int],
        in_words: list[int],
    ) -> None:  # fmt: skip
        """Send words ``out_starts[r]`` and following of ``out`` to rank r; put what comes from it ``into``. Collective.

        Returns at once: what follows on the current stream sees what has arrived.
        """
        if not (any(out_words) or any(in_words)):
            return
        leaving, landing, stream = out.data.ptr, into.data.ptr, cp.cuda.get_current_stream().ptr
        self._nccl.groupStart()
        for to, source in self._partners:
            if out_words[to]:
                self._comm.send(leaving + out_starts[to] * WORD, out_words[to], self._word, to, stream)
            if in_words[source]:
                self._comm.recv(landing + in_starts[source] * WORD, in_words[source], self._word, source, stream)
        self._nccl.groupEnd()

    def all_to_all(self, send: list[Any], receive: list[Any]) -> None:
        """Send ``send[r]`` to each rank r, fill ``receive[r]`` with what it sent; sizes are agreed. Collective."""
        stream = cp.cuda.get_current_stream().ptr
        self._nccl.groupStart()
        for rank, (leaving, coming) in enumerate(zip(send, receive)):
            if leaving.nbytes:
                self._comm.send(leaving.data.ptr, leaving.nbytes, self._nccl.NCCL_UINT8, rank, stream)
            if coming.nbytes:
                self._comm.recv(coming.data.ptr, coming.nbytes, self._nccl.NCCL_UINT8, rank, stream)
        self._nccl.groupEnd()


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


def _nccl() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from cupy.cuda import nccl
        except ImportError:
            return None
    return nccl if nccl.available else None


def _communicator(comm: MPI.Intracomm) -> Any:
    """NCCL's communicator of these ranks, made once. Collective."""
    found = comm.Get_attr(_KEY)
    if found is None:
        nccl = _nccl()
        unique = comm.bcast(nccl.get_unique_id() if comm.rank == 0 else None)
        found = nccl.NcclCommunicator(comm.size, unique, comm.rank)
        comm.Set_attr(_KEY, found)
    return found
