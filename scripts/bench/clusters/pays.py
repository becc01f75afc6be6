"""Does a smaller cut pay? Algorithms by policy and number of ranks, on one host or on hosts with limited links.

python -m scripts.bench pays --graphs kron19,road1,cnr-2000 --ranks 4,8,16     # ranks that share memory
python -m scripts.bench pays --graphs kron17,cnr-2000 --rate 1gbit             # each rank on a host of its own
python -m scripts.bench pays --show                                            # the table, and docs/pictures/pays.svg

Milliseconds of a run (PageRank: 20 iterations), see algorithms; beside them the policy that ``--policy auto`` takes,
and its time over that of the best of its candidates. Two equal partitions differ, too, by where their arrays lie: so
all policies take turns, several times, each time with a partition of its own, and the median counts. Hosts on one
machine share its cores, see scripts.hosts.
"""

import argparse
import os
import statistics
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from scripts.bench.shared.graphs import weighted
from scripts.bench.shared.pictures import picture
from scripts.bench.shared.rows import (
    ROOT,
    add_file_options,
    add_run_options,
    algorithm_rows,
    call,
    call_on_hosts,
    keep,
    kept,
    table,
)

PICTURE = ROOT / "docs" / "pictures" / "pays.svg"
APPS = "bfs,sssp,cc,pagerank"
LIMIT = 900  # seconds of all policies on one graph and number of ranks


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs, ranks, policies, links."""
    parser.add_argument("--graphs", default="kron19,road1,cnr-2000", help="with commas (default: %(default)s)")
    parser.add_argument("--ranks", default="4,8,16", help="with commas (default: %(default)s)")
    add_run_options(parser, "oec,iec,cvc,hvc,dbh,2ps,hep", APPS)
    parser.add_argument("--rate", help="give each rank a host of its own, with a link of this rate, such as 1gbit")
    parser.add_argument("--repeats", type=int, default=3, help="partitions with each policy (default: 3)")
    add_file_options(parser, "pays", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table; or show what is kept."""
    for name in [] if options.show else options.graphs.split(","):
        graph = weighted(options.data, name)
        for ranks in map(int, options.ranks.split(",")):
            keep(predicted(measure(graph, ranks, options), graph, options), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], row["app"], row["ranks"], row["link"], row["policy"]))
    print(shown(rows))
    if options.show:
        draw(PICTURE, rows)


def measure(graph: Path, ranks: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of all policies and algorithms on so many ranks: of each the medians, and all that they are of."""
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    start = partial(call_on_hosts, ranks, options.rate, ranks) if options.rate else partial(call, ranks)
    policies = ",".join([options.policies] * options.repeats)
    repeats: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    found = algorithm_rows(partial(start, limit=LIMIT), graph, threads, options, "--policies", policies)
    for row in (row for row in found if row["app"] != "partition"):
        repeats[row["policy"], row["app"]].append(row | {"link": options.rate})
    taken = ((same[0], [row["ms"] for row in same]) for same in repeats.values())
    return [row | {"ms": statistics.median(times), "all_ms": times} for row, times in taken]


def predicted(rows: list[dict[str, Any]], graph: Path, options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """The rows with the time that ``--policy auto`` predicts."""
    from cusp.estimates.cost import Cluster, predict
    from cusp.input.edge_slice import read_slice
    from cusp.policies import load_policy
    from cusp.program.choose import sampled_quality
    from cusp.program.cli import num_rate
    from cusp.runtime.mpi import MPI

    edges, cores = read_slice(str(graph), MPI.COMM_SELF, weights=False), len(os.sched_getaffinity(0))
    qualities: dict[str, Any] = {}
    for row in rows:
        parts, policy = row["ranks"], row["policy"]
        hosts = (
            Cluster(parts, max(1, cores // parts), num_rate(options.rate)) if options.rate else Cluster(1, cores, 1.0)
        )
        if policy not in qualities:
            qualities[policy] = sampled_quality(edges, load_policy(policy), parts, "edges", MPI.COMM_SELF)
        yield row | {"predicted_ms": 1e3 * predict(qualities[policy], row["app"], hosts).seconds}


def cells(rows: list[dict[str, Any]]) -> dict[tuple, dict[str, dict[str, Any]]]:
    """Rows by policy, for each graph, number of ranks, link and algorithm."""
    found: dict[tuple, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        found[row["graph"], row["ranks"], row["link"], row["app"]][row["policy"]] = row
    return found


def choice(of_cell: dict[str, dict[str, Any]]) -> tuple[str, float]:
    """What ``--policy auto`` takes, and its time over that of the best of its candidates."""
    from cusp.program.choose import CANDIDATES, best_of

    known = [name for name in CANDIDATES if name in of_cell]
    taken = known[best_of([of_cell[name]["predicted_ms"] for name in known])]
    return taken, of_cell[taken]["ms"] / min(of_cell[name]["ms"] for name in known)


def shown(rows: list[dict[str, Any]]) -> str:
    """A line for each cell: its milliseconds by policy, what would be taken, and how near the best that is."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    lines, near = [["graph", "ranks", "link", "app", *policies, "auto", "over best"]], []
    for (graph, ranks, link, app), of_cell in cells(rows).items():
        taken, over = choice(of_cell)
        near.append(over <= 1.1)
        times = [f"{of_cell[policy]['ms']:,.3g}" if policy in of_cell else "" for policy in policies]
        lines.append([graph, str(ranks), link or "memory", app, *times, taken, f"{over:.2f}"])
    return f"{table(lines)}\n\nauto is within 10 % of the best of its candidates in {sum(near)} of {len(near)} cells"


def draw(path: Path, rows: list[dict[str, Any]]) -> None:
    """Time over that of oec, by policy: a panel for each graph and link, bars for algorithms and numbers of ranks."""
    panels = list(dict.fromkeys((row["graph"], row["link"]) for row in rows))
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    with picture(path, "pays", len(panels), 1, figsize=(11, 2.1 * len(panels))) as (drawn, axes):
        for axis, panel in zip(axes.flat, panels):
            some = {key: value for key, value in cells(rows).items() if (key[0], key[2]) == panel and "oec" in value}
            for place, policy in enumerate(policies):
                over = [cell[policy]["ms"] / cell["oec"]["ms"] if policy in cell else 0 for cell in some.values()]
                left = [at + place / (len(policies) + 1.5) for at in range(len(some))]
                axis.bar(left, over, 1 / (len(policies) + 1.5), align="edge", color=f"C{place}", label=policy)
            axis.axhline(1, color="#999999", linewidth=0.8)
            axis.set_xticks([at + 0.4 for at in range(len(some))], [f"{key[3]} {key[1]}" for key in some], fontsize=8)
            axis.set(title=f"{panel[0]}, {panel[1] or 'one host'}", ylim=(0, 3), ylabel="time / that of oec")
            axis.spines[["top", "right"]].set_visible(False)
        drawn.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
