"""Labels that travel without rounds: a rank sends what has changed, takes in what has come, and waits for nobody.

Bulk-asynchronous execution (Gluon-Async: Dathathri et al., PACT 2019). A message is taken in when it has come, so a
value may be combined late, and one that was lowered twice is sent once: reductions must allow for that.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from cusp.runtime import timeline, watchdog
from cusp.runtime.devices import Array, backend
from cusp.runtime.exchange import LOOKS, kept, pauses
from cusp.runtime.mpi import MPI
from gluon.interfaces import Incoming, Message, Outgoing
from gluon.sync import Traffic

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.sync import Sync


class Channel(NamedTuple):
    """A label, and which way it travels.

    Attributes
    ----------
    kind : {'reduce', 'broadcast'}
        From updated mirrors to their masters, or from updated masters to their mirrors. Either way what comes is
        combined by the reduction of the label. If that is not idempotent, mirrors are reset once they are sent.
    label : Label
    location : {'src', 'dst', 'any'}
        The end of edges that is written, or read.
    """

    kind: str
    label: "Label"
    location: str


def both_ways(label: "Label", write: str, read: str) -> tuple[Channel, Channel]:
    """A label that is reduced where operators write, and broadcast where they read."""
    return Channel("reduce", label, write), Channel("broadcast", label, read)


def until_quiet(sync: "Sync", step: Callable[[], bool], *channels: Channel) -> int:
    """Let each rank work at its own pace until none has anything left to do. Collective; returns the most steps.

    Between two steps a rank sends what changed and takes in what has come. It steps again while a step says so, or a
    message has come; else it waits for a message, or for the end.

    **Memory.** A rank has at most one message under way to each other rank on each channel: the next begins once that
    was received. What changes meanwhile is marked, and sent together then. So a fast rank cannot fill the memory of a
    slow one.

    **The end** (compare the counters of Mattern, Distributed Computing 1987). A rank *rests* while it has nothing to
    do and nothing to send, and all that it has sent was received: a synchronous send says so. It then joins the
    next snapshot, a non-blocking sum over all ranks of who has worked, or received anything, since they joined the one
    before. A sum of 0 is the end:

        Let snapshot k be 0, and T the moment when the last rank joined snapshot k - 1. Each rank had joined k - 1 by T,
        and joined k after T, as no sum is known before all have joined. In between, it has not worked and not received;
        so it rested from the one to the other, T included. At T, then, nobody had anything to do, and no message was
        under way: its sender would not have rested. Without work and messages nothing can ever happen again.

    A snapshot that is not 0 is followed by the next as soon as a rank rests again. So the end is found once all rest.

    Parameters
    ----------
    step : function () -> bool
        Takes the bits of the labels (:meth:`~gluon.label.Label.swap_updated`), which say what was written before the
        first step, what this rank has changed in the last, and what has come since. Works for a while, the shorter the
        sooner others learn of it. Sets the bits of what it changes; true if it has left something to do.
    channels : Channel
    """
    post = Post(sync, channels)
    more, steps = True, 0
    while True:
        if more:
            more = bool(step())
            steps += 1
            watchdog.step()
            post.mark_changes()
        more |= post.receive()
        post.send()
        if not more:
            more = not timeline.call("idle", timeline.WAIT, None, post.wait)
            if not more:
                break
    sync.traffic += post.traffic
    return int(sync.highest(steps))


class Mailbox:
    """What this rank has to send on one channel, and what others have sent.

    Attributes
    ----------
    out : dict of Outgoing
        By the rank to which this one may have to send.
    into : dict of Incoming
    arrived : bits of proxies
        Those whose values have been changed by what was read.
    """

    def __init__(self, sync: "Sync", channel: Channel) -> None:
        self.kind, self.label, location = channel
        self._device, label = backend(Message, self.label.part.device), self.label
        out, into = self._listed(sync, location)
        self.out: dict[int, Outgoing] = {rank: self._device.Outgoing(at, self.kind, label) for rank, at in out.items()}
        self.into: dict[int, Incoming] = {rank: self._device.Incoming(at, label) for rank, at in into.items()}
        self.arrived = label.device.no_bits(label.part.num_proxies)

    def _listed(self, sync: "Sync", location: str) -> tuple[dict, dict]:
        """The lists from which this channel sends, by rank, and those into which it receives; kept as long as these."""
        lists = sync.plan.lists(location)
        known = kept(sync.comm, "mail lists", WeakKeyDictionary).setdefault(lists, {})
        if self.kind not in known:
            known[self.kind] = tuple(
                {rank: self._device.listed(lids) for rank, lids in enumerate(side) if lids.size}
                for side in lists.ends(self.kind)
            )
        return known[self.kind]  # type: ignore[no-any-return]

    def mark_unsent(self, bits: Array) -> None:
        """Mark those of these proxies that this channel sends."""
        for each in self.out.values():
            each.mark(bits)

    def admit(self) -> None:
        """Set the bits of the label that ``arrived`` has; it has none afterwards."""
        self.label.updated |= self.arrived
        self.label.device.clear(self.arrived)


class Post:
    """What this rank sends and receives on some channels, and whether the end has come."""

    def __init__(self, sync: "Sync", channels: tuple[Channel, ...]) -> None:
        self.comm: MPI.Intracomm = kept(sync.comm, "mail", sync.comm.Dup)  # for nothing else
        self.boxes = [Mailbox(sync, channel) for channel in channels]
        self.sent: dict[tuple[int, int], MPI.Request] = {}  # by channel and rank: what is under way
        self.coming: dict[tuple[int, int], tuple[MPI.Request, int]] = {}  # and how many words come
        self.traffic = [Traffic(channel.kind, 0, 0) for channel in channels]
        self.came = False  # something was read that :meth:`receive` has not reported
        self.worked = True  # since it joined the last snapshot
        self.joined, self.others = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.snapshot: MPI.Request | None = None

    def mark_changes(self) -> None:
        """Mark what this rank has changed as unsent to those who have it, too."""
        self.worked = True
        for box in self.boxes:
            box.mark_unsent(box.label.updated)

    def send(self) -> None:
        """Send what is unsent to those who have received all before."""
        for channel, box in enumerate(self.boxes):
            for rank, outgoing in box.out.items():
                before = self.sent.get((channel, rank))
                if before is not None and not before.Test():
                    continue
                message = outgoing.write() if outgoing.marked else None
                if message is None:
                    self.sent.pop((channel, rank), None)
                    continue
                self.sent[channel, rank] = self.comm.Issend(message, rank, channel)
                self.traffic[channel].messages += 1
                self.traffic[channel].bytes += message.nbytes

    def receive(self) -> bool:
        """Take in what has come; whether that was anything."""
        status = MPI.Status()
        while message := self.comm.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
            rank, channel, words = status.Get_source(), status.Get_tag(), status.Get_count(MPI.UINT64_T)
            if (channel, rank) in self.coming:  # the sender knows that the one before was found, and it is all but here
                self.coming[channel, rank][0].Wait()
                self._read(channel, rank)
            self.coming[channel, rank] = message.Irecv(self.boxes[channel].into[rank].landing[:words]), words
        for channel, rank in [at for at, (request, _) in self.coming.items() if request.Test()]:
            self._read(channel, rank)
        came, self.came = self.came, False
        if came:
            self._pass_on()
        return came

    def wait(self) -> bool:
        """Wait until something has come, or all is over; whether it is. Gives up the core to those who have work."""
        for _ in pauses(LOOKS):
            if self.receive():
                return False
            self.send()
            if self._is_over():
                return True
        raise AssertionError("pauses do not end")

    def _read(self, channel: int, rank: int) -> None:
        """Combine a message that is here."""
        _, words = self.coming.pop((channel, rank))
        box = self.boxes[channel]
        box.into[rank].read(words, box.arrived)
        self.came = self.worked = True
        watchdog.step()

    def _pass_on(self) -> None:
        """Mark what came to masters as unsent to their mirrors; the bits of labels say what has come."""
        for box in self.boxes:
            if box.kind == "broadcast":
                for other in self.boxes:
                    if other.label is box.label:
                        box.mark_unsent(other.arrived)
        for box in self.boxes:
            box.admit()

    def _is_over(self) -> bool:
        """Whether a snapshot says that all ranks rest. Joins the next one when this rank rests."""
        if self.snapshot is None:
            if self.coming or not self._all_sent():
                return False
            self.joined[0], self.worked = self.worked, False
            self.snapshot = self.comm.Iallreduce(self.joined, self.others, MPI.SUM)
        if not self.snapshot.Test():
            return False
        self.snapshot = None
        return self.others[0] == 0

    def _all_sent(self) -> bool:
        """Whether all was sent, and received."""
        for at, request in list(self.sent.items()):
            if not request.Test():
                return False
            del self.sent[at]
        return not any(each.marked for box in self.boxes for each in box.out.values())
