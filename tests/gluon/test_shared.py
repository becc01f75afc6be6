"""Ranks of one host exchange through memory that they share, ranks of two through couriers, as they do by MPI."""

import os
import subprocess
import time
from functools import reduce
from operator import add
from unittest import mock

import graphs
import numpy as np
import parts
import pytest
import ranks
from spawn import mpirun

from cusp.apps import library
from cusp.partitioner import partition_graph
from gluon.plan import make_plan
from gluon.sync import Sync
from gluon.transports import TransportError, open_transport, reach, shared, table
from gluon.transports.host import HostMpi
from gluon.transports.hosts import Hosts
from gluon.transports.numbers import HIGHEST, LOWEST, MOST, SUM
from gluon.transports.shared import SharedMemory
from scripts.mpirun import is_open_mpi

SIZE = ranks.COMM.size
OPTIONS = {
    "bfs": {"parents": True}, "forest": {"roots": [0, 7]}, "pagerank": {"precision": "float32"},
    "table": {"origins": [0, 7]}, "paths": {"source": 0, "target": 7}, "ppr": {"seeds": [0, 7]},
}  # fmt: skip


class TwoHosts(Hosts):
    """Pretends that the first two ranks are on another host than the rest."""

    name = "two"

    @staticmethod
    def host_of(comm):
        """See SharedMemory."""
        return comm.Split(min(comm.rank // 2, 1), comm.rank)


class Alone(Hosts):
    """Pretends that each rank is on a host of its own."""

    name = "alone"

    @staticmethod
    def host_of(comm):
        """See SharedMemory."""
        return comm.Split(comm.rank)


@pytest.fixture
def alone(comm, monkeypatch):
    """A communicator on which no transport has been opened, with made-up hosts in the table."""
    more = {"two": f"{__name__}:TwoHosts", "alone": f"{__name__}:Alone"}
    monkeypatch.setitem(table.TRANSPORTS, "cpu", table.TRANSPORTS["cpu"] | more)
    own = comm.Dup()
    yield own
    own.Free()


def kinds(*, smallest: int = 2) -> list:
    """Transports to try at this number of ranks."""
    return [kind for kind, least in ((SharedMemory, 2), (TwoHosts, 3), (HostMpi, 1)) if max(least, smallest) <= SIZE]


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("cores", [64, 1])
def test_no_message_is_overwritten_before_it_is_read(comm, alone, monkeypatch, kind, cores):
    """Slow and fast ranks, messages one way only, memory that has to grow, and numbers in between."""
    monkeypatch.setattr(shared, "num_cores", lambda host: cores)
    transport = kind(alone)
    common, own = np.random.default_rng(5), np.random.default_rng(comm.rank)
    for number in range(120):
        most = common.integers(0, 40 * 2 ** (number // 20), (SIZE, SIZE)) * common.integers(0, 2, (SIZE, SIZE))
        np.fill_diagonal(most, 0)
        sizes = (most * common.random((SIZE, SIZE))).astype(int)
        out, into = transport.buffers(tuple(most[comm.rank].tolist()), tuple(most[:, comm.rank].tolist()))
        for rank, words in enumerate(sizes[comm.rank]):
            out.pieces[rank][:words] = 1000 * number + 10 * comm.rank + np.arange(words)
        assert list(transport.exchange(out, sizes[comm.rank].tolist(), into)) == sizes[:, comm.rank].tolist()
        if own.random() < 0.1:
            time.sleep(own.random() / 100)  # while others go on as far as they may
        for rank, words in enumerate(sizes[:, comm.rank]):
            assert (into.pieces[rank][:words] == 1000 * number + 10 * rank + np.arange(words)).all()
        if number % 3 == 0:
            assert transport.combine(SUM, number, comm.rank) == (SIZE * number, SIZE * (SIZE - 1) // 2)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", kinds(smallest=1))
def test_numbers_in_the_order_of_ranks(comm, alone, kind):
    """Floats are added from rank 0 on; whole numbers stay whole, unless some rank has a float."""
    transport, own = kind(alone), np.random.default_rng(comm.rank)
    for count in (1, 2, MOST, 2 * MOST + 1):
        floats = (own.random(count) * 10.0 ** own.integers(-9, 9, count)).tolist()
        of_ranks = comm.allgather(floats)
        assert transport.combine(SUM, *floats) == tuple(reduce(add, column) for column in zip(*of_ranks))
        assert transport.combine(LOWEST, *floats) == tuple(map(min, zip(*of_ranks)))
        assert transport.combine(HIGHEST, *map(np.float32, floats)) == tuple(
            float(max(map(np.float32, column))) for column in zip(*of_ranks)
        )
    assert transport.combine(SUM) == ()
    assert transport.combine(SUM, *range(15_000)) == tuple(SIZE * number for number in range(15_000))
    result = transport.combine(SUM, 2**53 + comm.rank, comm.rank if comm.rank else 0.5, True)
    assert result == (SIZE * 2**53 + SIZE * (SIZE - 1) // 2, SIZE * (SIZE - 1) / 2 + 0.5, SIZE)
    assert [type(number) for number in result] == [int, float, int]
    assert transport.combine(LOWEST, -(2**63), comm.rank - 7)[1] == -7
    assert transport.combine(HIGHEST, 2**63 - 1, float("inf") if comm.rank else 0)[1] == (
        float("inf") if SIZE > 1 else 0
    )


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("kind", [kind.name for kind in kinds() if kind is not HostMpi])
@pytest.mark.parametrize("policy", parts.share(["oec", "cvc", "hvc-2"]))
def test_same_bits_by_mpi(alone, shared_tmp, kind, policy):
    """Of every algorithm: what it found, figures and rounds."""
    graph = graphs.both_ways(graphs.random_directed(60, 240, seed=4))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = partition_graph(path, parts.policy_of(policy), alone, csc=True)
    plans = [make_plan(part, alone, transport) for transport in ("mpi", kind)]
    for name in library.APPS:
        app = library.app_of(name)
        options = parts.read_options(app, graph.num_nodes, **OPTIONS.get(name, {}))
        found = []
        for plan in plans:
            sync = Sync(plan, alone)
            answer = app.run(part, sync, 3 if app.needs_source else None, app.prepare(part, sync, options), options)
            found.append(
                (
                    answer.rounds,
                    answer.figures,
                    {key: of.tobytes() for key, of in (answer.labels | answer.table).items()},
                )
            )
        assert found[0] == found[1], name


@pytest.mark.mpi(min_size=2)
def test_an_ended_rank_is_noticed(comm, alone, monkeypatch):
    """Who waits for it looks from time to time whether it still runs."""
    transport = SharedMemory(alone)
    monkeypatch.setattr(shared, "ALIVE", 0.01)
    ended = subprocess.Popen(["true"])
    ended.wait()
    transport._processes[-1] = ended.pid, "12345"
    comm.Barrier()
    if comm.rank == 0:
        text = f"rank {SIZE - 1} of {SIZE} .process {ended.pid}. has ended, and rank 0 waits for it"
        for _ in range(2 if SIZE == 2 else 0):
            with pytest.raises(TransportError, match=text):
                transport.combine(SUM, 1)
    ranks.COMM.Barrier()


TWO_HOSTS = """
import cusp
import numpy as np
from cusp.runtime.mpi import MPI
from gluon.transports import open_transport

comm, found = MPI.COMM_WORLD, []
for name in "hosts", "mpi":
    transport, random, arrived = open_transport(name, comm, "cpu"), np.random.default_rng(7), []
    for number in range(60):
        words = random.integers(0, 30, (4, 4)) * (1 - np.eye(4, dtype=int))
        out, into = transport.buffers(tuple(words[comm.rank].tolist()), tuple(words[:, comm.rank].tolist()))
        for rank, size in enumerate(words[comm.rank]):
            out.pieces[rank][:size] = 1000 * number + 10 * comm.rank + rank
        sizes = transport.exchange(out, words[comm.rank].tolist(), into)
        arrived += [piece[:size].tolist() for piece, size in zip(into.pieces, sizes)]
        arrived.append(transport.combine(0, comm.rank + 0.1 * number, 1))
    found.append(arrived)
    if name == "hosts":
        hosts = transport._hosts
lines = comm.gather(f"{comm.rank} {hosts} {found[0] == found[1]}")
if comm.rank == 0:
    print("\\n".join(lines))
"""


@pytest.mark.skipif(is_open_mpi(), reason="MPICH pretends to be on several hosts")
def test_two_hosts_of_two_ranks(tmp_path):
    """They are as MPI says; all is as by MPI alone."""
    (tmp_path / "program.py").write_text(TWO_HOSTS)
    done = mpirun(4, tmp_path / "program.py", env={"MPIR_CVAR_NUM_CLIQUES": "2"}, timeout=100)
    shown = [f"{rank} [(0, 2), (1, 3)] True" for rank in range(4)]
    assert done.returncode == 0 and done.stdout.splitlines() == shown, done.stderr


@pytest.mark.parametrize("patient", [False, True])
def test_a_killed_rank_ends_the_job(tmp_path, patient):
    """Within ten seconds, also one for which others wait in memory; nothing of that memory is left."""
    script = tmp_path / "program.py"
    script.write_text(f"""
import os, signal, time
import cusp
from cusp.launch import run_main
from gluon.transports import open_transport

def main(comm, argv):
    transport = open_transport("peer", comm, "cpu")
    for number in range(1000):
        if comm.rank == 1 and number == 500:
            time.sleep({int(patient)})
            open("killed", "w").write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        transport.combine(0, number)

run_main(main)
""")
    before = set(os.listdir("/dev/shm"))
    done = mpirun(2, script, timeout=60, cwd=tmp_path)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert time.time() - float((tmp_path / "killed").read_text()) < 10
    assert not [name for name in set(os.listdir("/dev/shm")) - before if not name.startswith("mpich_shm_")]


@pytest.mark.mpi(min_size=2)
def test_who_can_share(comm, alone, monkeypatch):
    """Within a host it is the first choice; where some rank can share no memory, all are told why, or use MPI."""
    assert open_transport("auto", alone, "cpu").name == "peer"
    own = comm.Dup()
    if comm.rank == comm.size - 1:
        monkeypatch.setattr(reach.os, "memfd_create", lambda name: os.open("/dev/full/none", os.O_RDONLY))
    assert open_transport("auto", own, "cpu").name == "mpi"
    with pytest.raises(TransportError, match="--transport peer cannot be used: the system gives no memory to share"):
        open_transport("peer", own, "cpu")
    own.Free()


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("step", ["new_memory", "memory_of"])
def test_memory_that_one_rank_cannot_share(alone, monkeypatch, step):
    """Too many open files, for instance: an error on every rank, before the others wait."""
    monkeypatch.setattr(SharedMemory, "why_unusable", lambda comm: None)
    if alone.rank == (0 if step == "new_memory" else 1):
        monkeypatch.setattr(reach, step, mock.Mock(side_effect=OSError(24, "Too many open files")))
    with pytest.raises(TransportError, match="memory cannot be shared .*: Too many open files; --transport mpi does"):
        open_transport("peer", alone, "cpu")
