"""Run every test at 1, 2, 3 and 4 ranks: ``python -m scripts.test [options of pytest]``."""

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from scripts import mpirun

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = ROOT / "tests" / "cudaemu" / "stand_in"
ON_DEVICE = """
gpu reductions transports build_gpu partition_gpu translate_rules bfs bursts undirected triangles cc kcore scc
communities sssp pagerank betweenness centrality closeness mis coloring msf similarity truss table detours samples ppr
former tree edge_operator priority tutorial widest verify paths maze semiring graph500 harness trace bench_gpu ladder
landmarks faults saved limits extreme_weights determinism mixed execution card real_graphs
""".split()  # tests/**/test_NAME.py to which the device matters
MOST_WORKERS = 8  # tests start programs of up to three ranks themselves


class SizeResult(NamedTuple):
    """The outcome of the tests at one number of ranks."""

    ranks: int
    counts: Counter[str]
    code: int
    seconds: float

    @property
    def failed(self) -> int:
        """Failed tests; a run that ended before it could count its failure has one."""
        return max(self.counts["failed"], int(self.code != 0))


def main() -> int:
    """Run pytest at each number of ranks and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="All other options go to pytest.")
    parser.add_argument("--ranks", default="1,2,3,4", help="numbers of ranks (default: %(default)s)")
    standing = "end the run if no test has finished for so many seconds (default: %(default)g)"
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS", help=standing)
    where = (
        "where the algorithms compute (default: cpu); gpu runs the tests for which it matters, unless files are "
        "named; without CuPy the kernels run on the CPU, slowly"
    )
    parser.add_argument("--device", default="cpu", metavar="DEVICE", help=where)
    options, pytest_args = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that nothing it started goes on
    if options.device == "gpu" and not any(names_tests(argument) for argument in pytest_args):
        pytest_args += [str(next((ROOT / "tests").rglob(f"test_{name}.py"))) for name in ON_DEVICE]
    results = []
    for ranks in map(int, options.ranks.split(",")):
        print(f"--- {ranks} rank{'s' * (ranks > 1)}", flush=True)
        shared = workers(ranks, pytest_args)
        results.append(run_size(ranks, [*shared, *pytest_args], options.limit, environment(options.device)))
    print(table(results))
    return int(any(result.failed for result in results))


def names_tests(argument: str) -> bool:
    """Whether an argument of pytest is a file or folder of tests, or one test in a file."""
    return not argument.startswith("-") and (ROOT / argument.split("::")[0]).exists()


def workers(ranks: int, pytest_args: list[str]) -> list[str]:
    """Options that make pytest divide the test files among several processes of one rank, one more than cores.

    Some tests wait for programs that they start. Not where one file is named, or without pytest-xdist. A test that ends
    its process, as one past its limit does, ends the run. A GPU has room for all.
    """
    cores = len(os.sched_getaffinity(0))
    number = min(cores + 1, MOST_WORKERS)
    one_file = sum(map(names_tests, pytest_args)) == 1
    if ranks > 1 or cores == 1 or one_file or importlib.util.find_spec("xdist") is None:
        return []
    return ["-n", str(number), "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]


def environment(device: str) -> dict[str, str]:
    """Variables that choose the device; without CuPy, a stand-in for it that runs kernels on the CPU.

    Tests start hundreds of processes: each would compile our modules again if Python could not keep them.
    """
    threads = os.environ.get("CUSP_THREADS", "1")  # several test processes and ranks share the cores as it is
    chosen = {"CUSP_DEVICE": device, "CUSP_THREADS": threads, "PYTHONDONTWRITEBYTECODE": ""}
    chosen["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"  # of thousands of errors that numba catches itself
    if "gpu" in device and importlib.util.find_spec("cupy") is None:
        chosen["CUDAEMU_DEVICES"] = os.environ.get("CUDAEMU_DEVICES", "4")  # a GPU for each rank
        chosen["PYTHONPATH"] = os.pathsep.join([str(STAND_IN), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return chosen


def run_size(ranks: int, pytest_args: list[str], limit: float, variables: dict[str, str]) -> SizeResult:
    """Run pytest on ``ranks`` ranks; its output goes straight to the terminal."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cusp-test-") as folder:
        outcomes = Path(folder) / "outcomes"
        outcomes.touch()
        try:
            code = mpirun.run(
                ranks,
                ["-m", "pytest", "--with-mpi", "-q", *pytest_args],
                timeout=limit,
                progress=outcomes,
                env={"CUSP_TEST_OUTCOMES": str(outcomes)} | variables,
                launcher=ranks > 1,
                cwd=ROOT,
                capture=False,
            ).returncode
        except subprocess.TimeoutExpired:
            running = ", ".join(unfinished(outcomes.read_text())) or "none"
            where = f"on {ranks} rank{'s' * (ranks > 1)}"
            print(
                f"error: no test has finished for {limit:g} s {where}; still running: {running}; "
                "--limit SECONDS waits longer",
                file=sys.stderr,
            )
            code = os.EX_TEMPFAIL
        counts = Counter(line.split("\t")[0] for line in outcomes.read_text().splitlines())
    return SizeResult(ranks, counts, code, time.monotonic() - started)


def unfinished(outcomes: str) -> list[str]:
    """The tests that have started and not finished, as tests/conftest.py has written."""
    lines = [line.split("\t", 1) for line in outcomes.splitlines()]
    names = {word: [name for what, name in lines if what == word] for word in ("started", "finished")}
    return [name for name in names["started"] if name not in names["finished"]]


def table(results: list[SizeResult]) -> str:
    """One line for each number of ranks, and the sums in the last."""
    lines = ["", "ranks  passed  failed  skipped  seconds"]
    for result in results:
        passed, skipped = result.counts["passed"], result.counts["skipped"]
        lines.append(f"{result.ranks:5}  {passed:6}  {result.failed:6}  {skipped:7}  {result.seconds:7.1f}")
    passed, skipped = (sum(result.counts[word] for result in results) for word in ("passed", "skipped"))
    failed = sum(result.failed for result in results)
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
