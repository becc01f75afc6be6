"""Plot files of ``--rows``: time and speed-up over the number of ranks, with a line for each configuration of an app.

::

    mpirun -n 1 cusp bfs graph.h5 --sources 16 --rows rows.jsonl
    mpirun -n 4 cusp bfs graph.h5 --sources 16 --rows rows.jsonl
    python -m cusp.commands.plot_rows rows.jsonl -o rows.png

A point is the median of all rows of one kind; the table shows the same medians. Speed-up is against the fewest ranks
of the same kind. Rows with different numbers of threads are on different lines, unless ``--join-threads`` joins them.
The picture needs matplotlib; without ``-o``, there is only the table.
"""

import argparse
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from cusp.errors import InputError, OptionError, together
from cusp.estimates.plot import FAINT, INK, MARKERS, check_plot, draw_sizes, pyplot_for, save_picture
from cusp.launch import parse_together, parser_for, run_main
from cusp.program import report
from cusp.runtime.files import from_json, is_number, is_word, open_text
from cusp.runtime.mpi import MPI

KIND = ("app", "graph", "policy", "device", "threads", "transport", "execution")  # what tells one line from another
Series = dict[tuple, dict[int, float]]  # what was run -> by number of ranks, median seconds


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = parser_for("cusp.commands.plot_rows", __doc__)
    parser.add_argument("rows", nargs="+", help="files written by --rows")
    parser.add_argument("-o", "--output", metavar="FILE.png", help="the picture; or .svg, .pdf")
    parser.add_argument("--app", help="only rows of this app")
    parser.add_argument(
        "--join-threads", action="store_true", help="one line through runs that differ in their threads"
    )
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Print one table and draw one picture. Collective."""
    options = parse_together(comm, make_parser(), argv)
    if options.output:
        check_plot(options.output, comm, "-o")
    with together(comm):
        rows = [row for path in options.rows for row in read_rows(path) if options.app in (None, row["app"])]
        series = medians(join_threads(rows) if options.join_threads else rows)
        if not series:
            raise OptionError(f"--app {options.app}: no rows of it in {', '.join(options.rows)}")
        if comm.rank == 0 and options.output:
            draw(options.output, series)
    report.say(comm.rank, table(series))
    return 0


def read_rows(path: str) -> list[dict[str, Any]]:
    """The rows of a file.

    Raises
    ------
    InputError
        There is no such file, or a line of it is no row of an app.
    """
    rows = []
    with open_text(path, InputError) as lines:
        for number, line in enumerate(lines, 1):
            row = from_json(line, f"{path}, line {number}:", InputError)
            if not _is_row(row):
                raise InputError(f"{path}, line {number}: is not a row that an app wrote with --rows")
            rows.append(row)
    return rows


def _is_row(row: Any) -> bool:
    """Whether this has the name of an app, some ranks and seconds, and words or numbers for the rest of its kind."""
    if not isinstance(row, dict) or not is_word(row.get("app")):
        return False
    kind = [row.get(name) for name in KIND]
    numbers = type(row.get("ranks")) is int and is_number(row["ranks"], 1) and is_number(row.get("seconds"), 1e-12)
    return numbers and all(value is None or is_word(value) or is_number(value) for value in kind)


def join_threads(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without their numbers of threads.

    Raises
    ------
    OptionError
        Rows of one kind and number of ranks differ in nothing but their threads: they have no common median.
    """
    threads: dict[tuple, Any] = {}
    for row in rows:
        kind = tuple(row.get(name) for name in KIND if name != "threads")
        if threads.setdefault((kind, row["ranks"]), row.get("threads")) != row.get("threads"):
            raise OptionError(
                f"--join-threads: {row['app']} ran on {row['ranks']} rank{'s' * (row['ranks'] > 1)} with "
                f"{threads[kind, row['ranks']]} threads and with {row.get('threads')}: plot one of them, or leave out "
                "--join-threads"
            )
    return [{name: value for name, value in row.items() if name != "threads"} for row in rows]


def medians(rows: Any) -> Series:
    """Median seconds of each kind of row, by the number of ranks; one rank belongs to every transport."""
    found: dict[tuple, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    alone: dict[tuple, list[float]] = defaultdict(list)
    for row in rows:
        kind = tuple(row.get(name) for name in KIND)
        (alone[_any_transport(kind)] if row["ranks"] == 1 else found[kind][row["ranks"]]).append(row["seconds"])
    for kind, seconds in alone.items():
        for other in [other for other in found if _any_transport(other) == kind] or [kind]:
            found[other][1] = seconds
    return {
        kind: {ranks: statistics.median(seconds) for ranks, seconds in sorted(by_ranks.items())}
        for kind, by_ranks in found.items()
    }


def _any_transport(kind: tuple) -> tuple:
    return tuple(None if name == "transport" else value for name, value in zip(KIND, kind))


def labels(series: Series) -> list[str]:
    """What tells the lines apart, in words."""
    told = [place for place in range(len(KIND)) if len({kind[place] for kind in series} - {None}) > 1] or [0]
    return [", ".join(_words(place, kind[place]) for place in told if kind[place] is not None) for kind in series]


def _words(place: int, value: Any) -> str:
    if KIND[place] == "graph":
        return Path(str(value)).stem
    return f"{value} thread{'s' * (value != 1)}" if KIND[place] == "threads" else str(value)


def table(series: Series) -> str:
    """A line for each kind and number of ranks."""
    names = labels(series)
    width = max(10, *map(len, names))
    lines = [f"{'':<{width}}{'ranks':>8}{'ms':>12}{'speed-up':>10}"]
    for name, points in zip(names, series.values()):
        first = next(iter(points.values()))
        for ranks, seconds in points.items():
            lines.append(f"{name:<{width}}{ranks:>8,}{seconds * 1e3:>12,.4g}{first / seconds:>10.2f}")
            name = ""
    return "\n".join(lines)


def draw(path: str, series: Series) -> None:
    """Time on the left, on scales that double, speed-up on the right, with the line of perfect speed-up."""
    pyplot = pyplot_for("-o", path)
    drawn, (times, gains) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    sizes = sorted({ranks for points in series.values() for ranks in points})
    for place, (name, points) in enumerate(zip(labels(series), series.values())):
        style = {"marker": MARKERS[place % len(MARKERS)], "markersize": 5, "linewidth": 1.5, "label": name}
        first = next(iter(points.values()))
        times.plot([*points], [seconds * 1e3 for seconds in points.values()], **style)
        gains.plot([*points], [first / seconds for seconds in points.values()], **style)
    gains.plot(sizes, [ranks / sizes[0] for ranks in sizes], color=FAINT, linestyle="--", linewidth=1)
    gains.annotate("perfect", (sizes[-1], sizes[-1] / sizes[0]), color=FAINT, fontsize=9, ha="right", va="bottom")
    times.set_yscale("log")
    times.set_title("median time, milliseconds (less is better)", fontsize=11, color=INK)
    gains.set_title("speed-up over the fewest ranks of a line (more is better)", fontsize=11, color=INK)
    gains.set_ylim(bottom=0)
    for axis in (times, gains):
        draw_sizes(axis, sizes, "ranks")
    drawn.legend(*times.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_picture(path, pyplot, drawn, 130)


if __name__ == "__main__":
    run_main(main)
