"""Sync: mirrors -> master by the reduction, master -> mirrors by broadcast, between two operators."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.errors import OptionError
from cusp.runtime import debugging, progress, timeline, watchdog
from cusp.runtime.exchange import kept
from cusp.runtime.mpi import MPI
from gluon import checks
from gluon.exchange import Exchange
from gluon.label import Label
from gluon.plan import SyncPlan
from gluon.transports import get_transport
from gluon.transports.numbers import HIGHEST, LOWEST, SUM

if TYPE_CHECKING:
    from gluon.peers.memory_gpu import Peers


@dataclass
class Traffic:
    """What one rank sent in one exchange."""

    kind: str
    messages: int
    bytes: int


class Sync:
    """Keeps labels consistent where an operator writes at ``write`` and the next one reads at ``read``.

    Parameters
    ----------
    plan : SyncPlan
    comm : Intracomm
    write, read : {'src', 'dst', 'any'}
        Which end of an edge u -> v the operators write and read: push and pull along an edge both
        read u and write v.
    execution : {'auto', 'bulk', 'async'}
        In rounds or without, where algorithms can; ``auto``: as an algorithm is faster.
        Mixed jobs go in rounds.

    Attributes
    ----------
    traffic : list of Traffic
        One entry per exchange.
    exchange : Exchange
        What carries labels along the lists of the plan; it stays when this object goes.
    peers : Peers or None
        The ranks, if their kernels can wait for each other and store into each other's memory, and share nodes.
    """

    def __init__(
        self, plan: SyncPlan, comm: MPI.Intracomm, write: str = "dst", read: str = "src", execution: str = "auto"
    ) -> None:
        self.plan, self.comm = plan, comm
        self.execution = execution
        if execution == "async" and plan.mixed:
            raise OptionError("--execution async is for jobs on one kind of device; use --execution bulk")
        self.exchange = exchange_of(plan, comm)
        self.peers = peers_of(plan, comm)
        self.write, self.read = write, read
        self.traffic: list[Traffic] = []
        debugging.agree(comm, "makes a Sync")
        self._shown = 0  # exchanges that the rounds of a timeline have shown

    def __call__(self, *labels: Label) -> None:
        """Reduce, then broadcast. Collective."""
        self.reduce(*labels)
        self.broadcast(*labels)

    def bytes_sent(self, kind: str) -> int:
        """Bytes that this rank sent in all exchanges of a kind: ``reduce``, ``broadcast``, or what is no label."""
        return sum(exchange.bytes for exchange in self.traffic if exchange.kind == kind)

    def total(self, *values: Any) -> tuple:
        """Sums over the ranks, added in their order. Collective."""
        return self._combine("total", SUM, *values)

    def lowest(self, value: Any, dtype: Any = None) -> Any:
        """Minimum over the ranks, of numbers as a type has them if there is one. Collective."""
        return self._combine("lowest", LOWEST, value if dtype is None else np.dtype(dtype).type(value))[0]

    def highest(self, value: Any) -> Any:
        """Maximum over the ranks. Collective."""
        return self._combine("highest", HIGHEST, value)[0]

    def _combine(self, call: str, how: int, *values: Any) -> tuple:
        self._begin(call)
        return timeline.call(call, timeline.WAIT, None, self.exchange.transport.combine, how, *values)  # type: ignore[no-any-return]

    def reduce(
        self, *labels: Label, write: str | None = None, implied: float | None = None,
        meanwhile: Iterable[object] | None = None,
    ) -> None:  # fmt: skip
        """Combine the updated mirrors into their masters. Collective.

        Parameters
        ----------
        labels : Label
            They share one message per partner.
        write : str, optional
            Where the operator wrote, if not at ``self.write``.
        implied : number, optional
            The value of everything updated, if all ranks know it: then no values are sent.
        meanwhile : iterable, optional
            Steps of the operator that write to masters only, and sync nothing. They are taken while messages are on
            their way; then what has arrived is combined.

        Raises
        ------
        OptionError
            What should be a label, or steps, is something else.
        """
        if not isinstance(meanwhile, Iterable | None):
            raise OptionError(f"sync.reduce takes steps to iterate over, not {type(meanwhile).__name__}, as meanwhile")
        self._exchange("reduce", labels, write or self.write, implied, meanwhile)

    def broadcast(self, *labels: Label, read: str | None = None, implied: float | None = None) -> None:
        """Give the values of updated masters to their mirrors. Collective."""
        self._exchange("broadcast", labels, read or self.read, implied)

    def _begin(self, call: str) -> None:
        watchdog.step()
        if debugging.on():
            debugging.agree(self.comm, f"calls sync.{call}")

    def _exchange(
        self, kind: str, labels: tuple[Label, ...], end: str, implied: float | None,
        meanwhile: Iterable[object] | None = None,
    ) -> None:  # fmt: skip
        lists = self.plan.lists(end)
        for label in labels:
            if not isinstance(label, Label):
                raise OptionError(f"sync.{kind} takes Labels, not {type(label).__name__}; pass a Label, not values")
        self._begin(kind)
        sent = timeline.call(kind, timeline.SYNC, None, self.exchange, kind, labels, lists, implied, meanwhile)
        if running := timeline.running():
            running.annotate_last(timeline.SYNC, messages=len(sent), bytes=sum(sent))
        if debugging.on():
            checks.synced(kind, labels, end)
        self.traffic.append(Traffic(kind, len(sent), sum(sent)))

    def add_traffic(self, kind: str, messages: int, sent: int) -> None:
        """Count what was sent otherwise: messages and bytes."""
        self.traffic.append(Traffic(kind, messages, sent))

    def end_round(self, **facts: Any) -> None:
        """Say that a round has ended: those who watch see these facts, and a timeline that runs what was sent."""
        watchdog.end_round(facts)
        progress.update(**facts)
        if running := timeline.running():
            running.end_round(**facts, **self._sent_since())

    def on(self, plan: SyncPlan) -> "Sync":
        """The same along the lists of another plan; the traffic of this one counts what that sends."""
        other = Sync(plan, self.comm, self.write, self.read, self.execution)
        other.traffic, other._shown = self.traffic, len(self.traffic)
        return other

    def count_peers(self, rounds: Any = None) -> None:
        """Add to the traffic what the last kernel of the peers has stored, if there are any.

        Parameters
        ----------
        rounds : int or () array, optional
            Those of a drain that has just ended, for a timeline.
        """
        if self.peers is not None:
            messages, to_masters, to_mirrors = self.peers.sent()
            self.traffic += [Traffic("reduce", messages, to_masters), Traffic("broadcast", 0, to_mirrors)]
        if rounds is not None and (running := timeline.running()):
            running.annotate_last(timeline.OPERATOR, rounds=int(rounds), **self._sent_since())

    def _sent_since(self) -> dict[str, int]:
        """What was sent since this was called last."""
        new, self._shown = self.traffic[self._shown :], len(self.traffic)
        return {"messages": sum(each.messages for each in new), "bytes": sum(each.bytes for each in new)}


def peers_of(plan: SyncPlan, comm: MPI.Intracomm) -> "Peers | None":
    """The ranks as peers, if they share nodes, each has a GPU of its own, and the transport of a plan is ``peer``."""
    if {*plan.devices} != {"gpu"} or plan.transport != "peer" or plan.apart:
        return None
    from gluon.peers import memory_gpu

    return memory_gpu.peers_of(comm)


def exchange_of(plan: SyncPlan, comm: MPI.Intracomm) -> Exchange:
    """What carries labels by a plan's transport; kept with the communicator, for all that sync by it."""
    made, key = kept(comm, "exchanges", dict), (plan.devices, plan.transport)
    if key not in made:
        device = plan.devices[comm.rank]
        made[key] = Exchange(get_transport(plan.transport, comm, device), device)
    return made[key]
