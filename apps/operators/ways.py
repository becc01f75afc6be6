"""Ways to relax pending nodes in the order of their priority: which one is chosen, and each of them, in one place."""

from collections.abc import Callable
from typing import Any

from cusp.apps.operators.expressions.interfaces import Drain
from cusp.apps.operators.interfaces import is_sparse, without_rounds
from cusp.partition import Partition
from cusp.runtime import timeline
from cusp.runtime.devices import finisher
from gluon.label import Label
from gluon.mail.post import both_ways, until_quiet
from gluon.peers.inboxes_cpu import inboxes_of
from gluon.sync import Sync

SOME = 1 << 12  # edges between two looks for messages


def way_of(part: Partition, sync: Sync, has_order: bool = True, has_rows: bool = True) -> str:
    """How ranks relax their pending nodes together. Collective.

    ============================ ========= ============== =========== =============================================
    other ranks                  order     edges per node asked for   way
    ============================ ========= ============== =========== =============================================
    none shares a node           yes                                  ``whole``: all in one call
    none shares a node           no        few, or on CPU             ``whole``, as there is one bucket
    CPUs, share memory           yes       few            not bulk    ``whole``, which tells the others
    GPUs that are peers          yes       any            not async   ``whole``, which tells the others
    any                          yes       few            async       ``mail``: some edges, then a look for messages
    any                          no        any            async       ``mail``
    any                          yes       else                       ``rounds``: the lowest bucket of all, then a sync
    any                          no                                   ``passes``: all that changed, then a sync
    ============================ ========= ============== =========== =============================================

    Where the edges of a node are not together (``has_rows``), there are passes over all of them only. With many edges
    per node there are few rounds, and what a rank does before it knows what others have found is mostly done again:
    kron20, shortest paths on 2 CPU ranks, 200 ms in 14 rounds, 240 without.
    """
    on_cpus, sparse = {*sync.plan.devices} == {"cpu"}, is_sparse(part)
    if not has_rows:
        return "passes"
    if sync.plan.apart:
        return "whole" if has_order or sparse or part.device == "cpu" else "passes"
    if not has_order:
        return "mail" if sync.asynchronous else "passes"
    if sync.peers is not None and not without_rounds(part, sync):
        return "whole"
    if sparse and sync.execution != "bulk" and on_cpus:
        if sync.plan.transport == "peer" and inboxes_of(sync.comm) is not None:
            return "whole"
    return "mail" if without_rounds(part, sync) else "rounds"


def relax_all(
    name: str, drain: Drain, way: str, part: Partition, sync: Sync, label: Label, write: str, read: str
) -> int:
    """Relax from the updated nodes on until nothing is pending. Collective; returns buckets, runs or rounds.

    ``name`` is for timelines; ``write`` and ``read`` are the ends of edges.
    """

    def timed(function: Callable[..., Any], *arguments: Any) -> Any:
        return timeline.call(name, timeline.OPERATOR, finisher(part.device), function, *arguments)

    def run() -> bool:
        drain.add(label.swap_updated())
        return timed(drain.run, SOME)  # type: ignore[no-any-return]

    if way == "mail":
        rounds = until_quiet(sync, run, *both_ways(label, write, read))
        label.swap_updated()  # what the last runs have changed was relaxed in them, and all know it
        return rounds
    drain.add(label.swap_updated())
    if way == "whole":
        rounds = timed(drain.run_all, sync, write, read)
        sync.count_peers(rounds)
        return rounds
    rounds = 0
    while True:
        lowest = sync.lowest(drain.lowest())
        limit = drain.bucket_end(lowest)
        if limit <= lowest and sync.total(drain.count())[0] == 0:  # as low as priorities that nothing has
            return rounds
        timed(drain.run_below, limit)
        sync.reduce(label, write=write)
        sync.broadcast(label, read=read)
        drain.add(label.swap_updated())
        sync.end_round()
        rounds += 1
