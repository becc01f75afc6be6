"""Seven algorithms on every graph file of a folder: ``mpirun -n 2 python -m scripts.bench.many FOLDER``.

What many small graphs take together, run for run by the same ranks: the table compares the numbers of ranks of which
there are rows, and says where their figures differ. Sources are the same for any number of ranks.
"""

import argparse
import contextlib
import importlib
import io
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from cusp.apps import harness
from cusp.errors import OptionError
from cusp.launch import parse_together, run_main
from cusp.runtime.mpi import MPI
from scripts.bench.shared.rows import ROWS, keep, kept, read_rows, table

APPS = ("bfs", "sssp", "cc", "pagerank", "kcore", "triangles", "betweenness")
FIGURES = ("source", "reached", "components", "largest", "degeneracy", "triangles")  # the same on any number of ranks
KEPT = ("app", "graph", "nodes", "edges", "policy", "ranks", "threads", "device", "transport", "trial", "seconds",
        "rounds", "commit", *FIGURES)  # fmt: skip
FEW = ["--sources", "4"]
SETTINGS = {"bfs": FEW, "sssp": FEW, "betweenness": FEW, "pagerank": ["--unweighted"]}


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run every app on every graph; rank 0 keeps the rows and prints the table. Collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policy", default="oec")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--rows", type=Path, default=ROWS / "many.jsonl", help="rows are appended here")
    options = parse_together(comm, parser, argv)
    graphs = comm.bcast(sorted(options.folder.glob("*.h5")))
    if not graphs:
        raise OptionError(f"{options.folder}: no graph file (*.h5) is there")
    for path in graphs:
        for app in APPS:
            rows = trials_of(app, path, options, comm)
            if comm.rank == 0:
                keep(rows, options.rows)
    if comm.rank == 0:
        print(compare(kept(options.rows, run_of), {path.stem for path in graphs}))
    return 0


def trials_of(app: str, path: Path, options: argparse.Namespace, comm: MPI.Intracomm) -> list[dict]:
    """What the harness's rows of one app on one graph say of its runs. Collective."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        rows = comm.bcast(str(Path(folder) / "rows.jsonl"))
        harness.main(
            importlib.import_module(f"cusp.apps.{app}").APP, comm,
            [str(path), "--policy", options.policy, "--device", options.device, "--trials", str(options.trials),
             "--rows", rows, *SETTINGS.get(app, [])],
        )  # fmt: skip
        found = read_rows(Path(rows)) if comm.rank == 0 else []
        return [{key: row[key] for key in KEPT if key in row} for row in found]


def run_of(row: dict) -> tuple:
    """What a trial measures: a later row about it replaces an earlier one."""
    return tuple(row[key] for key in ("app", "graph", "policy", "device", "ranks", "source", "trial"))


def compare(rows: list[dict], graphs: set[str]) -> str:
    """Milliseconds of each app on all graphs together, by the number of ranks: medians of trials, sums over sources."""
    times, figures = defaultdict(list), defaultdict(set)
    for row in rows:
        if Path(row["graph"]).stem not in graphs:
            continue
        times[row["app"], row["ranks"], row["graph"], row["source"]].append(row["seconds"] * 1e3)
        key = row["app"], row["graph"], row["source"]
        figures[key].add(tuple(row.get(name) for name in FIGURES))
    totals: dict[tuple[str, int], float] = defaultdict(float)
    for (app, ranks, *_), values in times.items():
        totals[app, ranks] += statistics.median(values)
        totals["all", ranks] += statistics.median(values)
    numbers = sorted({ranks for _, ranks in totals})
    lines = [[f"{len(graphs)} graphs, ms", *(f"{ranks} rank{'s' * (ranks > 1)}" for ranks in numbers)]]
    for app in (*APPS, "all"):
        lines.append(
            [
                app,
                *(
                    f"{totals[app, ranks]:.2f} ({totals[app, ranks] / totals[app, numbers[0]]:.2f})"
                    for ranks in numbers
                ),
            ]
        )
    different = sorted({key[:2] for key, found in figures.items() if len(found) > 1})
    return table(lines) + "".join(f"\ndifferent answers: {app} {graph}" for app, graph in different)


if __name__ == "__main__":
    run_main(main)
