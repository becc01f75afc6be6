"""Searches: values that spread from some nodes along out-edges, where every node keeps the best that a path brings it.

::

    WIDTHS = Search("min(width, weight)", "width", MAX)
    width, rounds = WIDTHS.run(part, sync, {source: 2**63 - 1}, np.int64)

What a search is, is data. How ranks run it together is decided elsewhere: apps/operators/ways.py.
"""

import functools
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.run.former import Former, FormerError
from cusp.apps.shared.lengths import Lengths
from cusp.errors import together
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import MAX, MIN, Reduction
from gluon.sync import Sync


class Search(NamedTuple):
    """What spreads, and which of two values is the better one.

    Attributes
    ----------
    candidate : str
        What an edge offers its target, in the language of edge operators.
    label : str
        What the values are called there.
    reduction : Reduction
        Keeps the better one.
    """

    candidate: str
    label: str
    reduction: Reduction

    @functools.cache  # noqa: B019 - a few searches, for ever
    def operator(self, delta: float | None = None) -> EdgeOperator:
        """The pass along edges that it repeats; with ``delta``, in the order of its values, in buckets that wide."""
        priority = None if delta is None else self.label
        return EdgeOperator(self.candidate, f"dst.{self.label}", priority=priority, delta=delta)

    @functools.cache  # noqa: B019 - likewise
    def offers(self) -> EdgeOperator:
        """The pass that finds the best that edges offer each node, whatever that has."""
        return EdgeOperator(self.candidate, "dst.offered")

    def run(
        self, part: Partition, sync: Sync, starts: Mapping[int, float], dtype: DTypeLike, delta: float | None = None,
        **given: Any,
    ) -> tuple[Label, int]:  # fmt: skip
        """The values of all nodes, and the rounds. Collective.

        Parameters
        ----------
        starts : dict
            The value of each node where it begins.
        dtype : numpy type
            Of the values: identities of the reduction where nothing arrives.
        delta : float, optional
            The width of a bucket of values; chosen if left out.
        given
            What other names in the expressions stand for.
        """
        label = Label(part, dtype, self.reduction.identity(np.dtype(dtype)).item(), self.reduction)
        for node, value in starts.items():
            label.write(node, value)
        return label, self.operator(delta).until_quiet(part, sync, **{self.label: label}, **given)


HOPS = Search("src.distance + 1", "distance", MIN)
DISTANCES = Search("src.distance + weight", "distance", MIN)
WIDTHS = Search("min(width, weight)", "width", MAX)
TREES = Search("tree + one_hop", "tree", MIN)  # hops in the high bits of a value, the root in the low ones


def distances_from(
    part: Partition, sync: Sync, source: int, lengths: Lengths, former: Former | None = None
) -> tuple[Any, Any]:
    """Distances of all proxies, ``lengths.far`` where there is no path, and rounds. Collective.

    Those of mirrors may be stale, and all of them may be in memory that the next search uses.
    """
    search, delta = HOPS if lengths.unit else DISTANCES, min(lengths.delta, sys.float_info.max)
    if former is not None:
        label, rounds = go_on(search, part, sync, source, former, "distance", lengths.dtype, delta)
        return label.values, rounds
    if lengths.settled is not None:
        return lengths.settled.run(sync, source, lengths, search.operator(delta).drain)  # type: ignore[no-any-return]
    distances, rounds = search.run(part, sync, {source: 0}, lengths.dtype, delta)
    return distances.values, rounds


def go_on(
    search: Search, part: Partition, sync: Sync, source: int, former: Former, name: str, dtype: DTypeLike,
    delta: float | None = None,
) -> tuple[Label, int]:  # fmt: skip
    """Lengths of shortest paths from those in the graph before nodes and edges were added, and rounds. Collective.

    What edges offer is compared with what nodes have. Where an offer is better, the search goes on from there. Where
    all of them are worse, no path can have led there, so that the former lengths are not of this graph: if edges are
    longer than 0, all mistakes are found that make a length too low, as what a node has leads back to the source in
    smaller and smaller steps.

    Parameters
    ----------
    name : str
        Of the label in the former answer: -1 or infinite where there is no path.
    dtype : numpy type
        Of the lengths.

    Raises
    ------
    FormerError
        On every rank.
    """
    label, offered = (Label(part, dtype, MIN.identity(np.dtype(dtype)).item(), MIN) for _ in range(2))
    kind, own, best = label.values.dtype.kind, label.masters(), offered.masters()
    had = former.label(part, sync.comm, name, kind, -1 if kind == "i" else np.inf)
    usable = (had >= 0) & (had < label.identity)  # what is not a number, or too long for a path, counts as none
    own[usable] = had[usable]
    label.mark_all()
    sync.broadcast(label, read="any")
    label.swap_updated()
    offered.write(source, 0)
    search.offers()(part, offered=offered, **{search.label: label})
    sync.reduce(offered, write="dst")
    with together(sync.comm):
        _refuse(former, part, name, source, own < best, own)
    better = label.device.xp.flatnonzero(best < own)
    own[better] = best[better]
    label.mark(better)
    sync.broadcast(label, read="src")
    return label, search.operator(delta).until_quiet(part, sync, **{search.label: label})


def _refuse(former: Former, part: Partition, name: str, source: int, wrong: Any, values: Any) -> None:
    """Raise FormerError if one of the masters has less than it can have."""
    if wrong.any():
        lid = int(wrong.argmax())
        raise FormerError(
            f"{former.path}: {name} of node {int(part.gids[lid]):,}: {values[lid]} is less than any path to it; give "
            f"an answer from node {source:,} on this graph before nodes and edges were added"
        )
