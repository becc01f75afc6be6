"""Messages between GPUs of one host: a kernel writes its message straight into the memory of the partner's GPU.

Nothing is copied. A message has arrived when the hosts have exchanged that their kernels are done; its length
comes with that.
"""

from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.errors import forgiven
from cusp.runtime.exchange import tell_counts
from cusp.runtime.mpi import MPI
from gluon.peers.memory_gpu import PeerError, share, why_unreachable
from gluon.transports.memory import MOST_KEPT, WORD, Buffers, Transport, Words

TAG = 12
GROWTH = 1.25  # more words than were asked for


@dataclass(frozen=True)
class Halves:
    """Memory for messages from one rank to another: two buffers of ``words`` each."""

    words: int = 0
    memory: Any = None


class Peer(Transport):
    """Every rank has two buffers for the messages of each partner, on its GPU, which grow when both need more.

    Messages go to even and odd ones in turn: while a partner still reads the last one, the next one may be written;
    and the one after that is written when the partner has taken part in the exchange in between, hence has read.
    """

    name, xp = "peer", cp
    why_unusable = staticmethod(why_unreachable)

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        self._turn = 0
        self._halves = {"in": [Halves()] * comm.size, "out": [Halves()] * comm.size}
        self._known: dict[tuple[str, int, tuple[int, ...]], Buffers] = {}
        self._telling: list[MPI.Request] = []
        self._old: list[int] = []  # addresses of buffers that have been replaced
        nccl = _nccl(comm)
        if nccl is not None:  # else they go through the host
            self.all_to_all = nccl.all_to_all

    def buffers(self, out_words: tuple[int, ...], in_words: tuple[int, ...]) -> tuple[Buffers, Buffers]:
        into = self._buffers_for("in", in_words)  # first: senders wait for what receivers make
        return self._buffers_for("out", out_words), into

    def _buffers_for(self, direction: str, words: tuple[int, ...]) -> Buffers:
        halves = self._halves[direction]
        grown = [rank for rank, size in enumerate(words) if size > halves[rank].words and rank != self.comm.rank]
        if grown:
            self._known.clear()
        for rank in grown:
            halves[rank] = (self._offer if direction == "in" else self._accept)(rank, words[rank])
        key = direction, self._turn, words
        if key not in self._known:
            if len(self._known) >= 4 * MOST_KEPT:
                self._known.clear()
            pieces = [_half(halves[rank], self._turn, size) for rank, size in enumerate(words)]
            self._known[key] = Buffers(pieces, cp.array([piece.data.ptr for piece in pieces], np.uint64))
        return self._known[key]

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        cp.cuda.get_current_stream().synchronize()  # what this rank wrote for others is in their memory
        self._turn ^= 1
        arrived = tell_counts(self.comm, out_words)
        while self._old:  # all partners have gone on to larger ones
            cp.cuda.runtime.free(self._old.pop())
        return arrived

    def _offer(self, rank: int, words: int) -> Halves:
        """Larger buffers for messages from a rank, which gets their handle."""
        words = int(GROWTH * words)
        try:
            memory, handle = share(2 * WORD * words, self.comm.rank)
        except PeerError as error:
            self._tell(rank, str(error))
            raise
        self._tell(rank, handle)
        old = self._halves["in"][rank]
        if old.memory is not None:
            self._old.append(old.memory.ptr)
        return Halves(words, memory)

    def _tell(self, rank: int, answer: bytes | str) -> None:
        self._telling = [request for request in self._telling if not request.Test()]
        self._telling.append(self.comm.isend(answer, rank, TAG))

    def _accept(self, rank: int, words: int) -> Halves:
        """The larger buffers at a rank."""
        answer = self.comm.recv(source=rank, tag=TAG)
        if isinstance(answer, str):
            raise PeerError(answer)
        old = self._halves["out"][rank]
        if old.memory is not None:
            cp.cuda.runtime.ipcCloseMemHandle(old.memory.ptr)
        words = int(GROWTH * words)
        address = cp.cuda.runtime.ipcOpenMemHandle(answer)
        return Halves(words, cp.cuda.UnownedMemory(address, 2 * WORD * words, self))


def _half(halves: Halves, turn: int, size: int) -> Any:
    """The first words of one of the buffers."""
    if halves.memory is None or not size:
        return cp.empty(0, np.uint64)
    return cp.ndarray((size,), np.uint64, cp.cuda.MemoryPointer(halves.memory, turn * WORD * halves.words))


def _nccl(comm: MPI.Intracomm) -> Any:
    """What carries edges, if there is NCCL. Collective."""
    from gluon.transports import TransportError, get_transport

    nccl = None
    with forgiven(comm, TransportError):
        nccl = get_transport("nccl", comm, "gpu")
    return nccl
