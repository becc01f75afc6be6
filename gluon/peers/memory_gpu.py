"""Memory of GPUs of one host that all of their ranks reach, by CUDA IPC; kernels that wait for each other over it.

The kernels' side is in gluon/kernels/peers.cuh.
"""

import socket
from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from cusp.errors import InputError, Intracomm, together
from cusp.kernels.cuda import Struct, pinned, struct
from cusp.runtime import watchdog
from cusp.runtime.exchange import kept

MOST_PEERS = 32  # of a host, as in peers.cuh
LINE_BYTES, TOLD_BYTES = 128, 64  # of struct Line there, and of what one barrier stores into it
PATIENCE = 60.0  # seconds in which all ranks have to arrive at a barrier
CYCLES = 2e9  # of a GPU's clock per second, at most


class PeerError(InputError):
    """A rank whose memory others use has too little of it, or does not answer."""


class PeerMemory:
    """Memory on the GPU of each rank, which all ranks can read and write. Collective; it is zero at first.

    Parameters
    ----------
    comm : Intracomm
    size : int
        Bytes on this rank.

    Attributes
    ----------
    size : int
    bases : (ranks,) uint64
        Where the memory of each rank begins, as addresses of this process.

    Raises
    ------
    PeerError
        On every rank, if one has too little memory.
    """

    def __init__(self, comm: Intracomm, size: int) -> None:
        with together(comm):
            own, handle = share(size, comm.rank)
        handles, bases = comm.allgather(handle), [own.ptr] * comm.size
        with together(comm):
            for rank, other in enumerate(handles):
                if rank != comm.rank:
                    bases[rank] = cp.cuda.runtime.ipcOpenMemHandle(other)
        self.comm, self.size, self.bases = comm, size, np.array(bases, np.uint64)

    def free(self) -> None:
        """Give it back, when no rank uses it any more. Collective."""
        runtime = cp.cuda.runtime
        runtime.deviceSynchronize()
        for rank, base in enumerate(self.bases.tolist()):
            if rank != self.comm.rank:
                runtime.ipcCloseMemHandle(base)
        self.comm.Barrier()  # what is open elsewhere must not be freed
        runtime.free(int(self.bases[self.comm.rank]))


def share(size: int, rank: int) -> tuple[Any, bytes]:
    """New memory, of zeros, and the handle by which other processes open it; it is not from a pool.

    Raises
    ------
    PeerError
        There is not enough; ``rank`` is for the message.
    """
    runtime, size = cp.cuda.runtime, max(size, 1)
    try:
        address = runtime.malloc(size)
    except runtime.CUDARuntimeError as error:
        raise PeerError(f"rank {rank} has no {size:,} bytes of GPU memory for its partners: {error}") from None
    runtime.memset(address, 0, size)
    runtime.deviceSynchronize()
    return cp.cuda.UnownedMemory(address, size, None), runtime.ipcGetMemHandle(address)


class Peers:
    """The ranks of a communicator, each with a GPU of its own, whose kernels can wait for each other.

    Attributes
    ----------
    struct : Struct
        Struct Peers of peers.cuh.
    memory : PeerMemory
        For whatever runs now; see :meth:`require`.
    """

    def __init__(self, comm: Intracomm) -> None:
        self.comm = comm
        self.memory = PeerMemory(comm, 1)
        self._lines = PeerMemory(comm, LINE_BYTES * comm.size)
        self._missing, self._report = pinned(1, np.uint64), pinned(3, np.uint64)
        self._missing[0], self._report[:] = 0, 0
        self._state = cp.zeros(1, np.uint64)
        self.struct: Struct = struct(
            comm.rank, comm.size, cp.asarray(self._lines.bases), self._state, int(PATIENCE * CYCLES),
            self._missing.ctypes.data, self._report.ctypes.data,
        )  # fmt: skip

    def require(self, size: int) -> None:
        """Have at least this many bytes in the memory of this rank: new memory, if the old is too small. Collective."""
        if self.comm.allreduce(int(size > self.memory.size)):
            self.memory.free()
            self.memory = PeerMemory(self.comm, max(size, self.memory.size))

    def run(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Launch a resident kernel, on every rank the same, and wait until it has ended. Collective.

        Raises
        ------
        PeerError
            A rank did not come to a barrier.
        """
        watchdog.step()
        try:
            kernel(*arguments)
            cp.cuda.get_current_stream().synchronize()
        except cp.cuda.runtime.CUDARuntimeError as error:
            raise self._error(error) from None

    def sent(self) -> tuple[int, int, int]:
        """Of the last kernel: messages of this rank, one to each other at a barrier; bytes for masters; for mirrors."""
        barriers, to_masters, to_mirrors = self._report.tolist()
        messages = barriers * (self.comm.size - 1)
        return messages, to_masters + TOLD_BYTES * messages, to_mirrors

    def _error(self, error: Exception) -> Exception:
        """What a failed launch means."""
        rank = int(self._missing[0]) - 1
        if rank < 0:
            return RuntimeError(f"a kernel failed on the GPU: {error}")
        return PeerError(
            f"rank {self.comm.rank} waited {PATIENCE:g} s for the GPU of rank {rank}, which did not answer: is that "
            "rank busy or gone? --transport nccl and mpi wait for ever"
        )


def why_unreachable(comm: Intracomm) -> str | None:
    """None if the ranks reach each other's GPU memory, else the reason why not. Collective."""
    runtime = cp.cuda.runtime
    hosts = set(comm.allgather(socket.gethostname()))
    if comm.size == 1:
        return "there is one rank"
    if len(hosts) > 1:
        return f"the ranks are on {len(hosts)} hosts, and GPU memory is shared within one"
    if comm.size > MOST_PEERS:
        return f"{comm.size} ranks are on one host, and at most {MOST_PEERS} share GPU memory"
    why, own, handle, opened = None, None, b"", []
    try:
        own, handle = share(1, comm.rank)
    except (PeerError, runtime.CUDARuntimeError) as error:
        why = f"rank {comm.rank} cannot share GPU memory: {error}"
    for rank, other in enumerate(comm.allgather(handle)):
        try:
            if rank != comm.rank and other:
                opened.append(runtime.ipcOpenMemHandle(other))
        except runtime.CUDARuntimeError as error:
            why = why or f"rank {comm.rank} cannot reach the GPU memory of rank {rank}: {error}"
    for place in opened:
        runtime.ipcCloseMemHandle(place)
    reasons = [reason for reason in comm.allgather(why) if reason]  # also: what is freed now is open nowhere
    if own is not None:
        runtime.free(own.ptr)
    return reasons[0] if reasons else None


def peers_of(comm: Intracomm) -> Peers | None:
    """The ranks of a communicator as peers, if each has a GPU of its own; kept with it. Collective."""

    def make() -> Peers | None:
        places = comm.allgather((socket.gethostname(), cp.cuda.Device().pci_bus_id))
        return Peers(comm) if comm.size > 1 and len(set(places)) == comm.size else None

    return kept(comm, "peers", make)
