"""The partition of hard graphs under every policy: its invariants, and the owners that the rules prescribe."""

from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import graphs
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.estimates.quality import measure_quality
from cusp.input import edge_slice, read_cpu
from cusp.kernels import build_cpu
from cusp.partition import Partition, transpose
from cusp.partitioner import partition_graph
from cusp.policies import Policy, load_policy
from cusp.runtime import exchange, threads

SIZE = ranks.COMM.size
SPLITS = ["edges", "nodes", "weighted", "3:1"]
policies = pytest.mark.parametrize("policy", parts.SOME)
EXAMPLES = 40 if SIZE == 1 else 15


def expected_bounds(graph: graphs.Graph, split: str) -> np.ndarray:
    """The reading split by a search in an array of all weights: rank r ends where r + 1 shares are reached."""
    known = {
        "edges": (0, 1),
        "nodes": (1, 0),
        "weighted": (max(1, graph.num_edges // graph.num_nodes), 1),
        "3:1": (3, 1),
    }
    node, edge = known["nodes" if split == "edges" and graph.num_edges == 0 else split]
    weights = np.arange(graph.num_nodes + 1) * node + graph.indptr * edge
    wanted = [-(-int(weights[-1]) * rank // SIZE) for rank in range(SIZE + 1)]
    bounds = np.searchsorted(weights, wanted, "left")
    bounds[-1] = graph.num_nodes
    return bounds


def expected_owners(name: str, graph: graphs.Graph, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masters of all nodes and owners of all edges, by the rules of the papers as array expressions."""
    masters = np.searchsorted(bounds[1:], np.arange(graph.num_nodes), "right")
    source, target = masters[graph.sources], masters[graph.targets]
    degrees = graph.degrees[graph.sources]
    if name == "oec":
        return masters, source
    if name == "iec":
        return masters, target
    if name.startswith("cvc"):
        columns = max(c for c in range(1, SIZE + 1) if SIZE % c == 0 and c * c <= SIZE)
        if "-" in name:
            columns = int(name.split("x")[1])
        return masters, source // columns * columns + target % columns
    threshold = {"hvc-2": 2, "hvc-1000": 1000, "contiguous+hybrid": 3}.get(name)
    if threshold is not None:
        return masters, np.where(degrees > threshold, target, source)
    nodes = np.arange(graph.num_nodes)
    if name == "hashed":
        masters = nodes % SIZE
        return masters, masters[graph.targets]
    if name == "helper":
        masters = SIZE - 1 - nodes * SIZE // graph.num_nodes
        return masters, (graph.sources * 7 + graph.targets) % SIZE
    if name == "edges_only":
        return masters, np.where(degrees > 3, graph.targets % SIZE, source)
    assert name == "one_rank"
    return np.full(graph.num_nodes, SIZE - 1), np.zeros(graph.num_edges, np.int64)


def assert_same(one: Partition, other: Partition) -> None:
    """Assert that two partitions agree in every bit."""
    for field in fields(Partition):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("csc", "lid_map"):
            for inner in fields(first) if first is not None else ():
                np.testing.assert_array_equal(getattr(first, inner.name), getattr(second, inner.name))
        elif isinstance(first, np.ndarray):
            assert first.dtype == second.dtype
            np.testing.assert_array_equal(first, second)
        else:
            assert first == second


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.PAIRS)
def test_invariants_and_owners(comm, shared_tmp, name, policy):
    """Every invariant, and masters and owners as an array expression of the rule says."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, parts.policy_of(policy), comm, csc=True)
    assert (part.num_nodes, part.num_edges, part.num_ranks) == (graph.num_nodes, graph.num_edges, SIZE)
    everyone = parts.check_partition(part, graph)
    if policy == "mixed" or policy not in parts.COMPUTED:
        return
    masters, owners = expected_owners(policy, graph, expected_bounds(graph, "edges"))
    edges = np.array(parts.triples(graph.sources, graph.targets, graph.weights)).reshape(-1, 3)
    for rank, p in enumerate(everyone):
        assert np.array_equal(np.sort(p.gids[: p.num_masters]), np.flatnonzero(masters == rank))
        expected = sorted(map(tuple, edges[owners == rank].tolist()))
        assert sorted(parts.triples(p.sources, p.targets, p.weights)) == expected
    check_kind(policy, everyone, masters)


def check_kind(policy: str, everyone: list, masters: np.ndarray) -> None:
    """What makes an edge-cut an edge-cut and a Cartesian cut one."""
    for p in everyone:
        if policy == "oec":
            assert not p.has_out[p.num_masters :].any()
        if policy == "iec":
            assert not p.has_in[p.num_masters :].any()
    if policy.startswith("cvc"):
        grid = parts.policy_of(policy).grid_for(SIZE)
        for p in everyone:
            assert (masters[p.gids[p.has_out]] // grid[1] == p.rank // grid[1]).all()
            assert (masters[p.gids[p.has_in]] % grid[1] == p.rank % grid[1]).all()
        proxies = np.bincount(np.concatenate([p.gids for p in everyone]))
        assert proxies.max() <= grid[0] + grid[1] - 1


@pytest.mark.mpi
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, "cvc") for name in ("star", "first_isolated", "two_nodes", "no_edges", "random")] + [("random", "hashed")],
)
def test_reading_split(comm, shared_tmp, name, policy, split):
    """Each way to share out the reading gives the ranges it promises; the union of all ranks stays the graph."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    edges = edge_slice.read_slice(path, comm, split)
    np.testing.assert_array_equal(edges.bounds, expected_bounds(graph, split))
    begin, end = edges.bounds[comm.rank : comm.rank + 2]
    assert edges.first_node == begin
    np.testing.assert_array_equal(edges.indptr, graph.indptr[begin : end + 1] - graph.indptr[begin])
    span = slice(graph.indptr[begin], graph.indptr[end])
    np.testing.assert_array_equal(edges.targets, graph.targets[span])
    np.testing.assert_array_equal(edges.weights, graph.weights[span])
    part = partition_graph(path, parts.policy_of(policy), comm, split=split)
    everyone = parts.check_partition(part, graph)
    masters, owners = expected_owners(policy, graph, edges.bounds)
    for rank, p in enumerate(everyone):
        assert np.array_equal(np.sort(p.gids[: p.num_masters]), np.flatnonzero(masters == rank))
        assert p.sources.size == np.count_nonzero(owners == rank)


@pytest.mark.mpi
@pytest.mark.parametrize("split", ["edges", "nodes"])
def test_reading_is_balanced(comm, shared_tmp, split):
    """No rank reads more than its share by more than the degree of one node."""
    graph = graphs.random_directed(200, 3000)
    edges = edge_slice.read_slice(graphs.write(shared_tmp / "g.h5", graph), comm, split)
    mine = edges.targets.size if split == "edges" else edges.indptr.size - 1
    whole = graph.num_edges if split == "edges" else graph.num_nodes
    assert abs(mine - whole / SIZE) <= (graph.degrees.max() if split == "edges" else 1)


@pytest.mark.mpi
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("policy", ["oec", "cvc", "hashed"])
def test_order_of_masters(comm, shared_tmp, policy, order):
    """Hubs first or as in the file; nodes without out-edges last either way, ties by global id."""
    graph = graphs.HARD["hub"]() if policy == "oec" else graphs.HARD["last_isolated"]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, parts.policy_of(policy), comm, order=order)
    parts.check_partition(part, graph)
    gids = part.gids[: part.num_masters]
    key = -graph.degrees[gids] if order == "degree" else graph.degrees[gids] == 0
    np.testing.assert_array_equal(gids, gids[np.lexsort([gids, key])])


@pytest.mark.mpi
@settings(max_examples=EXAMPLES)
@given(
    graph=graphs.small_graphs(),
    policy=st.sampled_from([name for name in parts.COMPUTED if name != "mixed"]),
    split=st.sampled_from(SPLITS),
    order=st.sampled_from(["degree", "natural"]),
)
def test_any_graph(comm, shared_tmp, graph, policy, split, order):
    """The invariants and the owners for any small graph, policy, split and order."""
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, parts.policy_of(policy), comm, split=split, order=order, csc=True)
    everyone = parts.check_partition(part, graph)
    masters, owners = expected_owners(policy, graph, expected_bounds(graph, split))
    for rank, p in enumerate(everyone):
        assert set(p.gids[: p.num_masters].tolist()) == set(np.flatnonzero(masters == rank).tolist())
        assert p.sources.size == np.count_nonzero(owners == rank)
    check_kind(policy, everyone, masters)


@pytest.mark.mpi
@settings(max_examples=EXAMPLES)
@given(graph=graphs.small_graphs(), seed=st.integers(0, 2**31), split=st.sampled_from(SPLITS))
def test_random_rules(comm, shared_tmp, graph, seed, split):
    """Rules that put nodes and edges anywhere: the invariants, and the same partition when it is made again."""
    path = graphs.write(shared_tmp / "g.h5", graph)
    policy = load_policy(str(parts.FOLDER / "mixed.py"), threshold=seed)
    part = partition_graph(path, policy, comm, split=split, csc=True)
    parts.check_partition(part, graph)
    assert_same(part, partition_graph(path, policy, comm, split=split, csc=True))


@pytest.mark.mpi
@policies
def test_same_in_two_runs(comm, shared_tmp, monkeypatch, policy):
    """The same file and policy give the same partition, bit for bit, also with more threads."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(100, 900))
    once = partition_graph(path, parts.policy_of(policy), comm, csc=True)
    monkeypatch.setattr(read_cpu, "SHORT", 100)
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setenv("CUSP_THREADS", "3")
    assert_same(once, partition_graph(path, parts.policy_of(policy), comm, csc=True))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed"])
def test_small_pieces(comm, shared_tmp, monkeypatch, policy):
    """Chunks and messages of a few entries give the same partition as large ones."""
    graph = graphs.random_directed(100, 900)
    path = graphs.write(shared_tmp / "g.h5", graph, sums=True)
    whole = partition_graph(path, parts.policy_of(policy), comm, csc=True)
    monkeypatch.setattr(build_cpu, "CHUNK", 7)
    monkeypatch.setattr(read_cpu, "CHUNK", 5)
    monkeypatch.setattr(read_cpu, "SHORT", 3)
    monkeypatch.setattr(exchange, "PIECE", 16)
    assert_same(whole, partition_graph(path, parts.policy_of(policy), comm, csc=True))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("index", "indptr"), parts.share(product(["u4", "i4", "i8", "u8", ">u4", ">i8"], ["i8", "i4", ">i8"]))
)
def test_index_types(comm, shared_tmp, index, indptr):
    """Indices of any integer type and byte order hold the same graph."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph, index=index, indptr=indptr, weight=">i4")
    parts.check_partition(partition_graph(path, parts.policy_of("cvc"), comm, csc=True), graph)


@pytest.mark.mpi
@pytest.mark.parametrize("index", parts.share(["u2", "i2", "u1", "i1"]))
def test_narrow_index_types(comm, shared_tmp, index):
    """So do indices of one or two bytes."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph, index=index, indptr="u2")
    parts.check_partition(partition_graph(path, parts.policy_of("iec"), comm, csc=True), graph)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "weight", parts.share(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", ">f4", ">u2"])
)
def test_weight_types(comm, shared_tmp, weight):
    """Weights keep their type and every bit on the way, in CSR and CSC; or they are not read at all."""
    graph = graphs.random_directed()
    extremes = np.finfo(weight) if "f" in weight else np.iinfo(weight)
    weights = graph.weights.astype(np.dtype(weight).newbyteorder("="))
    weights[:2] = extremes.min, extremes.max
    graph = graph._replace(weights=weights)
    path = graphs.write(shared_tmp / "g.h5", graph, weight=weight)
    part = partition_graph(path, parts.policy_of("iec"), comm, csc=True)
    assert part.weights.dtype == part.csc.weights.dtype == weights.dtype
    parts.check_partition(part, graph)
    bare = partition_graph(path, parts.policy_of("iec"), comm, weights=False, csc=True)
    assert bare.weights is None and bare.csc.weights is None
    parts.check_partition(bare, graph, weighted=False)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "storage", parts.share([{"chunks": (4,)}, {"compression": "gzip", "shuffle": True}, {"fletcher32": True}])
)
def test_storage(comm, shared_tmp, storage):
    """Chunked, compressed and checked datasets are read as contiguous ones."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph, **storage)
    parts.check_partition(partition_graph(path, parts.policy_of("cvc"), comm), graph)


@pytest.mark.mpi
def test_transpose_is_in_order(comm, shared_tmp):
    """The sources of each CSC row ascend, so that the local transpose does not depend on anything else."""
    part = partition_graph(graphs.write(shared_tmp / "g.h5", graphs.random_directed()), parts.policy_of("mixed"), comm)
    csc = transpose(part)
    for lid in range(part.num_proxies):
        assert (np.diff(csc.sources[csc.offsets[lid] : csc.offsets[lid + 1]]) >= 0).all()


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "mixed", "one_rank"])
def test_quality(comm, shared_tmp, policy):
    """Replication, balance and partners are those of the sets of global ids."""
    graph = graphs.random_directed()
    part = partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    quality, everyone = measure_quality(part, comm), parts.gather_parts(part)
    proxies = [p.gids.size for p in everyone]
    assert quality.replication == pytest.approx(sum(proxies) / graph.num_nodes)
    assert quality.node_balance == pytest.approx(max(proxies) * SIZE / sum(proxies))
    assert quality.edge_balance == pytest.approx(max(p.sources.size for p in everyone) * SIZE / graph.num_edges)
    masters = [set(p.gids[: p.num_masters].tolist()) for p in everyone]
    mirrors = [set(p.gids[p.num_masters :].tolist()) for p in everyone]
    partners = [
        sum(bool(masters[r] & mirrors[s] or masters[s] & mirrors[r]) for s in range(SIZE) if s != r)
        for r in range(SIZE)
    ]
    assert quality.partners.tolist() == partners


@pytest.mark.mpi
def test_threshold_is_a_strict_bound(comm, shared_tmp):
    """A node whose degree is exactly the threshold is not a hub."""
    graph = graphs.make(8, [(0, v) for v in range(1, 6)] + [(7, v) for v in range(6)])
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, load_policy("hvc", threshold=5), comm, split="nodes")
    masters = np.searchsorted(expected_bounds(graph, "nodes")[1:], np.arange(8), "right")
    for p in parts.gather_parts(part):
        assert (masters[p.targets[p.sources == 7]] == p.rank).all()
        assert p.rank == masters[0] or 0 not in p.sources


@pytest.mark.mpi
def test_rules_given_as_functions(comm, shared_tmp):
    """A policy made of closures, which are in no file."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph)

    def policy(shift: int) -> Policy:
        def get_master(prop, node, mstate, masters):
            return (node + shift) % prop.num_parts

        return replace(load_policy("oec"), master=get_master)

    for shift in (0, 1):
        part = partition_graph(path, policy(shift), comm)
        parts.check_partition(part, graph)
        assert ((part.gids[: part.num_masters] + shift) % SIZE == comm.rank).all()


def test_files_of_this_test_are_policies():
    """The folder of user policies was found."""
    assert {"hashed", "helper", "edges_only", "one_rank", "mixed"} <= set(parts.POLICIES)
    assert all(Path(parts.POLICIES[name][0]).exists() for name in ("hashed", "mixed"))
