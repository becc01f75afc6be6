"""A seeded hash of global ids, for draws that do not depend on the partition or the device."""

from typing import Any

import numpy as np


def splitmix64(gids: Any, seed: int) -> Any:
    """A random-looking number for each node, different for different nodes (Steele, Lea and Flood, OOPSLA 2014).

    Parameters
    ----------
    gids : (n,) integers, on the host or a GPU

    Returns
    -------
    (n,) uint64, where ``gids`` is
    """
    mixed = gids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def key_of(seed: int) -> int:
    """What a sequence of draws counts up from, far from that of any other seed; 1 for the seed 1."""
    return 1 + int(splitmix64(np.array([(seed - 1) % 2**64], np.uint64), 0)[0])
