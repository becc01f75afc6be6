"""The timelines of all ranks as one file in the Trace Event Format, which Perfetto and chrome://tracing show.

Source: "Trace Event Format", Google, 2016. Spans are complete events (``X``), names are metadata events (``M``).
"""

import json
from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np

from cusp.errors import together
from cusp.output.whole_file import Name, whole_file
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Span, Timeline, now

PINGS = 32


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
    """Write the timelines of all ranks into one file, by rank 0. Collective.

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
