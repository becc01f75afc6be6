"""PageRank by pushing residuals: along the edges of nodes that have much to give."""

import numpy as np

from apps.harness import Answer
from apps.operators.sums.interfaces import Pagerank
from apps.shared.walk import Walk
from cusp.partition import Partition
from cusp.runtime.devices import backend
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN
from gluon.sync import Sync

UNIT = 2**62  # residuals are whole numbers, this many for a rank of 1
SPARED = 0.4  # at most this share of all residuals waits in a round


def push_residuals(
    part: Partition, sync: Sync, walk: Walk, damping: float = 0.85, tolerance: float = 1e-6,
    iterations: int | None = None,
) -> Answer:  # fmt: skip
    """Ranks of all nodes by pushing residuals. Collective.

    A node's residual is what one more step would add to its rank. A node that settles its residual adds it to its rank
    and pushes it to where a step leads from there (Andersen, Chung and Lang, FOCS 2006, section 3; data-driven as in
    Whang et al., Euro-Par 2015). Nodes with little for the number of their edges wait, but at most the share ``SPARED``
    of all residuals. So a round settles most of them along few edges. Residuals add up to 0: of each sign, a share of
    ``0.5 - SPARED`` or more is settled, and what of it goes to where walks start cancels out. So they shrink in every
    round.

    ``tolerance`` bounds the L1 norm of the residuals: the changes of all ranks in one more step, added up. The ranks
    are then within ``tolerance / (1 - damping)`` of the right ones, in the L1 norm.

    Residuals are whole numbers, so sums do not depend on the order: any policy, number of ranks and device give the
    same answer, bit for bit.

    Returns
    -------
    Answer
        As that of :func:`pagerank`; ``l1_change`` is what one more iteration would change.
    """
    ops = backend(Pagerank, part.device)
    residuals, shares = Label(part, np.int64, 0, ADD), Label(part, np.int64, 0, ASSIGN)
    own = residuals.values[: part.num_masters]
    own[:] = (walk.teleport * UNIT).astype(np.int64)
    settled = own * 0
    lowest = 1 / damping + 1  # per out-edge: a node with less has nothing to give to each out-neighbour
    threshold, pending, whole, rounds = -1.0, 0.0, 0, 0  # in the first round, all settle where walks start
    while True:
        (left,) = sync.total(ops.collect(pending, walk.teleport, own))
        if rounds > 0:
            if left < tolerance * whole or rounds == iterations:
                break
            threshold = max(SPARED * left / max(part.num_edges, 1), lowest)
        moved, dangling = sync.total(
            *ops.settle(threshold, damping, part.degrees, own, settled, shares.values, shares.updated)
        )
        sync.broadcast(shares, read="src")
        frontier = shares.swap_updated()
        ops.push_shares(frontier, part.offsets, part.targets, shares.values, residuals.values, residuals.updated,
                        part.num_masters, walk.queue)  # fmt: skip
        sync.reduce(residuals, write="dst")
        pending = (1 - damping) * moved + damping * dangling - (UNIT if rounds == 0 else 0)
        whole += moved
        rounds += 1
    return Answer({"pagerank": settled / float(whole)}, None, rounds, {"l1_change": left / whole})
