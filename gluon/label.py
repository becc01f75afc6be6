"""Label: one value per proxy, and a bit that says 'changed since last taken'."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cusp.partition import Partition
from cusp.runtime.devices import backend
from gluon.interfaces import Device
from gluon.reduction import ASSIGN, Reduction, require_reduction


class Label:
    """One value for each proxy of a partition, on its device.

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
        One bit per proxy; on a GPU twice as many uint32.

    Raises
    ------
    ReductionError
        ``reduction`` is something else, or the values are not numbers of a type that it is for.
    """

    def __init__(self, part: Partition, dtype: DTypeLike, fill: float, reduction: Reduction) -> None:
        require_reduction(reduction, np.dtype(dtype))
        self.part = part
        self.reduction = reduction
        self.device = backend(Device, part.device)
        self.values = self.device.full(part.num_proxies, fill, np.dtype(dtype))
        self.updated = self.device.no_bits(part.num_proxies)
        self._other: Any = None  # words for the bits after the next swap

    @property
    def identity(self) -> np.generic:
        """The value that changes none that it is combined with."""
        return self.reduction.identity(self.values.dtype)

    def write(self, gid: int, value: float) -> None:
        """Give a node a value, at each of its proxies: call it on every rank.

        Raises
        ------
        OptionError
            The graph has no such node.
        """
        self.part.check_node(gid)
        self.device.write(self.part, gid, value, self.values, self.updated)

    def mark(self, lids: Any) -> None:
        """Set the updated bits of some proxies, (n,) integers, whose values were written without an operator."""
        self.device.set_bits(lids.astype(np.int32, copy=False), self.updated)

    def mark_all(self) -> None:
        """Set the updated bits of all proxies; those after the last one stay clear."""
        words, width = self.updated, 8 * self.updated.itemsize
        whole, rest = divmod(self.part.num_proxies, width)
        words[:whole], words[whole:] = ~words.dtype.type(0), 0
        words[whole : whole + 1] = words.dtype.type((1 << rest) - 1)

    def take_updated(self) -> Any:
        """Local ids, int32, ascending, of the updated proxies; their bits are cleared."""
        return self.device.take_bits(self.updated, self.part.num_proxies)

    def swap_updated(self) -> Any:
        """The bits of the updated proxies, as they are until the next swap; the label goes on with none set."""
        taken, self.updated = self.updated, self._other
        if self.updated is None:
            self.updated = self.device.no_bits(self.part.num_proxies)
        else:
            self.device.clear(self.updated)
        self._other = taken
        return taken

    def reduction_of(self, kind: str) -> Reduction:
        """How what a ``reduce`` or ``broadcast`` brings is combined with the values that are here."""
        return self.reduction if kind == "reduce" else ASSIGN

    def reset(self, kind: str) -> tuple[bool, np.generic]:
        """Whether a value that was sent must not count again, and what it then becomes."""
        again = kind == "reduce" and not self.reduction.idempotent
        return again, self.identity if again else self.values.dtype.type(0)

    def masters(self) -> Any:
        """(masters,) values of this rank's own nodes, not a copy: the answer. Those of mirrors may be stale."""
        return self.values[: self.part.num_masters]

    def num_updated_masters(self) -> int:
        """Updated masters of this rank: summed over the ranks, nodes whose value changed."""
        return int(self.device.count_bits(self.updated, self.part.num_masters))
