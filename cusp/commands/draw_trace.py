"""Draw a file of ``--trace``: a band for each rank, whose colours show its activity over time.

::

    python -m cusp.commands.draw_trace trace.json -o trace.png              # the last run
    python -m cusp.commands.draw_trace trace.json -o trace.png --phase partition --first 0 --last 200

A column of a band is a short interval, coloured by the share of each activity, so short rounds appear as a mixture.
Time in a nested span counts only for that span. Needs matplotlib.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cusp.errors import InputError, together
from cusp.estimates.plot import FAINT, INK, check_plot, pyplot_for, save_picture
from cusp.launch import parse_together, parser_for, run_main
from cusp.runtime.files import from_json, is_number, is_word, read_input
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import COMPILE, OPERATOR, PHASE, ROUND, SYNC, WAIT

COLUMNS = 900
KINDS = {  # of spans, from the bottom of a band to its top: what the key says, colour
    OPERATOR: ("operator", "#2f7d4f"),
    SYNC: ("extract, combine", "#e3a33b"),
    COMPILE: ("compile", "#7d5ba6"),
    PHASE: ("other", "#d9d9d9"),
    WAIT: ("wait, messages included", "#c8503c"),
}
US_PER_MS = 1000


class Band(NamedTuple):
    """One rank in the stretch of time that is drawn.

    Attributes
    ----------
    name : str
    shares : (kinds, columns) float64
        How much of each column was spent on each of ``KINDS``.
    """

    name: str
    shares: np.ndarray


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = parser_for("cusp.commands.draw_trace", __doc__)
    parser.add_argument("trace", help="a file written by --trace")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png", help="or .svg, .pdf")
    parser.add_argument("--phase", default="run", help="the phase to draw, the last of its name (default: %(default)s)")
    parser.add_argument("--first", type=float, default=0.0, metavar="MS", help="draw from here (default: 0)")
    parser.add_argument("--last", type=float, metavar="MS", help="draw up to here (default: the end)")
    parser.add_argument("--title", help="default: named after the file and the phase")
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Draw one picture of one trace. Collective."""
    options = parse_together(comm, make_parser(), argv)
    check_plot(options.output, comm, "-o")
    with together(comm):
        events = read_events(options.trace)
        begin, end = stretch(events, options.trace, options.phase, options.first, options.last)
        bands = [band(events, rank, name, np.linspace(begin, end, COLUMNS + 1)) for rank, name in ranks_of(events)]
        title = options.title or f"{Path(options.trace).name}: {options.phase}"
        if comm.rank == 0:
            draw(options.output, bands, options.first, options.first + (end - begin) / US_PER_MS, title)
    return 0


def read_events(path: str) -> list[dict[str, Any]]:
    """The events of a trace.

    Raises
    ------
    InputError
        There is no such file, or it is not a trace of ours.
    """
    trace = from_json(read_input(path, InputError), f"{path}:", InputError)
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list) or not all(map(_is_event, events)) or not ranks_of(events):
        raise InputError(f"{path}: is not a timeline that --trace wrote")
    return events


def _is_event(event: Any) -> bool:
    """Whether an event of a trace says what is drawn of it: the name of a rank, or a span of some kind."""
    if not isinstance(event, dict) or not is_word(event.get("name")) or not is_number(event.get("pid")):
        return False
    if event.get("ph") == "X":
        numbers = (event.get(name) for name in ("ts", "dur", "tid"))
        return (event.get("cat") in (*KINDS, ROUND) or event.get("tid") != 0) and all(map(is_number, numbers))
    arguments = event.get("args")
    return event["name"] != "process_name" or (isinstance(arguments, dict) and is_word(arguments.get("name")))


def ranks_of(events: Iterable[dict[str, Any]]) -> list[tuple[int, str]]:
    """Number and name of each rank, in order."""
    return sorted((event["pid"], event["args"]["name"]) for event in events if event["name"] == "process_name")


def stretch(
    events: list[dict[str, Any]], trace: str, phase: str, first: float = 0.0, last: float | None = None
) -> tuple[float, float]:
    """The microseconds to draw of the last phase of a name: all, or from its millisecond ``first`` to ``last``.

    Raises
    ------
    InputError
        There is no such phase, or it ends before the stretch begins.
    """
    phases = [event for event in events if event["ph"] == "X" and event["cat"] == PHASE]
    chosen = [event for event in phases if event["name"] == phase]
    if not chosen:
        known = ", ".join(dict.fromkeys(event["name"] for event in phases)) or "none"
        raise InputError(f"{trace}: has no phase {phase!r}; its phases are {known}")
    begin = max(event["ts"] for event in chosen)
    end = max(event["ts"] + event["dur"] for event in chosen)
    to = end if last is None else min(end, begin + last * US_PER_MS)
    since = begin + first * US_PER_MS
    if not begin <= since < to:
        raise InputError(
            f"--first {first:g} --last {last or 0:g}: phase {phase!r} takes {(end - begin) / US_PER_MS:.4g} ms"
        )
    return since, to


def band(events: Iterable[dict[str, Any]], rank: int, name: str, edges: np.ndarray) -> Band:
    """What one rank does between the times ``edges``: time is of the innermost span, and all in a wait is waiting."""
    own = [event for event in events if event["ph"] == "X" and event["pid"] == rank and not event["tid"]]
    own = sorted((event for event in own if event["cat"] != ROUND), key=lambda event: (event["ts"], -event["dur"]))
    begins = np.array([event["ts"] for event in own], float)
    ends = begins + [event["dur"] for event in own]
    times = np.unique(np.concatenate([begins, ends, edges]))
    places = zip(np.searchsorted(times, begins).tolist(), np.searchsorted(times, ends).tolist())
    kinds, order = np.full(times.size - 1, -1), list(KINDS)
    for event, (first, last) in zip(own, places):
        if first < last and kinds[first] != order.index(WAIT):
            kinds[first:last] = order.index(event["cat"])
    spent = np.zeros((len(order), times.size))  # of each kind, before each of the times
    np.cumsum(np.diff(times) * (kinds == np.arange(len(order))[:, None]), axis=1, out=spent[:, 1:])
    shares = np.diff(spent[:, np.searchsorted(times, edges)]) / np.diff(edges)
    shares[order.index(PHASE)] += 1 - shares.sum(axis=0)  # the time between spans
    return Band(name, np.clip(shares, 0, 1))


def draw(path: str, bands: list[Band], first: float, last: float, title: str) -> None:
    """Draw the bands into a file, below a title."""
    pyplot = pyplot_for("-o", path)
    drawn = picture_of(pyplot, bands, first, last, (11, 1.3 + 0.75 * len(bands)))
    drawn.axes[0].set_title(title, color=INK, fontsize=11, loc="left")
    save_picture(path, pyplot, drawn, 110)


def picture_of(pyplot: Any, bands: list[Band], first: float, last: float, inches: tuple[float, float]) -> Any:
    """The bands one below the other, from the millisecond ``first`` to ``last``."""
    drawn, axes = pyplot.subplots(len(bands), 1, figsize=inches, sharex=True, squeeze=False, layout="constrained")
    for axis, (name, shares) in zip(axes.flat, bands):
        times = np.linspace(first, last, shares.shape[1] + 1)
        steps = np.repeat(shares, 2, axis=1)
        colors = [color for _, color in KINDS.values()]
        axis.stackplot(np.repeat(times, 2)[1:-1], steps, colors=colors, linewidth=0)
        waited = shares[list(KINDS).index(WAIT)].mean()
        axis.set_ylabel(f"{name.split(' on ')[0]}\nwaits {waited:.0%}", rotation=0, ha="right", va="center", color=INK)
        axis.set(xlim=(first, last), ylim=(0, 1), yticks=[])
        axis.spines[:].set_color(FAINT)
        axis.tick_params(labelcolor=INK, color=FAINT)
    axes[-1, 0].set_xlabel("milliseconds", color=INK)
    shown = [number for number in range(len(KINDS)) if any(band.shares[number].mean() > 0.001 for band in bands)]
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=list(KINDS.values())[number][1]) for number in shown]
    names = [list(KINDS.values())[number][0] for number in shown]
    drawn.legend(patches, names, loc="outside lower center", ncols=len(shown), frameon=False, fontsize=9)
    return drawn


if __name__ == "__main__":
    run_main(main)
