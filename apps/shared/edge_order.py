"""The order in which edges come into a spanning forest: by weight, and by their ends where weights are equal."""

from typing import Any

import numpy as np

from cusp.apps.operators.choices.interfaces import Candidates
from cusp.kernels.arrays import mapped, take
from cusp.partition import Partition
from cusp.runtime.devices import to_host, xp_of

SIGN = np.int64(-(2**63))
SAMPLE = 1 << 12  # edges whose weights say which are light
LIGHT = 2  # edges per node


class EdgeOrder:
    """The lightest edges of a rank first, or the heaviest.

    Of edges that weigh the same, that with the lowest end is first, then that with the lower other end, then the one
    from the lower end to the other, then that of the lower rank, and there the one that is stored first.

    Attributes
    ----------
    of_nodes : (proxies,) uint32
        The place of each among the global ids of this rank.
    maximum : bool
    """

    def __init__(self, part: Partition, maximum: bool) -> None:
        xp = xp_of(part.device)
        self.part, self.maximum, self.of_nodes = part, maximum, xp.empty(part.num_proxies, np.uint32)
        self.of_nodes[part.lid_map.table] = xp.arange(part.num_proxies, dtype=np.uint32)

    def candidates(self, places: Any, sources: Any = None) -> Candidates:
        """The edges at some places, (n,) int64, whose sources, (n,) int32, are looked up if they are not given."""
        part, xp = self.part, xp_of(self.part.device)
        if sources is None:
            sources = (xp.searchsorted(part.offsets, places, side="right") - 1).astype(np.int32)
        keys, targets = xp.zeros((places.size, 2), np.uint64), take(part.targets, places)
        keys[:, 1] = mapped(self._ends, sources, targets, dtype=np.uint64)
        if part.weights is not None:
            keys[:, 0] = mapped(self._weights, take(part.weights, places), dtype=np.uint64)
        return Candidates(keys, sources, targets, places)

    def halves(self) -> list[tuple[bool, tuple[Any, int]]]:
        """Whether the light edges are meant, or all others, and where the light ones end; from a sample of the edges.

        The end is the weight of an edge and the second of its keys: see ``Msf.list_edges``.
        """
        part, edges = self.part, self.part.num_local_edges
        if edges == 0:
            return []
        size = min(SAMPLE, edges)
        sample = self.candidates(xp_of(part.device).arange(size) * edges // size)
        last = np.lexsort(to_host(sample.keys).T[::-1])[min(LIGHT * part.num_proxies * size // edges, size - 1)]
        weight = 0 if part.weights is None else to_host(part.weights[sample.places[last : last + 1]])[0]
        return [(light, (weight, int(sample.keys[last, 1]))) for light in (True, False)]

    def keys(self, edges: Candidates, chosen: Any) -> list[np.ndarray]:
        """Numbers, (n,) uint64 on the host, that order some candidates of all ranks, the first number first."""
        xp, gids = xp_of(self.part.device), self.part.gids.view(np.uint64)
        source, target = gids[edges.sources[chosen]], gids[edges.targets[chosen]]
        numbers = edges.keys[chosen, 0], xp.minimum(source, target), xp.maximum(source, target), source
        return [to_host(each) for each in numbers]

    def _ends(self, sources: Any, targets: Any) -> Any:
        source, target = (self.of_nodes[ends].astype(np.uint64) for ends in (sources, targets))
        xp = xp_of(self.part.device)
        lower, higher = xp.minimum(source, target), xp.maximum(source, target)
        return lower << np.uint64(32) | higher << np.uint64(1) | (source > lower)

    def _weights(self, values: Any) -> Any:
        if values.dtype.kind == "f":  # the bits of floats rise with them, and below 0 fall
            bits = (values.astype(np.float64) + 0.0).view(np.int64)
            values = (bits ^ (bits >> 63 | SIGN)).view(np.uint64)
        elif values.dtype.kind == "i":
            values = (values.astype(np.int64) ^ SIGN).view(np.uint64)
        values = values.astype(np.uint64, copy=False)
        return ~values if self.maximum else values
