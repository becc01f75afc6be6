"""The rows of the ladder as tables, a graph each, and as a picture."""

import math
from itertools import groupby
from pathlib import Path
from typing import Any

from scripts.bench.shared.bars import Bar, draw_bars
from scripts.bench.shared.rows import table

HEAD = ["", "ms", "levels", "edges inspected", "GB/s", "factor"]
COLOR, OURS = "#8fb3d1", "#1f5f99"
LIBRARY = "cusp bfs"


def tables(rows: list[dict[str, Any]], markdown: bool = False) -> str:
    """A table for each graph, from the lowest rung up."""
    parts = []
    for name, some in _by_graph(rows):
        title = f"{name}: {some[0]['nodes']:,} nodes, {some[0]['edges']:,} edges, {some[0]['gpu']}"
        lines = [HEAD, *(cells(row, before) for row, before in zip(some, [None, *some]))]
        parts.append(f"{title}\n\n{table(lines, markdown)}\n")
    return "\n".join(parts)


def cells(row: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """A line of a table; the factor says how many times as fast it is as the rung below, ``before``."""
    levels = sorted(row["levels"])[len(row["levels"]) // 2]
    rate = "" if row["gb_s"] is None else f"{row['gb_s']:,.0f}"
    inspected = "" if row["inspected"] is None else f"{row['inspected']:,}"
    factor = "" if before is None else digits(before["ms"] / row["ms"])
    return [row["rung"], digits(row["ms"]), f"{levels:,}", inspected, rate, factor]


def digits(value: float) -> str:
    """Three digits, or all that are before the point."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw a panel for each graph; lengths are logarithms: the same distance is the same factor everywhere."""
    panels = {}
    for name, some in _by_graph(rows):
        least, most = (pick(row["ms"] for row in some) for pick in (min, max))
        panels[name] = [
            Bar(
                row["rung"], math.log(row["ms"] / least * 2) / math.log(most / least * 2), digits(row["ms"]),
                OURS if row["rung"] == LIBRARY else COLOR,
            )
            for row in some
        ]  # fmt: skip
    draw_bars(path, "milliseconds, on a scale of factors: shorter is better", panels)


def _by_graph(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    ordered = sorted(rows, key=lambda row: (row["graph"], row["place"]))
    return [(name, [*some]) for name, some in groupby(ordered, key=lambda row: row["graph"])]
