"""Graphs to measure: Kronecker graphs made here, and published ones from outside this repository."""

import os
from pathlib import Path

import numpy as np

from scripts.bench.shared.rows import ROOT, call

CLEAN = ["--drop-loops", "--dedup"]
FILES = {  # name -> file in its published format, options of cusp.commands.convert
    "cnr-2000": ("cnr-2000.txt.gz", CLEAN),
    "usa-road-ny": ("usa-road-ny.gr.gz", ["--symmetrize", *CLEAN]),
    "wiki-vote": ("wiki-Vote.txt.gz", CLEAN),
    "rome99": ("rome99.gr.gz", CLEAN),
    "mesh-4elt": ("4elt.graph.gz", ["--symmetrize", *CLEAN]),
}


def folder() -> Path:
    """``$CUSP_TEST_GRAPHS``, else ``shared/graphs`` beside the repository; it need not exist."""
    return Path(os.environ.get("CUSP_TEST_GRAPHS") or ROOT.parent / "shared" / "graphs")


def published(name: str, target: Path) -> tuple[Path, Path] | None:
    """Graph files of a published graph and of the same in both directions, in the folder ``target``.

    None if its file is not in :func:`folder`.
    """
    file, options = FILES[name]
    if not (folder() / file).exists():
        return None
    graph = target / f"{name}.h5"
    call(1, "cusp.commands.convert", folder() / file, "-o", graph, *options)
    if "--symmetrize" in options:
        return graph, graph
    symmetric = target / f"{name}-symmetric.h5"
    call(1, "cusp.commands.convert", graph, "-o", symmetric, "--symmetrize", *CLEAN)
    return graph, symmetric


def graph_named(data: Path, name: str) -> Path:
    """A graph with weights 1 to 255 and all edges in both directions, made once.

    It is ``kronSCALE``, RMAT without loops and parallel edges; or ``roadN``, a lattice with gaps of N million nodes.
    """
    data.mkdir(parents=True, exist_ok=True)
    path, side = data / f"{name}.h5", str(round(float(name[4:]) ** 0.5 * 1000))
    kron = ("rmat", "--scale", name[4:], "--edge-factor", "16", "--symmetrize", *CLEAN)
    if not path.exists():
        what = kron if name.startswith("kron") else ("road", "--width", side, "--height", side)
        call(1, "cusp.commands.generate", *what, "--weights", "1:255", "--output", path)
    return path


def weighted(data: Path, name: str) -> Path:
    """A graph with weights, by its name or that of its file; a published one gets random ones."""
    if os.path.exists(name):
        return Path(name).resolve()
    if name not in FILES:
        return graph_named(data, name)
    path, (file, cleaned) = data / f"{name}.h5", FILES[name]
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        call(1, "cusp.commands.convert", folder() / file, "-o", path, "--weights", "1:255", *cleaned)
    return path


def kronecker_pairs(data: Path, scale: int) -> Path:
    """The edges of the Kronecker graph before they are symmetrized, as pairs of int32; made once."""
    from cusp.edge_lists.generators import rmat

    path = data / f"kron{scale}.pairs"
    if not path.exists():
        stream = rmat(1, scale)
        with path.open("wb") as file:
            for first in range(0, stream.size, 1 << 20):
                ends = stream.edges(first, min(first + (1 << 20), stream.size))
                np.stack(ends, axis=1).astype(np.int32).tofile(file)
    return path
