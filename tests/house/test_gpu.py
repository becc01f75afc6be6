"""What the sync layer does on the GPU is what it does on the CPU, and answers too; kernels run where --device says.

Without a GPU they run on the CPU: ``python -m scripts.test --device gpu tests/house/test_gpu.py``.
"""

import inspect
import sys
from types import ModuleType
from typing import Any

import graphs
import numpy as np
import parts
import pytest
import ranks

from apps.bfs import bfs
from apps.sssp import measure, sssp
from cusp import partitioner
from cusp.runtime import devices
from cusp.runtime.devices import DeviceError, backend, choose_device, move, to_host
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import ADD, MAX, MIN
from gluon.sync import Sync
from gluon.transports import TransportError, open_transport
from scripts.test import ROOT

on_gpu = pytest.mark.skipif(parts.DEVICE != "gpu", reason="--device gpu was not asked for")
SYNCED = [("random", "oec"), ("random", "cvc"), ("random", "mixed"), ("star", "hvc-2"), ("no_edges", "cvc")]
LABELS = [(np.int32, MIN), (np.int64, MAX), (np.float64, ADD), (np.uint8, MAX), (np.int64, ADD)]


def both(shared_tmp, name, policy, comm, **options):
    """The partition on the CPU and on the GPU. Collective."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD[name]())
    host = partitioner.partition_graph(path, parts.policy_of(policy), comm, csc=True, **options)
    return host, host.on("gpu")


def same_bits(host: Label, device: Label) -> None:
    """Values and bits agree."""
    np.testing.assert_array_equal(to_host(device.values), host.values)
    np.testing.assert_array_equal(to_host(device.updated).view(np.uint64), host.updated)


@on_gpu
@pytest.mark.mpi
@pytest.mark.parametrize(("dtype", "reduction"), LABELS, ids=lambda x: getattr(x, "name", None) or np.dtype(x).name)
@pytest.mark.parametrize(("name", "policy"), SYNCED)
def test_sync(comm, shared_tmp, name, policy, dtype, reduction):
    """Few, half and all of the labels updated: reduced and broadcast alike, to the last bit, and nothing left over."""
    host, gpu = both(shared_tmp, name, policy, comm)
    syncs = [Sync(make_plan(part, comm), comm) for part in (host, gpu)]
    random = np.random.default_rng(comm.rank)
    for share in (0.0, 0.05, 0.5, 1.0):
        labels = [Label(part, dtype, reduction.identity(np.dtype(dtype)), reduction) for part in (host, gpu)]
        chosen = random.random(host.num_proxies) < share
        values = np.where(chosen, random.integers(1, 100, chosen.size).astype(dtype), labels[0].values)
        bits = np.zeros(labels[0].updated.size * 64, np.uint8)
        bits[: chosen.size] = chosen
        words = np.packbits(bits, bitorder="little").view(np.uint64)
        labels[0].values[:], labels[0].updated[:] = values, words
        labels[1].values, labels[1].updated = move(values, "gpu"), move(words.view(np.uint32), "gpu")
        assert labels[0].num_updated_masters() == labels[1].num_updated_masters()
        for sync, label in zip(syncs, labels):
            sync.reduce(label, write="any")
        same_bits(*labels)
        for sync, label in zip(syncs, labels):
            sync.broadcast(label, read="any")
        own = slice(0, host.num_masters)
        np.testing.assert_array_equal(to_host(labels[1].values), labels[0].values)
        np.testing.assert_array_equal(to_host(labels[1].take_updated())[own], labels[0].take_updated()[own])


@on_gpu
@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "mixed"])
def test_implied_values(comm, shared_tmp, policy):
    """A value that all ranks know travels as a bit, into the same labels as on the CPU."""
    host, gpu = both(shared_tmp, "random", policy, comm)
    labels = [Label(part, np.int32, 2**31 - 1, MIN) for part in (host, gpu)]
    for part, label in zip((host, gpu), labels):
        sync = Sync(make_plan(part, comm), comm)
        for gid in range(0, host.num_nodes, 3):
            label.write(gid, 7)
        sync(label)
        sync.reduce(label, write="dst", implied=7)
        sync.broadcast(label, read="src", implied=7)
    same_bits(*labels)


@on_gpu
@pytest.mark.mpi
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "hvc-2", "fec"])
def test_answers_equal_those_of_the_cpu(comm, shared_tmp, policy, order):
    """Hops in all directions and distances."""
    host, gpu = both(shared_tmp, "random", policy, comm, order=order)
    syncs = {part.device: Sync(make_plan(part, comm), comm) for part in (host, gpu)}
    for direction in ("push", "pull", "auto"):
        found = [bfs(part, syncs[part.device], 3, direction).on_host().labels["hops"] for part in (host, gpu)]
        np.testing.assert_array_equal(*found)
    found = [
        sssp(part, syncs[part.device], 3, measure(part, syncs[part.device])).on_host().labels["distance"]
        for part in (host, gpu)
    ]
    np.testing.assert_array_equal(*found)


@on_gpu
@pytest.mark.mpi
def test_there_and_back(comm, shared_tmp):
    """A partition moved to the GPU and back is the same."""
    host, gpu = both(shared_tmp, "random", "cvc", comm)
    assert (gpu.device, gpu.on("gpu") is gpu) == ("gpu", True)
    back = gpu.on("cpu")
    for name in ("gids", "offsets", "targets", "weights", "has_in", "degrees", "mirror_starts"):
        np.testing.assert_array_equal(getattr(back, name), getattr(host, name))
    np.testing.assert_array_equal(back.csc.sources, host.csc.sources)
    assert [gpu.lid(gid) for gid in range(5)] == [host.lid(gid) for gid in range(5)]


@pytest.mark.mpi
def test_transports_of_the_cpu(comm):
    """Ranks on CPUs use MPI; what is for GPUs is refused on all of them."""
    assert open_transport("auto", comm, "cpu").name == open_transport("mpi", comm, "cpu").name == "mpi"
    with pytest.raises(TransportError, match="--transport nccl is for ranks on GPUs"):
        open_transport("nccl", comm, "cpu")


@on_gpu
@pytest.mark.mpi(min_size=2)
def test_transport_that_cannot_be_used(comm):
    """NCCL needs a GPU a rank: with fewer the reason is given, and auto takes another way."""
    if parts.PLACEMENT.shared:
        assert open_transport("auto", comm, "gpu").name in ("cuda-mpi", "mpi")
        with pytest.raises(TransportError, match="--transport nccl cannot be used: "):
            open_transport("nccl", comm, "gpu")
    else:
        assert open_transport("auto", comm, "gpu").name == "nccl"


@pytest.mark.mpi
@pytest.mark.parametrize("lacking", ["all", "last"])
def test_no_gpu(comm, monkeypatch, lacking):
    """Where any rank has no GPU, auto takes the CPU on all, and asking for a GPU says who has none, and why."""
    if lacking == "all" or comm.rank == comm.size - 1:
        monkeypatch.setattr(devices, "_use_gpu", lambda number: ("", "it was sold"))
    elif parts.DEVICE == "cpu":
        monkeypatch.setattr(devices, "_use_gpu", lambda number: (f"{number} of a kind", None))
    assert choose_device("auto", comm).device == "cpu"
    who = 0 if lacking == "all" else comm.size - 1
    with pytest.raises(DeviceError, match=f"--device gpu: rank {who} on .* cannot use a GPU: .*; try --device cpu"):
        choose_device("gpu", comm)


def test_no_cupy(comm, monkeypatch):
    """Without CuPy the message says how to install it."""
    monkeypatch.setitem(sys.modules, "cusp.kernels.cuda", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match="CuPy cannot be imported .*: pip install 'cusp-gluon.gpu-cuda12.' or "):
        choose_device("gpu", comm)


# Module -> what its CPU side alone has: pieces of it that no other module asks for.
TWINS = {
    "apps.operators.traversal.bfs": set(),
    "apps.operators.expressions.edges": set(),
    "apps.operators.structure.cc": set(),
    "apps.graph500.edge_rules": set(),
    "apps.operators.structure.communities": set(),
    "apps.operators.frontier": {"get_bit", "set_bit"},
    "apps.operators.structure.kcore": set(),
    "apps.operators.sums.betweenness": set(),
    "apps.operators.sums.pagerank": set(),
    "apps.operators.sums.rows": {"Rows"},
    "apps.operators.traversal.sssp": set(),
    "apps.operators.traversal.tree": set(),
    "apps.operators.structure.triangles": set(),
    "cusp.kernels.build": set(),
    "apps.graph500.slices": set(),
    "cusp.input.read": set(),
    "apps.operators.undirected": set(),
    "gluon.device": {"extract", "combine", "block_words"},
    "gluon.exchange": set(),
}


def offered(module: ModuleType) -> dict[str, Any]:
    """Functions and classes of a module that others may use, and methods of the classes."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    for name, value in list(own.items()):
        if inspect.isclass(value):
            own |= {f"{name}.{key}": method for key, method in vars(value).items() if inspect.isfunction(method)}
    return {name: value for name, value in own.items() if not name.startswith("_") and "._" not in name}


def parameters(function: Any) -> list[str]:
    """Names of the parameters of a function, compiled or not, of a class or a method."""
    return list(inspect.signature(getattr(function, "py_func", function)).parameters)


@on_gpu
@pytest.mark.parametrize("name", TWINS)
def test_twins(name):
    """What a CPU module offers to others, its GPU twin offers too, with the same parameters."""
    cpu, gpu = backend(name, "cpu"), vars(backend(name, "gpu"))
    mine = {key: value for key, value in offered(cpu).items() if key not in TWINS[name]}
    assert mine
    for key, value in mine.items():
        owner, _, method = key.partition(".")
        assert owner in gpu, f"{name}_gpu has no {owner}"
        twin = getattr(gpu[owner], method, None) if method else gpu[owner]
        assert twin is not None, f"{name}_gpu has no {key}"
        assert parameters(twin) == parameters(value), key


@on_gpu
def test_every_pair_is_compared():
    """No module with a twin is forgotten."""
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)[: -len("_gpu")]
        for folder in ("cusp", "gluon", "apps")
        for path in (ROOT / folder).rglob("*_gpu.py")
        if path.with_name(path.name.replace("_gpu.py", "_cpu.py")).exists()
    }
    assert found == set(TWINS)


@on_gpu
@pytest.mark.mpi
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_only_updated_values_travel(comm, shared_tmp, share):
    """A mirror's value without its bit may be anything: its master must not see it, however many others travel."""
    host, gpu = both(shared_tmp, "random", "cvc", comm)
    label = Label(gpu, np.int32, 50, MIN)
    mirrors = np.arange(gpu.num_proxies) >= gpu.num_masters
    chosen = mirrors & (np.random.default_rng(comm.rank).random(mirrors.size) < share)
    bits = np.zeros(label.updated.size * 32, np.uint8)
    bits[: chosen.size] = chosen
    label.values = move(np.where(chosen, 20, np.where(mirrors, 10, 50)).astype(np.int32), "gpu")
    label.updated = move(np.packbits(bits, bitorder="little").view(np.uint32), "gpu")
    Sync(make_plan(gpu, comm), comm).reduce(label, write="any")
    assert set(to_host(label.values)[: gpu.num_masters].tolist()) <= {20, 50}


@on_gpu
@pytest.mark.mpi
@pytest.mark.limit(60)
@pytest.mark.parametrize(
    ("nodes", "policy", "largest", "reverse"),
    parts.share(
        [(40, "iec", largest, "same") for largest in (1, 9, 255, 60_000)]
        + [(300, policy, 255, "same") for policy in ("oec", "cvc", "mixed")]
        + [(40, "cvc", largest, "other") for largest in (1, 255)]
    ),
)
def test_paths_that_settle_and_pull(shared_tmp, nodes, policy, largest, reverse):
    """Dense undirected graphs, whose reversed edges weigh the same or not; with nodes that cannot be reached."""
    random = np.random.default_rng(nodes + largest)
    pairs = random.integers(0, nodes - 5, (nodes * 6, 2)) ** 2 // (nodes - 5)  # hubs have small numbers
    graph = graphs.make(nodes, pairs, random.integers(0 if largest == 9 else 1, largest + 1, len(pairs)))
    graph = graphs.both_ways(graph)
    if reverse == "other":
        graph = graph._replace(weights=random.integers(1, largest + 1, graph.num_edges))
    path = graphs.write(shared_tmp / "g.h5", graph, weight="u2", symmetric=True)
    part = partitioner.partition_graph(path, parts.policy_of(policy), ranks.COMM, device="gpu")
    sync = Sync(make_plan(part, ranks.COMM), ranks.COMM)
    for delta in (None, 1, largest / 3 + 1, 1e9):
        lengths = measure(part, sync, delta)
        assert (lengths.queue.by_weight is not None) == (reverse == "same" or largest == 1)
        for source in (0, 3, nodes - 1):
            found = parts.gather(part, sssp(part, sync, source, lengths).on_host().labels["distance"])
            np.testing.assert_array_equal(found, graphs.serial_distances(graph, source))
