"""Memory that processes of one host share: without a name, so nothing is left of it when they end, however they end."""

import mmap
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from cusp.errors import Intracomm, together
from cusp.runtime.mpi import MPI
from gluon.transports.memory import WORD
from gluon.transports.table import TransportError

GROWTH = 2  # times as many words as were asked for: what nobody writes takes no space


def new_memory(words: int) -> tuple[np.ndarray, int]:
    """Memory for others to map: (words,) uint64, all 0, and the file descriptor by which they find it.

    Only what is written to takes space. The windows of MPI libraries are in ``/dev/shm``, which is small in containers:
    a process that writes there beyond its end is killed, and only all ranks together can make a new window.

    Raises
    ------
    OSError
    """
    descriptor = os.memfd_create("messages")
    try:
        os.ftruncate(descriptor, words * WORD)
        memory = _mapped(descriptor, words)
    except BaseException:
        os.close(descriptor)
        raise
    weakref.finalize(memory, os.close, descriptor)
    return memory, descriptor


def memory_of(process: int, descriptor: int, words: int) -> np.ndarray:
    """The memory that another process of this host made; it may be gone when all have mapped it.

    Raises
    ------
    OSError
    """
    opened = _open(process, descriptor)
    try:
        return _mapped(opened, words)
    finally:
        os.close(opened)


def _open(process: int, descriptor: int) -> int:
    return os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR)


def _mapped(descriptor: int, words: int) -> np.ndarray:
    return np.frombuffer(mmap.mmap(descriptor, words * WORD), np.uint64)


def common_memory(host: Intracomm, words: int) -> np.ndarray:
    """The same memory for all ranks of a host. Collective."""
    with together(host), shareable(f"for {words:,} words of all"):
        memory, descriptor = new_memory(words) if host.rank == 0 else (None, -1)
    process, found = host.bcast((os.getpid(), descriptor))
    with together(host), shareable(f"for {words:,} words of all"):
        mapped = memory_of(process, found, words)
    return mapped  # rank 0 lets go of what it made, and has mapped it as the others did


class Growing:
    """Memory of each rank of a host that all of them see; collective to make. It grows where it is.

    Who has seen a part of it goes on to see that part: the system maps the same memory once more, with what was added.
    """

    def __init__(self, host: Intracomm) -> None:
        self._here = host.rank
        with together(host), shareable("between the ranks of a host"):
            made, descriptor = new_memory(1)
        of_ranks = host.allgather((os.getpid(), descriptor))
        with together(host), shareable("between the ranks of a host"):
            self._files = [_open(process, found) for process, found in of_ranks]
        self._seen = [made[:0]] * host.size
        for opened in self._files:
            weakref.finalize(self, os.close, opened)

    def own(self, words: int) -> np.ndarray:
        """So many words of this rank's memory, or more."""
        if words > self._seen[self._here].size:
            with shareable(f"for messages of {words:,} words"):
                os.ftruncate(self._files[self._here], GROWTH * words * WORD)
        return self.of(self._here, words)

    def of(self, rank: int, words: int) -> np.ndarray:
        """At least so many words of the memory of a rank of the host, which has made as many."""
        if words > self._seen[rank].size:
            with shareable(f"for messages of {words:,} words"):
                self._seen[rank] = _mapped(self._files[rank], os.fstat(self._files[rank]).st_size // WORD)
        return self._seen[rank]


@contextmanager
def shareable(what: str) -> Iterator[None]:
    """Say for what the system gives no memory to share, if it does not in this block."""
    try:
        yield
    except OSError as error:
        text = f"memory cannot be shared {what}: {error.strerror}; --transport mpi does without"
        raise TransportError(text) from None


def host_of(comm: MPI.Intracomm) -> MPI.Intracomm:
    """The ranks of this host, in their order: those that MPI takes to be on one, and that see each other's processes.

    Collective.
    """
    near = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    space = process_space()
    host: MPI.Intracomm = near.Split(near.allgather(space).index(space), near.rank)  # type: ignore[assignment]
    near.Free()
    return host


def process_space() -> int:
    """Number of the namespace in which this process has its number; 0 if the system does not tell."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def why_apart(host: Intracomm) -> str | None:
    """Why this rank cannot map the memory of all others of its host; None if it can. Collective."""
    memory, descriptor, why = None, -1, None
    try:
        memory, descriptor = new_memory(1)
        memory[0] = os.getpid()
    except (OSError, AttributeError) as error:
        why = f"the system gives no memory to share: {error}"
    for process, found in host.allgather((os.getpid(), descriptor)):
        try:
            if why is None and found >= 0 and memory_of(process, found, 1)[0] != process:
                why = f"ranks of one host do not see each other's processes, such as {process}"
        except (OSError, ValueError) as error:
            why = f"the memory of process {process} cannot be mapped: {error}"
    host.Barrier()
    return why


def num_cores(host: Intracomm) -> int:
    """Cores that the ranks of a host may use, all together. Collective."""
    cores: set[int] = set()
    return len(cores.union(*host.allgather(os.sched_getaffinity(0))))
