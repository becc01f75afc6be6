"""What distinguishes a run from others: the app, the graph, and the options that decide about the answer."""

import argparse
import hashlib
import os
from typing import Any

import numpy as np

from cusp.apps.operators.sums.interfaces import Rows
from cusp.apps.run.app import App
from cusp.apps.run.keywords import Keywords
from cusp.apps.shared.splitmix64 import splitmix64
from cusp.errors import OptionError
from cusp.input.checksum import as_bits, combine
from cusp.partition import Partition
from cusp.runtime.devices import backend, xp_of
from cusp.runtime.files import read_input
from cusp.runtime.mpi import MPI

AT_ONCE = 1 << 20  # weights


def marks_of(
    app: App, part: Partition, comm: MPI.Intracomm, source: int | None, options: argparse.Namespace
) -> dict[str, Any]:
    """Marks of a run by name, the same on every rank, and on any ranks, devices and partition. Collective."""
    marks = {"app": app.name, "nodes": part.num_nodes, "edges": part.num_edges}
    weights = part.weights if app.reads_weights(options) else None
    marks["edges that add up to"] = combine(comm.allgather(checksum_of_edges(part, weights)))
    marks |= {"--source": source} if app.needs_source else {}
    for action in Keywords(app.name, app.add_options).actions:
        if action.dest not in ("checkpoint", "every"):
            marks[f"--{action.dest.replace('_', '-')}"] = _described(getattr(options, action.dest))
    return comm.bcast(marks | {"--seed": options.seed})


def checksum_of_edges(part: Partition, weights: Any) -> int:
    """This rank's part of a sum (mod 2**64) that depends on all edges and weights, but not on who has them.

    Every edge counts a number for its source times one for its target; these are short, so that sums over rows are
    exact. Weights count by their bits, wherever they are.
    """
    xp, rows = xp_of(part.device), backend(Rows, part.device)
    codes, sums = splitmix64(part.gids, 0), xp.zeros(part.num_proxies, np.float64)
    lids = xp.flatnonzero(part.offsets[1:] > part.offsets[:-1]).astype(np.int32)
    short = (codes >> np.uint64(44)).astype(np.float64)
    rows.sum_rows(rows.group_rows(lids, [0, lids.size], part.offsets), 0, part.targets, short, sums)
    total = int((sums.astype(np.uint64) * codes).sum())
    for some in part.storage.parts(0 if weights is None else weights.size, AT_ONCE):
        bits = as_bits(weights[some]).astype(np.uint64)
        total += int((bits * (bits + np.uint64(1))).sum())
    return total


def _described(value: Any) -> Any:
    """The value of an option; a file in a list of nodes counts by what is in it."""
    if not isinstance(value, list):
        return value
    return [_content(each) if isinstance(each, str) and os.path.isfile(each) else each for each in value]


def _content(path: str) -> str:
    return hashlib.blake2b(read_input(path, OptionError), digest_size=8).hexdigest()
