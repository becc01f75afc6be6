"""Messages between ranks on CPUs, by MPI."""

from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

from gluon.transports.memory import Buffers, Memory

TAG = 11


class HostMpi(Memory):
    """One message to each rank with a buffer, and one from each; MPI says how long they are."""

    name, xp = "mpi", np

    def exchange(
        self, out: Buffers, out_words: Sequence[int], into: Buffers, in_words: Sequence[int] | None = None
    ) -> Sequence[int]:
        comm, arriving, requests = self.comm, [], []
        for step in range(1, comm.size):
            rank = (comm.rank - step) % comm.size
            if into.pieces[rank].size:
                arriving.append(rank)
                requests.append(comm.Irecv(into.pieces[rank], rank, TAG))
        for step in range(1, comm.size):
            rank = (comm.rank + step) % comm.size
            if out.pieces[rank].size:
                requests.append(comm.Isend(out.pieces[rank][: out_words[rank]], rank, TAG))
        statuses = [MPI.Status() for _ in requests]
        MPI.Request.Waitall(requests, statuses)
        arrived = [0] * comm.size
        for rank, status in zip(arriving, statuses):
            arrived[rank] = status.Get_count(MPI.UINT64_T)  # of bytes there may be too many for MPI to count
        return arrived
