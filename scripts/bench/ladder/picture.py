"""The rows of the ladder as tables, a graph each, and as a picture."""

import math
from itertools import groupby
from typing import Any

from scripts.bench.shared.rows import table

HEAD = ["", "ms", "levels", "edges inspected", "GB/s", "factor"]
WIDTH, LEFT, BAR, TOP, LONGEST = 720, 150, 18, 40, 470  # pixels; of the longest bar
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
    """A line of a table; ``before`` is the rung below."""
    if row["cut"] is not None:
        figures = [f"> {row['ms']:,.0f}", f"cut at {row['cut']:,}", "", ""]
    else:
        levels = sorted(row["levels"])[len(row["levels"]) // 2]
        rate = "" if row["gb_s"] is None else f"{row['gb_s']:,.0f}"
        inspected = "" if row["inspected"] is None else f"{row['inspected']:,}"
        figures = [digits(row["ms"]), f"{levels:,}", inspected, rate]
    return [row["rung"], *figures, factor(row, before)]


def factor(row: dict[str, Any], before: dict[str, Any] | None) -> str:
    """How many times as fast as the rung below; of searches that were cut only a bound is known, or nothing."""
    if before is None or (row["cut"] is not None and before["cut"] is not None):
        return ""
    bound = "< " if row["cut"] is not None else "> " if before["cut"] is not None else ""
    return bound + digits(before["ms"] / row["ms"])


def digits(value: float) -> str:
    """Three digits, or all that are before the point."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def picture(rows: list[dict[str, Any]]) -> str:
    """A group of bars for each graph, whose lengths are logarithms: the same distance is the same factor everywhere."""
    lines, y = [], 8
    for name, some in _by_graph(rows):
        lines.append(f'<text x="{LEFT}" y="{y + 18}" font-size="15" font-weight="bold">{name}</text>')
        y += TOP - 8
        least, most = (pick(row["ms"] for row in some) for pick in (min, max))
        for row in some:
            share = math.log(row["ms"] / least * 2) / math.log(most / least * 2)
            lines += bar(y, row, LONGEST * share)
            y += BAR
        y += TOP // 2
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12" '
        f'fill="#222222" role="img">\n<title>Milliseconds of breadth-first search by rung: shorter is better</title>\n'
        f'<rect width="{WIDTH}" height="{y}" fill="white"/>\n'
        f'<text x="{WIDTH - 10}" y="22" text-anchor="end" fill="#666666">milliseconds, on a scale of factors</text>\n'
    )
    return head + "\n".join(lines) + "\n</svg>\n"


def bar(y: float, row: dict[str, Any], length: float) -> list[str]:
    """The bar of a rung, with its name and milliseconds."""
    color = OURS if row["rung"] == LIBRARY else COLOR
    shown = cells(row, None)[1].replace(">", "&gt;")
    return [
        f'<text x="{LEFT - 8}" y="{y + BAR - 6}" text-anchor="end">{row["rung"]}</text>',
        f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 4}" fill="{color}"/>',
        f'<text x="{LEFT + length + 6:.0f}" y="{y + BAR - 6}" font-size="11">{shown}</text>',
    ]


def _by_graph(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    ordered = sorted(rows, key=lambda row: (row["graph"], row["place"]))
    return [(name, [*some]) for name, some in groupby(ordered, key=lambda row: row["graph"])]
