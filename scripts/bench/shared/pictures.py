"""Pictures for pages of docs/, such as bars with their values beside them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple


class Bar(NamedTuple):
    """One bar: what is at its left, its length, 1 for the longest, what is at its right, and its colour.

    Bars without a label belong to that above them.
    """

    label: str
    length: float
    text: str
    color: str


@contextmanager
def picture(path: Path, salt: str, rows: int, columns: int, **how: Any) -> Iterator[tuple[Any, Any]]:
    """A figure of matplotlib and its axes, (rows, columns), written when the block ends; texts stay texts in an SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"}):
        drawn, axes = pyplot.subplots(rows, columns, squeeze=False, layout="constrained", **how)
        yield drawn, axes
        drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(drawn)


def draw_bars(path: Path, title: str, panels: Mapping[str, Sequence[Bar]]) -> None:
    """Draw panels one below the other, each with bars from the top down."""
    sizes = [len(bars) for bars in panels.values()]
    inches = (7.2, 0.21 * sum(sizes) + 0.6 * len(sizes))
    with picture(path, title, len(panels), 1, height_ratios=sizes, figsize=inches) as (drawn, axes):
        for axis, (head, bars) in zip(axes.flat, panels.items()):
            apart = (1.6 if bar.label and not above.label else 1.0 for above, bar in pairwise(bars))
            places = [*accumulate(apart, initial=0.0)]
            lengths, colors = [bar.length for bar in bars], [bar.color for bar in bars]
            shown = axis.barh(places, lengths, 0.85, color=colors)
            axis.bar_label(shown, [bar.text for bar in bars], padding=4, fontsize=8)
            axis.set_yticks(places, [bar.label for bar in bars], fontsize=9)
            axis.set(xlim=(0, 1.3), xticks=[], ylim=(places[-1] + 0.6, -0.6))
            axis.set_title(head, loc="left", fontsize=11, fontweight="bold")
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
        drawn.suptitle(title, x=0.99, ha="right", fontsize=9, color="#666666")
