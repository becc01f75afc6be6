"""Memory for messages, which grows and stays."""

from dataclasses import dataclass
from typing import Any

MOST_KEPT = 64  # ways to divide the memory among the ranks


@dataclass(frozen=True, eq=False)
class Buffers:
    """Memory for one message to, or from, each rank.

    Attributes
    ----------
    pieces : list of (words,) uint64
    addresses : (ranks,) uint64, or None on CPUs
        Of the pieces, on the device: for kernels.
    """

    pieces: list[Any]
    addresses: Any = None


class Memory:
    """One piece of memory for each direction, divided among the ranks: for transports that can send from anywhere.

    Parameters
    ----------
    xp : module
        NumPy or CuPy: where the memory is.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._whole: dict[str, Any] = {}
        self._buffers: dict[str, dict[tuple[int, ...], Buffers]] = {}

    def buffers(self, direction: str, words: tuple[int, ...]) -> Buffers:
        """The buffers for messages of these lengths; see :class:`gluon.transports.table.Transport`."""
        known = self._buffers.setdefault(direction, {})
        if words not in known:
            needed = sum(words)
            if direction not in self._whole or self._whole[direction].size < needed or len(known) >= MOST_KEPT:
                known.clear()
            if direction not in self._whole or self._whole[direction].size < needed:
                self._whole[direction] = self._xp.empty(max(needed, 1), "u8")
            known[words] = self._divide(self._whole[direction], words)
        return known[words]

    def _divide(self, whole: Any, words: tuple[int, ...]) -> Buffers:
        pieces, start = [], 0
        for size in words:
            pieces.append(whole[start : start + size])
            start += size
        on_device = hasattr(whole, "get")
        addresses = [piece.data.ptr for piece in pieces] if on_device else None
        return Buffers(pieces, self._xp.array(addresses, "u8") if on_device else None)
