"""Charts of the page, drawn by matplotlib."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cusp.estimates.plot import FAINT, INK, pyplot_for

Show = Callable[[float], str]
COLORS = ("#2f6f9f", "#2f7d4f", "#e3a33b", "#c8503c", "#7d5ba6", "#c3c9ce", "#8fb3d1")
WIDTH = 8.0  # inches
MOST_LABELS = 16  # at an axis
MOST_NUMBERS = 10  # rows of a matrix whose cells have room for them


def bars(
    labels: Sequence[str], series: Mapping[str, Sequence[float] | np.ndarray], show: Show, below: str,
    lying: bool = False,
) -> Any:  # fmt: skip
    """Bars on top of each other, one column for each label, or, lying down, one row; ``series`` from the bottom up.

    Parameters
    ----------
    show : function
        A value as text, with its unit.
    below : str
        What the axis below shows.
    """
    height = 1.2 + 0.25 * min(len(labels), 40) if lying else 2.5
    drawn, axis = figure(height)
    places, floor = np.arange(len(labels)), np.zeros(len(labels))
    for (name, values), color in zip(series.items(), COLORS * len(series)):
        (axis.barh if lying else axis.bar)(places, values, 0.8, floor, label=name.replace("_", " "), color=color)
        floor += np.asarray(values, float)
    by_label, by_value = (axis.yaxis, axis.xaxis) if lying else (axis.xaxis, axis.yaxis)
    by_value.set_major_formatter(lambda value, _: show(value))
    by_value.grid(color=FAINT, alpha=0.4)
    every = -(-len(labels) // (40 if lying else MOST_LABELS))
    by_label.set_ticks(places[::every], labels[::every])
    if lying:
        axis.invert_yaxis()
    axis.set_xlabel(below, color=INK, fontsize=9)
    if len(series) > 1:
        drawn.legend(loc="outside upper center", ncols=len(series), frameon=False, fontsize=9)
    return drawn


def matrix(values: np.ndarray, show: Show) -> Any:
    """A square for each pair of ranks, the darker the more; numbers where there is room."""
    size = len(values)
    drawn, axis = figure(min(0.6 * size + 0.8, WIDTH))
    most = max(float(values.max(initial=0)), 1)
    axis.imshow(values, cmap="Blues", vmin=0, vmax=most)
    for (row, column), value in np.ndenumerate(values) if size <= MOST_NUMBERS else ():
        color = "white" if value > 0.55 * most else INK
        axis.text(column, row, show(value) if value else "", ha="center", va="center", fontsize=8, color=color)
    places = np.arange(0, size, -(-size // MOST_LABELS))
    axis.set(xticks=places, yticks=places, xlabel="to rank", ylabel="from rank")
    return drawn


def figure(height: float) -> tuple[Any, Any]:
    """An empty chart of some inches, and its axis, without a frame."""
    drawn, axis = pyplot_for("-o", "of a report").subplots(figsize=(WIDTH, height), layout="constrained")
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=9, labelcolor=INK, color=FAINT)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(FAINT)
    return drawn, axis
