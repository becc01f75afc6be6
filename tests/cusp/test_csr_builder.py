"""The sorted graph equals what lexsort makes of the edges, whatever the ranks, chunks and memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranks import COMM

from cusp.edge_lists import csr_kernels, csr_plan, weight_codes
from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.errors import GraphFileError, together
from cusp.input import graph_file
from cusp.runtime.files import ScratchError

WEIGHTS = [None, "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
RULES = ["symmetrize", "drop_loops", "dedup"]


def oracle(sources, targets, weights, num_nodes, symmetrize=False, drop_loops=False, dedup=False):
    """(indptr, indices, weights) by sorting all edges at once."""
    edges = np.array([sources, targets, np.arange(len(sources))], np.int64)
    if drop_loops:
        edges = edges[:, edges[0] != edges[1]]
    if symmetrize:
        there = edges[:, edges[0] != edges[1]]
        edges = np.concatenate([edges, there[[1, 0, 2]]], axis=1)
    values = np.zeros(edges.shape[1]) if weights is None else weights[edges[2]]
    order = np.lexsort([values, edges[1], edges[0]])
    edges, values = edges[:, order], values[order]
    if dedup:
        first = np.ones(order.size, bool)
        first[1:] = (np.diff(edges[0]) != 0) | (np.diff(edges[1]) != 0)
        edges, values = edges[:, first], values[first]
    indptr = np.append(0, np.cumsum(np.bincount(edges[0], minlength=num_nodes)))
    return indptr, edges[1], None if weights is None else values


def make(num_nodes, num_edges, kind, seed):
    """Random edges, some to node 0, with weights of a type that have few or many values."""
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(0, num_nodes, (2, num_edges))
    targets[rng.random(num_edges) < 0.2] = 0
    if kind is None:
        return sources, targets, None
    if seed % 2:
        return sources, targets, rng.integers(1, 4, num_edges).astype(kind)
    if np.dtype(kind).kind == "f":
        return sources, targets, rng.normal(size=num_edges).astype(kind)
    limits = np.iinfo(kind)
    return sources, targets, rng.integers(limits.min, limits.max, num_edges, kind, endpoint=True)


def add_share(builder, sources, targets, weights, pieces=1):
    """Add every rank's share of the edges, in a number of calls."""
    for piece in range(pieces):
        mine = slice(COMM.rank + COMM.size * piece, None, COMM.size * pieces)
        builder.add(sources[mine], targets[mine], None if weights is None else weights[mine])


def gathered(result):
    """(indptr, indices, weights) of the whole graph on every rank, from the slices; checks how they join."""
    parts = COMM.allgather(result)
    assert all(part.indptr[0] == 0 and part.indptr[-1] == part.targets.size for part in parts)
    nodes = np.cumsum([0] + [part.indptr.size - 1 for part in parts])
    edges = np.cumsum([0] + [part.targets.size for part in parts])
    assert [part.first_node for part in parts] + [parts[0].num_nodes] == nodes.tolist()
    assert parts[0].num_edges == edges[-1]
    indptr = np.concatenate([[0]] + [first + part.indptr[1:] for first, part in zip(edges, parts)])
    weights = None if result.weights is None else np.concatenate([part.weights for part in parts])
    return indptr, np.concatenate([part.targets for part in parts]), weights


def assert_same(found, expected):
    """Equal arrays, or both None."""
    for mine, right in zip(found, expected, strict=True):
        assert (mine is None) == (right is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, right)


@pytest.mark.mpi
@given(
    num_nodes=st.sampled_from([1, 2, 7, 300, 70_000]),
    num_edges=st.integers(0, 60) | st.integers(1000, 5000),
    kind=st.sampled_from(WEIGHTS),
    rules=st.sets(st.sampled_from(RULES)),
    known=st.booleans(),
    memory_limit=st.sampled_from([0, 30_000, 300_000, 10**9]),
    bucket_load=st.sampled_from([1, 50, 2**16]),
    pieces=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_build_matches_lexsort(num_nodes, num_edges, kind, rules, known, memory_limit, bucket_load, pieces, seed):
    edges = make(num_nodes, num_edges, kind, seed)
    options = dict.fromkeys(rules, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr_plan, "BUCKET_LOAD", bucket_load)
        builder = CsrBuilder(
            COMM,
            num_nodes=num_nodes if known else None,
            weight_dtype=kind,
            memory_limit=memory_limit,
            **options,
        )
        add_share(builder, *edges, pieces)
        result = builder.build()
    size = num_nodes if known else max(edges[0].max(initial=-1), edges[1].max(initial=-1)) + 1
    assert result.num_nodes == size
    assert result.targets.dtype == np.uint32
    found = gathered(result)
    assert_same(found, oracle(*edges, size, **options))
    ends = np.stack([np.repeat(np.arange(size), np.diff(found[0])), found[1]])
    assert result.symmetric == np.array_equal(ends, ends[::-1][:, np.lexsort(ends)])


@pytest.mark.mpi
@pytest.mark.parametrize("kind", [None, "u1", "f8"])
@pytest.mark.parametrize("memory_limit", [50_000, 10**9])
def test_wide_ids(monkeypatch, kind, memory_limit):
    """Ids that do not fit into 32 bits: a limit of 100 nodes instead of 2**32 leads to the same code."""
    monkeypatch.setattr(graph_file, "NARROW_NODES", 100)
    edges = make(5000, 20_000, kind, 4)
    builder = CsrBuilder(COMM, weight_dtype=kind, dedup=True, memory_limit=memory_limit)
    add_share(builder, *edges, 2)
    result = builder.build()
    assert result.targets.dtype == np.uint64
    assert_same(gathered(result), oracle(*edges, result.num_nodes, dedup=True))


@pytest.mark.parametrize("num_nodes", [2**32, 2**33 + 5, 2**40])
def test_plan_fits_keys(num_nodes):
    """However many nodes there are, a relative source and a target fit into a key, and buckets cover the nodes."""
    records = np.zeros(csr_plan.num_cells(num_nodes), np.int64)
    records[0] = 2**45
    plan = csr_plan.make_plan(csr_plan.SortOptions(False, False, False, None, 10**6), num_nodes, records, 3, (0, 255))
    assert plan.key_bits <= 64
    assert plan.first_node[0] == 0 and plan.first_node[-1] == num_nodes
    assert (np.diff(plan.first_node) > 0).all()
    assert plan.first_bucket[0] == 0 and plan.first_bucket[-1] == plan.num_buckets
    assert plan.num_buckets < 2 * csr_plan.MAX_BUCKETS + 2**17


@pytest.mark.parametrize("num_nodes", [2**31 + 10, 2**34])
def test_large_ids_sort(num_nodes):
    """Ids beyond 32 bits can be recovered from the keys of records (without an indptr for that many nodes)."""
    rng = np.random.default_rng(3)
    first = num_nodes - 2**20
    sources, targets = first + rng.integers(0, 2**20, 1000), rng.integers(0, num_nodes, 1000)
    records = np.bincount(sources >> csr_plan.cell_shift(num_nodes), minlength=csr_plan.num_cells(num_nodes))
    plan = csr_plan.make_plan(csr_plan.SortOptions(False, False, False, None, 10**6), num_nodes, records, 1, None)
    starts = np.zeros(plan.num_buckets + 1, np.int64)
    bucket = np.searchsorted(plan.first_node, sources, "right") - 1
    np.cumsum(np.bincount(bucket, minlength=plan.num_buckets), out=starts[1:])
    keys, none = np.empty(1000, np.uint64), np.empty(0, np.uint64)
    csr_kernels.scatter(
        sources, targets, none, np.uint64(plan.cell_shift), plan.bucket_of_cell, plan.first_node.view(np.uint64),
        plan.bits, (False, False), starts[:-1].astype(np.uint64), keys, none,
    )  # fmt: skip
    of_bucket = np.repeat(np.arange(plan.num_buckets), np.diff(starts))
    found = plan.first_node[of_bucket] + (keys >> np.uint64(plan.target_bits)).astype(np.int64)
    ends = (keys & np.uint64(2**plan.target_bits - 1)).astype(np.int64)
    assert sorted(zip(found, ends, strict=True)) == sorted(zip(sources, targets, strict=True))


@pytest.mark.mpi
def test_one_pair_many_times(comm):
    """More copies of an edge than fit into memory: no split of the bucket can separate them."""
    weights = np.random.default_rng(1).normal(size=30_000)
    ends = np.zeros(30_000, np.int8)
    builder = CsrBuilder(comm, weight_dtype="f8", memory_limit=10_000)
    add_share(builder, ends, ends + 1, weights)
    assert_same(gathered(builder.build()), oracle(ends, ends + 1, weights, 2))


@pytest.mark.mpi
def test_hub_is_split(comm):
    """A row that is larger than the memory is sorted correctly."""
    targets = np.random.default_rng(1).permutation(50_000)
    builder = CsrBuilder(comm, memory_limit=20_000, symmetrize=True, dedup=True)
    add_share(builder, np.full(50_000, 77), targets, None)
    expected = oracle(np.full(50_000, 77), targets, None, 50_000, symmetrize=True, dedup=True)
    assert_same(gathered(builder.build()), expected)


@pytest.mark.mpi
def test_balance(comm):
    """Each rank gets its share of edges and nodes, except for hubs."""
    sources, targets, _ = make(10_000, 100_000, None, 2)
    builder = CsrBuilder(comm)
    add_share(builder, sources, targets, None)
    counts = comm.allgather(builder.build().targets.size)
    assert max(counts) < 1.1 * sum(counts) / comm.size


@pytest.mark.mpi
def test_edges_on_one_rank_only(comm):
    builder = CsrBuilder(comm, num_nodes=9, symmetric=True)
    if comm.rank == comm.size - 1:
        builder.add(np.array([8, 3], np.uint64), np.array([3, 8], np.uint64))
    result = builder.build()
    assert result.symmetric
    assert_same(gathered(result), ([0, 0, 0, 0, 1, 1, 1, 1, 1, 2], [8, 3], None))


@pytest.mark.mpi
def test_no_edges_no_nodes(comm):
    result = CsrBuilder(comm, weight_dtype="f4").build()
    assert (result.num_nodes, result.num_edges) == (0, 0)
    assert result.indptr.tolist() == [0] and result.weights.size == 0


@pytest.mark.parametrize(("edge", "num_nodes"), [((3, -1), None), ((-5, 3), 10), ((10, 2), 10), ((2, 2**63 - 1), None)])
def test_bad_ids(edge, num_nodes):
    builder = CsrBuilder(COMM, num_nodes=num_nodes)
    builder.add([1, 2], [3, 4])
    with pytest.raises(GraphFileError, match=f"edge 3 goes from node {edge[0]} to node {edge[1]}, .* below"):
        builder.add(np.array([1, edge[0]]), np.array([1, edge[1]]))


def test_unsigned_id_beyond_int64():
    with pytest.raises(GraphFileError, match="18446744073709551615"):
        CsrBuilder(COMM).add(np.array([2**64 - 1], np.uint64), np.array([1], np.uint64))


@pytest.mark.mpi
def test_error_of_one_rank_on_all(comm):
    builder = CsrBuilder(comm, num_nodes=5)
    with pytest.raises(GraphFileError, match="node 5"), together(comm):
        builder.add([comm.rank + 6 - comm.size], [0])


@pytest.mark.mpi
def test_missing_scratch_folder(comm, shared_tmp):
    """A missing scratch folder is an error on every rank."""
    builder = CsrBuilder(comm, memory_limit=1000, scratch=str(shared_tmp / "missing"))
    message = (
        "missing: cannot write .* bytes to a scratch file: No such file .*; name a scratch folder on a larger disk"
    )
    with pytest.raises(ScratchError, match=message), together(comm):
        builder.add(np.arange(5000), np.arange(5000))


@pytest.mark.parametrize(
    ("dtype", "weights", "error"),
    [
        ("f4", [1.0, np.nan], GraphFileError),
        ("u1", [3, 256], GraphFileError),
        ("u1", [3, -1], GraphFileError),
        ("u1", [3.0, 4.0], TypeError),
        ("u1", None, ValueError),
        (None, [1, 2], ValueError),
        ("f4", [1.0], ValueError),
    ],
)
def test_bad_weights(dtype, weights, error):
    with pytest.raises(error):
        CsrBuilder(COMM, weight_dtype=dtype).add([0, 1], [1, 0], weights)


@pytest.mark.parametrize("arguments", [{"num_nodes": -1}, {"weight_dtype": "f2"}, {"num_nodes": 2**50}])
def test_bad_arguments(arguments):
    with pytest.raises((ValueError, GraphFileError)):
        CsrBuilder(COMM, **arguments)


def test_bad_arrays():
    builder = CsrBuilder(COMM)
    with pytest.raises(ValueError):
        builder.add([1, 2], [1])
    with pytest.raises(TypeError):
        builder.add([1.0], [2.0])


@pytest.mark.parametrize("kind", WEIGHTS[1:])
def test_codes_keep_order(kind):
    dtype = np.dtype(kind)
    rng = np.random.default_rng(5)
    weights = np.frombuffer(rng.bytes(1000 * dtype.itemsize), dtype)
    weights = np.sort(weights[~np.isnan(weights)] if dtype.kind == "f" else weights)
    if dtype.kind == "f":
        weights = np.sort(np.append(weights, np.array([0, np.inf, -np.inf], dtype)))
    codes = weight_codes.encode(weights)
    assert (np.diff(codes.astype(object)) >= 0).all()
    np.testing.assert_array_equal(weight_codes.decode(codes.astype(np.uint64), dtype), weights)


@pytest.mark.mpi
def test_used_up(comm, shared_tmp):
    builder = CsrBuilder(comm)
    builder.build()
    with pytest.raises(RuntimeError, match="only once"):
        builder.write(shared_tmp / "graph.h5")


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [5],
        [-(2**63)],
        [-(2**63), 2**63 - 1],
        [-(2**63), 0, 2**63 - 1],
        range(100),
        [*range(1000), 2**62],
        [number**7 for number in range(500)],  # below 2^63
    ],
    ids=lambda ids: f"{len(ids)}",
)
def test_numbers_of_sparse_ids(ids):
    """Each id gets its number, wherever the ids are between the lowest and the highest of int64."""
    ids = np.array(ids, np.int64)
    ends = np.random.default_rng(3).permutation(np.repeat(ids, 2))
    numbers, found = np.random.default_rng(4).permutation(ids.size), np.full(ends.size, -1)
    csr_kernels.number_ends(0, ends.size, ids, *csr_kernels.buckets_of(ids), numbers, ends, found)
    np.testing.assert_array_equal(found, numbers[np.searchsorted(ids, ends)])
