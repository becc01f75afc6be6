"""What the sync layer does on the GPU is what it does on the CPU, and answers too; kernels run where --device says.

Without a GPU they run on the CPU: ``python -m scripts.test --device gpu tests/house/test_gpu.py``.
"""

import importlib
import inspect
import sys
from importlib.util import find_spec
from typing import Any, Protocol

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp import partitioner
from cusp.apps.bfs import bfs
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.sssp import measure, sssp
from cusp.policies.compile_rules import CompiledPolicy
from cusp.runtime import devices
from cusp.runtime.devices import DeviceError, backend, choose_device, module_of, move, to_host
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
@pytest.mark.mpi(min_size=2)
def test_steps_are_counted_anew(comm, shared_tmp):
    """After very many steps, before a stamp comes back; barriers leave their counter as it was, but for one bit."""
    host, gpu = both(shared_tmp, "random", "cvc", comm)
    sync = Sync(make_plan(gpu, comm, "mpi"), comm)  # in rounds
    lengths, expected = measure(gpu, sync), graphs.serial_distances(graphs.HARD["random"](), 3)
    label = Label(gpu, lengths.dtype, lengths.far, MIN)
    drain = EdgeOperator("src.distance + weight", "dst.distance").drain(gpu, distance=label)
    progress, stamps = drain.queue.progress.view(np.uint32), drain.stamps  # which all operators share
    for steps in (2**30 - 2, 2**30, 2**30 + 4, 2**32 - 1):
        progress[1:2] = np.uint32(steps)
        stamps.fill(steps % 6 + 1)  # were they kept, nodes that fall in the next step would be missed
        answer = sssp(gpu, sync, 3, lengths).on_host()
        np.testing.assert_array_equal(parts.gather(gpu, answer.labels["distance"]), expected)
        arrived, steps = (int(word) for word in to_host(progress[:2]))
        assert arrived % 2**31 == 0 and steps < 2**30 + 1000


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
    """Ranks of one host use memory that they share, or MPI; what is for GPUs is refused on all of them."""
    assert open_transport("auto", comm, "cpu").name == ("peer" if comm.size > 1 else "mpi")
    assert open_transport("mpi", comm, "cpu").name == "mpi"
    with pytest.raises(TransportError, match="--transport nccl is for ranks on GPUs"):
        open_transport("nccl", comm, "cpu")


@on_gpu
@pytest.mark.mpi(min_size=2)
def test_transport_that_cannot_be_used(comm):
    """NCCL needs a GPU a rank: with fewer the reason is given, and auto takes another way."""
    assert open_transport("auto", comm, "gpu").name == "peer"
    if parts.PLACEMENT.shared:
        with pytest.raises(TransportError, match="--transport nccl cannot be used: "):
            open_transport("nccl", comm, "gpu")
    elif find_spec("cupy_backends"):  # not the stand-in
        assert open_transport("nccl", comm, "gpu").name == "nccl"


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
    monkeypatch.setattr(devices, "_gpu_module", devices._gpu_module.__wrapped__)
    monkeypatch.delitem(sys.modules, "cusp.runtime.device_gpu", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match="CuPy cannot be imported .*: pip install 'cusp-gluon.gpu-cuda12.' or "):
        choose_device("gpu", comm)


PAIRS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("_gpu")
    for folder in ("cusp", "gluon", "apps")
    for path in (ROOT / folder).rglob("*_gpu.py")
    if path.with_name(path.name.replace("_gpu.py", "_cpu.py")).exists()
}
INTERFACES = [
    interface
    for package in sorted({pair.rpartition(".")[0] for pair in PAIRS})
    for interface in vars(importlib.import_module(f"{package}.interfaces")).values()
    if inspect.isclass(interface) and Protocol in interface.__mro__[1:] and module_of(interface) in PAIRS
]


def parameters(function: Any) -> list[inspect.Parameter]:
    """Parameters of a function, compiled or not, of a class or a method; ``self`` apart."""
    signature = inspect.signature(getattr(function, "py_func", function))
    return [parameter for name, parameter in signature.parameters.items() if name != "self"]


def assert_offers(module: Any, interface: type) -> None:
    """A module has all that a Protocol states, and its functions have the same parameters; more are optional."""
    where = f"{module.__name__}, {interface.__name__}"
    stated = {name: value for above in interface.__mro__ for name, value in vars(above).items() if name[0] != "_"}
    stated |= inspect.get_annotations(interface)
    assert stated, where
    for name, value in stated.items():
        assert hasattr(module, name), f"{where}: {name} is missing"
        if inspect.isfunction(value):
            wanted, own = parameters(value), parameters(getattr(module, name))
            assert [one.name for one in own[: len(wanted)]] == [one.name for one in wanted], f"{where}.{name}"
            assert all(one.default is not one.empty for one in own[len(wanted) :]), f"{where}.{name}"
            assert [one.default for one in own[: len(wanted)]] == [one.default for one in wanted], f"{where}.{name}"


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=on_gpu)])
@pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.__name__)
def test_twins(interface, device):
    """Names of parameters, which mypy does not compare, nor what numba compiled."""
    if interface.__name__.startswith("Gpu" if device == "cpu" else "Cpu"):
        return  # it says what only the other device offers
    assert_offers(backend(interface, device), interface)


@on_gpu
def test_loops_of_a_policy():
    """Translated, they have the parameters of those that are compiled."""
    host, device = (CompiledPolicy(parts.policy_of("cvc"), where)._loops for where in ("cpu", "gpu"))
    for name in ("assign_masters", "masters_of", "assign_edges"):
        wanted = [one.name for one in parameters(getattr(host, name))]
        assert [one.name for one in parameters(getattr(device, name))] == wanted


def test_every_pair_has_an_interface():
    assert {module_of(interface) for interface in INTERFACES} == PAIRS


@on_gpu
def test_a_struct_keeps_its_arrays():
    """A kernel gets pointers and numbers by value; what they point to lives as long as the struct."""
    import cupy as cp

    from cusp.kernels.cuda import struct

    code = """
    struct Slice { long long size; int* values; int* nothing; };
    extern "C" __global__ void fill(Slice slice) {
      for (int i = 0; i < slice.size; i++) slice.values[i] = slice.nothing ? 0 : -7;
    }
    """
    slices = [struct(size, cp.zeros(4, np.int32), None) for size in (1, 2, 4)]
    for each in slices:
        cp.RawKernel(code, "fill")((1,), (1,), (each,))
    assert [to_host(each.members[1]).tolist() for each in slices] == [[-7, 0, 0, 0], [-7, -7, 0, 0], [-7] * 4]
    with pytest.raises(ValueError, match="a kernel sees the memory of an array, not its strides"):
        struct(cp.zeros(8, np.int32)[::2])


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
        [(40, "iec", largest, "same") for largest in (1, 9, 255, 60_000, 2**28)]
        + [(300, policy, 255, "same") for policy in ("oec", "cvc", "mixed")]
        + [(40, "cvc", largest, "other") for largest in (1, 255)]
    ),
)
def test_paths_that_settle_and_pull(shared_tmp, nodes, policy, largest, reverse):
    """Dense undirected graphs, whose reversed edges weigh the same or not; of the last nodes, one is far away."""
    random = np.random.default_rng(nodes + largest)
    pairs = random.integers(0, nodes - 5, (nodes * 6, 2)) ** 2 // (nodes - 5)  # hubs have small numbers
    weights = random.integers(0 if largest == 9 else 1, largest + 1, len(pairs))
    graph = graphs.make(nodes, np.append(pairs, [[0, nodes - 3]], axis=0), np.append(weights, largest))
    graph = graphs.both_ways(graph)
    if reverse == "other":
        graph = graph._replace(weights=random.integers(1, largest + 1, graph.num_edges))
    path = graphs.write(shared_tmp / "g.h5", graph, weight="u4" if largest > 65_535 else "u2", symmetric=True)
    part = partitioner.partition_graph(path, parts.policy_of(policy), ranks.COMM, device="gpu")
    sync = Sync(make_plan(part, ranks.COMM), ranks.COMM)
    for delta in (None, max(1, largest / 1000), largest / 3 + 1, 1e9):
        lengths = measure(part, sync, delta)
        if sync.peers or sync.comm.size == 1:  # few hops are enough, so 32 bits are
            assert lengths.dtype == np.int32
        assert (lengths.settled is not None) == (reverse == "same" or largest == 1)
        for source in (0, 3, nodes - 3, nodes - 1):
            found = parts.gather(part, sssp(part, sync, source, lengths).on_host().labels["distance"])
            np.testing.assert_array_equal(found, graphs.serial_distances(graph, source))
