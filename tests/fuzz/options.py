"""Command lines with odd values."""

from pathlib import Path

import graphs
import numpy as np
from fuzz import programs
from fuzz.case import Case

ODD = (
    "", "0", "-1", "1", "nan", "inf", "-inf", "1e20", "1e400", "9" * 25, "x", "0.5", "2x2", "1x1", "0x0", "1:2", "-1:5",
    ":", "a" * 5000, "/dev/null", "/dev/full", ".", "/no/such/place", "\x01", "None", "True", "1,2,3", "0,0", ",", "K",
    "4G", "1e-9", "-0", "é",
)  # fmt: skip
OPTIONS = {
    "bfs": ("source", "sources", "seed", "trials", "policy", "grid", "threshold", "split", "order", "state-rounds",
            "passes", "node-map", "memory-limit", "device", "transport", "direction", "output", "rows"),
    "sssp": ("source", "delta", "policy", "output"),
    "pagerank": ("damping", "tolerance", "iterations", "personalize", "precision", "algorithm"),
    "kcore": ("k",),
    "communities": ("algorithm", "resolution", "seed", "sweeps", "tolerance"),
    "betweenness": ("sources", "seed"),
    "forest": ("roots",),
    "path": ("source", "targets"),
    "cusp": ("policy", "sample", "ranks", "save", "json", "export", "export-to", "threshold", "split", "grid",
             "memory-limit"),
    "scripts.generate": ("scale", "edge-factor", "seed", "weights", "output", "memory-limit"),
}  # fmt: skip


def make_case(random: np.random.Generator) -> Case:
    """One or two options of a program with values that nobody planned for."""
    name = str(random.choice(sorted(OPTIONS)))
    chosen = [
        f"--{option}={ODD[random.integers(len(ODD))]}"
        for option in random.choice(OPTIONS[name], size=min(2, len(OPTIONS[name])), replace=False)
    ]
    if name == "cusp" and random.integers(2):
        chosen.append("--dry-run")

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graphs.random_directed(20, 60, 1))

    def run(folder: Path) -> int:
        import os

        os.chdir(folder)
        if name == "scripts.generate":
            return programs.command(name, "rmat", "--scale=4", "--output=out.h5", *chosen)
        if name == "cusp":
            return programs.command(name, "g.h5", *chosen)
        return programs.app(name, "g.h5", *chosen)

    return Case(make, [(" ".join(chosen)[:200], lambda folder: None)], run)
