"""An operator that runs from updated nodes on until no node changes: each way to do so, once."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from cusp.apps.operators.expressions.interfaces import Drain
from cusp.apps.operators.ways import Algorithm, Form
from cusp.partition import Partition
from cusp.runtime import timeline
from cusp.runtime.devices import finisher
from gluon.mail.post import both_ways, until_quiet

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.sync import Sync

SOME = 1 << 12  # edges between two looks for messages


class Work(NamedTuple):
    """An operator on its label.

    Attributes
    ----------
    name : str
        For timelines.
    label : Label
    write, read : {'src', 'dst'}
        Ends of edges.
    run : function (bits)
        Runs the operator along the edges of the nodes that have a bit.
    pending : function () -> Drain
        What relaxes nodes in the order of their priority.
    """

    name: str
    label: "Label"
    write: str
    read: str
    run: Callable[[Any], None]
    pending: Callable[[], Drain]

    def timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the drain returns; a timeline shows how long it took."""
        return timeline.call(self.name, timeline.OPERATOR, finisher(self.label.part.device), function, *arguments)


def _whole(part: Partition, sync: "Sync", work: Work) -> int:
    drain = work.pending()
    drain.add(work.label.swap_updated())
    buckets: int = work.timed(drain.run_all)
    sync.count_peers(buckets)
    return buckets


def _peers(part: Partition, sync: "Sync", work: Work) -> int:
    drain = work.pending()
    drain.add(work.label.swap_updated())
    buckets: int = work.timed(drain.run_peers, sync, work.write, work.read)
    sync.count_peers(buckets)
    return buckets


def _mail(part: Partition, sync: "Sync", work: Work) -> int:
    drain, label = work.pending(), work.label

    def run() -> bool:
        drain.add(label.swap_updated())
        return work.timed(drain.run, SOME)  # type: ignore[no-any-return]

    runs = until_quiet(sync, run, *both_ways(label, work.write, work.read))
    label.swap_updated()  # what the last runs have changed was relaxed in them, and all know it
    return runs


def _rounds(part: Partition, sync: "Sync", work: Work) -> int:
    """The lowest bucket of all ranks, then a sync."""
    drain, label, rounds = work.pending(), work.label, 0
    drain.add(label.swap_updated())
    while True:
        lowest = sync.lowest(drain.lowest())
        limit = drain.bucket_end(lowest)
        if limit <= lowest and sync.total(drain.count())[0] == 0:  # as low as priorities that nothing has
            return rounds
        work.timed(drain.run_below, limit)
        sync.reduce(label, write=work.write)
        sync.broadcast(label, read=work.read)
        drain.add(label.swap_updated())
        sync.end_round()
        rounds += 1


def _passes(part: Partition, sync: "Sync", work: Work) -> int:
    label, rounds = work.label, 0
    while (frontier := sync.total(label.num_updated_masters())[0]) > 0:
        work.run(label.swap_updated())
        sync.reduce(label, write=work.write)
        sync.broadcast(label, read=work.read)
        sync.end_round(frontier=frontier)
        rounds += 1
    return rounds


BY_PRIORITY = Algorithm(
    {"whole": Form(_whole), "peers": Form(_peers), "mail": Form(_mail), "rounds": Form(_rounds)}, order=True
)
IN_ANY_ORDER = Algorithm({"whole": Form(_whole), "mail": Form(_mail), "rounds": Form(_passes)})
WITHOUT_ROWS = Algorithm({"passes": Form(_passes)})  # the edges of a node are not together
