"""Arrays from every rank to every rank, of any size."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp.runtime import timeline, watchdog
from cusp.runtime.mpi import MPI
from cusp.runtime.signals import share_cores

PIECE = 1 << 30  # bytes: MPI counts are 32-bit numbers before MPI 4
LOOKS, PATIENCE = 50, 150_000  # looks, and then nanoseconds of looks, before a process that waits sleeps
AWAY, REMEMBERED = 2_000_000, 20  # nanoseconds for which a busy process has a core; so many times as long that counts
CROWDED = share_cores()
SHORTEST, LONGEST = 2e-5, 2e-4  # seconds of sleep between looks


@dataclass
class Given:
    """What this rank has given to others by ``all_to_all`` of CPUs or GPUs, so far."""

    messages: int = 0
    bytes: int = 0

    def add(self, rank: int, arrays: list[Any]) -> None:
        """Count what goes to other ranks."""
        sizes = [array.nbytes for other, array in enumerate(arrays) if other != rank and array.size]
        self.messages += len(sizes)
        self.bytes += sum(sizes)


def given(comm: MPI.Intracomm) -> Given:
    """See :class:`Given`; of this communicator."""
    found: Given = kept(comm, "given", Given)
    return found


def all_to_all(comm: MPI.Intracomm, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Give ``arrays[r]`` to rank r and return what each rank gave to this one. Collective.

    Parameters
    ----------
    arrays : list of (n_r,) arrays
        One per rank, all of one type, the same on every rank. What a rank gives to itself is not copied.
    """
    given(comm).add(comm.rank, arrays)
    dtype = arrays[0].dtype
    counts = exchange_counts(comm, np.array([array.size for array in arrays], np.int64))
    received = [np.empty(int(count), dtype) if rank != comm.rank else arrays[rank] for rank, count in enumerate(counts)]
    wait_all(post(comm, arrays, received))
    return received


def exchange_counts(comm: MPI.Intracomm, counts: np.ndarray) -> np.ndarray:
    """Send ``counts[r]`` to rank r; returns what came from each rank. Collective."""
    received = np.empty_like(counts)
    comm.Alltoall(counts, received)
    return received


def tell_counts(comm: MPI.Intracomm, counts: Sequence[int]) -> list[int]:
    """As :func:`exchange_counts`, of Python's numbers. Collective."""
    return exchange_counts(comm, np.array(counts, np.int64)).tolist()


def post(comm: MPI.Intracomm, send: list[np.ndarray], receive: list[np.ndarray], tag: int = 0) -> list[MPI.Request]:
    """Start sending ``send[r]`` to each other rank r and receiving into ``receive[r]``, sizes being agreed."""
    watchdog.step()
    requests = []
    for distance in range(1, comm.size):
        source, target = (comm.rank - distance) % comm.size, (comm.rank + distance) % comm.size
        requests += [comm.Irecv(piece, source, tag) for piece in _pieces(receive[source])]
        requests += [comm.Isend(piece, target, tag) for piece in _pieces(send[target])]
    return requests


def wait_all(posted: list[MPI.Request], statuses: list[MPI.Status] | None = None) -> None:
    """Wait until all that was posted has been sent and received."""
    timeline.call("wait", timeline.WAIT, None, _test_all, posted, statuses)


def _test_all(posted: list[MPI.Request], statuses: list[MPI.Status] | None) -> None:
    for _ in pauses(LOOKS):
        if MPI.Request.Testall(posted, statuses):
            return


def pauses(looks: int = 0) -> Iterator[float]:
    """Look whether what is waited for is there, once for each time this yields, for ever; it yields the seconds slept.

    After some looks, and some more for as long as a message usually takes, this process sleeps between looks, for a
    fraction of the time that it has waited so far: who has slept gets the core back at once. If ranks share cores, it
    yields the core between the looks before. A busy process of others that gets it keeps it for milliseconds; so where
    it was long away, this process only sleeps, for many times as long.
    """
    global _crowded_until
    for _ in range(looks):
        yield 0.0
    began = now = time.monotonic_ns()
    while _crowded_until < now < began + PATIENCE:
        if CROWDED:
            os.sched_yield()
        yield 0.0
        before, now = now, time.monotonic_ns()
        if now - before > AWAY:
            _crowded_until = now + REMEMBERED * (now - before)
    slept = 0.0
    while True:
        pause = min(max(SHORTEST, slept / 8), LONGEST)
        time.sleep(pause)
        slept += pause
        yield slept


_crowded_until = 0  # nanoseconds of the monotonic clock
_keys: list[int] = []  # of the attribute that holds what is kept


def kept(comm: MPI.Intracomm, name: str, make: Callable[[], Any]) -> Any:
    """What ``make()`` returned when this name was first asked for; it is kept as long as the communicator."""
    if not _keys:
        _keys.append(MPI.Comm.Create_keyval())
    things: Any = comm.Get_attr(_keys[0])
    if things is None:
        things = {}
        comm.Set_attr(_keys[0], things)
    if name not in things:
        things[name] = make()
    return things[name]


def pieces(array: Any, ends: np.ndarray) -> list[Any]:
    """Consecutive parts of an array, views, one for each place where one ends."""
    return [array[int(begin) : int(end)] for begin, end in zip([0, *ends[:-1]], ends)]


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    raw = array.view(np.uint8)
    for at in range(0, raw.size, PIECE):
        yield raw[at : at + PIECE]
