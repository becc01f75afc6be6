"""Label: one value a proxy, and a bit that says 'changed since last taken'."""

import numpy as np
from numpy.typing import DTypeLike

from cusp.partition import Partition
from gluon import device_cpu as device
from gluon.reduction import Reduction


class Label:
    """One value for each proxy of a partition; the only thing here that changes.

    Parameters
    ----------
    part : Partition
    dtype : numpy type
    fill : number
        First value of every proxy.
    reduction : Reduction

    Attributes
    ----------
    values : (proxies,) dtype
    updated : (ceil(proxies / 64),) uint64
        A bit a proxy.
    """

    def __init__(self, part: Partition, dtype: DTypeLike, fill: float, reduction: Reduction) -> None:
        self.part = part
        self.reduction = reduction
        self.values = np.full(part.num_proxies, fill, dtype)
        self.updated = np.zeros(-(-part.num_proxies // 64), np.uint64)

    def write(self, gid: int, value: float) -> None:
        """Give a node a value, at each of its proxies: call it on every rank."""
        lid = self.part.lid(gid)
        if lid >= 0:
            self.values[lid] = value
            self.updated[lid >> 6] |= np.uint64(1 << (lid & 63))

    def take_updated(self) -> np.ndarray:
        """Local ids, int32, ascending, of the updated proxies; their bits are cleared."""
        return device.take_bits(self.updated, self.part.num_proxies)

    def swap_updated(self) -> np.ndarray:
        """The bits of the updated proxies; the label goes on with none set."""
        taken = self.updated
        self.updated = np.zeros_like(taken)
        return taken

    def num_updated_masters(self) -> int:
        """Updated masters of this rank: summed over the ranks, nodes whose value changed."""
        return int(device.count_bits(self.updated, self.part.num_masters))
