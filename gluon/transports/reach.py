"""Memory that processes of one host share: without a name, so nothing is left of it when they end, however they end."""

import mmap
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from cusp.errors import Intracomm, together
from gluon.transports.memory import WORD
from gluon.transports.table import TransportError


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
    opened = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR)
    try:
        return _mapped(opened, words)
    finally:
        os.close(opened)


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


@contextmanager
def shareable(what: str) -> Iterator[None]:
    """Say for what the system gives no memory to share, if it does not in this block."""
    try:
        yield
    except OSError as error:
        text = f"memory cannot be shared {what}: {error.strerror}; --transport mpi does without"
        raise TransportError(text) from None


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
