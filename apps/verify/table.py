"""Verifier of tables of distances: see apps/verify/check.py."""

import numpy as np

from cusp import MIN, Label, Partition, Sync
from cusp.apps.verify.betweenness import RELAX, ROUNDING
from cusp.apps.verify.check import raise_first
from cusp.runtime.devices import to_host


def verify_table(
    part: Partition, sync: Sync, origin: np.ndarray, destination: np.ndarray, hops: np.ndarray | None = None,
    distance: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Check a table by a search from one origin after the other. Collective.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    origin, destination : (origins, 1) and (1, destinations) int64
    hops, distance : (origins, destinations) numbers, one of them
        -1 or inf where there is no path.
    """
    values = distance if hops is None else hops
    assert values is not None
    nodes = destination.ravel()
    lids = part.lid_map.lids(nodes)
    own = np.flatnonzero((lids >= 0) & (lids < part.num_masters))
    for source, row in zip(origin.ravel().tolist(), values[:, own]):
        label = Label(part, np.float64, np.inf, MIN)
        label.write(source, 0)
        RELAX.until_quiet(part, sync, length=label)
        expected, found = to_host(label.masters())[lids[own]], np.where(row < 0, np.inf, row)
        wrong = np.flatnonzero(~np.isclose(found, expected, ROUNDING, 0))
        message = None
        if wrong.size:
            place = wrong[0]
            message = f"{found[place]:g} from {source} to {nodes[own[place]]}, which are {expected[place]:g} apart"
        raise_first(sync, message)
