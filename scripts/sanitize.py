"""Sanitizers over small runs of the GPU code: ``python -m scripts.sanitize``.

On a GPU, NVIDIA's compute-sanitizer: ``memcheck`` finds loads and stores outside of all arrays, ``racecheck`` finds
hazards in shared memory, ``synccheck`` barriers that not all threads reach. Without the tool nothing is run.

With ``--stand-in`` a CPU runs the kernels (tests/cudaemu), under g++'s sanitizers of addresses and of undefined
behaviour: shifts and sums that overflow, addresses that are not aligned, floats that no integer can hold. A run ends at
the first.

The runs are BFS in all directions and SSSP, whose answers are checked too, and a partitioning, on one rank and on two;
with ``--tests`` also the tests of the GPU code.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import mpirun
from scripts.test import ROOT, STAND_IN

TESTS = ("gpu", "build_gpu", "partition_gpu", "translate_rules", "limits")  # as BY_CPU of the Makefile
LIBRARIES = ("libasan.so", "libubsan.so")
# CuPy's pool would hand out parts of large blocks, whose ends memcheck cannot know.
PROGRAM = """
import runpy, sys
import cusp, cupy
cupy.cuda.set_allocator(None)
sys.argv.pop(0)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
RUNS = (
    ("cusp.apps.bfs", "{graph}", "--verify", "--parents"),
    ("cusp.apps.bfs", "{graph}", "--verify", "--direction", "push"),
    ("cusp.apps.bfs", "{graph}", "--verify", "--direction", "pull"),
    ("cusp.apps.sssp", "{graph}", "--verify"),
    ("cusp.apps.kcore", "{graph}", "--verify"),
    ("cusp", "{graph}"),
    ("cusp.apps.cc", "{graph}", "--verify"),
    ("cusp.apps.communities", "{graph}", "--verify"),
    ("cusp.apps.triangles", "{graph}", "--verify"),
    ("cusp.apps.coloring", "{graph}", "--verify"),
    ("cusp.apps.msf", "{graph}", "--verify"),
    ("cusp.apps.betweenness", "{graph}", "--sources", "4", "--verify"),
    ("cusp.apps.pagerank", "{graph}", "--verify"),
    ("cusp.apps.pagerank", "{graph}", "--unweighted", "--verify"),
)


def main() -> int:
    """Run everything under every tool; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="memcheck,racecheck,synccheck", help="on a GPU (default: %(default)s)")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: %(default)s)")
    parser.add_argument("--scale", type=int, default=8, help="2^SCALE nodes (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a run")
    parser.add_argument("--stand-in", action="store_true", help="on the CPU, under g++'s sanitizers")
    parser.add_argument("--runs", type=int, default=len(RUNS), help="only the first of the runs")
    parser.add_argument("--tests", action="store_true", help="the tests of the GPU code too; only with --stand-in")
    options = parser.parse_args()
    if options.tests and not options.stand_in:
        parser.error("--tests: only with --stand-in")
    ranks = [*map(int, options.ranks.split(","))]
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if options.stand_in:
        tools: dict[str, list[str]] = {"g++": under_sanitizers()}
    elif sanitizer is None:
        print("compute-sanitizer is not in PATH: nothing was checked")
        return 0
    else:
        # NCCL asks for kernels that a GPU does not have, and copes; CuPy checks what every call of its own returns.
        say = ("--error-exitcode", "9", "--report-api-errors", "no")
        tools = {tool: [sanitizer, "--tool", tool, *say] for tool in options.tools.split(",")}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        graph = str(Path(folder) / "graph.h5")
        make = ("cusp.commands.generate", "rmat", "--scale", str(options.scale), "--weights", "1:9", "--output", graph)
        subprocess.run([sys.executable, "-m", *make], cwd=ROOT, check=True)
        for tool, under in tools.items():
            for number in ranks:
                for run in RUNS[: options.runs]:
                    arguments = [argument.format(graph=graph) for argument in run] + ["--policy", "cvc"]
                    failed += not check(tool, under, number, arguments, options.limit)
    if options.tests:
        files = [str(next((ROOT / "tests").rglob(f"test_{name}.py"))) for name in TESTS]
        run_tests = [sys.executable, "-m", "scripts.test", "--device", "gpu", "--ranks", options.ranks, "-s", *files]
        limit = ["--limit", str(10 * options.limit)]
        failed += subprocess.run([*tools["g++"], *run_tests, *limit], cwd=ROOT).returncode != 0
    print(f"{failed} runs failed")
    return int(failed > 0)


def under_sanitizers() -> list[str]:
    """What starts a Python whose kernels the stand-in compiles with g++'s sanitizers; their libraries come first."""
    compiler = os.environ.get("CXX", "g++")
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in LIBRARIES
    ]
    missing = [name for name, path in zip(LIBRARIES, found) if not os.path.isabs(path)]
    if missing:
        sys.exit(f"error: {compiler} has no {', '.join(missing)}: install its sanitizers, or set CXX to another g++")
    variables = {
        "LD_PRELOAD": ":".join(str(Path(path).resolve()) for path in found),
        "CUDAEMU_SANITIZE": "1",
        "ASAN_OPTIONS": "detect_leaks=0:use_sigaltstack=0:quarantine_size_mb=16",  # Python keeps what it has
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join([str(STAND_IN), str(ROOT), *sys.path[1:]]),
    }
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def check(tool: str, under: list[str], ranks: int, arguments: list[str], limit: float) -> bool:
    """One run under one tool; its output is shown if anything was found."""
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
