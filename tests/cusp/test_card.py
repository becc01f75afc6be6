"""Graphs larger than what may be used of a card: the same partitions and answers, bit for bit, and clear errors."""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import graphs
import numpy as np
import parts
import pytest
from test_partition import assert_same

from cusp.apps import library
from cusp.errors import InputError
from cusp.partitioner import partition_graph
from cusp.runtime.devices import is_mixed, to_host
from cusp.runtime.storage import Storage, memory_of, use_memory

pytestmark = pytest.mark.skipif(
    parts.DEVICE != "gpu" or is_mixed(parts.PLACEMENT.devices), reason="is about ranks that compute on GPUs"
)
LARGE = graphs.random_directed(200, 3000, seed=7)
APPS = sorted({*library.APPS} - {"maze"})
OFTEN = {*zip(APPS, [False, True] * len(APPS)), *product(["bfs", "sssp"], [False, True])}
CASES = [pytest.param(*case, marks=[] if case in OFTEN else pytest.mark.slow) for case in product(APPS, [False, True])]
LIMITS = {"nothing fits": 1 << 12, "some fits": 100_000, "all fits": 64 << 20}
OPTIONS = {
    "bfs": {"source": 3}, "sssp": {"source": 3}, "path": {"source": 3, "targets": [5]}, "forest": {"roots": [1, 2]},
    "widest": {"source": 3}, "betweenness": {"sources": 2}, "pagerank": {"iterations": 4},
    "table": {"origins": [3, 7, 9], "destinations": [5]}, "paths": {"source": 3, "target": 5}, "ppr": {"seeds": [3, 9]},
}  # fmt: skip


@pytest.fixture
def card(monkeypatch) -> Iterator[object]:
    """The module for the card, with small pieces and no limit; what a test limits is unlimited again after it."""
    import cupy as cp

    from cusp.card import card_gpu, hosted_gpu

    before = cp.cuda.get_allocator()
    monkeypatch.setattr(hosted_gpu, "PIECE", 1)
    monkeypatch.setattr(card_gpu, "PROBE", 1 << 16)
    yield card_gpu
    lift()
    cp.cuda.set_allocator(before)


def lift() -> None:
    """No limit any more."""
    if (limited := memory_of("gpu")).usage() is not None:
        use_memory(Storage(device="gpu"))
        gc.collect()
        limited.usage()
        limited.give_back()


def usage() -> object:
    """Of the card now."""
    return memory_of("gpu").usage()


def on_each_limit(
    make: Callable[[int | None], object], same: Callable[[object, object], None], limits=tuple(LIMITS)
) -> None:
    """``make(limit)`` makes the same without a limit and with each."""
    expected = make(None)
    for limit in limits:
        same(expected, make(LIMITS[limit]))
        lift()


@pytest.mark.mpi
@pytest.mark.parametrize("policy", parts.share(parts.SOME))
def test_partitions(comm, shared_tmp, card, policy):
    """With weights and in-edges."""
    path = graphs.write(shared_tmp / "g.h5", LARGE, sums=True)
    make = partial(partition_graph, path, parts.policy_of(policy), comm, csc=True, device="gpu")
    on_each_limit(lambda limit: make(memory_limit=limit).on("cpu"), lambda one, other: assert_same(other, one))


@pytest.mark.mpi
@pytest.mark.parametrize(("app", "symmetric"), parts.share(CASES))
def test_answers(comm, shared_tmp, card, app, symmetric):
    """Of every app, on graphs that are symmetric and that are not."""
    graph = graphs.both_ways(LARGE) if symmetric else LARGE
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)

    def answer(limit: int | None) -> dict[str, np.ndarray]:
        part = library.partition_graph(path, "cvc", comm=comm, device="gpu", memory_limit=limit)
        found = getattr(library, app)(part, **OPTIONS.get(app, {}))
        return found.values | found.table

    limits = tuple(LIMITS) if app in ("bfs", "sssp") else ("some fits",)
    on_each_limit(answer, np.testing.assert_equal, limits)


def test_what_is_where(card):
    """The last rows lie on the card; other arrays push them off, and they come back."""
    import cupy as cp

    from cusp.card.driver_gpu import granularity

    unit = granularity()
    card.set_limit(256 * unit, 0, 1)
    memory, size = memory_of("gpu"), 100 * unit
    edges = memory.empty(size, np.int32)
    edges[...] = cp.arange(size, dtype=np.int32)
    assert usage().resident == 0
    memory.prefer([edges])
    block = next(lease.block for lease in memory._used if lease.block.address == edges.data.ptr)
    resident = sorted(block.resident)
    assert 0 < len(resident) < block.pieces and resident == list(range(block.pieces - len(resident), block.pieces))
    assert usage().resident + memory.pool.total_bytes() <= 256 * unit
    other = cp.full(150 * unit, 7, np.uint8)
    assert len(block.resident) < len(resident) and usage().resident + other.nbytes <= 256 * unit
    larger = cp.arange(75 * unit, dtype=np.int64)  # does not fit at all
    assert int(larger.sum()) == 75 * unit * (75 * unit - 1) // 2 and int(other.sum()) == 7 * 150 * unit
    np.testing.assert_array_equal(edges.get(), np.arange(size))
    del other, larger
    memory.settle()
    assert sorted(block.resident) == resident
    np.testing.assert_array_equal(edges.get(), np.arange(size))


def test_memory_is_used_again(card):
    """Page-locked memory of arrays that are gone serves the next ones, and is given back when the host has no more."""
    from cusp.card import hosted_gpu

    card.set_limit(1 << 20, 0, 1)
    memory = memory_of("gpu")
    first = memory.empty(100_000, np.int32)
    address = first.data.ptr
    del first
    assert memory.empty(90_000, np.int32).data.ptr == address
    sizes, freed, free = iter([0]), [], hosted_gpu.Hosted.free
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosted_gpu, "host_memory_left", lambda: next(sizes, 1 << 40))
        patch.setattr(hosted_gpu.Hosted, "free", lambda block: (freed.append(block.address), free(block)))
        large = memory.empty(1_000_000, np.int32)
    assert address in freed and large.size == 1_000_000 and not any(memory._kept.values())


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("left", "limit", "words"),
    [
        (1000, 1 << 20, "the host has 0 bytes left for page-locked memory, and 65,536 are needed "),
        (1 << 40, 1 << 50, "--memory-limit: 1,125,899,906,842,624 bytes, but the GPU has "),
    ],
)
def test_errors(comm, shared_tmp, card, monkeypatch, left, limit, words):
    """On every rank, also if only one has too little."""
    from cusp.card import hosted_gpu

    path = graphs.write(shared_tmp / "g.h5", LARGE)
    if comm.rank == comm.size - 1:
        monkeypatch.setattr(hosted_gpu, "host_memory_left", lambda: left)
    with pytest.raises(InputError) as caught:
        partition_graph(path, parts.policy_of("oec"), comm, device="gpu", memory_limit=limit)
    assert str(caught.value).startswith(words)


@pytest.mark.mpi
def test_a_card_in_use(comm, shared_tmp, card, monkeypatch):
    """If others take the memory of the card, edges stay with the host."""
    from cusp.card import driver_gpu

    path = graphs.write(shared_tmp / "g.h5", LARGE)
    make = partial(partition_graph, path, parts.policy_of("cvc"), comm, device="gpu")
    whole, create = make().on("cpu"), driver_gpu.create

    def refuse(place: int, size: int) -> int:
        if place == driver_gpu.CARD:
            raise driver_gpu.DriverError("cuMemCreate", driver_gpu.OUT_OF_MEMORY)
        return create(place, size)

    monkeypatch.setattr(driver_gpu, "create", refuse)
    part = make(memory_limit=1 << 20)
    assert usage().resident == 0
    assert_same(part.on("cpu"), whole)


@pytest.mark.mpi
def test_without_a_limit(comm, shared_tmp, card, monkeypatch):
    """A graph that does not fit gets one by itself; another one does not."""
    path = graphs.write(shared_tmp / "g.h5", LARGE)
    make = partial(partition_graph, path, parts.policy_of("oec"), comm, device="gpu")
    whole = make()
    assert usage() is None
    import cupy as cp

    kept = cp.get_default_memory_pool().free_bytes  # of earlier tests
    monkeypatch.setattr(cp.cuda.runtime, "memGetInfo", lambda: (60_000 - kept(), 60_000))
    monkeypatch.setattr(card, "RESERVE", 1000)
    part = make()
    assert usage().limit < 60_000 and sum(usage()[1:3]) > 0
    assert_same(part.on("cpu"), whole.on("cpu"))
    assert to_host(part.targets).size == part.num_local_edges
