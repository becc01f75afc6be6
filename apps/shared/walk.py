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


def starts(part: Partition, sync: Sync, weights: dict[int, float] | None) -> np.ndarray:
    """(masters,) float64: the probability that a walk starts there, equal for all nodes if none are given. Collective.

    Raises
    ------
    OptionError
        On every rank.
    """
    if weights is None:
        return np.full(part.num_masters, 1 / part.num_nodes)
    with together(sync.comm):
        for gid in weights:
            part.check_node(gid, "--personalize")
        if not 0 < sum(weights.values()) < np.inf:
            raise OptionError("--personalize: the weights of the nodes must have a sum above 0 that is finite")
    gids = np.array(sorted(weights), np.int64)
    lids = to_host(part.lid_map.lids(move(gids, part.device)))
    own = (lids >= 0) & (lids < part.num_masters)
    values = np.array([weights[gid] for gid in gids.tolist()])
    teleport = np.zeros(part.num_masters)
    teleport[lids[own]] = (values / values.sum())[own]
    return teleport
