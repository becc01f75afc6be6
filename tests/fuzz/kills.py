"""Kill and interrupt programs at random moments: ``python -m tests.fuzz.kills --times 60``.

Each program is started with one to three ranks. At a random moment, from its first millisecond on, one of its ranks is
killed, or all of it gets the SIGINT of a terminal. It has to end soon, without a traceback, and the next start has to
remove all that was left. Only before Python imports ``cusp`` does a signal do what it does to any Python.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cusp.runtime import leftovers
from scripts import mpirun

PATIENCE = 5.0  # seconds in which all ranks have to end
MARK = "CUSP_KILLS"
TRACES = re.compile(r"Traceback|Exception ignored|Fatal Python error|Segmentation")
SHARED_MEMORY = Path("/dev/shm")


def programs(folder: Path) -> dict[str, list[str]]:
    """What is started, by name."""
    graph, edges = str(folder / "graph.h5"), str(folder / "edges.txt")
    made = folder / "made"
    return {
        "partition": ["cusp", graph, "--policy", "cvc", "--json", f"{made}/figures.json", "--export", "distdgl",
                      "--export-to", f"{made}/masters"],
        "save": ["cusp", graph, "--policy", "hvc", "--save", f"{made}/parts"],
        "convert": ["scripts.convert", edges, "--symmetrize", "--output", f"{made}/converted.h5"],
        "bfs": ["apps.bfs", graph, "--trials", "20", "--output", f"{made}/hops.h5", "--rows", f"{made}/rows.jsonl"],
    }  # fmt: skip


def main() -> int:
    """Start, kill, look, and show a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__.split("\n\n")[0])
    parser.add_argument("--times", type=int, default=60, help="of each kind (default: 60)")
    parser.add_argument("--kinds", default="KILL,INT", help="signals (default: KILL,INT)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    before = set(os.listdir(SHARED_MEMORY))
    table: Counter[tuple] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for below in ("made", "scratch"):
            (folder / below).mkdir()
        lengths = prepare(folder)
        for kind in options.kinds.split(","):
            for number in range(options.times):
                program, ranks = draw.choice(list(lengths)), draw.randint(1, 3)
                delay = draw.uniform(0.001, 0.9 * lengths[program])
                outcome, told, errors = one(folder, program, ranks, kind, delay, draw)
                table[kind, program, ranks, outcome] += 1
                if told:
                    failures.append(f"{kind} {number}: {program}, {ranks} ranks, after {delay:.3f} s: {told}\n{errors}")
        for failure in failures:
            print(failure)
        for line, count in sorted(table.items()):
            print(*line, count, sep="  ")
        left = what_is_left(folder, before)
    print(f"{len(failures)} failures; left after the next start: {left or 'nothing'}")
    return int(bool(failures or left))


def prepare(folder: Path) -> dict[str, float]:
    """Make the inputs, and find out how long each program takes."""
    run("scripts.generate", "rmat", "--scale", "15", "--symmetrize", "--output", str(folder / "graph.h5"))
    draw = random.Random(1)
    lines = (f"{draw.randrange(20000)} {draw.randrange(20000)}\n" for _ in range(300_000))
    (folder / "edges.txt").write_text("".join(lines))
    lengths = {}
    for name, arguments in programs(folder).items():
        for _ in range(2):
            began = time.monotonic()
            mpirun.run(3, ["-m", *arguments], timeout=120)
        lengths[name] = time.monotonic() - began
    return lengths


def run(*arguments: str) -> None:
    """Run one of our programs to its end."""
    subprocess.run([sys.executable, "-m", *arguments], check=True, stdout=subprocess.DEVNULL)


def one(folder: Path, program: str, ranks: int, kind: str, delay: float, draw: random.Random) -> tuple[str, str, str]:
    """One program and one signal; what came out, what is wrong with that, and what the program said."""
    token = f"{os.getpid()}-{draw.random()}"
    launcher = mpirun.command(ranks) if ranks > 1 else []
    variables = mpirun.environment({MARK: token, "TMPDIR": str(folder / "scratch")})
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*launcher, sys.executable, "-m", *programs(folder)[program]], env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        time.sleep(delay)
        python = [number for number, command in marked(token).items() if command == "python"]
        if kind != "KILL":
            os.killpg(process.pid, getattr(signal, f"SIG{kind}"))  # as a terminal does
        elif python:
            os.kill(draw.choice(python), signal.SIGKILL)
        try:
            process.wait(PATIENCE)
            told = ""
        except subprocess.TimeoutExpired:
            told = f"still running: {marked(token)}"
        time.sleep(0.2)
        if not told and marked(token):
            told = f"processes left: {marked(token)}"
        for number in marked(token):
            os.kill(number, signal.SIGKILL)
        code = process.wait()
        errors.seek(0)
        text = errors.read()
    if not told and TRACES.search(text):
        told = "a traceback"
    wanted = {"INT": (130, 0), "KILL": (137, -9, 9, 0)}.get(kind, (143, 0))
    if not told and code not in wanted:
        told = f"exit code {code}"
    return f"exit {code}", told, text


def marked(token: str) -> dict[int, str]:
    """Processes with this mark in their environment, and their commands."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"{MARK}={token}".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "comm").read_text().strip()
        except OSError:
            continue
    return found


def what_is_left(folder: Path, before: set[str]) -> list[str]:
    """Temporary files and shared memory after one more run of each program, when shared memory is old enough."""
    time.sleep(leftovers.SETTLED + 1)
    settled = time.time() - leftovers.SETTLED
    os.environ["TMPDIR"] = str(folder / "scratch")
    for arguments in programs(folder).values():
        run(*arguments)
    left = [str(path) for path in (folder / "scratch").iterdir()]
    left += [str(path) for path in (folder / "made").rglob("*") if ".tmp" in path.name]
    segments = set(os.listdir(SHARED_MEMORY)) - before
    mapped = "".join(map(maps_of, Path("/proc").iterdir()))
    return left + [name for name in segments if name not in mapped and modified(SHARED_MEMORY / name) < settled]


def modified(path: Path) -> float:
    """When a file was written last; now if it is gone."""
    return path.stat().st_mtime if path.exists() else time.time()


def maps_of(process: Path) -> str:
    """What a process has mapped."""
    try:
        return (process / "maps").read_text() if process.name.isdigit() else ""
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
