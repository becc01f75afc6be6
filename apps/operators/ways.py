"""Ways for ranks to run an algorithm together, and the table that chooses one: nobody else asks who the others are."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cusp.apps.operators.interfaces import is_sparse
from cusp.partition import Partition
from gluon.peers.inboxes_cpu import inboxes_of
from gluon.sync import Sync

ANY = "none peers others cpu gpu mixed few many auto bulk async"


class Row(NamedTuple):
    """A way, and where it is chosen: an entry is a word, or several.

    Attributes
    ----------
    way : str
    partners : {'none', 'peers', 'others'}
        No rank shares a node with another; some do, and all reach each other's memory; some do.
    devices : {'cpu', 'gpu', 'mixed'}
        Of all ranks.
    edges : {'few', 'many'}
        Per node: :func:`~cusp.apps.operators.interfaces.is_sparse`.
    asked : {'auto', 'bulk', 'async'}
        By ``--execution``.
    order : bool or None
        Only for algorithms that have, or have not, an order in which they go; None: for all.
    mirrors : bool or None
        Only where some mirrors have out-edges, or none has.
    """

    way: str
    partners: str = ANY
    devices: str = ANY
    edges: str = ANY
    asked: str = ANY
    order: bool | None = None
    mirrors: bool | None = None


# The first row counts that holds, with a way that the algorithm has on these devices. The ways are:
#   copies  each rank has a copy of the whole graph, and does a part of the work in it
#   whole   one call on each rank, to the end
#   peers   the same, and while it runs, ranks write into each other's memory
#   mail    some work, then a look for messages; no rank waits for another
#   ahead   by an algorithm that goes on to later levels before others have ended this one
#   rounds  work up to a point that all agree on, then a sync
#   passes  along all edges, or those of all nodes that changed; then a sync
# With many edges per node there are few rounds, and what a rank does before it knows what others have found is mostly
# done again, where there is an order: kron20, shortest paths on 2 CPU ranks, 200 ms in 14 rounds, 240 without.
TABLE = (
    #    way     partners        devices      edges   asked for
    Row("copies", ANY,            "cpu gpu",   ANY,    ANY),
    Row("passes", "none",         "gpu",       "many", ANY),
    Row("whole",  "none",         ANY,         ANY,    ANY),
    Row("peers",  "peers",        "cpu",       "few",  "auto async"),
    Row("mail",   "peers others", ANY,         "few",  "async"),
    Row("mail",   "peers others", ANY,         ANY,    "async", order=False),
    Row("ahead",  "peers",        "gpu",       "few",  ANY,    mirrors=True),
    Row("peers",  "peers",        "gpu",       ANY,    ANY),
    Row("ahead",  "peers others", ANY,         "few",  ANY),
    Row("rounds", ANY,            ANY,         ANY,    ANY),
    Row("passes", ANY,            ANY,         ANY,    ANY),
)  # fmt: skip


class Form(NamedTuple):
    """An algorithm in the form for a way, or for several.

    Attributes
    ----------
    run : function (part, sync, prepared, ...) -> anything
    prepare : function (part, sync, way) -> anything
        What its runs on one partition share.
    """

    run: Callable[..., Any]
    prepare: Callable[[Partition, Sync, str], Any] = lambda part, sync, way: None


@dataclass(frozen=True, eq=False)
class Algorithm:
    """What an algorithm can do.

    Attributes
    ----------
    forms : dict of Form
        By way.
    gpus_only : tuple of str
        Ways for which only GPUs have a form.
    order : bool
        Some orders of its steps are better than others.
    """

    forms: Mapping[str, Form]
    gpus_only: tuple[str, ...] = ()
    order: bool = field(default=False, kw_only=True)

    def way(self, part: Partition, sync: Sync) -> str:
        """The way in which these ranks run it. Collective."""
        return way_of(self.forms, part, sync, self.gpus_only, self.order)

    def form(self, part: Partition, sync: Sync) -> Form:
        """The form for that way. Collective."""
        return self.forms[self.way(part, sync)]

    def prepare(self, part: Partition, sync: Sync) -> dict[str, Any]:
        """What its runs on a partition share, by way. Collective."""
        way = self.way(part, sync)
        return {way: self.forms[way].prepare(part, sync, way)}

    def run(self, part: Partition, sync: Sync, prepared: Mapping[str, Any], *arguments: Any) -> Any:
        """Run it in the way that these ranks have, with what :meth:`prepare` returned. Collective."""
        way = self.way(part, sync)
        return self.forms[way].run(part, sync, prepared[way], *arguments)


def way_of(
    ways: Container[str], part: Partition, sync: Sync, gpus_only: Container[str] = (), order: bool = False
) -> str:
    """The way that ``TABLE`` chooses among those that an algorithm has; empty if none suits these ranks. Collective."""
    plan = sync.plan
    devices = "mixed" if plan.mixed else plan.devices[0]
    edges = "few" if is_sparse(part) else "many"
    for row in TABLE:  # no word is a part of another
        if (
            row.way in ways
            and (devices == "gpu" or row.way not in gpus_only)
            and (devices in row.devices and edges in row.edges and sync.execution in row.asked)
            and (row.order in (None, order) and row.mirrors in (None, not plan.src.empty))
            and _fits_partners(row.partners, sync)
        ):
            return row.way
    return ""


def _fits_partners(words: str, sync: Sync) -> bool:
    """Whether the other ranks are what a row says. Collective, as only ranks that may need their memory make it."""
    if sync.plan.apart:
        return "none" in words
    if "others" in words or "peers" not in words:
        return "others" in words
    if {*sync.plan.devices} == {"cpu"}:
        return sync.plan.transport == "peer" and inboxes_of(sync.comm) is not None
    return sync.peers is not None
