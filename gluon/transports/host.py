"""Messages between ranks on CPUs, by MPI."""

from collections.abc import Callable

import numpy as np

from cusp.runtime.exchange import wait_all
from cusp.runtime.mpi import MPI
from gluon.transports.memory import Buffers, Transport, Words

TAG = 11


class HostMpi(Transport):
    """One message to each rank with a buffer, and one from each; MPI says how long they are."""

    name, xp, overlaps = "mpi", np, True

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        steps = range(1, comm.size)
        self._sources = [(comm.rank - step) % comm.size for step in steps]
        self._targets = [(comm.rank + step) % comm.size for step in steps]

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        self.begin(out, out_words, into)
        return self.end()

    def begin(
        self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None
    ) -> Callable[[], object]:  # fmt: skip
        sources = [source for source in self._sources if into.pieces[source].size]
        targets = [target for target in self._targets if out.pieces[target].size]
        requests = [self.comm.Irecv(into.pieces[source], source, TAG) for source in sources]
        requests += [self.comm.Isend(out.pieces[target][: out_words[target]], target, TAG) for target in targets]
        self._under_way, self._arrived = (sources, requests, [MPI.Status() for _ in requests]), False
        return self._look

    def _look(self) -> None:
        _, requests, statuses = self._under_way
        self._arrived = self._arrived or MPI.Request.Testall(requests, statuses)

    def end(self) -> Words:
        sources, requests, statuses = self._under_way
        if not self._arrived:
            wait_all(requests, statuses)
        arrived = [0] * self.comm.size
        for source, status in zip(sources, statuses):
            arrived[source] = status.Get_count(MPI.UINT64_T)  # of bytes there may be too many for MPI to count
        return arrived
