"""Mailboxes of ranks that compute on GPUs: see interfaces.py. Messages are those of rounds, and go through the host."""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import cupy as cp
import numpy as np

from cusp.kernels.cuda import pinned
from gluon import device_gpu as device
from gluon.exchange import block_words
from gluon.message_gpu import Joined, Room, read_blocks, write_blocks
from gluon.transports.staged import copy

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists


class Memory:
    """Lists on the device, which mailboxes share."""

    def __init__(self) -> None:
        self.room, self.cursors = Room(1, 1), cp.zeros(2, np.int64)
        self._known: WeakKeyDictionary[Lists, dict[str, Any]] = WeakKeyDictionary()

    def of(self, lists: "Lists", kind: str) -> tuple[dict[int, Joined], dict[int, Any]]:
        """The lists from which a kind sends, by rank, and those into which it receives."""
        known = self._known.setdefault(lists, {})
        if kind not in known:
            out, into = lists.ends(kind)
            known[kind] = (
                {rank: Joined.of((lids,)) for rank, lids in enumerate(out) if lids.size},
                {rank: Joined.of((lids,)) for rank, lids in enumerate(into) if lids.size},
            )
        return known[kind]


class Mailbox:
    def __init__(self, memory: Memory, kind: str, label: "Label", lists: "Lists") -> None:
        self.kind, self.label, self._memory = kind, label, memory
        self._out, self._in = memory.of(lists, kind)
        self.targets = [*self._out]
        self.arrived = cp.zeros_like(label.updated)
        self._unsent = {rank: cp.zeros_like(label.updated) for rank in self._out}
        self._marked = dict.fromkeys(self._out, False)
        self._room: dict[tuple[str, int], tuple[Any, Any, np.ndarray]] = {}

    @property
    def has_unsent(self) -> bool:
        return any(self._marked.values())

    def mark_unsent(self, bits: Any) -> None:
        for rank, unsent in self._unsent.items():
            unsent |= bits
            self._marked[rank] = True

    def write(self, rank: int) -> np.ndarray | None:
        if not self._marked[rank]:
            return None
        unsent, (buffer, address, landing) = self._unsent[rank], self._room_for("out", rank)
        (words,) = write_blocks(self.kind, self._out[rank], [(self.label, unsent)], True, address, self._memory.room)
        device.clear(unsent)
        self._marked[rank] = False
        if words == 0:
            return None
        stream = cp.cuda.get_current_stream()
        copy(landing.ctypes.data, buffer.data.ptr, 8 * words, stream)
        stream.synchronize()
        return landing[:words]

    def into(self, rank: int) -> np.ndarray:
        return self._room_for("in", rank)[2]

    def read(self, rank: int, words: int) -> None:
        (lids,), label = self._in[rank].pieces, self.label
        buffer, _, landing = self._room_for("in", rank)
        stream = cp.cuda.get_current_stream()
        copy(buffer.data.ptr, landing.ctypes.data, 8 * words, stream)
        read_blocks(lids, buffer, words, [(label, label.reduction, self.arrived)], None, self._memory.cursors)
        stream.synchronize()  # the next message may be written into the same memory

    def admit(self) -> None:
        self.label.updated |= self.arrived
        device.clear(self.arrived)

    def _room_for(self, direction: str, rank: int) -> tuple[Any, Any, np.ndarray]:
        """Room for the largest message to or from a rank: on the device, its address there, and on the host."""
        if (direction, rank) not in self._room:
            where = self._out[rank] if direction == "out" else self._in[rank]
            words = block_words(where.pieces[0].size, self.label.values.itemsize)
            buffer = cp.empty(words, np.uint64)
            self._room[direction, rank] = buffer, cp.array([buffer.data.ptr], np.uint64), pinned(words, np.uint64)
        return self._room[direction, rank]
