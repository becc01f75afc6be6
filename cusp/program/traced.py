"""``--trace``: run a block with a timeline, write that for all ranks, and say how long ranks waited for others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cusp.errors import OptionError, together
from cusp.output.timeline_file import clock_offset, write_timelines
from cusp.output.whole_file import Name
from cusp.program import report
from cusp.runtime import timeline, watchdog
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import PHASE, WAIT, Span, Timeline

MOST = 1 << 20  # spans in a file, of all ranks: about 130 MB
PURPOSE = ("run", "partition")  # phases that a program is for, the first of these that it has


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
