"""Replication, balance and seconds of every policy at several numbers of parts, and of METIS.

python -m scripts.bench quality                                # all: real graphs and kron20
python -m scripts.bench quality --show --markdown --graphs kron20,cnr-2000

``cusp compare`` asks the rules on --ranks ranks, for any number of parts. A rule with state (Fennel, ldg, hdrf) sees
the choices of other ranks late, so it is a little worse on more ranks. METIS, if pymetis is installed, holds the
symmetric graph in memory and balances out-degrees; its result is measured as a node map, with the edge rule source.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from cusp.apps.harness import commit
from cusp.policies.policy import MODULES, POLICIES
from scripts.bench.shared.graphs import FILES, folder, graph_named, published
from scripts.bench.shared.rows import add_file_options, call, keep, kept, table, written

ONCE = [*(name for name in POLICIES if name != "map"), *MODULES]
AGAIN = ["fec", "ldg", "2ps"]  # policies that gain by a second look


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to measure."""
    known = [*FILES, "kron20"]
    parser.add_argument(
        "--graphs", type=lambda text: text.split(","), default=known, help=f"default: {','.join(known)}"
    )
    parser.add_argument("--parts", type=numbers, default=[4, 16, 64], help="default: 4,16,64")
    parser.add_argument(
        "--policies", type=lambda text: text.split(","), default=ONCE, help="with commas (default: all)"
    )
    parser.add_argument("--passes", type=int, default=5, help="of policies that gain by them (default: 5)")
    parser.add_argument("--ranks", type=int, default=2, help="MPI ranks that evaluate the rules (default: 2)")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/policies.md has it")
    add_file_options(parser, "quality", show=True)


def numbers(text: str) -> list[int]:
    """Whole numbers with commas in between."""
    return [int(number) for number in text.split(",")]


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print a table."""
    for name in [] if options.show else options.graphs:
        with tempfile.TemporaryDirectory() as target:
            keep(measure(name, Path(target), options), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], *line_of(row), row["parts"]))
    graphs = [name for name in options.graphs if any(row["graph"] == name for row in rows)]
    if not options.markdown:
        print("\nreplication factor and balance of edges (largest part / mean), then seconds for the most parts\n")
    print(table(lines(rows, graphs, options.parts), options.markdown))


def measure(name: str, target: Path, options: argparse.Namespace) -> list[dict]:
    """Rows of one graph; ``target`` is a folder for graph files and node maps."""
    if name in FILES:
        made = published(name, target)
        if made is None:
            print(f"  {name} is left out: {folder() / FILES[name][0]} is not there", file=sys.stderr)
            return []
        graph, symmetric = made
    else:
        graph = symmetric = graph_named(options.data, name)
    base = {"graph": name, "ranks": options.ranks, "commit": commit(), "offline": None}
    rows = compare(graph, options.policies, options.parts, options.ranks, base | {"passes": 1})
    if again := [name for name in AGAIN if name in options.policies]:
        rows += compare(graph, again, options.parts, options.ranks, base | {"passes": options.passes})
    if importlib.util.find_spec("pymetis") is None:
        print("  METIS is left out: pip install pymetis", file=sys.stderr)
        return rows
    for parts in options.parts:
        node_map = target / f"{parts}.npy"
        seconds = metis(symmetric, graph, parts, node_map)
        about = base | {"passes": 1, "offline": "METIS"}
        [row] = compare(graph, ["map"], [parts], options.ranks, about, "--node-map", str(node_map))
        rows.append(row | {"seconds": seconds})
    return rows


def compare(graph: Path, policies: list[str], parts: list[int], ranks: int, about: dict, *more: str) -> list[dict]:
    """Rows of ``cusp compare``."""
    words = ("--policies", ",".join(policies), "--ranks", ",".join(map(str, parts)), "--passes", str(about["passes"]))
    return [about | row for row in json.loads(written("--json", call, ranks, "cusp", "compare", graph, *words, *more))]


def metis(symmetric: Path, graph: Path, parts: int, target: Path) -> float:
    """Write the part of each node, by METIS, k-way; the seconds it took.

    The load of a node is its out-degree in ``graph``, at least 1, so that edges are balanced under the rule source.
    """
    import pymetis

    with h5py.File(symmetric) as file:
        adjacency = pymetis.CSRAdjacency(file["indptr"][...].astype(np.int64), file["indices"][...].astype(np.int64))
    with h5py.File(graph) as file:
        loads = np.maximum(1, np.diff(file["indptr"][...].astype(np.int64)))
    began = time.perf_counter()
    _, assigned = pymetis.part_graph(parts, adjacency, vweights=loads)
    seconds = time.perf_counter() - began
    np.save(target, np.asarray(assigned, np.int32))
    return seconds


def lines(rows: list[dict], graphs: list[str], parts: list[int]) -> list[list[str]]:
    """The head, and a line per policy."""
    cells = {(row["graph"], row["parts"], *line_of(row)): row for row in rows if row["graph"] in graphs}
    body = []
    for policy in dict.fromkeys(key[2:] for key in cells):
        shown = [cell(cells.get((name, number, *policy))) for name in graphs for number in parts]
        last = [cells.get((name, parts[-1], *policy), {}).get("seconds") for name in graphs]
        body.append([label(*policy), *shown, *("" if seconds is None else f"{seconds:.2f}" for seconds in last)])
    heads = [f"{name}, {number} parts" if number == parts[0] else str(number) for name in graphs for number in parts]
    return [["policy", *heads, *(f"s, {name}" for name in graphs)], *body]


def line_of(row: dict) -> tuple[str | None, str, int]:
    """Which line of the table a row belongs to."""
    return row["offline"], row["policy"], row["passes"]


def label(maker: str | None, policy: str, passes: int) -> str:
    """The name of a line."""
    return maker or policy + (f", {passes} passes" if passes > 1 else "")


def cell(row: dict | None) -> str:
    """Replication factor and balance of edges; or why there are none."""
    if row is None:
        return ""
    if "over_limit" in row:  # rows of an earlier version, which ended what took longer
        return f"over {row['over_limit']:g} s"
    return f"{row['replication']:.2f} {row['edge_balance']:.2f}"
