"""The page: sentences, charts and tables, made of the figures."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from cusp import __version__
from cusp.apps.report import charts
from cusp.apps.report.figures import Figures, Run
from cusp.commands.draw_trace import KINDS, picture_of
from cusp.estimates.plot import pyplot_for
from cusp.runtime.devices import name_of
from cusp.runtime.timeline import WAIT

MOST_ROUNDS = 400  # that a chart has room for
STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 860px; padding: 2rem 1rem 4rem; color: #222222; background: white;
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.6rem 0 .3rem; }
p { margin: .3rem 0 .8rem; } .soft, figcaption, footer, summary { color: #667079; font-size: .9rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: .7rem; margin: 1.4rem 0; }
.card { background: #f6f7f8; border-radius: 8px; padding: .7rem .9rem; } .card b { display: block; font-size: 1.4rem; }
figure { margin: .6rem 0 1rem; } img { width: 100%; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { text-align: right; padding: .15rem .7rem; border-bottom: 1px solid #dfe3e6; }
"""


def page(figures: Figures) -> str:
    """The whole page, in HTML 5, with nothing outside it."""
    title = f"{figures.name}, {figures.graph.policy.name} on {counted(figures.graph.quality.masters.size, 'rank')}"
    body = "\n".join(
        [head(title, figures), load(figures), partners(figures), degrees(figures), phases(figures), runs(figures)]
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>\n{body}\n<footer>Made by cusp report {__version__}.</footer>\n"
        "</body></html>\n"
    )


def head(title: str, figures: Figures) -> str:
    """Title, a sentence and the figures that matter most."""
    graph, quality = figures.graph, figures.graph.quality
    kind = "symmetric" if graph.part.symmetric else "directed"
    cards = {
        "replication factor": (f"{quality.replication:.2f}", "proxies per node; 1 is best"),
        "balance of edges": (f"{quality.edge_balance:.2f}", "largest part / mean; 1 is best"),
        "balance of nodes": (f"{quality.node_balance:.2f}", "largest part / mean, mirrors included"),
        "partners": (f"{quality.partners.mean():.1f}", f"of a rank, of {max(quality.masters.size - 1, 0)}"),
        "a sync": (size(quality.mb_a_round * 1e6), "at most, by all ranks"),
        "memory": (size(quality.memory_mb() * 1e6), "of the largest part, without weights"),
    }
    shown = "".join(
        f'<div class="card">{name}<b>{value}</b><span class="soft">{note}</span></div>'
        for name, (value, note) in cards.items()
    )
    return (
        f"<h1>{escape(title)}</h1><p>{graph.num_nodes:,} nodes and {graph.num_edges:,} edges, {kind}, on "
        f'{escape(name_of(graph.plan.devices))}.</p><div class="cards">{shown}</div>'
    )


def load(figures: Figures) -> str:
    """What each rank has."""
    quality = figures.graph.quality
    names = [f"{rank}" for rank in range(quality.masters.size)]
    mirrors = quality.proxies - quality.masters
    nodes = charts.bars(names, {"masters": quality.masters, "mirrors": mirrors}, short, "rank")
    edges = charts.bars(names, {"edges": quality.edges}, short, "rank")
    cells = [quality.masters, mirrors, quality.edges, quality.partners]
    return (
        "<h2>Load</h2><p>A round takes as long as its slowest rank, so even bars are good. Mirrors cost memory and "
        f"traffic: the fewer, the better. The largest part has {quality.edge_balance - 1:.1%} more edges "
        f"than the mean.</p>{figure(nodes, 'Nodes of each rank')}"
        f"{figure(edges, 'Edges of each rank')}"
        + table(["rank", "masters", "mirrors", "edges", "partners"], zip(names, *cells))
    )


def partners(figures: Figures) -> str:
    """Traffic between ranks."""
    traffic = figures.traffic
    most = traffic.max(initial=0)
    if not most:
        return "<h2>Traffic between ranks</h2><p>No two ranks share a node, so they send nothing.</p>"
    row, column = np.unravel_index(traffic.argmax(), traffic.shape)
    names = [f"{rank}" for rank in range(len(traffic))]
    return (
        "<h2>Traffic between ranks</h2><p>Bytes from rank to rank if every mirror that can be written or read is "
        f"synced once, with 4 bytes a node; a round that changes little sends less. The busiest pair is {row} to "
        f"{column} with {size(most)}; {(traffic > 0).sum():,} of {traffic.size - len(traffic):,} pairs "
        f"exchange messages.</p>"
        f"{figure(charts.matrix(traffic, size), 'Rows send, columns receive')}"
        + table(["from \\ to", *names], ([name, *map(size, sent)] for name, sent in zip(names, traffic)))
    )


def degrees(figures: Figures) -> str:
    """Replication by degree."""
    names = [span(each.lowest, each.highest) for each in figures.degrees]
    starts = [short(each.lowest) for each in figures.degrees]
    series = {"ranks": [each.replication for each in figures.degrees]}
    drawn = charts.bars(starts, series, "{:.3g}".format, "out-edges: from this number to below the next")
    rows = [(name, f"{each.nodes:,}", f"{each.replication:.2f}") for name, each in zip(names, figures.degrees)]
    return (
        "<h2>Replication by degree</h2><p>The mean number of proxies of a node, by the number of its out-edges. "
        "Hubs are on many ranks; a good policy keeps the many nodes of low degree on few.</p>"
        + figure(drawn, "Proxies of a node")
        + table(["out-edges", "nodes", "ranks"], rows)
    )


def phases(figures: Figures) -> str:
    """Seconds of the partitioning."""
    names = [*dict.fromkeys(name for each in figures.phases for name in each)]
    ranks = [f"rank {rank}" for rank in range(len(figures.phases))]
    series = {name: [each.get(name, 0.0) for each in figures.phases] for name in names}
    drawn = charts.bars(ranks, series, milliseconds, "time", lying=True)
    cells = ([rank, *(milliseconds(values[row]) for values in series.values())] for row, rank in enumerate(ranks))
    return (
        "<h2>Partitioning</h2><p>The phases of each rank, from the file to the plan of the sync, after compilation. A "
        "rank that finishes early waits inside a phase for others.</p>"
        + figure(drawn, "Phases of each rank")
        + table(["", *(name.replace("_", " ") for name in names)], cells)
    )


def runs(figures: Figures) -> str:
    """A section for each algorithm."""
    titles = (run.app if run.source is None else f"{run.app} from {run.source}" for run in figures.runs)
    return "".join(f"<h2>{escape(title)}</h2>{body_of(run)}" for title, run in zip(titles, figures.runs))


def body_of(run: Run) -> str:
    """Time, rounds, and what each rank did when."""
    waits = [band.shares[list(KINDS).index(WAIT)].mean() for band in run.bands]
    sent = f"{size(run.sent)} sent in messages" if run.sent else "no messages"
    facts = "".join(f", {name.replace('_', ' ')} {shown(value)}" for name, value in run.result.figures.items())
    text = (
        f"<p>{1000 * run.result.seconds:,.4g} ms, with the overhead of a timeline; "
        f"{counted(run.result.rounds, 'round')}, {sent}{escape(facts)}. "
        f"Ranks wait {np.mean(waits):.0%} of the time for others.</p>"
    )
    if 1 < len(run.round_ms) <= MOST_ROUNDS:
        names = [f"{number}" for number in range(1, len(run.round_ms) + 1)]
        text += figure(charts.bars(names, {"time": run.round_ms}, ms, "round"), "Time of each round")
        if any(run.round_bytes):
            text += figure(charts.bars(names, {"sent": run.round_bytes}, size, "round"), "Bytes sent in each round")
    inches = charts.WIDTH, 1 + min(0.6 * len(run.bands), 20)
    drawn = picture_of(pyplot_for("-o", "of a report"), run.bands, 0, 1000 * run.result.seconds, inches)
    return text + figure(drawn, "Timeline of each rank")


def figure(drawn: Any, caption: str) -> str:
    """A chart with its title, as a picture inside of the page."""
    png = io.BytesIO()
    drawn.savefig(png, dpi=160)
    pyplot_for("-o", "of a report").close(drawn)
    source = f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
    return f'<figure><figcaption>{escape(caption)}</figcaption><img alt="{escape(caption)}" src="{source}"></figure>'


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The numbers of a chart, to unfold."""
    top = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<details><summary>as a table</summary><div class="scroll"><table><tr>{top}</tr>{body}</table></div></details>'
    )


def shown(value: Any) -> str:
    """A cell: whole numbers with commas, others with four digits."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if float(value).is_integer() else f"{value:.4g}"


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def span(lowest: int, highest: int) -> str:
    """Some degrees."""
    return f"{short(lowest)}" if lowest == highest else f"{short(lowest)}–{short(highest)}"


def short(value: float) -> str:
    """A count of three digits or so.

    >>> short(17), short(4096), short(2_500_000)
    ('17', '4.1k', '2.5M')
    """
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}" if value >= 100 * unit else f"{value / unit:.2g}{name}"
    return f"{value:.3g}"


def size(value: float) -> str:
    """A number of bytes."""
    return f"{short(value).replace('k', ' k').replace('M', ' M').replace('G', ' G')}{'B' if value >= 1e3 else ' B'}"


def ms(value: float) -> str:
    """Milliseconds."""
    return f"{value:.3g} ms"


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds."""
    return ms(1000 * seconds)
