"""Kill and interrupt programs at random moments: ``python -m tests.fuzz.kills --times 60``.

Each program is started with one to three ranks. At a random moment, from its first millisecond on, one of its ranks is
killed, or all of it gets the SIGINT of a terminal. It has to end soon, without a traceback, and the next start has to
remove all that was left. Only before Python imports ``cusp`` does a signal do what it does to any Python: the program
has to end soon then too, but its words and exit code are those of Python and the launcher. On a busy machine, start all
of it under ``nice -n -18``, so that the seconds are those of the programs. Ctrl-C shows the table so far.
"""

import argparse
import contextlib
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
from typing import NamedTuple

from scripts import mpirun

PATIENCE = 5.0  # seconds in which all ranks have to end
MARK = "CUSP_KILLS"
TRACES = re.compile(r"Traceback|Exception ignored|Fatal Python error|Segmentation")
CODES = {"INT": (130, 0), "KILL": (137, -9, 9, 255, 0), "TERM": (143, 0)}  # 0: it was at its end; 255: MPICH's launcher
# gives up when a rank goes that it is just talking to
OPEN_MPI_CODES = {"INT": (1, 0)}  # its launcher ends all ranks by itself


class Outcome(NamedTuple):
    """What came of one signal."""

    kind: str
    program: str
    ranks: int
    ours: bool  # whether every rank had imported cusp
    code: int
    seconds: float  # from the signal to the end of all
    told: str  # what is wrong
    errors: str  # what the program said


def programs(folder: Path) -> dict[str, list[str]]:
    """What is started, by name."""
    graph, edges = str(folder / "graph.h5"), str(folder / "edges.txt")
    made = folder / "made"
    return {
        "partition": ["cusp", graph, "--policy", "cvc", "--json", f"{made}/figures.json", "--export", "distdgl",
                      "--export-to", f"{made}/masters"],
        "save": ["cusp", graph, "--policy", "hvc", "--save", f"{made}/parts"],
        "convert": ["cusp.commands.convert", edges, "--symmetrize", "--output", f"{made}/converted.h5"],
        "generate": ["cusp.commands.generate", "rmat", "--scale", "14", "--symmetrize", "--output", f"{made}/kron.h5"],
        "bfs": ["apps.bfs", graph, "--trials", "20", "--output", f"{made}/hops.h5", "--rows", f"{made}/rows.jsonl"],
        "pagerank": ["cusp.apps.pagerank", graph, "--output", f"{made}/ranks.h5", "--memory-limit", "4M", "--verify"],
    }  # fmt: skip


def main() -> int:
    """Start, kill, look, and show a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__.split("\n\n")[0])
    parser.add_argument("--times", type=int, default=60, help="of each kind (default: 60)")
    parser.add_argument("--kinds", default="KILL,INT", help="signals (default: KILL,INT)")
    parser.add_argument("--under", default="", help="a command that starts each program")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background ignores it, and so would programs
    draw = random.Random(options.seed)
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for below in ("made", "scratch"):
            (folder / below).mkdir()
        lengths = prepare(folder, options.under.split())
        with contextlib.suppress(KeyboardInterrupt):
            for kind in options.kinds.split(",") * options.times:
                program, ranks = draw.choice(list(lengths)), draw.randint(1, 3)
                delay = moment(draw, lengths[program])
                while not (outcome := one(folder, program, ranks, kind, delay, draw, options.under.split())):
                    delay *= 0.7
                outcomes.append(outcome)
                if outcome.told:
                    print(f"after {delay:.3f} s:", *outcome, flush=True)
        left = what_is_left(folder)
    show(outcomes)
    failures = sum(bool(outcome.told) for outcome in outcomes)
    print(f"{failures} failures; left after the next start: {left or 'nothing'}")
    return int(bool(failures or left))


def moment(draw: random.Random, length: float) -> float:
    """Seconds after the start: half of them early, where a process changes most."""
    late = 0.9 * length
    return draw.uniform(0.001, late) if draw.random() < 0.5 else 0.001 * (late / 0.001) ** draw.random()


def show(outcomes: list[Outcome]) -> None:
    """A line for each signal and program."""
    for kind, program in sorted({outcome[:2] for outcome in outcomes}):
        rows = [outcome for outcome in outcomes if outcome[:2] == (kind, program)]
        ours, early = ([row.code for row in rows if row.ours == ours] for ours in (True, False))
        slowest = max(row.seconds for row in rows)
        print(
            f"{kind:5}{program:10}{len(rows):4} runs, {sum(row.ranks for row in rows):4} ranks, "
            f"slowest end {slowest:.2f} s, exit codes {dict(Counter(ours))}; "
            f"before cusp {len(early)}, exit codes {dict(Counter(early))}"
        )


def prepare(folder: Path, under: list[str]) -> dict[str, float]:
    """Make the inputs, and find out how long each program takes."""
    graph = folder / "graph.h5"
    run(under, 1, ["cusp.commands.generate", "rmat", "--scale", "15", "--symmetrize", "--output", str(graph)])
    draw = random.Random(1)
    lines = (f"{draw.randrange(20000)} {draw.randrange(20000)}\n" for _ in range(300_000))
    (folder / "edges.txt").write_text("".join(lines))
    lengths = {}
    for name, arguments in programs(folder).items():
        for _ in range(2):
            began = time.monotonic()
            run(under, 3, arguments)
        lengths[name] = time.monotonic() - began
        print(f"{name} takes {lengths[name]:.2f} s on 3 ranks", flush=True)
    return lengths


def run(under: list[str], ranks: int, arguments: list[str]) -> None:
    """Run one of our programs to its end."""
    line = [*under, *mpirun.command(ranks), sys.executable, "-m", *arguments]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, env=mpirun.environment())


def one(
    folder: Path, program: str, ranks: int, kind: str, delay: float, draw: random.Random, under: list[str]
) -> Outcome | None:
    """One program and one signal; None if the program had ended before."""
    token = f"{os.getpid()}-{draw.random()}"
    launcher = mpirun.command(ranks) if ranks > 1 else []
    variables = mpirun.environment({MARK: token, "TMPDIR": str(folder / "scratch")})
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*under, *launcher, sys.executable, "-m", *programs(folder)[program]], env=variables,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        time.sleep(delay)
        python = ranks_of(token)
        while kind == "KILL" and not python and process.poll() is None:
            python = ranks_of(token)
        if process.poll() is not None:
            return None
        ours = len(python) == ranks and all(map(has_our_handlers, python))
        began = time.monotonic()
        if kind != "KILL":
            os.killpg(process.pid, getattr(signal, f"SIG{kind}"))  # as a terminal does
        else:
            os.kill(draw.choice(python), signal.SIGKILL)
        told = wait_for(process, token)
        seconds = time.monotonic() - began
        for number in marked(token):
            os.kill(number, signal.SIGKILL)
        code = process.wait()
        errors.seek(0)
        text = errors.read()
    wanted = (OPEN_MPI_CODES if ranks > 1 and mpirun.is_open_mpi() else {}).get(kind) or CODES[kind]
    if not told and ours and TRACES.search(text):
        told = "a traceback"
    if not told and ours and code not in wanted:
        told = f"exit code {code}"
    return Outcome(kind, program, ranks, ours, code, seconds, told, text)


def ranks_of(token: str) -> list[int]:
    """Processes of Python with this mark."""
    return [number for number, command in marked(token).items() if command == "python"]


def wait_for(process: subprocess.Popen, token: str) -> str:
    """Wait until all are gone; what is wrong if that takes too long."""
    limit = time.monotonic() + PATIENCE
    while process.poll() is None or marked(token):
        if time.monotonic() > limit:
            return f"still running: {marked(token)}"
        time.sleep(0.01)
    return ""


def has_our_handlers(process: int) -> bool:
    """Whether a process hears SIGTERM, which Python alone does not."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return bool(int(re.findall(r"SigCgt:\s*(\w+)", status)[0], 16) >> (signal.SIGTERM - 1) & 1)


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


def what_is_left(folder: Path) -> list[str]:
    """Temporary files after one more run of each program."""
    os.environ["TMPDIR"] = str(folder / "scratch")
    for arguments in programs(folder).values():
        run([], 1, arguments)
    left = [str(path) for path in (folder / "scratch").iterdir()]
    return left + [str(path) for path in (folder / "made").rglob("*") if ".tmp" in path.name]


if __name__ == "__main__":
    sys.exit(main())
