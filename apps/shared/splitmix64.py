"""A seeded hash of global ids, for draws that do not depend on the partition or the device."""

from typing import Any

import numpy as np

from cusp.kernels.bits import GOLDEN, mix


def splitmix64(gids: Any, seed: int) -> Any:
    """A random-looking number for each node, different for different nodes (Steele, Lea and Flood, OOPSLA 2014).

    Parameters
    ----------
    gids : (n,) integers, on the host or a GPU

    Returns
    -------
    (n,) uint64, where ``gids`` is
    """
    return mix(gids.astype(np.uint64) * GOLDEN + np.uint64(seed % 2**64))


def distinct_lots(gids: Any, seed: int, num_nodes: int) -> Any:
    """(n,) int64 from 0 to 2^62 - 1, where ``gids`` (n,) int64 is: random-looking, with the node in the lowest bits."""
    bits = num_nodes.bit_length()
    return (splitmix64(gids, seed) >> np.uint64(2)).astype(np.int64) >> bits << bits | gids


def key_of(seed: int) -> int:
    """What a sequence of draws counts up from, far from that of any other seed; 1 for the seed 1."""
    return 1 + int(splitmix64(np.array([(seed - 1) % 2**64], np.uint64), 0)[0])
