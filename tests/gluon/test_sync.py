"""The sync layer: matching lists, what is elided, the meaning of reduce and broadcast, and the wire format."""

from collections.abc import Sequence
from itertools import product

import graphs
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.runtime import threads
from gluon import device_cpu as device
from gluon import message_cpu as message
from gluon.exchange import Exchange, block_words
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import ADD, ASSIGN, MAX, MIN, Reduction
from gluon.sync import Sync
from gluon.transports.host import HostMpi

SIZE = ranks.COMM.size
policies = pytest.mark.parametrize("policy", parts.SOME)
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
LOCATIONS = ["src", "dst", "any"]


@pytest.fixture
def make(comm, shared_tmp):
    """Function (name of a hard graph, name of a policy) -> partition."""

    def partition(name: str, policy: str) -> Partition:
        path = graphs.write(shared_tmp / "g.h5", graphs.HARD[name]())
        return partition_graph(path, parts.policy_of(policy), comm)

    return partition


def role(part: Partition, location: str) -> np.ndarray:
    """(proxies,) bool: which proxies play a role."""
    return {"src": part.has_out, "dst": part.has_in, "any": part.has_out | part.has_in}[location]


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("name", ["loops_and_doubles", "two_nodes", "last_isolated"])
def test_lists_match(comm, make, name, policy):
    """Entry i of both sides of a list is the same node; each list holds all mirrors of the role and no other."""
    part = make(name, policy)
    plan = make_plan(part, comm)
    for location in LOCATIONS:
        lists = plan.lists(location)
        mirrors = [part.gids[lids].tolist() for lids in lists.mirrors]
        masters = [part.gids[lids].tolist() for lids in lists.masters]
        everyone = comm.allgather((mirrors, masters))
        for rank in range(SIZE):
            assert masters[rank] == everyone[rank][0][comm.rank]
        for rank, lids in enumerate(lists.masters):
            assert (lids >= 0).all() and (lids < part.num_masters).all()
            assert rank != comm.rank or lids.size == 0
        expected = [lid for lid in range(part.num_masters, part.num_proxies) if role(part, location)[lid]]
        assert sorted(np.concatenate(lists.mirrors).tolist()) == expected


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("name", ["hub", "random"])
def test_what_is_elided(comm, make, name, policy):
    """Outgoing edge-cuts broadcast nothing, incoming ones reduce nothing, Cartesian ones stay in row and column."""
    plan = make_plan(make(name, policy), comm)
    reads, writes = plan.lists("src"), plan.lists("dst")
    if policy == "oec":
        assert not any(lids.size for lids in reads.mirrors + reads.masters)
    if policy == "iec":
        assert not any(lids.size for lids in writes.mirrors + writes.masters)
    if policy.startswith("cvc"):
        _, columns = parts.policy_of(policy).grid_for(SIZE)
        for rank in range(SIZE):
            if rank // columns != comm.rank // columns:  # a source's mirrors are in its row
                assert not (reads.mirrors[rank].size or reads.masters[rank].size)
            if rank % columns != comm.rank % columns:
                assert not (writes.mirrors[rank].size or writes.masters[rank].size)


def put(label: Label, value_of: dict[int, float]) -> None:
    """Set values by global id at this rank's proxies, with their bits."""
    for lid, gid in enumerate(label.part.gids.tolist()):
        if gid in value_of:
            label.values[lid] = value_of[gid]
            label.updated[lid >> 6] |= np.uint64(1 << (lid & 63))


def bits(label: Label) -> list[int]:
    """Local ids of the set bits."""
    return [lid for lid in range(label.part.num_proxies) if int(label.updated[lid >> 6]) >> (lid & 63) & 1]


@pytest.mark.mpi
@policies
@pytest.mark.parametrize(("reduction", "fill"), [(MIN, 1000), (MAX, -1000), (ADD, 0)], ids=["min", "max", "add"])
def test_reduce_then_broadcast(comm, make, policy, reduction, fill):
    """Masters get what all proxies together have; then the mirrors that are read get what the masters have."""
    part = make("random", policy)
    sync = parts.make_sync(part)
    rng = np.random.default_rng([comm.rank, 5])
    label = Label(part, np.int64, fill, reduction)
    chosen = {int(gid): int(rng.integers(-50, 50)) for gid in part.gids if rng.random() < 0.5}
    put(label, chosen)
    writers = {
        gid: value for gid, value in chosen.items() if part.lid(gid) < part.num_masters or part.has_in[part.lid(gid)]
    }
    everyone = comm.allgather(writers)
    expected = np.full(part.num_nodes, fill, np.int64)
    for gid in range(part.num_nodes):
        values = [w[gid] for w in everyone if gid in w]
        if values:
            expected[gid] = {"min": min, "max": max, "add": sum}[reduction.name](values)
    sync.reduce(label)
    np.testing.assert_array_equal(parts.gather(part, label.values[: part.num_masters]), expected)
    mirrors = np.arange(part.num_masters, part.num_proxies)
    if reduction is ADD:  # what was sent must not count again
        assert (label.values[mirrors[part.has_in[mirrors]]] == 0).all()
        assert not any(part.has_in[lid] for lid in bits(label) if lid >= part.num_masters)
    else:
        sent = [part.lid(gid) for gid in writers]
        assert all(label.values[lid] == chosen[int(part.gids[lid])] for lid in sent if lid >= part.num_masters)
    changed = {int(part.gids[lid]) for lid in bits(label) if lid < part.num_masters}
    changed = set().union(*comm.allgather(changed))
    sync.broadcast(label)
    for lid in mirrors[part.has_out[mirrors]]:
        if part.gids[lid] in changed:
            assert label.values[lid] == expected[part.gids[lid]]


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "hashed", "mixed", "one_rank"])
@pytest.mark.parametrize("dtype", ["i4", "f8", "u2"])
def test_sums_over_rounds(comm, make, policy, dtype):
    """An ADD over several rounds of reduces counts each contribution once."""
    part = make("random", policy)
    sync = parts.make_sync(part)
    label = Label(part, dtype, 0, ADD)
    for _ in range(3):
        np.add.at(label.values, part.targets, 1)
        put(label, {int(gid): label.values[part.lid(int(gid))] for gid in part.gids})
        sync.reduce(label)
    graph = graphs.HARD["random"]()
    in_degrees = np.bincount(graph.targets, minlength=graph.num_nodes)
    np.testing.assert_array_equal(parts.gather(part, label.values[: part.num_masters]), 3 * in_degrees)


@pytest.mark.mpi
@policies
def test_implied_values(comm, make, policy):
    """Where all ranks know the value, none travels: the same result in fewer bytes."""
    part = make("random", policy)
    results = []
    for implied in (None, 7):
        sync = parts.make_sync(part)
        label = Label(part, np.int64, 100, MIN)
        put(label, {int(gid): 7 for gid in part.gids if (gid * 5 + comm.rank) % 3 == 0})
        sync.reduce(label, implied=implied)
        sync.broadcast(label, implied=implied)
        results.append((label.values.tolist(), bits(label), sum(t.bytes for t in sync.traffic)))
    assert results[0][:2] == results[1][:2]
    assert results[1][2] <= results[0][2]


@pytest.mark.mpi
@policies
def test_labels_of_several_types_share_a_message(comm, make, policy):
    """Together they end as they do one by one, with one message per partner."""
    part = make("random", policy)
    kinds = [(np.int32, MIN, 99), (np.float64, ADD, 0), (np.uint8, MAX, 0), (np.int16, MIN, 99)]

    def labels() -> list[Label]:
        made = [Label(part, dtype, fill, reduction) for dtype, reduction, fill in kinds]
        for place, label in enumerate(made):
            put(label, {int(gid): (gid * 7 + comm.rank + place) % 90 for gid in part.gids if (gid + place) % 3})
        return made

    one_by_one, together = labels(), labels()
    sync = parts.make_sync(part)
    for label in one_by_one:
        sync(label)
    sync = parts.make_sync(part)
    sync(*together)
    for mine, other in zip(together, one_by_one, strict=True):
        np.testing.assert_array_equal(mine.values, other.values)
        assert bits(mine) == bits(other)
    sends = [sum(lids.size > 0 for lids in lists) for lists in
             (sync.plan.lists("dst").mirrors, sync.plan.lists("src").masters)]  # fmt: skip
    assert [t.messages for t in sync.traffic] == sends
    assert [t.kind for t in sync.traffic] == ["reduce", "broadcast"]


class CountingComm:
    """A communicator that counts what is sent through it."""

    def __init__(self, comm) -> None:
        self.comm, self.messages, self.bytes = comm, 0, 0

    def Isend(self, data, *args):  # noqa: N802 - as MPI calls it
        """Count and send."""
        self.messages, self.bytes = self.messages + 1, self.bytes + data.nbytes
        return self.comm.Isend(data, *args)

    def __getattr__(self, name):
        return getattr(self.comm, name)


@pytest.mark.mpi
@policies
def test_traffic_is_what_was_sent(comm, make, policy):
    """Messages and bytes are counted as MPI sees them."""
    part = make("random", policy)
    counting = CountingComm(comm)
    sync = Sync(make_plan(part, comm), comm)
    sync.exchange = Exchange(HostMpi(counting), "cpu")
    for round_number in range(3):
        label = Label(part, np.int32, 50, MIN)
        put(label, {int(gid): 1 for gid in part.gids if gid % 3 < round_number})
        sync(label)
    assert sum(t.messages for t in sync.traffic) == counting.messages
    assert sum(t.bytes for t in sync.traffic) == counting.bytes
    assert len(sync.traffic) == 6


@pytest.mark.mpi
def test_label(comm, make):
    """A node is written at each proxy; taking the updated ones clears their bits."""
    part = make("random", "mixed")
    label = Label(part, np.int32, -1, MIN)
    for gid in (0, 3, 59):
        label.write(gid, gid)
    lids = [lid for lid in range(part.num_proxies) if part.gids[lid] in (0, 3, 59)]
    assert label.num_updated_masters() == sum(lid < part.num_masters for lid in lids)
    assert comm.allreduce(label.num_updated_masters()) == 3
    assert label.take_updated().tolist() == lids
    assert label.take_updated().tolist() == [] and label.num_updated_masters() == 0
    label.write(3, 5)
    swapped = label.swap_updated()
    assert bits(label) == [] and int(device.count_bits(swapped, part.num_proxies)) == (part.lid(3) >= 0)


@pytest.mark.parametrize("reduction", [MIN, MAX, ADD], ids=["min", "max", "add"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_identity(reduction, dtype):
    """Combining with the identity changes nothing."""
    dtype = np.dtype(dtype)
    identity = reduction.identity(dtype)
    assert identity.dtype == dtype
    operation = {"min": np.minimum, "max": np.maximum, "add": np.add}[reduction.name]
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    values = np.array([limits.min, 0, 1, limits.max], dtype)
    np.testing.assert_array_equal(operation(values, identity), values)


def expected_words(entries: int, count: int, itemsize: int) -> int:
    """Words of the smallest block, from the sizes of all four forms."""
    values = -(-count * itemsize // 8)
    if count == 0:
        return 1
    if count == entries:
        return 1 + values
    return 1 + min(-(-entries // 64), -(-count // 2)) + values


def round_trip(
    entries: int, chosen: np.ndarray, dtype: str, with_values: bool, reduction: Reduction, reset: bool, start: int,
    pieces: Sequence[tuple[int, int]] = (),
) -> None:  # fmt: skip
    """Extract the chosen entries of a list into a block and combine it elsewhere; check both sides."""
    rng = np.random.default_rng(entries)
    proxies = 2 * entries + 3
    lids = rng.permutation(proxies)[:entries].astype(np.int32)
    there = rng.permutation(proxies)[:entries].astype(np.int32)
    values = rng.integers(1, 100, proxies).astype(dtype)
    updated = np.zeros(-(-proxies // 64), np.uint64)
    for lid in lids[chosen].tolist():
        updated[lid >> 6] |= np.uint64(1 << (lid & 63))
    stranger = next((lid for lid in range(proxies) if lid not in lids), None)
    updated[stranger >> 6] |= np.uint64(1 << (stranger & 63))  # updated, but not in the list
    sent, before = values[lids].copy(), updated.copy()
    words = np.full(start + block_words(entries, values.itemsize), 0xAAAAAAAAAAAAAAAA, np.uint64)
    views = words, words.view(np.uint32), words.view(dtype)
    identity = reduction.identity(values.dtype) if reset else values.dtype.type(0)
    listed = message.listed(lids)
    end = message.write_block(pieces, listed, values, listed.of(updated), with_values, reset, identity, *views, start)
    assert end <= words.size
    assert end - start == expected_words(entries, chosen.size, values.itemsize if with_values else 0)
    assert (words[:start] == 0xAAAAAAAAAAAAAAAA).all() and (words[end:] == 0xAAAAAAAAAAAAAAAA).all()
    if reset:
        assert (values[lids[chosen]] == identity).all()
        assert int(device.count_bits(updated, proxies)) == 1
    else:
        np.testing.assert_array_equal(values[lids], sent)
        np.testing.assert_array_equal(updated, before)

    fill = rng.integers(1, 100, proxies).astype(dtype)
    got, marks = fill.copy(), np.zeros_like(updated)
    implied = values.dtype.type(42)
    combine = message.combine_by(reduction)
    read = message.read_block(combine, pieces, there, got, marks, with_values, implied, *views, start)
    assert read == end
    new = sent[chosen] if with_values else np.full(chosen.size, implied)
    old = fill[there[chosen]]
    operation = {"assign": lambda a, b: b, "min": np.minimum, "max": np.maximum, "add": np.add}[reduction.name]
    expected = fill.copy()
    expected[there[chosen]] = operation(old, new)
    np.testing.assert_array_equal(got, expected)
    assert device.take_bits(marks, proxies).tolist() == np.flatnonzero(expected != fill).tolist()


@pytest.mark.parametrize(
    ("entries", "dtype"),
    [
        *product([0, 1, 2, 63, 64, 65, 127, 1000], ["u1", "i2", "f4", "i8"]),
        *product([65], ["i1", "u2", "i4", "u4", "u8", "f8"]),
    ],
)
def test_wire_sizes(entries, dtype):
    """None, one, few, half, all but one and all entries of lists about as long as a word has bits; every type once."""
    order = np.random.default_rng(1).permutation(entries)
    few = entries // 32
    for count in sorted({0, 1, 2, 3, few // 2, few, few + 1, entries // 2, entries - 1, entries}):
        if 0 <= count <= entries:
            for with_values in (True, False):
                round_trip(entries, np.sort(order[:count]), dtype, with_values, MIN, False, 0)


@settings(max_examples=20)
@given(
    chosen=st.lists(st.booleans(), max_size=200),
    dtype=st.sampled_from(["u1", "i2", "f4", "i8"]),
    with_values=st.booleans(),
    reduction=st.sampled_from([ASSIGN, MIN, MAX, ADD]),
    start=st.integers(0, 5),
)
def test_wire_any_selection(chosen, dtype, with_values, reduction, start):
    """Any selection, reduction and place in the message: both sides, memory left alone, the smallest form."""
    reset = reduction is ADD
    round_trip(len(chosen), np.flatnonzero(chosen), dtype, with_values, reduction if reset else MIN, reset, start)
    round_trip(len(chosen), np.flatnonzero(chosen), dtype, with_values, reduction if not reset else MAX, False, start)


@pytest.mark.parametrize("reduction", [MIN, ADD])
@pytest.mark.parametrize("count", [0, 7, 500, 999, 1000])
def test_wire_by_threads(count, reduction, monkeypatch):
    """Threads that share a list write and apply what one would."""
    monkeypatch.setattr(threads._Chosen, "threads", 3)
    chosen = np.sort(np.random.default_rng(count).permutation(1000)[:count])
    for with_values in (True, False):
        for pieces in [(0, 1000)], [(0, 64), (64, 640), (640, 1000)]:
            round_trip(1000, chosen, "f4", with_values, reduction, reduction is ADD, 3, pieces)


@pytest.mark.parametrize(
    ("count", "mode"), [(0, message.NONE), (2, message.OFFSETS), (40, message.BITSET), (128, message.ALL)]
)
def test_mode_of_a_block(count, mode):
    """The header names the form and the number of entries."""
    lids, values = np.arange(128, dtype=np.int32), np.arange(128, dtype=np.int32)
    updated = np.zeros(2, np.uint64)
    for lid in range(count):
        updated[lid >> 6] |= np.uint64(1 << (lid & 63))
    words = np.zeros(block_words(128, 4), np.uint64)
    views = words, words.view("u4"), words.view("i4")
    message.write_block([], message.listed(lids), values, updated, True, False, np.int32(0), *views, 0)
    assert (int(words[0]) & 255, int(words[0]) >> 8) == (mode, count)


@given(st.lists(st.booleans(), max_size=200))
@settings(max_examples=40)
def test_bits(flags):
    """Counting and taking bits: ascending, all of them, and none is left."""
    words = np.zeros(-(-len(flags) // 64), np.uint64)
    for place in np.flatnonzero(flags).tolist():
        words[place >> 6] |= np.uint64(1 << (place & 63))
    for size in {0, len(flags) // 2, len(flags)}:
        assert int(device.count_bits(words, size)) == sum(flags[:size])
    assert device.take_bits(words, len(flags)).tolist() == np.flatnonzero(flags).tolist()
    assert not words.any()


@pytest.mark.mpi
@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc"])
def test_other_work_meanwhile(comm, make, policy, transport):
    """All steps are taken before what has arrived is combined, also where nothing travels; the values are the same."""
    part = make("random", policy)
    sync, seen, values = Sync(make_plan(part, comm, transport), comm), [], []

    def steps():
        for _ in range(5):
            seen.append(label.masters().tolist())
            yield

    for meanwhile in (None, steps()):
        label = Label(part, np.float64, 0, ADD)
        label.values[:] = 1 / (1 + part.gids)
        label.mark_all()
        sync.reduce(label, write="dst", meanwhile=meanwhile)
        values.append(label.values.tolist())
    assert seen == 5 * [(1 / (1 + part.gids[: part.num_masters])).tolist()]
    assert values[0] == values[1]
