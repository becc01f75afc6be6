"""The graph with every edge reversed: searches there go along in-edges, so one of them finds distances to a node."""

from dataclasses import replace

import numpy as np

from cusp import ADD, Label, Partition, Sync
from cusp.kernels.arrays import sizes_of
from cusp.partition import Csc
from gluon.plan import SyncPlan


def reversed_graph(part: Partition, sync: Sync) -> tuple[Partition, SyncPlan]:
    """The graph with every edge reversed, over the same proxies with the same local ids. Collective.

    A symmetric graph without weights is its own. In others, masters without out-edges need not come last: give them to
    edge operators, and to searches made of these.
    """
    if part.symmetric and part.weights is None:
        return part, sync.plan
    csc = part.csc or part.with_csc().csc
    assert csc is not None
    degree = Label(part, np.int64, 0, ADD)
    degree.values[:] = sizes_of(csc.offsets)
    degree.mark_all()
    sync.reduce(degree, write="dst")
    back = replace(
        part, offsets=csc.offsets, targets=csc.sources, weights=csc.weights, has_in=part.has_out,
        degrees=degree.masters(), csc=Csc(part.offsets, part.targets, part.weights),
    )  # fmt: skip
    return back, replace(sync.plan, src=sync.plan.dst, dst=sync.plan.src)
