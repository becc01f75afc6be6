"""Ranks on GPUs beside ranks on CPUs: the same partitions, messages that both read, and the same answers."""

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.apps.library import APPS, app_of
from cusp.errors import OptionError
from cusp.output.saved import load_partition, save_partition
from cusp.partition import OF_EDGES, OF_NODES, Partition
from cusp.partitioner import partition_graph
from cusp.policies import Policy
from cusp.runtime.devices import choose_device, to_host
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import ADD, MAX, MIN
from gluon.sync import Sync
from gluon.transports import TransportError, open_transport

pytestmark = pytest.mark.skipif(parts.WANTED != "gpu", reason="--device gpu was not asked for")
LIST = "gpu,cpu"  # and again, for more ranks
ASKS_FOR_SHARES = """
def get_master(prop, node, mstate, masters):
    if prop.share(node % prop.num_parts) * prop.num_parts > prop.all_shares:
        return prop.pick(node * 7)
    return prop.pick(node // 3)
"""
OPTIONS = {
    "bfs": {"parents": True}, "widest": {}, "path": {"targets": "5,70"}, "forest": {"roots": "3,8,100"},
    "kcore": {}, "pagerank": {}, "betweenness": {"source": [0, 3, 7]}, "communities": {"algorithm": "louvain"},
    "table": {"origins": [3, 8, 100], "destinations": [5, 7]}, "paths": {"source": 3, "target": 100},
    "ppr": {"seeds": [3, 8]},
}  # fmt: skip
CHOICES = {  # by chance, or by the policy: parents, roots of equals
    "bfs": {"parents"}, "path": {"parents"},
}  # fmt: skip


@pytest.fixture(scope="module")
def device(comm):
    """Where this rank computes."""
    placement = choose_device(LIST, comm)
    assert placement.devices == ("gpu", "cpu", "gpu", "cpu")[: comm.size]
    assert placement.name == ",".join(placement.devices)
    return placement.device


@pytest.fixture
def make(comm, shared_tmp, device):
    """Function (graph, policy) -> the partition of a mixed job, and the same on CPUs."""

    def partitions(graph: graphs.Graph, policy: Policy | str, symmetric: bool = False, **options):
        path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
        chosen = parts.policy_of(policy) if isinstance(policy, str) else policy
        mixed, plain = (partition_graph(path, chosen, comm, device=where, **options) for where in (device, "cpu"))
        assert mixed.device == device
        return mixed, plain

    return partitions


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", parts.share(["oec", "hvc-2", "mixed", "dbh", "fec", "hdrf", "shares"]))
@pytest.mark.limit(300)
def test_partitions(comm, make, policy):
    """Bit for bit those of CPUs, whether rules are pure, ask about neighbours, keep state or ask for shares."""
    name = parts.user_file(ASKS_FOR_SHARES) if policy == "shares" else parts.POLICIES[policy][0]
    given = parts.load_policy(name, threshold=5, shares=(5, *[2] * (comm.size - 1)))
    mixed, plain = make(graphs.random_directed(), given, csc=True)
    for name in OF_NODES + OF_EDGES:
        np.testing.assert_array_equal(to_host(getattr(mixed, name)), getattr(plain, name))
    np.testing.assert_array_equal(to_host(mixed.csc.sources), plain.csc.sources)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize(("reduction", "dtype"), [(MIN, "i4"), (MAX, "u1"), (ADD, "f8")])
def test_messages(comm, make, device, reduction, dtype):
    """Whatever is updated, labels become what they become on CPUs: positions, bits and values, known values."""
    mixed, plain = make(graphs.random_directed(600, 9000, 3), "mixed")
    syncs = [Sync(make_plan(part, comm), comm) for part in (mixed, plain)]
    assert syncs[0].plan.mixed and not syncs[1].plan.mixed
    random = np.random.default_rng(comm.rank)
    for share in 0, 0.01, 0.5, 1:
        for implied in (None, 7) if reduction is not ADD else (None,):
            start = random.integers(0, 100, plain.num_proxies).astype(dtype)
            updated = np.flatnonzero(random.random(plain.num_proxies) < share).astype(np.int32)
            start[updated] = start[updated] if implied is None else implied
            found = []
            for part, sync in zip((mixed, plain), syncs):
                label = Label(part, dtype, 0, reduction)
                label.values[:] = label.device.xp.asarray(start)
                label.mark(label.device.xp.asarray(updated))
                sync.reduce(label, write="any", implied=implied)
                sync.broadcast(label, read="any", implied=implied)
                found.append([to_host(label.values), to_host(label.take_updated())])
            np.testing.assert_array_equal(found[0][0], found[1][0])
            np.testing.assert_array_equal(found[0][1], found[1][1])


def answer_of(app, part: Partition, options: dict) -> tuple[dict[str, np.ndarray], dict]:
    """What an app finds, verified, for all nodes, and its figures. Collective."""
    sync = parts.make_sync(part)
    chosen = parts.read_options(app, part.num_nodes, **options)
    prepared = app.prepare(part, sync, chosen)
    answer = app.run(part, sync, 3 if app.needs_source else None, prepared, chosen)
    app.check(part, parts.make_sync(part), 3 if app.needs_source else None, answer, prepared, chosen)
    found = {name: parts.gather(part, to_host(values)) for name, values in answer.labels.items()}
    return found | answer.table, answer.figures


def assert_same(app, mixed: Partition, plain: Partition, options: dict) -> None:
    """The same answer in a mixed job and on CPUs, but for the order in which floats are added. Collective."""
    (found, figures), (expected, of_cpus) = (answer_of(app, part, options) for part in (mixed, plain))
    assert found.keys() == expected.keys() and figures.keys() == of_cpus.keys()
    for name in found.keys() - CHOICES.get(app.name, set()):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name, strict=True)
    for name in figures.keys() - {"l1_change"}:
        assert figures[name] == pytest.approx(of_cpus[name], rel=1e-9), name


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", parts.share(APPS))
@pytest.mark.limit(300)
def test_answers(make, name):
    """Every app finds what it finds on CPUs: of a directed graph, and of a symmetric one."""
    app, options = app_of(name), OPTIONS.get(name, {})
    mixed, plain = make(graphs.random_directed(150, 1200, 3), "mixed", csc=True, weights=app.weighted)
    assert_same(app, mixed, plain, options)
    both_ways = graphs.both_ways(graphs.random_directed(150, 900, 5))
    mixed, plain = make(both_ways, "cvc", symmetric=True, weights=app.weighted)
    assert_same(app, mixed, plain, options)


@pytest.mark.mpi(min_size=2)
def test_road_maps(make):
    """Ranks run ahead of each other where there are few edges: with and without weights."""
    length = 400
    pairs = [(v, v + 1) for v in range(length - 1)] + [(v, v + 20) for v in range(0, length - 20, 7)]
    mixed, plain = make(graphs.both_ways(graphs.make(length, pairs)), "oec", symmetric=True)
    for name, options in ("bfs", {}), ("sssp", {}), ("pagerank", {"algorithm": "push-residual", "unweighted": True}):
        assert_same(app_of(name), mixed, plain, options)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", parts.share(["bfs", "sssp", "kcore", "pagerank"]))
def test_one_rank_has_all(make, name):
    """With shares of 1 and 0 there is nothing to send, so the rank that has all goes its way alone."""
    app, shares = app_of(name), (1, *[0] * (parts.SIZE - 1))
    graph = graphs.both_ways(graphs.random_directed(150, 1800, 5))
    given = parts.load_policy("oec", shares=shares)
    mixed, plain = make(graph, given, symmetric=True, weights=app.weighted)
    assert make_plan(mixed, ranks.COMM).apart and mixed.num_masters == (150 if ranks.COMM.rank == 0 else 0)
    assert_same(app, mixed, plain, OPTIONS.get(name, {}))


@pytest.mark.mpi(min_size=2)
def test_saved(comm, shared_tmp, make, device):
    """What a mixed job saves is what CPUs save, and each rank loads it onto its device."""
    mixed, plain = make(graphs.random_directed(), "cvc")
    folder = str(shared_tmp / "parts")
    how = {"policy": "cvc", "parameters": {}, "order": "degree", "split": "edges"}
    save_partition(folder, mixed, comm, graph=str(shared_tmp / "g.h5"), **how)
    again = load_partition(folder, comm, True, None).on(device)
    for name in OF_NODES + OF_EDGES:
        np.testing.assert_array_equal(to_host(getattr(again, name)), getattr(plain, name))


@pytest.mark.mpi(min_size=2)
def test_memory_limit(comm, make, device):
    """Ranks on CPUs keep edges in files, those on GPUs in memory of the host, and all have the same."""
    mixed, plain = make(graphs.random_directed(100, 2000, 3), "cvc", memory_limit=1 << 20)
    for name in OF_NODES + OF_EDGES:
        np.testing.assert_array_equal(to_host(getattr(mixed, name)), getattr(plain, name))
    assert type(mixed.storage).__name__ == ("Card" if device == "gpu" else "FileStorage")


@pytest.mark.mpi(min_size=2)
def test_refused(comm, device):
    """A list that is too long, and transports of one kind of device, on every rank."""
    with pytest.raises(OptionError, match="devices, but no host has more than"):
        choose_device(",".join(["gpu"] * (comm.size + 1)), comm)
    for name in "peer", "nccl", "cuda-mpi", "hosts":
        with pytest.raises(TransportError, match="ranks on CPUs and ranks on GPUs use mpi"):
            open_transport(name, comm, device)
    assert open_transport("auto", comm, device).name == "mpi"
