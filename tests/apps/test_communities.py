"""Communities: planted ones are found, modularity is near NetworkX's, and any ranks and devices agree."""

import argparse
import math

import graphs
import networkx
import numpy as np
import parts
import pytest
import ranks
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from cusp import Answer
from cusp.apps import library
from cusp.apps.communities import ALGORITHMS, communities
from cusp.apps.library import partition_graph
from cusp.apps.operators.communities.interfaces import Communities, Sweep
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import round_weights
from cusp.apps.shared.communities.sweeps import take_apart
from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.communities import verify_communities
from cusp.errors import GraphFileError
from cusp.runtime import threads
from cusp.runtime.devices import backend, move, to_host

algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(autouse=True)
def few_copies(monkeypatch):
    """Ranks share graphs out, though these are small, and go on alone at higher levels."""
    monkeypatch.setattr("cusp.apps.communities.SMALL", 200)


def from_networkx(made: networkx.Graph) -> graphs.Graph:
    """A graph that has each edge in one direction."""
    return graphs.make(made.number_of_nodes(), made.edges, np.ones(made.number_of_edges(), np.int64))


def to_networkx(graph: graphs.Graph) -> networkx.Graph:
    """Without directions and loops, weights summed."""
    made = networkx.Graph()
    made.add_nodes_from(range(graph.num_nodes))
    for source, target, weight in graph.triples():
        if source != target:
            before = made.get_edge_data(source, target, {"weight": 0})["weight"]
            made.add_edge(source, target, weight=before + weight)
    return made


def find(
    comm, folder, graph: graphs.Graph, policy: str, algorithm: str, resolution: float = 1.0
) -> tuple[list[set[int]], float]:
    """Run and verify; the groups of nodes and their modularity, which NetworkX finds too. Collective."""
    path = graphs.write(folder / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    answer = communities(part, sync, algorithm, resolution=resolution).on_host()
    options = argparse.Namespace(algorithm=algorithm, resolution=resolution)
    verify_communities(as_undirected(part, comm), sync, answer, options)
    label = parts.gather(part, answer.labels["community"])
    assert label.dtype == np.int64
    groups = [set(np.flatnonzero(label == name).tolist()) for name in np.unique(label)]
    assert all(min(group) == name for group, name in zip(groups, np.unique(label)))
    assert answer.figures["communities"] == len(groups)
    oracle = to_networkx(graph)
    assert algorithm != "leiden" or all(networkx.is_connected(oracle.subgraph(group)) for group in groups)
    if oracle.number_of_edges():
        expected = networkx.community.modularity(oracle, groups, resolution=resolution)
        assert answer.figures["modularity"] == pytest.approx(expected)
    return groups, answer.figures["modularity"]


@pytest.mark.mpi
@algorithms
@pytest.mark.parametrize("policy", ["oec", "mixed"])
def test_planted(comm, shared_tmp, algorithm, policy):
    """Cliques in a ring, each connected with the next by one edge, whatever their nodes are called."""
    made = networkx.connected_caveman_graph(8, 7)
    shuffled = np.random.default_rng(3).permutation(56)
    graph = from_networkx(networkx.relabel_nodes(made, dict(enumerate(shuffled.tolist()))))
    groups, _ = find(comm, shared_tmp, graph, policy, algorithm)
    assert sorted(map(sorted, groups)) == sorted(sorted(row) for row in shuffled.reshape(8, 7).tolist())


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "mixed"])
def test_hard_graphs(comm, shared_tmp, policy):
    """Directed graphs with weights, loops and isolated nodes; Louvain and Leiden are never below single nodes."""
    for place, name in enumerate(graphs.HARD):
        algorithm = tuple(ALGORITHMS)[(place + (policy == "cvc")) % 3]
        find(comm, shared_tmp, graphs.HARD[name](), policy, algorithm, resolution=[1.0, 0.25, 3.0][place // 3 % 3])


@pytest.mark.mpi
@pytest.mark.parametrize("algorithm", ["louvain", "leiden"])
def test_modularity(comm, shared_tmp, algorithm):
    """Zachary's club and a graph of groups of unlike size: near the best of NetworkX's runs."""
    sizes, inside = [40, 30, 20, 15, 10], 0.3
    chances = [[inside if u == v else 0.02 for v in range(5)] for u in range(5)]
    for made in networkx.karate_club_graph(), networkx.stochastic_block_model(sizes, chances, seed=4):
        graph = from_networkx(networkx.Graph(made.edges))
        _, reached = find(comm, shared_tmp, graph, "cvc", algorithm)
        oracle = to_networkx(graph)
        best = max(networkx.community.modularity(oracle, networkx.community.louvain_communities(oracle, seed=seed))
                   for seed in range(5))  # fmt: skip
        assert reached > {"louvain": 0.97, "leiden": 0.99}[algorithm] * best


@pytest.mark.mpi
def test_leiden(comm):
    """No community is disconnected, at any resolution, and modularity is near igraph's."""
    igraph = pytest.importorskip("igraph")
    shares, all_on_cpus = [], comm.allreduce(parts.DEVICE == "cpu", ranks.MPI.LAND)
    for seed in range(6 if all_on_cpus else 1):
        made = networkx.gnm_random_graph(150, 210 + 60 * seed, seed=seed)
        edges, oracle, resolution = np.array(made.edges), igraph.Graph.from_networkx(made), [1.0, 0.3, 4.0][seed % 3]
        graph = partition_graph((edges[:, 0], edges[:, 1]), num_nodes=150, device=parts.DEVICE)
        found = library.communities(graph, algorithm="leiden", resolution=resolution, verify=True)
        inside = edges[found.community[edges[:, 0]] == found.community[edges[:, 1]]]
        links = scipy.sparse.coo_array((np.ones(len(inside)), inside.T), shape=(150, 150))
        assert connected_components(links, directed=False)[0] == found.communities
        theirs = oracle.community_leiden("modularity", resolution=resolution)
        shares.append(found.modularity / oracle.modularity(theirs, resolution=resolution))
    assert np.mean(shares) > 0.97


@pytest.mark.mpi
def test_take_apart(comm, shared_tmp):
    """A single community of all nodes becomes the connected components, long paths among them."""
    pairs = [(v, v + 1) for v in range(399) if v % 57] + [(v, v + 2) for v in range(400, 440)]
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graphs.make(450, pairs)), "oec", comm)
    graph, sync = as_undirected(part, comm), parts.make_sync(part)
    level = levels.make_level(graph, sync, 1.0)
    label = levels.new_label(level)
    name = comm.allreduce(int(to_host(label.masters()).min(initial=2**60)), ranks.MPI.MIN)
    label.values[...] = name
    names = take_apart(level, levels.number(level, label.values))
    label = parts.gather(graph, to_host(levels.smallest_members(level, levels.number(level, names))))
    oracle = networkx.Graph(pairs)
    oracle.add_nodes_from(range(450))
    expected = {min(nodes): nodes for nodes in networkx.connected_components(oracle)}
    assert {name: {*np.flatnonzero(label == name).tolist()} for name in np.unique(label).tolist()} == expected


@pytest.mark.mpi
@algorithms
def test_seeds(comm, algorithm):
    """A seed gives the same communities again, several seeds several ones; 1 is the default."""
    edges = np.array(networkx.gnm_random_graph(80, 160, seed=2).edges)
    graph = partition_graph((edges[:, 0], edges[:, 1]), num_nodes=80, device=parts.DEVICE)
    found = [library.communities(graph, algorithm=algorithm, seed=seed).community for seed in (1, 2, 3, 2**63 - 1, 2)]
    np.testing.assert_array_equal(found[0], library.communities(graph, algorithm=algorithm).community)
    np.testing.assert_array_equal(found[1], found[4])
    assert len({labels.tobytes() for labels in found}) > 2


@pytest.mark.mpi
def test_label_propagation_finds_several(comm, shared_tmp):
    """Groups that NetworkX always finds apart: one must not spread over the others because it wins all ties."""
    made = networkx.gaussian_random_partition_graph(300, 25, 10, 0.3, 0.01, seed=5)
    edges = np.array(made.edges)
    graph = partition_graph((edges[:, 0], edges[:, 1]), num_nodes=300, device=parts.DEVICE)
    for seed in range(1, 9):
        found = library.communities(graph, algorithm="label-propagation", seed=seed)
        assert found.communities >= 6 and found.modularity > 0.3


@pytest.mark.mpi
@algorithms
@pytest.mark.parametrize("floats", [False, True])
def test_any_ranks_agree(comm, shared_tmp, monkeypatch, algorithm, floats):
    """The answer of one rank on the CPU, whatever the policy, also with weights whose sums would have to be rounded.

    And whether ranks share out all levels, some, or none.
    """
    graph = graphs.random_directed(300, 900, seed=6)
    if floats:
        graph = graph._replace(weights=np.random.default_rng(8).integers(1, 4, 900) / 10)
    graph = graphs.both_ways(graph)
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True, weight=graph.weights.dtype)
    alone = parts.partitioner.partition_graph(path, "oec", ranks.MPI.COMM_SELF)
    plan = parts.make_plan(alone, ranks.MPI.COMM_SELF)
    expected = communities(alone, parts.Sync(plan, ranks.MPI.COMM_SELF), algorithm).on_host()
    by_gid = np.empty(graph.num_nodes, np.int64)
    by_gid[alone.gids] = expected.labels["community"]
    ways = [("oec", 0), ("mixed", 1000), ("cvc", 1 << 20)]
    for policy, most in ways[: 3 if comm.allreduce(parts.DEVICE == "cpu", ranks.MPI.LAND) else 2]:
        monkeypatch.setattr("cusp.apps.communities.SMALL", most)
        part = parts.partition_graph(path, parts.policy_of(policy), comm)
        answer = communities(part, parts.make_sync(part), algorithm).on_host()
        np.testing.assert_array_equal(parts.gather(part, answer.labels["community"]), by_gid)
        assert answer.rounds == expected.rounds
        assert answer.figures == (pytest.approx(expected.figures) if floats else expected.figures)


@algorithms
def test_any_threads_agree(algorithm):
    """They share even small jobs here."""
    graph, found = graphs.random_directed(400, 2000, seed=3), []
    made = partition_graph((graph.sources, graph.targets, graph.weights), num_nodes=400, device=parts.DEVICE)
    with threads.ranges_of_any_size():
        for number in (1, 2, 5):
            threads.use_threads(number)
            found.append(library.communities(made, algorithm=algorithm))
    threads.use_threads(None)
    for answer in found[1:]:
        np.testing.assert_array_equal(answer.community, found[0].community)
        assert answer.modularity == found[0].modularity


def best_by_dictionary(row, offsets, targets, weights, numbers, strengths, totals, priorities, scale) -> int:
    """The best community for a row, one candidate after the other; none is closed but its own."""
    own, to = numbers[row], {numbers[row]: 0.0}
    for edge in range(offsets[row], offsets[row + 1]):
        to[numbers[targets[edge]]] = to.get(numbers[targets[edge]], 0.0) + weights[edge]

    def merit(community: int) -> tuple[float, bool, int]:
        others = abs(totals[community]) - (strengths[row] if community == own else 0.0)
        return scale * to[community] - strengths[row] * others, community == own, priorities[community]

    return max((community for community in to if community == own or totals[community] >= 0), key=merit)


def sweep_by_dictionary(of: Sweep, factor: int, lots: tuple[int, ...]) -> tuple[int, float]:
    """As interfaces.py says, one node and one edge after the other."""
    moved, gained, csr = 0, 0.0, (of.offsets, of.targets, of.weights)
    for turn, lot in enumerate(lots):
        mine = (of.gids.astype(np.uint64) * np.uint64(factor)) >> np.uint64(65 - len(lots).bit_length()) == turn
        looks, totals = (of.states[:-1] > 0) & mine, of.totals
        of.states[:-1][looks] = 0
        if of.refines:
            looks &= totals == of.strengths
            totals = np.where(looks, -totals, totals)
        priorities, before = of.gids.astype(np.uint64) * np.uint64(lot), of.numbers.copy()
        given = *csr, before, of.strengths, totals, priorities, of.scale
        best = {row: best_by_dictionary(row, *given) for row in np.flatnonzero(looks)}
        for row, new in best.items():
            of.numbers[row], old = new, before[row]
            of.totals[old] -= of.strengths[row]
            of.totals[new] += of.strengths[row]
        for row in (row for row, new in best.items() if new != before[row]):
            moved += 1
            for edge in range(of.offsets[row], of.offsets[row + 1] if not of.refines else 0):
                target, weight = of.targets[edge], of.weights[edge]
                there = of.numbers[target] == of.numbers[row]
                of.states[target] |= not there
                gain = weight * (int(there) - int(before[target] == before[row]))
                gained += gain * (1 if of.numbers[target] != before[target] else 2)
    of.seen[:] = of.numbers
    return moved, gained


@pytest.mark.parametrize("turns", [4, 8])
@pytest.mark.parametrize("refines", [False, True])
def test_sweep(monkeypatch, turns, refines):
    """Rows of any length, also such that many blocks of a GPU share."""
    if parts.DEVICE == "gpu":
        for name, value in (("SHORT", 8), ("MIDDLE", 64), ("PIECE", 64), ("HUB", 128)):
            monkeypatch.setattr(f"cusp.apps.operators.communities.communities_gpu.{name}", value)
    rng, size = np.random.default_rng(turns), 500
    chances = rng.random(size) ** 3 / 3
    chances[rng.choice(size, 3, replace=False)] = 0.9
    matrix = np.triu(
        rng.random((size, size)) < np.maximum(chances, chances[:, None]) * (rng.random((size, size)) < 0.4), 1
    )
    matrix = scipy.sparse.csr_array(np.triu(rng.integers(1, 5, (size, size)) * matrix) * 1.0)
    matrix = scipy.sparse.csr_array(matrix + matrix.T)
    strengths, gids = matrix.sum(axis=1), np.sort(rng.choice(10**9, size, replace=False))
    numbers, states = np.arange(size, dtype=np.int32), np.ones(size + 1, np.uint8)
    csr = matrix.indptr.astype(np.int64), matrix.indices, matrix.data
    states[-1] = 0

    def begin(device: str) -> Sweep:
        given = [move(each.copy(), device) for each in (*csr, gids, strengths)]
        now = [move(each.copy(), device) for each in (numbers, strengths, states, numbers)]
        return Sweep(*given, strengths.sum(), *now, refines)

    found, expected = begin(parts.DEVICE), begin("cpu")
    for factor in 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F:
        lots = tuple(range(factor - 16, factor - 16 + 2 * turns, 2))
        assert backend(Communities, parts.DEVICE).sweep(found, factor, lots) == sweep_by_dictionary(
            expected, factor, lots
        )
        for name in ("numbers", "totals", "seen"):
            np.testing.assert_array_equal(to_host(getattr(found, name)), getattr(expected, name), name)
        np.testing.assert_array_equal(to_host(found.states)[:-1], expected.states[:-1])


of_any_size = pytest.mark.parametrize("most", [1, 40, 3000, 20000], ids="{} communities".format)
with_weights = pytest.mark.parametrize("weights", ["none", "integers with zeros", "eighths"])


def rows_of_any_length(rng: np.random.Generator, most: int, weights: str) -> tuple[np.ndarray, ...]:
    """Rows of up to thousands of targets in few or many communities: offsets, targets, weights if any, numbers."""
    nodes = 20000
    sizes = rng.permutation([*range(140), *rng.integers(0, 12, 600), 255, 256, 257, 1000, 1023, 1024, 1025, 2100, 9000])
    targets = np.concatenate([rng.choice(nodes, size, replace=False) for size in sizes]).astype(np.int32)
    values = {"none": [], "integers with zeros": [0, 0, 1, 2, 2.0**40], "eighths": np.arange(9) / 8}[weights]
    numbers = np.minimum(rng.integers(0, most, nodes), rng.integers(0, most, nodes)).astype(np.int32)
    values = rng.choice(values, targets.size) if len(values) else np.zeros(0)
    return np.concatenate([[0], np.cumsum(sizes)]), targets, values, numbers


@pytest.mark.mpi
def test_rounded_weights(comm, shared_tmp):
    """They add up without an error in any order, and hardly differ; whole numbers stay as they are."""
    graph, random = graphs.random_directed(60, 900), np.random.default_rng(4)
    for weights in random.random(900) ** 9, random.random(900) * 1e-310, random.integers(0, 2**40, 900):
        path = graphs.write(shared_tmp / "g.h5", graph._replace(weights=weights), weight=weights.dtype)
        part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
        made = as_undirected(part, comm)
        before = np.concatenate(comm.allgather(to_host(made.weights)))
        after = np.concatenate(comm.allgather(to_host(round_weights(made, parts.make_sync(part)).weights)))
        assert all(math.fsum(after) == np.cumsum(random.permutation(after))[-1] for _ in range(20))
        before = np.ldexp(before, round(math.log2(after.sum()) - math.log2(before.sum())))  # they have another unit
        assert abs(before - after).max() <= 2.0**-52 * before.sum()
        assert weights.dtype.kind == "f" or (before == after).all()


@of_any_size
@with_weights
def test_moves(most, weights):
    """Rows of every length, many equally good communities, some closed, with strengths and without."""
    rng = np.random.default_rng(5)
    offsets, targets, values, numbers = rows_of_any_length(rng, most, weights)
    sizes = np.diff(offsets)
    totals = rng.integers(-2, 5, most) * 4.0
    gids, factor, spare = rng.permutation(most) * 2**20, 0x9E3779B97F4A7C15, []
    ops = backend(Communities, parts.DEVICE)
    rows = np.flatnonzero(rng.random(sizes.size) < 0.9)
    for strengths, scale in (np.zeros(sizes.size), 1.0), (rng.integers(0, 3, sizes.size) / 2, 0.1):
        given = offsets, targets, values, numbers, strengths, totals
        arrays = (move(array, parts.DEVICE) for array in (rows, *given, gids))
        moved, old, new = (to_host(array) for array in ops.moves(*arrays, factor, scale, spare))
        known = offsets, targets, values if values.size else np.ones(targets.size), *given[3:]
        lists = [array.tolist() for array in (*known, gids.astype(np.uint64) * np.uint64(factor))]
        best = np.array([best_by_dictionary(row, *lists, scale) for row in rows.tolist()])
        elsewhere = best != numbers[rows]
        assert moved.tolist() == rows[elsewhere].tolist() and old.tolist() == numbers[moved].tolist()
        assert new.tolist() == best[elsewhere].tolist()


@of_any_size
@with_weights
def test_join(most, weights):
    """One edge for each pair of communities, with the sum of the weights, unless that is 0."""
    rng = np.random.default_rng(6)
    offsets, targets, values, numbers = given = rows_of_any_length(rng, most, weights)
    exact = 4 if values.sum() < 2.0**50 else 1  # a quarter more than 2^52 would be rounded
    sums_of = rng.integers(0, 9, (2, offsets.size - 1)) / exact
    given = [move(each, parts.DEVICE) for each in (*given, *sums_of)]
    starts, ends, sums, *own = (to_host(array) for array in backend(Communities, parts.DEVICE).join(*given, most))
    sources = np.repeat(np.arange(most), np.diff(starts))
    expected = dict.fromkeys(((number, number) for number in range(most)), 0.0)
    pairs = zip(np.repeat(numbers[: offsets.size - 1], np.diff(offsets)).tolist(), numbers[targets].tolist())
    for pair, value in zip(pairs, values.tolist() or [1.0] * targets.size, strict=True):
        expected[pair] = expected.get(pair, 0.0) + value
    inside = [expected.pop((number, number)) for number in range(most)]
    loops, strengths = (np.bincount(numbers[: offsets.size - 1], each, most) for each in sums_of)
    assert [each.tolist() for each in own] == [(loops + inside).tolist(), strengths.tolist()]
    found: dict[tuple[int, int], float] = {}  # a GPU may leave a pair in several edges
    for pair, value in zip(zip(sources.tolist(), ends.tolist()), sums.tolist(), strict=True):
        assert value and (pair not in found or parts.DEVICE == "gpu")
        found[pair] = found.get(pair, 0.0) + value
    assert found == {pair: value for pair, value in expected.items() if value}


@pytest.mark.parametrize("size", [0, 1, 33, 5000])
@pytest.mark.parametrize("most", [1, 3, 400])
def test_add_by_number(size, most):
    """Few numbers that many lanes of a warp share, and many."""
    rng = np.random.default_rng(7)
    numbers, values = rng.integers(0, most, size).astype(np.int32), rng.integers(0, 99, size) / 8
    sums = move(np.ones(most), parts.DEVICE)
    backend(Communities, parts.DEVICE).add_by_number(move(numbers, parts.DEVICE), move(values, parts.DEVICE), sums)
    assert to_host(sums).tolist() == [1 + values[numbers == number].sum() for number in range(most)]


@pytest.mark.parametrize("most", [2, 40])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_settle(most, weighted, dtype):
    """Gains are what the weight inside grows by; restless are those with a neighbour that has moved elsewhere."""
    rng, nodes = np.random.default_rng(8), 300
    chosen = np.triu(rng.random((nodes, nodes)) < 0.1, 1)
    sources, ends = np.nonzero(chosen | chosen.T)
    ends, values = ends.astype(np.int32), rng.integers(1, 9, (nodes, nodes)) / 4
    values = (values + values.T)[sources, ends] if weighted else np.zeros(0)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nodes))])
    before, after = (rng.integers(0, most, nodes).astype(dtype) for _ in range(2))
    rows = np.flatnonzero(before != after)
    states = np.append(2 * (before != after), 0).astype(np.uint8)
    given = [move(array, parts.DEVICE) for array in (rows, offsets, ends, values, before, after, states)]
    gains = to_host(backend(Communities, parts.DEVICE).settle(*given))
    whole = values if weighted else np.ones(ends.size)
    inside = [whole[name[sources] == name[ends]].sum() for name in (before, after)]
    assert gains.sum() == inside[1] - inside[0]
    marked = np.unique(ends[np.isin(sources, rows) & (after[sources] != after[ends])])
    assert np.flatnonzero(to_host(given[-1])[:nodes] & 1).tolist() == marked.tolist()


def test_inside():
    """Of rows without edges, and of a hub that many warps share: weights, edges, and whether any leads out."""
    rng = np.random.default_rng(2)
    sizes = np.array([0, 3, 0, 0, 5000, 1, 0, 33, 0])
    sources = np.repeat(np.arange(sizes.size), sizes)
    targets = rng.integers(0, sizes.size, sources.size).astype(np.int32)
    weights, numbers = rng.integers(0, 9, targets.size) / 4, rng.integers(0, 3, sizes.size).astype(np.int32)
    ops, offsets = backend(Communities, parts.DEVICE), np.concatenate([[0], np.cumsum(sizes)])
    given = [move(array, parts.DEVICE) for array in (offsets, targets, weights, numbers)]
    stays = numbers[sources] == numbers[targets]
    by_row = np.bincount(sources, np.where(stays, weights, 0), sizes.size).tolist()
    assert to_host(ops.weight_inside(*given)).tolist() == by_row
    leads = to_host(ops.leads_out(*given[:2], given[3])).tolist()
    assert leads == (np.bincount(sources, ~stays, sizes.size) > 0).tolist()
    ends = np.concatenate([[0], np.cumsum(np.bincount(sources, stays, sizes.size))])
    for some in given[2], move(np.zeros(0), parts.DEVICE):
        kept = [to_host(array).tolist() for array in ops.edges_inside(*given[:2], some, given[3])]
        assert kept == [ends.tolist(), targets[stays].tolist(), weights[stays].tolist() if some.size else []]
    empty = [
        move(np.zeros(size, dtype), parts.DEVICE)
        for size, dtype in [(4, int), (0, np.int32), (0, float), (3, np.int32)]
    ]
    assert to_host(ops.weight_inside(*empty)).tolist() == [0, 0, 0]
    assert [to_host(array).tolist() for array in ops.edges_inside(*empty)] == [[0, 0, 0, 0], [], []]


@pytest.mark.mpi
def test_verifier_refuses(comm, shared_tmp):
    """Names that are not members, wrong counts and modularities, one below that of single nodes; what falls apart."""
    graph = graphs.both_ways(graphs.make(6, [(0, 1), (2, 3), (4, 5), (1, 2)], np.ones(4, np.int64)))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    made, sync = as_undirected(part, comm), parts.make_sync(part)
    gids = to_host(made.gids[: made.num_masters])
    oracle = to_networkx(graph)

    def check(names: list[int], modularity: float | None = None, communities: int | None = None) -> None:
        groups = [{v for v in range(6) if names[v] == name} for name in set(names)]
        right = networkx.community.modularity(oracle, groups)
        figures = {"modularity": right if modularity is None else modularity, "communities": communities or len(groups)}
        answer = Answer({"community": np.array(names)[gids]}, figures=figures)
        verify_communities(made, sync, answer, argparse.Namespace(algorithm="leiden", resolution=1.0))

    check([0, 0, 2, 2, 4, 4])
    for match, arguments in {
        "between 0 and the id": ([1, 1, 2, 2, 4, 4],),
        "has its name": ([0, 0, 1, 1, 4, 4],),
        "there are 3 communities, not 4": ([0, 0, 2, 2, 4, 4], None, 4),
        "modularity is": ([0, 0, 2, 2, 4, 4], 0.9),
        "below": ([0, 1, 2, 0, 1, 2],),
        "community: not connected with the smallest node of its community is node 4": ([0] * 6,),
    }.items():
        with pytest.raises(VerificationError, match=match):
            check(*arguments)


@pytest.mark.mpi
def test_negative_weights(comm, shared_tmp):
    """They are refused, with the lowest and the highest."""
    graph = graphs.make(3, [(0, 1), (1, 2)], [1, -2])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), comm)
    with pytest.raises(GraphFileError, match="between -2.0 and 1.0"):
        communities(part, parts.make_sync(part))
