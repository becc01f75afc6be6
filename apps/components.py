"""Sizes of components whose nodes several ranks have counted."""

import numpy as np

from cusp.exchange import all_to_all
from gluon.sync import Sync


def largest_component(sync: Sync, labels: np.ndarray, members: np.ndarray) -> int:
    """Size of the largest component, of which each rank knows some parts. Collective.

    Parameters
    ----------
    labels : (parts,) integers, not negative
        A component may be named several times.
    members : (parts,) integers
        Nodes of each part.
    """
    rank = labels % sync.comm.size  # that adds up all parts of a component
    pieces = [np.flatnonzero(rank == other) for other in range(sync.comm.size)]
    labels, members = (
        np.concatenate(all_to_all(sync.comm, [values[piece] for piece in pieces])) for values in (labels, members)
    )
    _, places = np.unique(labels, return_inverse=True)
    sizes = np.bincount(places, members)
    return -sync.lowest(-int(sizes.max()) if sizes.size else 0)
