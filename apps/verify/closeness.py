"""Verifier of closeness: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp import MIN, Label, Partition, Sync
from cusp.apps.verify.betweenness import RELAX, ROUNDING
from cusp.apps.verify.check import require, tell_node
from cusp.runtime.devices import xp_of


def verify_closeness(
    part: Partition, sync: Sync, closeness: Any, harmonic: Any, eccentricity: Any, reaching: Any, sources: list[int],
    scale: float,
) -> None:  # fmt: skip
    """Check closeness by searching from one source after the other. Collective.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    closeness, harmonic, eccentricity : (masters,) float64, on the device of the partition
    reaching : (masters,) int64
    scale : float
        How many nodes each of the sources stands for.
    """
    xp, masters = xp_of(part.device), part.num_masters
    reached, lengths, inverse = xp.zeros(masters), xp.zeros(masters), xp.zeros(masters)
    for source in sources:
        label = Label(part, np.float64, np.inf, MIN)
        label.write(source, 0)
        RELAX.until_quiet(part, sync, length=label)
        found, lid = label.masters(), part.lid(source)
        others = found < np.inf
        farthest = sync.highest(float(xp.where(others, found, 0).max()) if masters else 0.0)
        if 0 <= lid < masters:
            others[lid] = False
        own = 0 <= lid < masters and float(eccentricity[lid]) != farthest
        require(sync, not own, f"eccentricity: that of node {source} is not {farthest:g}")
        reached += others
        lengths += xp.where(others, found, 0)
        inverse += xp.where(others & (found > 0), 1 / xp.where(found > 0, found, 1), 0)
    expected = xp.where(lengths > 0, reached**2, 0) / xp.where(lengths > 0, lengths, 1)
    expected *= scale / max(part.num_nodes - 1, 1)
    expected = xp.minimum(expected, reached / xp.where(lengths > 0, lengths, np.inf))
    tell_node(part, sync, "reaching: is not the number of sources that lead to node", reaching != reached)
    tell_node(part, sync, "closeness: is not that of the distances to node", _differ(closeness, expected))
    tell_node(part, sync, "harmonic: is not that of the distances to node", _differ(harmonic, inverse * scale))


def _differ(values: Any, expected: Any) -> Any:
    """(masters,) bool: values that differ by more than rounding."""
    return ~(abs(values - expected) <= ROUNDING * expected)
