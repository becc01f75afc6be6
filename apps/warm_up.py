"""Compile what algorithms call before the first question is asked, on all cores.

::

    python -m apps.warm_up
    python -m apps.warm_up graph.h5 --device gpu
    mpirun -n 2 python -m apps.warm_up

Every algorithm runs on tiny graphs: directed and symmetric, with few and many edges per node, without weights and with
those of each number type; or of the types of the graph files that are named. The code stays in the cache, so that
later commands on this machine only load it. On several ranks, the code is compiled that ranks need together.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cusp.apps.harness import parser_of, rehearse
from cusp.apps.library import app_of
from cusp.commands.command import APPS, COMMANDS
from cusp.errors import InputError, OptionError, together
from cusp.input.graph_file import GraphHeader, read_header
from cusp.launch import parse_together, parser_for, run_main
from cusp.policies import load_policy
from cusp.program import report
from cusp.program.cli import policy_parameters
from cusp.program.warm_up import warm_up
from cusp.runtime.compiled_code import all_kept, cache_folder
from cusp.runtime.devices import choose_device
from cusp.runtime.mpi import MPI

ALGORITHMS = [name for name, command in COMMANDS.items() if command.group == APPS and name != "maze"]  # as bfs
REQUIRED = {
    "forest": ["--roots", "0"],
    "table": ["--from", "0"],
    "ppr": ["--seeds", "0"],
    "paths": ["--source", "0", "--target", "1"],
}  # options
WEIGHTS = "none,uint8,int64,float32,float64"  # generate writes uint8 and float32, convert int64 and float64
NODES = 1 << 20  # so many that code for many threads is called
FEW, MANY = 2.4, 16.0  # edges per node: of a road map, of a social network
PAUSE = 0.05  # seconds between two looks at what has ended
MOST_ON_GPU = 8  # processes at the same time: each holds some 500 MB of a GPU


class Job(NamedTuple):
    """An algorithm, and of which graphs; as words of the command line."""

    app: str
    weights: str
    graphs: list[str]


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = parser_for("apps.warm_up", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH.h5", help="graph files: compile for their types instead")
    parser.add_argument("--apps", default=",".join(ALGORITHMS), help="algorithms, with commas (default: all)")
    parser.add_argument("--weights", default=WEIGHTS, help="number types, with commas (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu or gpu (default: %(default)s)")
    parser.add_argument("--at-once", type=int, metavar="N", help="processes at the same time (default: one a core)")
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Compile in processes side by side, or on several ranks one job after the other. Collective."""
    options = parse_together(comm, make_parser(), argv)
    device = choose_device(options.device, comm).device
    with together(comm):
        jobs = jobs_of(options)
    cores = len(os.sched_getaffinity(0))
    at_once = options.at_once or (cores if device == "cpu" else min(cores, MOST_ON_GPU))
    if comm.size == 1 and at_once > 1 and len(jobs) > 1:
        run_apart(jobs, device, at_once)
    else:
        for number, job in enumerate(jobs, 1):
            report.progress(comm.rank, f"compiling {job.app}, {number} of {len(jobs)}")
            compile_for(job, comm, device)
    report.progress(comm.rank, "")
    where = f"code for the {device} is in {cache_folder()}" if all_kept() else "but the code is not kept"
    report.say(comm.rank, f"compiled {len({job.app for job in jobs})} algorithms; {where}")
    return 0


def jobs_of(options: argparse.Namespace) -> list[Job]:
    """What is to be compiled; first what has most to compile.

    Raises
    ------
    OptionError, GraphFileError
        An algorithm or a number type that is not known, or what is no graph file.
    """
    apps, weights = options.apps.split(","), options.weights.split(",")
    for option, words, known in (("apps", apps, ALGORITHMS), ("weights", weights, WEIGHTS.split(","))):
        if unknown := [word for word in words if word not in known]:
            raise OptionError(f"--{option}: {unknown[0]!r} is none of {', '.join(known)}")
    if options.at_once is not None and options.at_once < 1:
        raise OptionError(f"--at-once {options.at_once}: expected at least 1")
    for path in options.graphs:
        read_header(path)  # so that no process is started for what is none
    if options.graphs:
        return [Job(name, options.weights, options.graphs) for name in apps]
    weighted = {name: app_of(name).reads_weights(defaults_of(name)) for name in apps}
    jobs = [Job(name, kind, []) for kind in weights for name in apps if weighted[name] or kind == weights[0]]
    return sorted(jobs, key=lambda job: not weighted[job.app])


def run_apart(jobs: list[Job], device: str, at_once: int) -> None:
    """Compile in processes, some at the same time.

    Raises
    ------
    InputError
        What one of them said.
    """
    left, running = jobs[::-1], list[tuple[Job, subprocess.Popen[str]]]()
    try:
        while left or running:
            while left and len(running) < at_once:
                running.append((left[-1], start(left.pop(), device)))
            report.progress(0, f"compiling, {len(jobs) - len(left) - len(running)} of {len(jobs)} done")
            time.sleep(PAUSE)
            for job, process in [pair for pair in running if pair[1].poll() is not None]:
                running.remove((job, process))
                if process.returncode:
                    said = process.communicate()[1].strip().removeprefix("error: ")
                    raise InputError(f"{job.app}: {said or f'exit code {process.returncode}'}")
    finally:
        for _, process in running:
            process.kill()


def start(job: Job, device: str) -> subprocess.Popen[str]:
    """Start to compile in a process of its own."""
    words = ["--apps", job.app, "--weights", job.weights, "--device", device, *job.graphs]
    return subprocess.Popen(
        [sys.executable, "-m", "cusp.apps.warm_up", *words], text=True,
        env=dict(os.environ),  # that of this program's start: an MPI library may have added to it since
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def compile_for(job: Job, comm: MPI.Intracomm, device: str) -> None:
    """Call everything that a run calls. Collective."""
    app, options = app_of(job.app), defaults_of(job.app)
    with together(comm):
        policy = load_policy(options.policy, **policy_parameters(options))
        headers = [read_header(path) for path in job.graphs] or [*headers_of(job.weights)]
    for header in headers:
        warm_up(comm, header, lambda few, path: rehearse(app, few, policy, options, path, device, "auto"))


def headers_of(weights: str) -> Iterator[GraphHeader]:
    """What graph files of a kind say of themselves."""
    dtype = None if weights == "none" else np.dtype(weights)
    for each, symmetric in itertools.product((FEW, MANY), (False, True)):
        yield GraphHeader("", NODES, int(each * NODES), symmetric, np.dtype(np.uint32), dtype, has_transpose=False)


def defaults_of(name: str) -> argparse.Namespace:
    """The options of an app if none is given; it verifies, too."""
    return parser_of(app_of(name)).parse_args(["--verify", *REQUIRED.get(name, [])])


if __name__ == "__main__":
    run_main(main)
