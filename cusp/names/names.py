"""What nodes are called: by number, by name, and what is nearly the name that was asked for."""

import operator
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import numpy as np

from cusp.errors import OptionError, shortened
from cusp.names.packed import Packed

NEAR = 10_000  # sorted names on each side of the one asked for that are compared with it
SHOWN = 3  # of similar names


class Names(ABC):
    """The names of the nodes 0, 1, 2 ...; as a sequence, these names.

    Attributes
    ----------
    whole : bool
        They are whole numbers of 64 bits.
    """

    whole = False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, gid: int) -> Hashable:
        """The name of a node."""

    @abstractmethod
    def find(self, name: Any) -> int | None:
        """The node of this name, if there is one."""

    @abstractmethod
    def near(self, name: str) -> list[str]:
        """Names among which similar ones are likely."""

    def __iter__(self) -> Iterator[Hashable]:
        return (self[gid] for gid in range(len(self)))

    def gid(self, name: Any, option: str = "node") -> int:
        """The node of this name, which was given for an option.

        Raises
        ------
        OptionError
            There is none; the message has similar names.
        """
        found = self.find(name)
        if found is not None:
            return found
        similar = get_close_matches(str(name), self.near(str(name)), SHOWN)
        advice = f"; similar: {', '.join(map(shortened, similar))}" if similar else ""
        raise OptionError(f"{option} {shortened(repr(name))}: no node of the graph has this name{advice}")

    def of(self, gids: Iterable[int]) -> list[Hashable]:
        """The names of nodes; None for negative numbers, which are no nodes."""
        return [self[gid] if gid >= 0 else None for gid in gids]


def gid_of_node(node: Any, names: Names | None, num_nodes: int) -> int:
    """Global id of a node, which is given by its name if nodes have names.

    Raises
    ------
    OptionError
        There is no such node.
    """
    if names is not None:
        return names.gid(node)
    try:
        gid = operator.index(node)
    except TypeError:
        raise OptionError(f"{node!r}: nodes are integers, 0 to {num_nodes - 1}") from None
    if not 0 <= gid < num_nodes:
        raise OptionError(f"node {gid}: the graph has the nodes 0 to {num_nodes - 1}")
    return gid


class SortedNames(Names):
    """Strings in the order of their UTF-8 bytes, in memory or mapped from a graph file.

    If they are ``whole`` numbers, they are given as such, and asked for as such or as texts.

    >>> names = SortedNames(Packed.of(["Cosette", "Javert", "Valjean"]))
    >>> names[1], names.find("Valjean"), names.of(np.array([2, -1]))
    ('Javert', 2, ['Valjean', None])
    """

    def __init__(self, packed: Packed, whole: bool = False) -> None:
        self._packed = packed
        self.whole = whole

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, gid: int) -> str | int:
        text = self._packed[gid].decode(errors="replace")
        return int(text) if self.whole else text

    def find(self, name: Any) -> int | None:
        if self.whole and isinstance(name, (int, np.integer)):
            name = str(int(name))
        if not isinstance(name, str):
            return None
        place = self._place(name)
        return place if place < len(self) and str(self[place]) == name else None

    def near(self, name: str) -> list[str]:
        place = self._place(name)
        return self.packed(max(place - NEAR, 0), min(place + NEAR, len(self))).strings()

    def of(self, gids: Iterable[int]) -> list[Hashable]:
        """See :meth:`Names.of`; all at once."""
        places = np.asarray(gids, np.int64)
        texts = self._packed.take(places[places >= 0]).strings()
        known = map(int, texts) if self.whole else iter(texts)
        return [next(known) if place >= 0 else None for place in places.tolist()]

    def packed(self, first: int = 0, last: int | None = None) -> Packed:
        """The names of nodes ``first`` to ``last`` (exclusive); all of them as they are kept."""
        return self._packed if last is None else self._packed.take(np.arange(first, last))

    def _place(self, name: str) -> int:
        """Nodes whose names come before this one."""
        return bisect_left(range(len(self)), name.encode(errors="surrogateescape"), key=self._packed.__getitem__)


class ListedNames(Names):
    """Objects of any hashable types, in any order, as NetworkX has them."""

    def __init__(self, names: list[Hashable]) -> None:
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, gid: int) -> Hashable:
        return self._names[gid]

    def find(self, name: Any) -> int | None:
        return self._numbers.get(name) if isinstance(name, Hashable) else None

    def near(self, name: str) -> list[str]:
        """See :meth:`Names.near`: the first ones."""
        return [str(other) for other in self._names[: 2 * NEAR]]
