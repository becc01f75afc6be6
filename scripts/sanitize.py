"""NVIDIA's compute-sanitizer over small runs on a GPU: ``python -m scripts.sanitize``.

``memcheck`` finds loads and stores outside of all arrays, ``racecheck`` finds hazards in shared memory. The runs are
BFS in all directions and SSSP, whose answers are checked too, and a partitioning, on one rank and on two. Without the
tool nothing is run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import mpirun

ROOT = Path(__file__).resolve().parent.parent
# CuPy's pool would hand out parts of large blocks, whose ends memcheck cannot know.
PROGRAM = """
import runpy, sys
import cusp, cupy
cupy.cuda.set_allocator(None)
sys.argv.pop(0)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
RUNS = (
    ("apps.bfs", "{graph}", "--verify", "--parents"),
    ("apps.bfs", "{graph}", "--verify", "--direction", "push"),
    ("apps.bfs", "{graph}", "--verify", "--direction", "pull"),
    ("apps.sssp", "{graph}", "--verify"),
    ("cusp", "{graph}"),
)


def main() -> int:
    """Run everything under every tool; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="memcheck,racecheck", help="default: %(default)s")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: %(default)s)")
    parser.add_argument("--scale", type=int, default=8, help="2^SCALE nodes (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a run")
    options = parser.parse_args()
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if sanitizer is None:
        print("compute-sanitizer is not in PATH: nothing was checked")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        graph = str(Path(folder) / "graph.h5")
        make = ("scripts.generate", "rmat", "--scale", str(options.scale), "--weights", "1:9", "--output", graph)
        subprocess.run([sys.executable, "-m", *make], cwd=ROOT, check=True)
        for tool in options.tools.split(","):
            for ranks in map(int, options.ranks.split(",")):
                for run in RUNS:
                    arguments = [argument.format(graph=graph) for argument in run] + ["--policy", "cvc"]
                    failed += not check(sanitizer, tool, ranks, arguments, options.limit)
    print(f"{failed} runs failed")
    return int(failed > 0)


def check(sanitizer: str, tool: str, ranks: int, arguments: list[str], limit: float) -> bool:
    """One run under one tool; its output is shown if anything was found."""
    under = [sanitizer, "--tool", tool, "--error-exitcode", "9"]
    variables = {"CUSP_DEVICE": "gpu", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    print(f"{tool}, {ranks} ranks: {' '.join([arguments[0], *arguments[2:]])}", end=" ", flush=True)
    try:
        done = mpirun.run(ranks, ["-c", PROGRAM, *arguments], timeout=limit, env=variables, cwd=ROOT, under=under)
    except subprocess.TimeoutExpired:
        print(f"took longer than {limit:g} s")
        return False
    print("nothing found" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
