"""Minutes from an empty folder to the right answer about own data, by what the data come in.

python -m scripts.bench first-hour

Installs as `make run` does, into an environment and a cache of compiled code of its own; then, for each kind of data,
what this kind needs besides, and runs twice what a newcomer types. The answer is compared with that of NetworkX, by
name. The minutes are those of the installation, of the first answer, which waits for compilation, and of the second.
"""

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cusp.apps.run.output import commit
from scripts.bench.shared.rows import ROOT, add_file_options, keep, seconds_of, table

SCRIPT = """import {library}
from cusp import partition_graph, sssp
graph = partition_graph({data})
sssp(graph, source={source!r}).to_csv("answer.csv")"""
COMMAND = "cusp sssp {data} --source '{source}' --output answer.csv"


class Kind(NamedTuple):
    """What data come in: what is typed for an answer, which library it needs, and what calls the nodes."""

    title: str
    data: str
    library: str = ""  # that the kind itself needs
    script: bool = False
    ids: str = "names"


KINDS = (
    Kind("CSV, names", "trips.csv"),
    Kind("CSV, whole numbers with gaps", "gaps.csv", ids="gaps"),
    Kind("Parquet", "trips.parquet"),
    Kind("pandas", 'pandas.read_csv("trips.csv")', "pandas", script=True),
    Kind("SciPy", 'scipy.sparse.load_npz("trips.npz")', "scipy.sparse", script=True, ids="places"),
    Kind("NetworkX", 'networkx.read_graphml("trips.graphml"), columns="km"', "networkx", script=True),
    Kind("GraphML", "trips.graphml --columns km", "networkx"),
)
IDS: dict[str, Callable[[int], str | int]] = {
    "names": "town {}".format,
    "gaps": lambda node: 100_234 + 543 * node,
    "places": int,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size of the data."""
    parser.add_argument("--nodes", type=int, default=1000, help="(default: 1000)")
    add_file_options(parser, "first-hour")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        expected = {ids: _write_data(home, ids, options.nodes) for ids in IDS}
        variables = os.environ | {"PATH": f"{home / 'env' / 'bin'}:{os.environ['PATH']}", "CUSP_CACHE": folder}
        install = _minutes(home, variables, f"{sys.executable} -m venv env && pip install -q -e '{ROOT}[mpich]'")
        rows, extra = [], {"": 0.0}  # minutes by the package that a kind needs
        for kind in KINDS:
            package = kind.library.partition(".")[0]
            if package not in extra:
                extra[package] = _minutes(home, variables, f"pip install -q {package}")
            source = IDS[kind.ids](0)
            line = (SCRIPT if kind.script else COMMAND).format(data=kind.data, source=source, library=kind.library)
            if kind.script:
                (home / "first.py").write_text(line)
            answers = []
            for _ in range(2):
                (home / "answer.csv").unlink(missing_ok=True)
                answers.append(_minutes(home, variables, "python first.py" if kind.script else line))
                _compare(home / "answer.csv", expected[kind.ids], kind.title)
            minutes = {"install": install + extra[package], "first": answers[0], "second": answers[1]}
            rows.append({"kind": kind.title, **minutes, "commit": commit()})
            keep(rows[-1:], options.rows)
    cells = [[str(row["kind"])] + [f"{row[name]:.2f}" for name in ("install", "first", "second")] for row in rows]
    print(table([["own data", "install", "first", "second"], *cells]))


def _minutes(home: Path, variables: dict[str, str], line: str) -> float:
    """Run a line of a shell; exit if it fails."""
    return seconds_of(["bash", "-euc", line], variables, home) / 60


def _write_data(home: Path, ids: str, nodes: int) -> dict[str, float]:
    """Write the data with these ids; the distances from the first node, by name, as NetworkX finds them."""
    import networkx
    import pandas
    import scipy.sparse

    graph = networkx.gnp_random_graph(nodes, 4 / nodes, seed=5, directed=True)
    for source, target, data in graph.edges(data=True):
        data["km"] = (source * 31 + target * 17) % 97 + 1
    named = networkx.relabel_nodes(graph, IDS[ids])
    edges = pandas.DataFrame([(*edge, data["km"]) for *edge, data in named.edges(data=True)])
    edges = edges.set_axis(["origin", "destination", "km"], axis=1)
    edges.to_csv(home / f"{'trips' if ids == 'names' else ids}.csv", index=False)
    if ids == "names":
        edges.to_parquet(home / "trips.parquet")
        networkx.write_graphml(named, home / "trips.graphml")
    elif ids == "places":
        scipy.sparse.save_npz(home / "trips.npz", networkx.to_scipy_sparse_array(graph, weight="km", format="csr"))
    found = networkx.single_source_dijkstra_path_length(named, IDS[ids](0), weight="km")
    return {str(node): float(distance) for node, distance in found.items()}


def _compare(answer: Path, expected: dict[str, float], title: str) -> None:
    """Exit unless a table of distances is the expected one, by name; negative and infinite ones are of no path."""
    with answer.open(newline="") as file:
        lines = [(row["node"], float(row["distance"] or -1)) for row in csv.DictReader(file)]
    found = {node: distance for node, distance in lines if 0 <= distance < float("inf")}
    if found != expected:
        sys.exit(f"{title}: {len(found):,} distances differ from the {len(expected):,} of NetworkX")
