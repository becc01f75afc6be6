"""Samples and walks: what a definition in a few lines of Python draws, on any ranks, and its distribution."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice, permutations
from math import inf

import graphs
import numpy as np
import parts
import pytest
from scipy.stats import chisquare

from cusp.apps import sample, walks
from cusp.apps.shared.learning.sampler import Sampler
from cusp.apps.shared.splitmix64 import key_of, splitmix64
from cusp.apps.verify.check import VerificationError
from cusp.errors import InputError
from cusp.kernels.bits import GOLDEN, mix
from cusp.runtime.devices import to_host

SEED, UNTIL = 2**40 + 1, 6
WAYS = (
    {"fan_out": [3, 2]}, {"fan_out": [-1, 1, 2], "incoming": True}, {"fan_out": [4, 2], "replace": True},
    {"fan_out": [3, 2], "by": "weight"}, {"fan_out": [3, 4], "by": "time"},
    {"fan_out": [5], "by": "weight", "replace": True},
)  # fmt: skip
RARE = 1e-3  # that a right program fails a test of its distribution; but the seed is fixed


def numbers(key: int) -> Iterator[float]:
    """What is drawn from a key, from 0 to 1."""
    while True:
        key = (key + int(GOLDEN)) % 2**64
        yield (int(mix(np.array([key], np.uint64))[0]) >> 11) * 2.0**-53


def shares_of(row: list[tuple[int, int, int]], by: str) -> list[int]:
    """Whole numbers in proportion to the weights of edges."""
    if by != "weight" or not row:
        return [1] * len(row)
    largest = max(weight for _, weight, _ in row)
    total = sum(weight / largest for _, weight, _ in row)
    return [max(1, int(weight / largest / total * 2.0**52)) for _, weight, _ in row]


def draw(shares: list[int], number: float) -> int:
    """A place, as likely as its share."""
    return int(np.searchsorted(np.cumsum(shares), int(number * float(sum(shares))), side="right"))


def rows_of(graph: graphs.Graph, by: str = "uniform", incoming: bool = False) -> list[list[tuple[int, int, int]]]:
    """For each node the other ends, weights and numbers of its edges, in the order in which they are drawn from."""
    rows: list[list[tuple[int, int, int]]] = [[] for _ in range(graph.num_nodes)]
    for number, (source, target, weight) in enumerate(graph.triples()):
        rows[target if incoming else source].append((source if incoming else target, weight, number))
    return [sorted(row, key=lambda edge: (edge[1], edge[0], edge[2]) if by == "time" else edge) for row in rows]


def expected_sample(rows: list, seeds: list[int], number: int, fan_out: list[int], by: str, replace: bool) -> dict:
    """A batch, node by node."""
    node, edges, key = list(seeds), [], int(splitmix64(np.array([number]), key_of(SEED))[0])
    first = 0
    for wanted in fan_out:
        last = len(node)
        for col in range(first, last):
            row = [edge for edge in rows[node[col]] if by != "time" or edge[1] <= UNTIL]
            left, some = shares_of(row, by), []
            if wanted < 0 or (len(row) <= wanted and not replace) or not row:
                some = list(range(len(row)))
            else:
                for lot in islice(numbers(int(splitmix64(np.array([node[col]]), key)[0])), wanted):
                    some.append(draw(left, lot))
                    left[some[-1]] *= replace
            for place in some if replace else sorted(some):
                if row[place][0] not in node:
                    node.append(row[place][0])
                edges.append((node.index(row[place][0]), col, *row[place][1:]))
        first = last
    return {"node": node, "edges": edges}


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_samples(comm, shared_tmp, name, policy):
    """Hard graphs, loops and parallel edges among them, in all ways; each rank has some batches."""
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    nodes = np.random.default_rng(1).permutation(graph.num_nodes).tolist()
    seeds = {number: nodes[at : at + 4] for number, at in enumerate(range(0, len(nodes), 4))}
    own = {number: some for number, some in seeds.items() if number % comm.size == comm.rank}
    for way in WAYS:
        by, replace, incoming = way.get("by", "uniform"), way.get("replace", False), way.get("incoming", False)
        rows = rows_of(graph, by, incoming)
        sampler = Sampler(part, comm, seed=SEED, numbered=True, **way)
        for number, found in zip(own, sampler.sample(own, UNTIL if by == "time" else inf), strict=True):
            expected = expected_sample(rows, own[number], number, way["fan_out"], by, replace)
            assert to_host(found.node).tolist() == expected["node"]
            weights = [weight for _, _, weight, _ in expected["edges"]] if found.weight is None else found.weight
            columns = found.row, found.col, weights, found.edge
            assert [*zip(*(np.array(to_host(column)).tolist() for column in columns))] == expected["edges"]
            assert sum(found.num_nodes) == len(found.node) and sum(found.num_edges) == len(found.row)
            assert (found.weight is None) == (by == "uniform")


def expected_walk(rows: list, start: int, walker: int, length: int, by: str, p: float, q: float) -> list[int]:
    """A walk, attempt by attempt."""
    key, nodes = int(splitmix64(np.array([walker]), key_of(SEED))[0]), [start]
    for step in range(length):
        row = rows[nodes[-1]]
        for choose, accept in zip(*[numbers((key + (step << 32) * int(GOLDEN)) % 2**64)] * 2):
            if not row:
                return nodes + [-1] * (length - step)
            target = row[draw(shares_of(row, by), choose)][0]
            if step == 0:
                break
            near = any(target == other for other, *_ in rows[nodes[-2]])
            likely = 1 / p if target == nodes[-2] else 1.0 if near else 1 / q
            if accept * max(1 / p, 1.0, 1 / q) < likely:
                break
        nodes.append(target)
    return nodes


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_walks(comm, shared_tmp, name, policy):
    """The same of walks, which are longer than those between two exchanges."""
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync, rows = parts.make_sync(part), rows_of(graph)
    for weighted, p, q in (False, 1.0, 1.0), (True, 0.25, 4.0), (False, 2.0, 0.5):
        how = {"weighted": weighted, "p": p, "q": q, "length": 20, "walks": 2, "seed": SEED}
        options = parts.options_of(walks.APP, source=[*range(0, graph.num_nodes, 3)], **how)
        prepared = walks.prepare(part, sync, options)
        answer = walks.APP.run(part, sync, None, prepared, options)
        walks.APP.check(part, sync, None, answer, prepared, options)
        found = np.concatenate(comm.allgather(to_host(answer.arrays["walks"])))
        by = "weight" if weighted else "uniform"
        starts = np.arange(0, graph.num_nodes, 3).repeat(2).tolist()
        expected = [expected_walk(rows, start, walker, 20, by, p, q) for walker, start in enumerate(starts)]
        np.testing.assert_array_equal(found, np.array(expected))
        assert answer.figures == {"num_walks": len(starts), "traversed_edges": int((found[:, 1:] >= 0).sum())}


def test_distribution(comm):
    """Chi-square: pairs of edges without replacement, alike and by weight; steps of node2vec."""
    pairs, weights = [(0, 1), (0, 2), (0, 3), (0, 4)], [1, 2, 3, 6]
    graph = graphs.make(5, pairs, weights)
    columns = graph.sources, graph.targets, graph.weights
    part = parts.partition_graph(columns, parts.policy_of("oec"), comm)
    for by, shares in ("uniform", [1] * 4), ("weight", weights):
        sampler, total = Sampler(part, comm, [2], by=by), sum(shares)
        found = Counter(tuple(to_host(one.node)[1:]) for one in sampler.sample(dict.fromkeys(range(4000), [0])))
        likely: Counter = Counter()
        for one, two in permutations(range(4), 2):
            likely[min(one, two) + 1, max(one, two) + 1] += shares[one] / total * shares[two] / (total - shares[one])
        assert found.keys() <= likely.keys()
        assert chisquare([found[pair] for pair in likely], [4000 * each for each in likely.values()]).pvalue > RARE
    square = graphs.both_ways(graphs.make(4, [(0, 1), (0, 2), (1, 2), (1, 3)]))  # from 0 to 1, then back, near or far
    part = parts.partition_graph((square.sources, square.targets), parts.policy_of("oec"), comm)
    sync = parts.make_sync(part)
    options = parts.options_of(walks.APP, source=[0], length=2, walks=8000, p=4.0, q=0.5)
    found = walks.APP.run(part, sync, None, walks.prepare(part, sync, options), options).arrays["walks"]
    ends = Counter(end for _, middle, end in to_host(found).tolist() if middle == 1)
    expected = np.array([1 / 4, 1, 1 / 0.5]) / (1 / 4 + 1 + 2) * ends.total()
    assert chisquare([ends[0], ends[2], ends[3]], expected).pvalue > RARE


@pytest.mark.mpi
def test_mistakes_of_users(comm, shared_tmp):
    """Each is an error on every rank."""
    graph = graphs.random_directed(20, 60)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    sampler, last = Sampler(part, comm, [2]), comm.rank == comm.size - 1
    for message, call in (
        ("node 20: the graph has the nodes 0 to 19", lambda: sampler.sample({0: [20 if last else 0]})),
        ("batch 7: of its 3 nodes only 2 are distinct", lambda: sampler.sample({7: [1, 2, 1] if last else []})),
        ("until=3: is for by='time'", lambda: sampler.sample({0: [1]}, 3)),
        ("fan_out=", lambda: Sampler(part, comm, [2, 0])),
        ("choose one of uniform, weight, time", lambda: Sampler(part, comm, [2], by="weights")),
        ("edges have no weights", lambda: Sampler(part.without_weights(), comm, [2], by="time")),
        ("--p 1000: expected", lambda: walks.prepare(part, parts.make_sync(part), parts.options_of(walks.APP, p=1e3))),
        ("the walks of a rank take", lambda: walks.prepare(
            part, parts.make_sync(part), parts.options_of(walks.APP, length=2**50))),
        ("not both", lambda: sample.prepare(
            part, parts.make_sync(part), parts.options_of(sample.APP, until=3.0, weighted=True))),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.mpi
def test_verifiers_find_mistakes(comm, shared_tmp):
    """Of samples and of walks."""
    graph = graphs.random_directed(60, 300)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    sync = parts.make_sync(part)
    options = parts.options_of(sample.APP, fan_out=[3, 2], batch_size=5, numbered=True)
    prepared = sample.prepare(part, sync, options)
    edge = next(edge for edge in range(60) if edge not in graph.targets[graph.sources == 0])
    for name, place, value, message in (
        ("node", 0, 1, "are not their seeds"), ("node", -1, -2, "twice in a batch"),
        ("row", 0, 10**6, "names a place behind"), ("col", 0, 5, "drawn in another hop"),
        ("edge", 0, 299, "is not the number of an edge"), ("row", 0, 1, "."), ("num_edges", (0, 0), 1, "do not add up"),
    ):  # fmt: skip
        answer = sample.APP.run(part, sync, None, prepared, options)
        sample.APP.check(part, sync, None, answer, prepared, options)
        if comm.rank == 0:
            values = answer.arrays[name]
            values[place] = value if value >= 0 else values[value]
        with pytest.raises(VerificationError, match=message):
            sample.APP.check(part, sync, None, answer, prepared, options)
    options = parts.options_of(walks.APP, length=3)
    prepared = walks.prepare(part, sync, options)
    for place, value, message in ((0, 0), 1, "start elsewhere"), ((0, 1), edge, "no edge from 0"), ((0, 1), -1, "."):
        answer = walks.APP.run(part, sync, None, prepared, options)
        if comm.rank == 0:
            answer.arrays["walks"][place] = value
        with pytest.raises(VerificationError, match=message):
            walks.APP.check(part, sync, None, answer, prepared, options)
