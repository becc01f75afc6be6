"""Charts as SVG that stands in a page: colours are classes of the page, so that they follow light and dark."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np

Show = Callable[[float], str]
Values = Sequence[float] | np.ndarray
WIDTH, LEFT, TOP, BOTTOM = 760, 76, 24, 40
MOST_LABELS = 16  # at the axis below
MOST_NUMBERS = 10  # rows of a matrix whose cells have room for them


def bars(labels: Sequence[str], series: Mapping[str, Values], show: Show, below: str, height: int = 230) -> str:
    """Bars on top of each other, one column for each label; ``series`` from the bottom up, by name.

    Parameters
    ----------
    show : function
        A value as text, with its unit.
    below : str
        What the labels are.
    """
    sums = np.sum([np.asarray(values, float) for values in series.values()], axis=0)
    top = round_up(float(sums.max(initial=0)))
    inner = height - TOP - BOTTOM
    step = (WIDTH - LEFT - 8) / len(labels)
    wide = max(min(step * 0.8, 60), 0.5)
    drawn = [axis(top, inner, show)]
    floor = np.zeros(len(labels))
    for place, (name, values) in enumerate(series.items()):
        for column, value in enumerate(values):
            x, y = LEFT + step * (column + 0.5) - wide / 2, TOP + inner * (1 - (floor[column] + value) / top)
            note = escape(f"{labels[column]}: {name} {show(value)}")
            drawn.append(
                f'<rect class="c{place}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{inner * value / top:.1f}">'
                f"<title>{note}</title></rect>"
            )
        floor += np.asarray(values, float)
    every = -(-len(labels) // MOST_LABELS)
    for column in range(0, len(labels), every):
        drawn.append(text(LEFT + step * (column + 0.5), height - 22, labels[column], "middle"))
    drawn.append(text((LEFT + WIDTH) / 2, height - 5, below, "middle"))
    return svg("".join(drawn), WIDTH, height)


def rows(labels: Sequence[str], series: Mapping[str, Values], show: Show, below: str) -> str:
    """The same lying down, a row for each label."""
    sums = np.sum([np.asarray(values, float) for values in series.values()], axis=0)
    top = round_up(float(sums.max(initial=0)))
    step = 24 if len(labels) <= MOST_LABELS else 12
    height = TOP + step * len(labels) + BOTTOM
    scale = (WIDTH - LEFT - 40) / top
    drawn = []
    for tick in np.linspace(0, top, 5):
        x = LEFT + tick * scale
        drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - BOTTOM + 4}"/>')
        drawn.append(text(x, height - 22, show(tick), "middle"))
    begin = np.zeros(len(labels))
    for place, (name, values) in enumerate(series.items()):
        for row, value in enumerate(values):
            note = escape(f"{labels[row]}: {name} {show(value)}")
            drawn.append(
                f'<rect class="c{place}" x="{LEFT + begin[row] * scale:.1f}" y="{TOP + step * row + 2}" '
                f'width="{value * scale:.1f}" height="{step - 4}"><title>{note}</title></rect>'
            )
        begin += np.asarray(values, float)
    every = -(-len(labels) // 40)
    for row in range(0, len(labels), every):
        drawn.append(text(LEFT - 8, TOP + step * row + step / 2 + 4, labels[row], "end"))
    drawn.append(text((LEFT + WIDTH) / 2, height - 5, below, "middle"))
    return svg("".join(drawn), WIDTH, height)


def matrix(values: np.ndarray, show: Show) -> str:
    """A square for each pair of ranks, the darker the more; numbers where there is room."""
    size = len(values)
    cell = min(64.0, (WIDTH - LEFT - 8) / size)
    most = max(float(values.max(initial=0)), 1)
    drawn = []
    for row, column in np.ndindex(values.shape):
        value = float(values[row, column])
        x, y = LEFT + column * cell, TOP + 18 + row * cell
        note = f"rank {row} to rank {column}: {show(value)}"
        drawn.append(
            f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" height="{cell - 1:.1f}" '
            f'fill-opacity="{0.04 + 0.96 * value / most:.2f}"><title>{note}</title></rect>'
        )
        if size <= MOST_NUMBERS and value:
            dark = "on-dark" if value > 0.55 * most else "on-light"
            drawn.append(text(x + cell / 2, y + cell / 2 + 4, show(value), "middle", dark))
    every = -(-size // MOST_LABELS)
    for rank in range(0, size, every):
        drawn.append(text(LEFT - 8, TOP + 18 + (rank + 0.5) * cell + 4, f"{rank}", "end"))
        drawn.append(text(LEFT + (rank + 0.5) * cell, TOP + 10, f"{rank}", "middle"))
    drawn.append(text(LEFT - 8, TOP - 8, "from \\ to", "end"))
    return svg("".join(drawn), WIDTH, round(TOP + 22 + cell * size))


def bands(names: Sequence[str], shares: Sequence[np.ndarray], classes: Sequence[str], seconds: float) -> str:
    """A band for each rank: what it did at each time, as areas that add up to 1.

    Parameters
    ----------
    shares : list of (kinds, columns) float64
    classes : list of str
        The class of each kind.
    """
    high = 34 if len(names) <= MOST_LABELS else 14
    height = TOP + (high + 4) * len(names) + BOTTOM
    scale = WIDTH - LEFT - 40
    drawn = []
    for row, (name, parts) in enumerate(zip(names, shares)):
        y = TOP + row * (high + 4)
        xs = LEFT + scale * np.arange(parts.shape[1] + 1) / parts.shape[1]
        floor = np.zeros(parts.shape[1])
        for kind, values in zip(classes, parts):
            if values.max(initial=0) > 0.001:
                drawn.append(area(kind, xs, y + high * (1 - floor), y + high * (1 - floor - values)))
            floor = floor + values
        drawn.append(text(LEFT - 8, y + high / 2 + 4, name, "end"))
    for tick in np.linspace(0, 1, 5):
        drawn.append(text(LEFT + scale * tick, height - 22, f"{1000 * seconds * tick:.3g}", "middle"))
    drawn.append(text((LEFT + WIDTH) / 2, height - 5, "milliseconds", "middle"))
    return svg("".join(drawn), WIDTH, height)


def area(kind: str, xs: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """What lies between two lines of steps."""
    steps = np.repeat(xs, 2)[1:-1]
    upper = zip(steps, np.repeat(high, 2))
    lower = zip(steps[::-1], np.repeat(low, 2)[::-1])
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *lower])
    return f'<polygon class="{kind}" points="{points}"/>'


def axis(top: float, inner: float, show: Show) -> str:
    """Lines across, and their values at the left."""
    drawn = []
    for tick in np.linspace(0, top, 5):
        y = TOP + inner * (1 - tick / top)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(text(LEFT - 8, y + 4, show(tick), "end"))
    return "".join(drawn)


def round_up(value: float) -> float:
    """The next number whose quarter is easy to read; 1 for 0.

    >>> [round_up(value) for value in (0, 0.7, 4, 4.1, 970)]
    [1.0, 0.8, 4.0, 6.0, 1000.0]
    """
    if value <= 0:
        return 1.0
    size = 10.0 ** np.floor(np.log10(value))
    return float(
        next(round(step * size, 12) for step in (1, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * size >= value * (1 - 1e-9))
    )


def text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    """A few words."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def svg(inside: str, width: int, height: int) -> str:
    """The picture, as wide as the page lets it be."""
    return f'<svg viewBox="0 0 {width} {height}" role="img">{inside}</svg>'
