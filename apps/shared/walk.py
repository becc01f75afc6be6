"""The walk of PageRank: where it starts, by default or as a command line or file says, and what its steps need."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.shared.in_edges import InEdges
from cusp.errors import OptionError, together
from cusp.partition import Partition
from cusp.runtime.devices import move, to_host
from gluon.sync import Sync


@dataclass(frozen=True)
class Walk:
    """What does not change while ranks are computed.

    Attributes
    ----------
    teleport : (masters,) float64
        Where the walk starts: its sum over all ranks is 1.
    in_edges : InEdges, or None if nothing is pulled
    rows : Any
        The rows of the in-edges, as the operators take them.
    weights : (edges,) any number type, or None
        Of the in-edges; None where all count the same.
    strengths : (senders,) number
        What the out-edges of each master that has some weigh in all; inf if they all weigh 0.
    stuck : (n,) lids
        Those: a walk ends there as it does without out-edges.
    queue : Any
        Memory for operators that push.
    """

    teleport: Any
    in_edges: InEdges | None
    rows: Any
    weights: Any
    strengths: Any
    stuck: Any
    queue: Any


def starts(part: Partition, sync: Sync, named: list[str] | None) -> np.ndarray:
    """(masters,) float64: the probability that a walk starts there, equal for all nodes if none are named. Collective.

    Raises
    ------
    OptionError
        On every rank.
    """
    if named is None:
        return np.full(part.num_masters, 1 / part.num_nodes)
    with together(sync.comm):
        weights = read_weights(named) if sync.comm.rank == 0 else {}
        for gid in weights:
            if not 0 <= gid < part.num_nodes:
                raise OptionError(f"--personalize: no node {gid}; the graph has the nodes 0 to {part.num_nodes - 1}")
        if sync.comm.rank == 0 and not 0 < sum(weights.values()) < np.inf:
            raise OptionError("--personalize: the weights of the nodes must have a sum above 0 that is finite")
    weights = sync.comm.bcast(weights)
    gids = np.array(sorted(weights), np.int64)
    lids = to_host(part.lid_map.lids(move(gids, part.device)))
    own = (lids >= 0) & (lids < part.num_masters)
    values = np.array([weights[gid] for gid in gids.tolist()])
    teleport = np.zeros(part.num_masters)
    teleport[lids[own]] = (values / values.sum())[own]
    return teleport


def read_weights(named: list[str]) -> dict[int, float]:
    """Nodes with weights, from global ids, or from a file that has a node, and maybe a weight, on each line."""
    lines = [(f"--personalize {word}", word.split(":")) for word in named]
    if len(named) == 1 and not lines[0][1][0].isdecimal():
        try:
            with open(named[0]) as file:
                lines = [(f"{named[0]}, line {number}", line.split()) for number, line in enumerate(file, 1)]
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"--personalize {named[0]}: neither a node nor a file to read: {error}") from None
    weights: dict[int, float] = {}
    for where, words in lines:
        if not words or words[0].startswith("#"):
            continue
        try:
            gid, weight = int(words[0]), float(words[1]) if len(words) > 1 else 1.0
        except ValueError:
            raise OptionError(f"{where}: expected a node and maybe a weight, found {' '.join(words)!r}") from None
        if not weight >= 0:
            raise OptionError(f"{where}: the weight {weight:g} is below 0")
        weights[gid] = weights.get(gid, 0.0) + weight
    return weights
