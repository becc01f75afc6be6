"""Rows: from the programs that measure, into benchmarks/, back out of it, and as a table."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts import mpirun

ROOT = Path(__file__).resolve().parents[3]
ROWS = ROOT / "benchmarks"
DATA = ROOT / "data"
LIMIT = 1200  # seconds for one command


def absolute(text: str) -> Path:
    """A path that is the same from any folder: the programs run in that of their checkout."""
    return Path(text).resolve()


def add_file_options(parser: argparse.ArgumentParser, name: str, show: bool = False) -> None:
    """Where the graphs and the rows of a benchmark are; ``show``: its table can be printed from the rows alone."""
    parser.add_argument("--data", type=absolute, default=DATA, help="folder for generated graphs (default: data/)")
    default = ROWS / f"{name}.jsonl"
    parser.add_argument("--rows", type=Path, default=default, help=f"append to this (default: benchmarks/{name}.jsonl)")
    if show:
        parser.add_argument("--show", action="store_true", help="print the rows that are kept, measure nothing")


def add_run_options(parser: argparse.ArgumentParser, policies: str, apps: str) -> None:
    """What :func:`algorithm_rows` runs, on partitions by these policies unless others are given."""
    parser.add_argument("--policies", default=policies, help="with commas (default: %(default)s)")
    parser.add_argument("--apps", default=apps, help="with commas (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=5, help="of each run, whose median counts (default: 5)")
    parser.add_argument("--sources", type=int, default=3, help="of each search (default: 3)")


def call(ranks: int, module: str, *args: str | Path, tree: Path = ROOT, limit: float = LIMIT) -> str:
    """Run one of our programs, as it is in the checkout ``tree``, and return its output; exit if it fails.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer than ``limit`` seconds.
    """
    texts = [str(arg) for arg in args]
    where = "" if tree == ROOT else f" in {tree}"
    print(f"  {module} {' '.join(texts[:6])} ... on {ranks} rank(s){where}", file=sys.stderr)
    done = mpirun.run(ranks, ["-m", module, *texts], timeout=limit, cwd=tree, launcher=ranks > 1)
    if done.returncode:
        sys.exit(f"{module} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def seconds_of(command: Iterable[object], variables: Mapping[str, str], folder: Path = ROOT) -> float:
    """Wall seconds of a process; exit if it fails."""
    words, began = [*map(str, command)], time.perf_counter()
    done = subprocess.run(words, env=os.environ | variables, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - began


def call_on_hosts(hosts: int, rate: str, ranks: int, module: str, *args: str | Path, limit: float = LIMIT) -> None:
    """The same on hosts of :mod:`scripts.hosts` with links of a rate, which share the ranks; its output is shown.

    Raises
    ------
    subprocess.CalledProcessError, subprocess.TimeoutExpired
    """
    words = ["-m", "scripts.hosts", str(hosts), "--rate", rate, "-n", str(ranks), "--", "-m", module, *map(str, args)]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, timeout=limit, env=mpirun.environment())


def written(option: str, run: Callable[..., object], *args: Any, **named: Any) -> str:
    """What a program writes into the file that an option of it names; ``run`` is :func:`call` or the like."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "written"
        run(*args, option, path, **named)
        return path.read_text()


def algorithm_rows(
    run: Callable[..., object], graph: Path, threads: int, options: argparse.Namespace, *words: str
) -> list[dict]:
    """Rows of ``scripts.bench.algorithms`` on CPUs, of partitions too; ``run(module, *words)`` starts it."""
    words += ("--device", "cpu", "--threads", str(threads), "--partitions", "0", "--apps", options.apps)
    words += ("--set", "iterations=20,tolerance=0", "--trials", str(options.trials), "--sources", str(options.sources))
    return rows_in(written("--rows", run, "scripts.bench.algorithms", graph, *words))


def settings_of(app: str, text: str) -> dict[str, Any]:
    """Of ``NAME=VALUE,...``, the options that an app knows, as keywords of its function."""
    from cusp.apps.library import app_of
    from cusp.apps.run.keywords import Keywords

    known = {action.dest for action in Keywords(app, app_of(app).add_options).actions}
    pairs = (pair.split("=", 1) for pair in text.split(",") if pair)
    return {name: {"True": True, "False": False}.get(value, value) for name, value in pairs if name in known}


def rows_in(text: str) -> list[dict]:
    """The rows in what a file says."""
    return [json.loads(line) for line in text.splitlines()]


def read_rows(path: Path) -> list[dict]:
    """All rows of a file."""
    return rows_in(path.read_text())


def keep(rows: Iterable[dict], path: Path) -> None:
    """Append the rows, with the machine that they are from."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(row | {"hardware": hardware()}) + "\n" for row in rows)


def kept(path: Path, key: Callable[[dict], object]) -> list[dict]:
    """Rows of a file in the order of their first appearance; of those with the same key, the last one counts."""
    if not path.exists():
        sys.exit(f"{path} does not exist; measure first")
    return list({key(row): row for row in read_rows(path)}.values())


def table(lines: Sequence[Sequence[str]], markdown: bool = False) -> str:
    """Lines of cells, the head first: in columns, the first one aligned to the left; or as markdown."""
    if markdown:
        head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
        return "\n".join([head, "|---" * len(lines[0]) + "|", *body])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ([f"{cell:>{width}}" for cell, width in zip(cells, widths)] for cells in lines)
    return "\n".join("  ".join([f"{line[0].strip():<{widths[0]}}", *line[1:]]) for line in shown)


def hardware() -> str:
    """Model and number of the cores."""
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"


def gpu_name() -> str:
    """What the driver calls the GPU."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"
