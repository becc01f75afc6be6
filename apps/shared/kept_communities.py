"""Names of communities in a checkpoint: global ids there, which any number of ranks can take up."""

from typing import Any

import numpy as np

from apps.run.checkpoint import Checkpoint
from apps.shared.community_graph import Level, broadcast
from cusp.output.gid_order import at_gids, in_gid_order
from cusp.runtime.devices import move, to_host
from gluon.label import Label

NOBODY = -1  # the community of a node that has joined another one in a level before


def to_keep(first: Level, level: Level, names: Any) -> Any:
    """(masters of the first level,) int64: global ids that name the communities of the nodes of a level."""
    kept = first.xp.full(first.graph.num_masters, NOBODY, np.int64)
    kept[_lids(first, level)] = names[: level.graph.num_masters] % first.graph.num_nodes
    return kept


def take_up(checkpoint: Checkpoint, first: Level, level: Level, what: str, label: Label) -> None:
    """Fill a label of a level with what :func:`to_keep` has made, on any number of ranks. Collective.

    Raises
    ------
    CheckpointError
        On every rank: a node has no community.
    """
    graph, comm = first.graph, first.comm
    gids = to_host(checkpoint.label(what, np.int64)[_lids(first, level)])
    wrong = int(((gids < 0) | (gids >= graph.num_nodes)).sum())
    if first.sync.total(wrong)[0]:
        raise checkpoint.damaged(f"/{what} does not say of each node in which community it is")
    _, owners = in_gid_order(graph, np.full(graph.num_masters, comm.rank, np.int64), comm)
    names = at_gids(owners, gids, graph.num_nodes, comm) * graph.num_nodes + gids
    label.values[: level.graph.num_masters] = move(names, graph.device)
    broadcast(level, label)


def _lids(first: Level, level: Level) -> Any:
    """Local ids, at the first level, of this rank's nodes of a level."""
    return first.graph.lid_map.lids(level.graph.gids[: level.graph.num_masters])
