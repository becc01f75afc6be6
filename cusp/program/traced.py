"""``--trace``: run a block with a timeline, write that for all ranks, and say how long ranks waited for others."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from cusp.errors import OptionError, together
from cusp.output.whole_file import Name, whole_file
from cusp.program import report
from cusp.runtime import timeline, watchdog
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import PHASE, WAIT, Span, Timeline, now

MOST = 1 << 20  # spans in a file, of all ranks: about 130 MB
PURPOSE = ("run", "partition")  # phases that a program is for, the first of these that it has
PINGS = 32


class TracedComm(MPI.Intracomm):
    """The same ranks: what waits for others is a span of the timeline that runs."""


def _traced(name: str) -> Callable[..., Any]:
    plain = getattr(MPI.Intracomm, name)
    return lambda *arguments, **named: timeline.call(name, WAIT, None, plain, *arguments, **named)


for _name in watchdog.COLLECTIVE:
    setattr(TracedComm, _name, _traced(_name))


@contextmanager
def traced(comm: MPI.Intracomm, path: Name | None, say: bool = True) -> Iterator[MPI.Intracomm]:
    """Keep timelines of what the ranks do in the block, and write them when it ends. Collective.

    The block is to use the communicator that it gets. After an error, nothing is written.

    Parameters
    ----------
    path : str or path, or None
        Without one, the block just runs.
    say : bool
        Print how long ranks waited.

    Raises
    ------
    OptionError, OutputError
        On every rank: a timeline runs already; the file cannot be written.
    """
    if path is None:
        yield comm
        return
    with together(comm):
        if timeline.running():
            raise OptionError(f"--trace {path}: another trace is running already")
    offset = clock_offset(comm)
    with timeline.keeping(max(MOST // comm.size, 1)) as kept:
        yield TracedComm(comm)
    write_timelines(path, kept, offset, comm)
    waited, seconds = _waiting(kept, comm)
    left_out = comm.allreduce(kept.left_out)
    if left_out:
        report.warn(comm.rank, f"--trace {path}: omits the last {left_out:,} spans: there are too many")
    if say:
        report.say(comm.rank, report.waiting(waited, seconds))
        report.say(comm.rank, f"wrote the timeline to {path}")


def _waiting(kept: Timeline, comm: MPI.Intracomm) -> tuple[list[float], float]:
    """Seconds that each rank waited in what the program is for; and how long that was."""
    phases = [span for span in map(Span._make, kept.spans) if span.kind == PHASE]
    phases = next(filter(None, ([span for span in phases if span.name == name] for name in PURPOSE)), [])
    waited = comm.allgather(sum(span.facts["waited_us"] for span in phases if span.facts) / 1e6)
    return waited, comm.allreduce(sum(span.end - span.begin for span in phases) / 1e9, MPI.MAX)


def clock_offset(comm: MPI.Intracomm, clock: Callable[[], int] = now) -> int:
    """Nanoseconds to add to this rank's clock to have that of rank 0. Collective.

    Ranks of one host read one clock. The first rank of each other host asks rank 0 a few times what time it is, and
    takes the answer that came back fastest to have been given halfway (as in NTP: Mills, IEEE Trans. Communications
    1991): wrong by at most half of the time that it took, microseconds as a rule. Clocks that drift apart later are not
    brought together again.
    """
    host = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    first = host.bcast(comm.rank)
    offset = 0
    for asking in sorted(set(comm.allgather(first)) - {0}):
        if comm.rank == 0:
            for _ in range(PINGS):
                comm.recv(source=asking)
                comm.send(clock(), asking)
        elif comm.rank == asking:
            offset = min(_ping(comm, clock) for _ in range(PINGS))[1]
    offset = host.bcast(offset)
    host.Free()
    return offset


def _ping(comm: MPI.Intracomm, clock: Callable[[], int]) -> tuple[int, int]:
    """How long rank 0 took to answer, and how far its clock is ahead."""
    asked = clock()
    comm.send(None, 0)
    there = comm.recv(source=0)
    took = clock() - asked
    return took, there - asked - took // 2


def write_timelines(path: Name, timeline: Timeline, offset: int, comm: MPI.Intracomm) -> None:
    """Write the timelines of all ranks into one file, by rank 0, as Perfetto and chrome://tracing show it. Collective.

    Source: "Trace Event Format", Google, 2016. Spans are complete events (``X``), names are metadata events (``M``).

    Parameters
    ----------
    offset : int
        What :func:`clock_offset` returned; times in the file count from the first span of all ranks.

    Raises
    ------
    OutputError
        On every rank; a file of that name is as it was.
    """
    spans = [Span._make(span) for span in timeline.spans]
    start = comm.allreduce(min((span.begin for span in spans), default=now()) + offset, MPI.MIN)
    found = dict.fromkeys([timeline.main, *(span.thread for span in spans)])
    threads = {thread: number for number, thread in enumerate(found)}
    events = chain(_names(len(threads), comm.rank), _events(spans, threads, comm.rank, offset - start))
    text = np.frombuffer(",\n".join(map(json.dumps, events)).encode(), np.uint8)
    texts = all_to_all(comm, [text if rank == 0 else text[:0] for rank in range(comm.size)])
    with together(comm):
        if comm.rank == 0:
            with whole_file(path) as temporary, open(temporary, "wb") as file:
                file.write(b'{"displayTimeUnit": "ms", "traceEvents": [\n')
                for rank, text in enumerate(texts):
                    file.write(b",\n" if rank else b"")
                    file.write(text.data)
                file.write(b"\n]}\n")


def _names(threads: int, rank: int) -> Iterator[dict]:
    """What a viewer calls this rank and its threads."""
    process = {"ph": "M", "pid": rank, "tid": 0}
    yield process | {"name": "process_name", "args": {"name": f"rank {rank} on {MPI.Get_processor_name()}"}}
    yield process | {"name": "process_sort_index", "args": {"sort_index": rank}}
    for thread in range(threads):
        name = f"thread {thread}" if thread else "main"
        yield process | {"name": "thread_name", "tid": thread, "args": {"name": name}}


def _events(spans: list[Span], threads: dict[int, int], rank: int, shift: int) -> Iterator[dict]:
    """An event for each span, with times in microseconds; ``threads`` gives each thread a small number."""
    for span in spans:
        yield {
            "ph": "X", "name": span.name, "cat": span.kind, "pid": rank, "tid": threads[span.thread],
            "ts": (span.begin + shift) / 1e3, "dur": (span.end - span.begin) / 1e3, "args": span.facts or {},
        }  # fmt: skip
