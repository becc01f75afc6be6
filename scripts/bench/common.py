"""What all benchmarks do: make a graph, run a program, keep rows."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from scripts import mpirun

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "benchmarks"
DATA = ROOT / "data"
LIMIT = 1200  # seconds for one command


def kronecker(folder: Path, scale: int) -> Path:
    """An RMAT graph in both directions without loops and parallel edges, with weights 1 to 255."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"kron{scale}.h5"
    if not path.exists():
        call(1, "scripts.generate", "rmat", "--scale", str(scale), "--edge-factor", "16", "--symmetrize",
             "--drop-loops", "--dedup", "--weights", "1:255", "--output", str(path))  # fmt: skip
    return path


def call(ranks: int, module: str, *args: str) -> str:
    """Run one of our programs and return its output; what it says is shown if it fails."""
    print(f"  {module} {' '.join(args[:6])} ... on {ranks} rank(s)", file=sys.stderr)
    done = mpirun.run(ranks, ["-m", module, *args], timeout=LIMIT, cwd=ROOT, launcher=ranks > 1)
    if done.returncode:
        sys.exit(f"{module} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def keep(rows: list[dict], path: Path) -> None:
    """Append the rows, with the machine that they are from."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        for row in rows:
            file.write(json.dumps(row | {"hardware": hardware()}) + "\n")


def kept(path: Path, key: Callable[[dict], object]) -> list[dict]:
    """Rows of a file in the order of their first appearance; of those with the same key, the last one counts."""
    if not path.exists():
        sys.exit(f"{path} does not exist; measure first")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return list({key(row): row for row in rows}.values())


def hardware() -> str:
    """Model and number of the cores."""
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"
