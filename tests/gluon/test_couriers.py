"""Ranks of several hosts: within one through memory, between two in one message, with the same results as by MPI."""

import json

import graphs
import parts
import pytest
import ranks
import spawn
from test_shared import Alone, TwoHosts, alone  # noqa: F401 - a fixture
from test_transports import synced

from gluon.plan import make_plan
from gluon.transports import TransportError, open_transport, reach, table
from gluon.transports.hosts import Hosts
from gluon.transports.shared import SharedMemory

SIZE = ranks.COMM.size
PROGRAM = """
import json
import numpy as np
from cusp import run_main
from cusp.apps import library
from cusp.apps.run.cli import with_gids
from cusp.apps.run.keywords import Keywords
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.runtime.mpi import MPI
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import MIN
from gluon.sync import Sync
from gluon.transports import open_transport, table
from gluon.transports.hosts import Hosts

class Counting(MPI.Intracomm):
    sent = 0

    def Isend(self, *arguments):
        Counting.sent += 1
        return super().Isend(*arguments)

class TwoAndTwo(Hosts):
    name, of = "two and two", (0, 1, 0, 1)

    @classmethod
    def host_of(cls, comm):
        return comm.Split(cls.of[comm.rank], comm.rank)

class OneTwoOne(TwoAndTwo):
    name, of = "one, two, one", (0, 1, 1, 2)

KINDS = (TwoAndTwo, OneTwoOne)
table.TRANSPORTS["cpu"].update({kind.name: f"__main__:{kind.__name__}" for kind in KINDS})

def answers(part, plan, comm):
    for name in ("bfs", "sssp", "cc", "pagerank", "kcore"):
        app = library.app_of(name)
        parser = Keywords(name, app.add_options)
        options = with_gids(parser, parser.read({}), None, part.num_nodes)
        sync = Sync(plan, comm)
        answer = app.run(part, sync, 3 if app.needs_source else None, app.prepare(part, sync, options), options)
        yield name, answer.rounds, answer.figures, {key: of.tobytes() for key, of in answer.labels.items()}

def messages(part, plan, comm):
    "Messages of three syncs, of many nodes, one and none, and those expected: one for each two hosts that share nodes."
    sync, label, before = Sync(plan, comm), Label(part, np.int64, 100, MIN), Counting.sent
    for gids in (range(part.num_nodes), [5], []):
        for gid in gids:
            label.write(gid, 7 - len(gids))
        sync.reduce(label, write="any")
        sync.broadcast(label, read="any")
    of = getattr(open_transport(plan.transport, comm, "cpu"), "of", range(comm.size))
    pairs = {(of[comm.rank], of[rank]) for rank, lids in enumerate(plan.any.mirrors) if lids.size}
    pairs = [pair for pair in set().union(*comm.allgather(pairs)) if pair[0] != pair[1]]
    return comm.allreduce(Counting.sent - before), 6 * len(pairs), comm.allreduce(int(label.values.sum()))

def main(comm, argv):
    comm = Counting(comm.Dup())
    for policy in argv[1:]:
        part = partition_graph(argv[0], load_policy(policy, threshold=2), comm, csc=True)
        plans = [make_plan(part, comm, name) for name in ("mpi", *(kind.name for kind in KINDS))]
        found = [[*answers(part, plan, comm)] for plan in plans]
        sent = [messages(part, plan, comm) for plan in plans]
        all_same = comm.allreduce(all(each == found[0] for each in found), MPI.LAND)
        if comm.rank == 0:
            print(json.dumps([policy, all_same, sent]), flush=True)

run_main(main)
"""


@pytest.mark.limit(300)
@pytest.mark.parametrize("policies", [["cvc"], pytest.param(["oec", "hvc"], marks=pytest.mark.slow)], ids="-".join)
def test_four_ranks_on_two_and_three_hosts(tmp_path, policies):
    """Bits and rounds as by MPI; one message from host to host for each reduce or broadcast, if they share nodes."""
    (tmp_path / "program.py").write_text(spawn.ONCE + PROGRAM)
    graph = graphs.both_ways(graphs.random_directed(60, 240, seed=4))
    graphs.write_here(tmp_path / "g.h5", graph, symmetric=True)
    words = [tmp_path / "program.py", tmp_path / "g.h5", *policies]
    done = spawn.mpirun(4, *words, env={"CUSP_DEVICE": "cpu"}, timeout=280)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(policy, same) for policy, same, _ in rows] == [(policy, True) for policy in policies]
    for policy, _, of_transports in rows:
        assert len({total for *_, total in of_transports}) == 1
        assert all(sent == expected for sent, expected, _ in of_transports), (policy, of_transports)
        assert of_transports[1][0] < of_transports[0][0] / 2  # half of the partners are on the own host


@pytest.mark.mpi(min_size=2)
def test_who_is_on_which_host(comm, alone, monkeypatch):  # noqa: F811
    """One transport is for one host, one for several of which some have several ranks, if asked for."""
    one = open_transport("auto", alone, "cpu")
    assert one.name == "peer"
    with pytest.raises(TransportError, match="--transport hosts cannot be used: all ranks are on one host; use peer"):
        open_transport("hosts", alone, "cpu")
    with pytest.raises(TransportError, match="--transport alone cannot be used: no two ranks are on one host"):
        open_transport("alone", alone, "cpu")
    kind = TwoHosts if SIZE > 2 else Alone
    for each in (SharedMemory, Hosts):
        monkeypatch.setattr(each, "host_of", staticmethod(kind.host_of))
    own = comm.Dup()
    assert open_transport("auto", own, "cpu").name == "mpi"
    text = f"the ranks are on {1 + (SIZE - 1) // 2} hosts; use hosts" if SIZE > 2 else "no two ranks are on one host"
    with pytest.raises(TransportError, match=f"--transport peer cannot be used: {text}"):
        open_transport("peer", own, "cpu")
    own.Free()


@pytest.mark.mpi(min_size=2)
def test_processes_that_see_each_other(comm, alone, monkeypatch):  # noqa: F811
    """Ranks that MPI takes to be on one host may be in containers: each of these is a host."""
    monkeypatch.setattr(reach, "process_space", lambda: 5 + comm.rank % 2)
    host = reach.host_of(alone)
    assert host.allgather(comm.rank) == [rank for rank in range(SIZE) if rank % 2 == comm.rank % 2]
    host.Free()


@pytest.mark.mpi(min_size=3)
def test_memory_grows_while_messages_are_sent(comm, alone):  # noqa: F811
    """What leaves and what comes has to be larger again and again, by turns."""
    transport = TwoHosts(alone)
    for number in range(1, 16):
        words = (2**number if number % 2 else 3,) * SIZE
        out, into = transport.buffers(words, words)
        for rank, piece in enumerate(out.pieces):
            piece[:] = 100 * number + 10 * comm.rank + rank
        transport.exchange(out, words, into)
        for rank in {*range(SIZE)} - {comm.rank}:
            assert (into.pieces[rank][: words[rank]] == 100 * number + 10 * rank + comm.rank).all()


class EvenAndOdd(Hosts):
    """Pretends that ranks take turns on two hosts."""

    name = "even and odd"

    @staticmethod
    def host_of(comm):
        """See SharedMemory."""
        return comm.Split(comm.rank % 2, comm.rank)

    @classmethod
    def why_unusable(cls, comm):
        """Also with one rank on each."""


if parts.DEVICE == "gpu":
    from gluon.transports.staged import StagedHosts

    class StagedEvenAndOdd(StagedHosts):
        """The same for GPUs."""

        name, why_unusable = EvenAndOdd.name, EvenAndOdd.why_unusable

        def _between(self, comm):
            return EvenAndOdd(comm)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "cvc", "hvc-2"])
def test_on_each_device(comm, alone, monkeypatch, shared_tmp, policy):  # noqa: F811
    """Labels end as they do by MPI, in as many bytes from rank to rank."""
    kind = EvenAndOdd if parts.DEVICE == "cpu" else StagedEvenAndOdd
    monkeypatch.setitem(table.TRANSPORTS[parts.DEVICE], kind.name, f"{__name__}:{kind.__name__}")
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    found = synced(part, make_plan(part, alone, kind.name), alone)
    assert found == synced(part, make_plan(part, comm, "mpi"), comm)
