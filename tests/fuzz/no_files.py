"""What stands where a program expects a file: pipes, devices, holes, folders, links; and JSON with odd values."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphs
import numpy as np
from fuzz import programs
from fuzz.case import Case, Step

HOLE = 3 << 30  # bytes that no disk holds
ODD = (
    None, True, -1, 0, 1.5, 10**400, 1e308, float("nan"), float("inf"), "", "x", "\0", "\ud800", "\x1b[2J", "a" * 10**6,
    [], {}, [[]], {"a": None}, "/dev/zero", "../../etc/passwd",
)  # fmt: skip
ROW = {"app": "bfs", "graph": "g.h5", "policy": "oec", "ranks": 2, "seconds": 0.25, "threads": 1, "device": "cpu"}
TRACE = {
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0 on x"}},
        {"ph": "X", "name": "run", "cat": "phase", "pid": 0, "tid": 0, "ts": 0.0, "dur": 9.0},
        {"ph": "X", "name": "sync", "cat": "sync", "pid": 0, "tid": 0, "ts": 1.0, "dur": 2.0},
    ]
}
MANIFEST = {
    "format_version": 2, "ranks": 1, "policy": "oec", "parameters": {}, "order": "degree", "split": "edges",
    "graph": "/g.h5", "num_nodes": 3, "num_edges": 3, "symmetric": False, "index_dtype": "<u4", "weight_dtype": None,
    "checksums": {}, "parts": ["part-0-of-1.5f3a9c1e.h5"], "fingerprint": {},
}  # fmt: skip
# What is given -> its text without a fault, and the program that reads it.
GIVEN: dict[str, tuple[str, Callable[[Path, Path], int]]] = {
    "rows": (json.dumps(ROW) + "\n", lambda file, folder: programs.command("cusp.commands.plot_rows", file)),
    "trace": (
        json.dumps(TRACE),
        lambda file, folder: programs.command("cusp.commands.draw_trace", file, "-o", folder / "out.svg"),
    ),
    "parts/manifest.json": (
        json.dumps(MANIFEST),
        lambda file, folder: programs.app("bfs", file.parent, "--source", 0, "--output", folder / "out.h5"),
    ),
    "maze.txt": ("S.E\n", lambda file, folder: programs.app("maze", file)),
    "starts.txt": (
        "0 1\n", lambda file, folder: programs.app("pagerank", folder / "g.h5", "--personalize", file)
    ),
    "edges.txt": ("0 1\n1 2\n", lambda file, folder: programs.command("cusp.commands.convert", "--info", file)),
    "rule.py": ("x = 1\n", lambda file, folder: programs.app("bfs", folder / "g.h5", "--policy", file, "--source", 0)),
}  # fmt: skip


def make_case(random: np.random.Generator) -> Case:
    """One of them, which is no file, or whose JSON has an odd value somewhere."""
    name = str(random.choice([*GIVEN]))
    text, program = GIVEN[name]
    takes_json = text.startswith("{")
    step = _odd_value(random, name) if takes_json and random.integers(3) else _no_file(random, name)

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graphs.make(3, [(0, 1), (1, 2), (2, 0)]))
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    def run(folder: Path) -> int:
        return program(folder / name, folder)

    return Case(make, [step], run)


def _no_file(random: np.random.Generator, name: str) -> Step:
    kind = str(random.choice(["fifo", "zero", "urandom", "full", "hole", "folder", "loop", "nowhere", "deep", "nul"]))

    def step(folder: Path) -> None:
        path = folder / name
        path.unlink()
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "hole":
            path.touch()
            os.truncate(path, HOLE)
        elif kind == "folder":
            path.mkdir()
        elif kind in ("deep", "nul"):
            path.write_text({"deep": "[" * 100_000, "nul": "\0" * 1000}[kind])
        else:
            path.symlink_to({"loop": path, "nowhere": "nowhere"}.get(kind, f"/dev/{kind}"))

    return f"{name} is {kind}", step


def _odd_value(random: np.random.Generator, name: str) -> Step:
    value, path = ODD[random.integers(len(ODD))], []
    inner: Any = json.loads(GIVEN[name][0])
    while isinstance(inner, dict | list) and inner and (not path or random.integers(4)):
        keys = [*inner] if isinstance(inner, dict) else [*range(len(inner))]
        path.append(keys[random.integers(len(keys))])
        inner = inner[path[-1]]

    def step(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        (folder / name).write_text(json.dumps(content))

    return f"{name}: {path} = {str(value)[:40]!r}", step
