"""Mailboxes of ranks that compute on CPUs: see interfaces.py. Messages are those of rounds."""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from cusp.runtime.compiled_code import njit
from gluon import message_cpu as message
from gluon.exchange import block_words

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists


class Memory:
    """What mailboxes of the same lists share: what is sent to whom, and room for a message each way."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Lists, dict[str, Any]] = WeakKeyDictionary()

    def of(self, lists: "Lists", kind: str) -> "tuple[dict[int, message.Listed], dict[int, np.ndarray]]":
        """The lists from which a kind sends, by rank, and those into which it receives."""
        known = self._known.setdefault(lists, {})
        if kind not in known:
            out, into = lists.ends(kind)
            known[kind] = (
                {rank: message.listed(lids) for rank, lids in enumerate(out) if lids.size},
                {rank: lids for rank, lids in enumerate(into) if lids.size},
            )
        return known[kind]


class Mailbox:
    def __init__(self, memory: Memory, kind: str, label: "Label", lists: "Lists") -> None:
        self.kind, self.label = kind, label
        self._out, self._in = memory.of(lists, kind)
        self.targets = [*self._out]
        self.arrived = np.zeros_like(label.updated)
        self._unsent = {rank: np.zeros_like(where.members) for rank, where in self._out.items()}
        self._marked = dict.fromkeys(self._out, False)
        self._room: dict[tuple[str, int], np.ndarray] = {}
        self._combine = message.combine_by(label.reduction)
        self._reset = label.reset(kind)

    @property
    def has_unsent(self) -> bool:
        return any(self._marked.values())

    def mark_unsent(self, bits: np.ndarray) -> None:
        for rank, where in self._out.items():
            self._marked[rank] |= _mark(where.of(bits), where.members, self._unsent[rank])

    def write(self, rank: int) -> np.ndarray | None:
        if not self._marked[rank]:
            return None
        where, unsent, words = self._out[rank], self._unsent[rank], self._room_for("out", rank)
        views = words, words.view(np.uint32), words.view(self.label.values.dtype)
        end = message.extract(*where, self.label.values, unsent, True, *self._reset, *views, 0)
        unsent.fill(0)
        self._marked[rank] = False
        return words[:end]

    def into(self, rank: int) -> np.ndarray:
        return self._room_for("in", rank)

    def read(self, rank: int, words: int) -> None:
        room, values = self._room_for("in", rank), self.label.values
        views = room, room.view(np.uint32), room.view(values.dtype)
        self._combine(self._in[rank], values, self.arrived, True, values.dtype.type(0), *views, 0)

    def admit(self) -> None:
        self.label.updated |= self.arrived
        self.arrived.fill(0)

    def _room_for(self, direction: str, rank: int) -> np.ndarray:
        """Room for the largest message to or from a rank."""
        if (direction, rank) not in self._room:
            entries = self._out[rank].lids.size if direction == "out" else self._in[rank].size
            words = block_words(entries, self.label.values.itemsize)
            self._room[direction, rank] = np.empty(words, np.uint64)
        return self._room[direction, rank]


@njit(cache=True, nogil=True)
def _mark(bits, members, unsent):  # type: ignore[no-untyped-def]
    """Mark members that have a bit; whether any has."""
    any_bits = np.uint64(0)
    for word in range(members.size):
        new = bits[word] & members[word]
        unsent[word] |= new
        any_bits |= new
    return any_bits != 0
