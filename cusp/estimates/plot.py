"""Pictures of a comparison of policies and of a plan (``cusp compare --plot``, ``cusp plan``); they need matplotlib."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cusp.errors import Intracomm, together
from cusp.output.whole_file import OutputError, whole_file

INK, FAINT, BAR, BEST = "#222222", "#999999", "#8fb3d1", "#1f5f99"
MARKERS = "osD^v<>ph*X"  # one for each line in turn
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
APART = 3  # points between lines side by side, so that equal ones can be distinguished
LONGEST = 22  # characters of a policy's name that fit beside the bars


def digits(value: float) -> str:
    """Three digits, or all that are before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Panel(NamedTuple):
    """One figure of all policies: its key, title, unit, where its bars begin, and how values are shown."""

    key: str
    title: str
    unit: str
    origin: float
    show: Callable[[float], str]


PANELS = (
    Panel("replication", "replication factor", "proxies per node (1: none replicated)", 1, "{:.2f}".format),
    Panel("edge_balance", "balance of edges", "largest part / mean (1: perfect)", 1, "{:.2f}".format),
    Panel("mb_a_round", "traffic", "at most, MB per round, all parts", 0, digits),
    Panel("memory_mb", "memory", "MB of the largest part", 0, digits),
)
BESIDE: dict[str, Any] = {"xytext": (8, -4), "textcoords": "offset points", "fontsize": 9, "color": BEST}
TIMES = ("predicted_ms", "work_ms", "rounds_ms", "exchange_ms", "network_ms")


def check_plot(path: str, comm: Intracomm, option: str = "--plot") -> None:
    """Find out before the work whether a picture can be drawn. Collective.

    Raises
    ------
    OutputError
        There is no matplotlib, or it does not know the format.
    """
    with together(comm):
        if comm.rank == 0:
            known = pyplot_for(option, path).figure().canvas.get_supported_filetypes()
            kind = Path(path).suffix.lstrip(".").lower()
            if kind not in known:
                raise OutputError(
                    f"{option} {path}: unknown kind of picture; the name must end with one of .{', .'.join(known)}"
                )


def plot_comparison(path: str, graph: str, figures: list[dict], comm: Intracomm) -> None:
    """Draw replication, balance, traffic and memory: bars by policy, or lines over numbers of parts. Collective."""
    with together(comm):
        if comm.rank == 0:
            pyplot = pyplot_for("--plot", path)
            sizes = sorted({entry["parts"] for entry in figures})
            height = 1.7 + 0.34 * len(figures) if len(sizes) == 1 else 4.5
            drawn, axes = pyplot.subplots(
                1, len(PANELS), figsize=(13, height), sharey=len(sizes) == 1, layout="constrained"
            )
            for axis, panel in zip(axes, PANELS):
                (_draw if len(sizes) == 1 else _draw_series)(axis, panel, figures)
            if len(sizes) == 1:
                axes[0].invert_yaxis()
            else:
                drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
            drawn.suptitle(f"{Path(graph).name} in {_parts(sizes)} (less is better)", color=INK, fontsize=13)
            save_picture(path, pyplot, drawn, 150)


def plot_plan(path: str, graph: str, rows: list[dict], memory_mb: float, priced: bool, comm: Intracomm) -> None:
    """Draw time, memory of a host and cost over numbers of ranks, on scales that double. Collective."""
    with together(comm):
        if comm.rank == 0:
            pyplot = pyplot_for("--plot", path)
            drawn, axes = pyplot.subplots(1, 3, figsize=(13, 4.5), layout="constrained")
            titles = ("predicted time, ms", "memory of a host, MB", "cost" if priced else "cost, host seconds")
            lines = (TIMES, ("host_mb",), ("price" if priced else "host_seconds",))
            for axis, title, keys, mark in zip(axes, titles, lines, ("fastest", "", "cheapest")):
                for place, key in enumerate(keys):
                    _draw_figure(axis, key, rows, place)
                for row in [row for row in rows if row.get(mark)]:
                    axis.annotate(mark, (row["parts"], row[keys[0]]), **BESIDE)
                draw_sizes(axis, sorted({row["parts"] for row in rows}), "ranks")
                axis.set_yscale("log")
                axis.set_title(f"{title} (less is better)", fontsize=11, color=INK)
            axes[0].legend(frameon=False, fontsize=9)
            axes[1].axhline(memory_mb, color=FAINT, linestyle="--", linewidth=1)
            axes[1].annotate("what it has", (rows[0]["parts"], memory_mb), **BESIDE | {"xytext": (0, 4)})
            drawn.suptitle(f"{rows[0]['for']} on {Path(graph).name}", color=INK, fontsize=13)
            save_picture(path, pyplot, drawn, 150)


def _draw_figure(axis: Any, key: str, rows: list[dict], place: int) -> None:
    """Draw a line through the values above 0 of a figure."""
    some = [row for row in rows if row[key] > 0]
    style = {"marker": MARKERS[place], "linestyle": DASHES[min(place, len(DASHES) - 1)], "color": f"C{place}"}
    axis.plot([row["parts"] for row in some], [row[key] for row in some], label=key.split("_")[0], **style)
    axis.margins(x=0.12, y=0.12)


def pyplot_for(option: str, path: str) -> Any:
    """Matplotlib's ``pyplot``, to draw the picture that an option asks for.

    Raises
    ------
    OutputError
        There is no matplotlib.
    """
    try:
        importlib.import_module("matplotlib").use("Agg")
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise OutputError(f"{option} {path}: needs matplotlib; install it: pip install matplotlib") from None


def _draw(axis: Any, panel: Panel, figures: list[dict]) -> None:
    """Draw bars with their values beside them; the smallest value stands out."""
    values = [entry[panel.key] for entry in figures]
    shown = [panel.show(value) for value in values]
    colors = [BEST if text == panel.show(min(values)) else BAR for text in shown]
    bars = axis.barh(range(len(values)), [value - panel.origin for value in values], 0.66, panel.origin, color=colors)
    axis.bar_label(bars, shown, padding=3, fontsize=9, color=INK)
    axis.set_yticks(range(len(values)), [short_name(entry["policy"]) for entry in figures])
    axis.set_xlim(panel.origin, panel.origin + 1.22 * max(max(values) - panel.origin, 0.01))
    axis.set_xticks([])  # the values are beside the bars
    axis.set_title(panel.title, fontsize=11, color=INK)
    axis.set_xlabel(panel.unit, fontsize=9, color=INK)
    axis.tick_params(length=0, labelsize=9, labelcolor=INK)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.spines["left"].set_color(FAINT)


def _draw_series(axis: Any, panel: Panel, figures: list[dict]) -> None:
    """Draw a line for each policy, over the numbers of parts, each twice as far as the half of it.

    Lines are shifted sideways by a few points: those with the same values would hide each other.
    """
    sizes = sorted({entry["parts"] for entry in figures})
    policies = dict.fromkeys(entry["policy"] for entry in figures)
    for place, policy in enumerate(policies):
        some = sorted((entry for entry in figures if entry["policy"] == policy), key=lambda entry: entry["parts"])
        parts, values = [entry["parts"] for entry in some], [entry[panel.key] for entry in some]
        style = {"marker": MARKERS[place % len(MARKERS)], "linestyle": DASHES[place % len(DASHES)]}
        [line] = axis.plot(parts, values, label=short_name(policy), markersize=5, linewidth=1.5, clip_on=False, **style)
        line.set_transform(shifted(axis, APART * (place - (len(policies) - 1) / 2)))
    draw_sizes(axis, sizes, "parts")
    axis.margins(x=0.12)
    axis.set_ylim(bottom=panel.origin)
    axis.set_title(panel.title, fontsize=11, color=INK)
    axis.set_ylabel(panel.unit, fontsize=9, color=INK)


def shifted(axis: Any, points: float) -> Any:
    """The coordinates of an axis, moved to the right by some points."""
    moved = importlib.import_module("matplotlib.transforms").offset_copy
    return moved(axis.transData, fig=axis.figure, x=points, units="points")


def draw_sizes(axis: Any, sizes: list[int], of: str) -> None:
    """Let an axis show numbers of parts or ranks, each twice as far as the half of it, without a frame."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.tick_params(axis="x", which="minor", bottom=False)
    axis.set_xlabel(of, fontsize=9, color=INK)
    axis.tick_params(labelsize=9, labelcolor=INK, color=FAINT)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(FAINT)


def save_picture(path: str, pyplot: Any, drawn: Any, dpi: int) -> None:
    """Write a picture in the format that its name ends with, whole or not at all, and forget it."""
    try:
        with whole_file(path) as file:
            drawn.savefig(file, dpi=dpi, format=Path(path).suffix.lstrip(".").lower())
    finally:
        pyplot.close("all")


def _parts(sizes: list[int]) -> str:
    words = [f"{size:,}" for size in sizes]
    return f"{', '.join(words[:-1])}{' and ' * (len(words) > 1)}{words[-1]} part{'s' * (sizes[-1] > 1)}"


def short_name(policy: str) -> str:
    """The name of a policy, or of its file, shortened in the middle if it is long."""
    name = Path(policy).name if policy.endswith(".py") else policy
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 + 1 :]}"
