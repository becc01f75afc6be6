"""Command lines with odd values, for every option that a program has."""

import argparse
import importlib
import os
from functools import cache
from pathlib import Path
from unittest import mock

import graphs
import numpy as np
from fuzz import programs
from fuzz.case import Case

from cusp.program import compare

ODD = (
    "", "0", "-1", "1", "nan", "inf", "-inf", "1e20", "1e400", "9" * 25, "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "4294967296", "x", "0.5", "2x2", "1x1", "0x0", "1:2", "-1:5", ":", "a" * 5000, "/dev/null",
    "/dev/full", ".", "/no/such/place", "\x01", "None", "True", "1,2,3", "0,0", ",", "K", "4G", "1e-9", "-0", "é",
    "a" * 5000 + ".py", "map", "fec", "gpu",
)  # fmt: skip
PLAIN = ("0", "1", "3", "0.5", "1,2", "cvc", "edges", "out.h5", "folder", "1x1", "1:1", "1G")
APPS = (
    "bfs", "sssp", "pagerank", "kcore", "communities", "betweenness", "forest", "path", "widest", "cc", "scc",
    "triangles", "maze", "semiring", "eigenvector", "katz", "hits", "closeness", "mis", "coloring", "msf", "similarity",
    "truss", "ppr", "table", "paths", "sample", "walks",
)  # fmt: skip
NEEDED = {
    "forest": ["--roots=1"],
    "table": ["--from=1"],
    "ppr": ["--seeds=1"],
    "paths": ["--source=1", "--target=2"],
    "maze": ["--width=6", "--height=6", "--blocked=0"],
}
COMMANDS = {  # module and words that come first
    "cusp": ("cusp", []), "compare": ("cusp", ["compare"]), "new-policy": ("cusp", ["new-policy", "mine"]),
    "plan": ("cusp.commands.plan", []), "add": ("cusp.commands.add", ["g.h5", "g.h5", "--output=grown.h5"]),
    "generate": ("cusp.commands.generate", ["rmat", "--scale=4", "--output=out.h5"]),
    "generate-road": ("cusp.commands.generate", ["road", "--width=4", "--height=4", "--output=out.h5"]),
    "graph500": ("cusp.apps.graph500", ["--scale=5", "--keys=2"]),
}  # fmt: skip
SLOW = {  # what does what it says, and takes as long
    "seconds", "trials", "passes", "state_rounds", "keys", "scale", "edgefactor", "edge_factor", "width", "height",
    "iterations", "k",
}  # fmt: skip
HUGE = {"4294967296", "9223372036854775807", "1e20"}


def make_case(random: np.random.Generator) -> Case:
    """One or two options of a program with values that nobody planned for, or that are plain."""
    name = str(random.choice([*APPS, *COMMANDS]))
    actions = [action for action in actions_of(name) if action.option_strings and action.dest != "help"]
    picked = random.choice(len(actions), size=min(int(random.integers(1, 3)), len(actions)), replace=False)
    chosen = [_option(random, actions[place]) for place in picked.tolist()]

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graphs.random_directed(20, 60, 1))

    def run(folder: Path) -> int:
        os.chdir(folder)
        if name in COMMANDS:
            module, first = COMMANDS[name]
            graph = ["g.h5"] if name in ("cusp", "compare", "plan") else []
            return programs.command(module, *first, *graph, *chosen)
        graph = [] if name == "maze" else ["g.h5"]
        return programs.app(name, *graph, *NEEDED.get(name, []), *chosen)

    return Case(make, [(f"{name} {' '.join(chosen)}"[:200], lambda folder: None)], run)


def _option(random: np.random.Generator, action: argparse.Action) -> str:
    flag = action.option_strings[-1]
    if action.nargs == 0:
        return flag
    values = [*map(str, action.choices or PLAIN)] if random.integers(3) == 0 else ODD
    value = str(values[random.integers(len(values))])
    if action.dest in SLOW and value in HUGE:
        value = "-1"
    return f"{flag}={value}"


@cache
def actions_of(name: str) -> list[argparse.Action]:
    """The options that the parser of a program knows."""
    module, first = COMMANDS.get(name, ("cusp.apps.harness", []))
    module = importlib.import_module("cusp.__main__" if module == "cusp" else module)
    module = importlib.import_module(f"{module.__name__}.__main__") if hasattr(module, "__path__") else module
    found: list[argparse.ArgumentParser] = []

    def caught(comm: object, parser: argparse.ArgumentParser, argv: list[str]) -> None:
        found.append(parser)
        raise InterruptedError

    with mock.patch.object(module, "parse_together", caught), mock.patch.object(compare, "parse_together", caught):
        try:
            if name in COMMANDS:
                module.main(programs.comm(), first)
            else:
                module.main(importlib.import_module(f"cusp.apps.{name}").APP, programs.comm(), [])
        except InterruptedError:
            pass
    parser = found[0]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parser = action.choices[first[0]]
    return parser._actions
