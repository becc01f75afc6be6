"""A transport is one class and one line in the table: what brings labels to their masters, on CPUs and GPUs."""

from collections.abc import Sequence

import graphs
import numpy as np
import parts
import pytest

from cusp.runtime.devices import move, to_host, xp_of
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import ADD, MIN
from gluon.sync import Sync
from gluon.transports import CHOICES, TransportError, open_transport, table
from gluon.transports.memory import Buffers, Transport


class Pigeons(Transport):
    """Carries messages as Python's objects, and counts them."""

    name, xp = "pigeons", xp_of(parts.DEVICE)
    made: "list[Pigeons]" = []

    def __init__(self, comm) -> None:
        super().__init__(comm)
        self.words = 0
        self.made.append(self)

    def exchange(
        self, out: Buffers, out_words: Sequence[int], into: Buffers, in_words: Sequence[int] | None = None
    ) -> Sequence[int]:
        """See Transport. Collective."""
        messages = [to_host(buffer)[:words].copy() for buffer, words in zip(out.pieces, out_words)]
        arrived = self.comm.alltoall(messages)
        for buffer, message in zip(into.pieces, arrived):
            buffer[: message.size] = move(message, parts.DEVICE)
        self.words += sum(out_words)
        sizes = [message.size for message in arrived]
        assert in_words is None or list(in_words) == sizes
        return sizes


class Rocks(Pigeons):
    """Cannot fly on the last rank."""

    @staticmethod
    def why_unusable(comm) -> str | None:
        """None, except on one rank."""
        return "rocks do not fly" if comm.rank == comm.size - 1 else None


@pytest.fixture
def alone(comm, monkeypatch):
    """A communicator of all ranks on which no transport has been opened yet, with pigeons in the table."""
    monkeypatch.setattr(Pigeons, "made", [])
    more = {"rocks": f"{__name__}:Rocks", "pigeons": f"{__name__}:Pigeons"}
    monkeypatch.setitem(table.TRANSPORTS, parts.DEVICE, more | table.TRANSPORTS[parts.DEVICE])
    own = comm.Dup()
    yield own
    own.Free()


def synced(part, plan, comm) -> list[tuple]:
    """Values and bits of labels of several kinds after a reduce and a broadcast, and what was sent. Collective."""
    results = []
    for dtype, reduction, implied in ((np.int32, MIN, None), (np.float64, ADD, None), (np.int64, MIN, 1)):
        sync = Sync(plan, comm)
        label = Label(part, dtype, 0 if reduction is ADD else 100, reduction)
        for gid in range(0, part.num_nodes, 3):
            label.write(gid, 1)
        sync.reduce(label, write="any", implied=implied)
        sync.broadcast(label, read="any", implied=implied)
        bits = to_host(label.take_updated()).tolist()
        results.append((to_host(label.values).tolist(), bits, [(t.messages, t.bytes) for t in sync.traffic]))
    return results


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "mixed"])
def test_by_another_transport(comm, alone, shared_tmp, policy):
    """Labels end as they do by MPI, in as many bytes; each is sent by pigeons, and one flock serves every Sync."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    plan = make_plan(part, alone, "pigeons")
    assert plan.transport == "pigeons"
    assert synced(part, plan, alone) == synced(part, make_plan(part, comm, "mpi"), comm)
    (flock,) = Pigeons.made
    sent = comm.allreduce(flock.words)
    assert (sent > 0) == (comm.size > 1)


@pytest.mark.mpi
def test_the_first_that_works(comm, alone):
    """auto passes over what some rank cannot use; who asks for that is told why, on all ranks."""
    assert open_transport("auto", alone, parts.DEVICE).name == "pigeons"
    with pytest.raises(TransportError, match="--transport rocks cannot be used: rocks do not fly"):
        open_transport("rocks", alone, parts.DEVICE)
    with pytest.raises(TransportError, match="--transport doves is for ranks on .PUs; those on .PUs use rocks, pigeo"):
        open_transport("doves", alone, parts.DEVICE)


@pytest.mark.mpi
def test_opened_once(comm):
    """Neither connections nor buffers are made anew for a trial."""
    first = open_transport("mpi", comm, parts.DEVICE)
    assert open_transport("mpi", comm, parts.DEVICE) is first
    words = tuple(range(comm.size))
    buffers = first.buffers(words, words)
    assert all(again is before for again, before in zip(first.buffers(words, words), buffers, strict=True))
    assert all([piece.size for piece in side.pieces] == list(words) for side in buffers)
    more = tuple(10 * size + 1000 for size in words)
    assert all([piece.size for piece in side.pieces] == list(more) for side in first.buffers(more, more))


def test_choices():
    """Those of the command line."""
    assert CHOICES == ("auto", "peer", "nccl", "cuda-mpi", "mpi", "hosts")
