"""A reduction is one object: on several ranks, and into a label by an edge operator, on CPUs and in code for GPUs."""

import math
import os
import subprocess
import sys

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.edge_operator import EdgeOperator
from cusp.errors import InputError
from cusp.runtime.devices import move, to_host
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN, MAX, MIN, Reduction, ReductionError

MUL = Reduction("mul", "old * value", neutral=1, idempotent=False)
UNION = Reduction("union", "old | value", neutral=0, idempotent=True)
FURTHER = Reduction("further", "value if value * value > old * old else old", neutral=0, idempotent=True)
JOIN = {MUL: math.prod, UNION: lambda values: int(np.bitwise_or.reduce(values)), FURTHER: lambda values: max(values)}


def updated(label: Label) -> list[int]:
    """Local ids of the updated proxies; their bits are cleared."""
    return to_host(label.take_updated()).tolist()


@pytest.mark.mpi
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("policy", ["oec", "cvc", "mixed"])
def test_products_over_ranks(comm, shared_tmp, policy, dtype):
    """Twice in a row, few and many values: each mirror's share counts once, and goes back to 1."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    gids = to_host(part.gids)
    label, sync = Label(part, dtype, 1, MUL), parts.make_sync(part)
    expected = np.ones(part.num_nodes, dtype)
    for share in (0.1, 0.9):
        values = to_host(label.values).copy()
        own = np.random.default_rng(comm.rank).random(gids.size) < share
        values[own] *= values.dtype.type(2 + comm.rank)
        label.values = move(values, part.device)
        for gid in range(part.num_nodes):  # each changed proxy, on the device
            here = np.flatnonzero(gids == gid)
            if here.size and own[here[0]]:
                label.write(gid, values[here[0]].item())
        for rank, theirs in enumerate(comm.allgather(gids[own])):
            expected[theirs] *= values.dtype.type(2 + rank)
        sync.reduce(label, write="any")
        np.testing.assert_array_equal(parts.gather(part, label.masters()), expected)
        assert (to_host(label.values)[part.num_masters :] == 1).all()
        assert not [lid for lid in updated(label) if lid >= part.num_masters]


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "mixed"])
def test_known_shares(comm, shared_tmp, policy):
    """A sum of values that all ranks know counts the share of every proxy, and takes it from the mirror."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    label, proxies = Label(part, np.int32, 0, ADD), np.concatenate(comm.allgather(to_host(part.gids)))
    for gid in range(part.num_nodes):
        label.write(gid, 1)
    parts.make_sync(part).reduce(label, write="any", implied=1)
    np.testing.assert_array_equal(parts.gather(part, label.masters()), np.bincount(proxies, minlength=part.num_nodes))
    assert (to_host(label.values)[part.num_masters :] == 0).all()


@pytest.mark.mpi
@pytest.mark.parametrize("csc", [False, True], ids=["push", "pull"])
@pytest.mark.parametrize(
    ("reduction", "dtype"),
    [(MUL, "i4"), (MUL, "u4"), (MUL, "i8"), (MUL, "f4"), (MUL, "f8"), (UNION, "u4"), (UNION, "i8"), (FURTHER, "i4")],
    ids=lambda value: getattr(value, "name", value),
)
def test_edge_operator(comm, shared_tmp, reduction, dtype, csc):
    """What the edges into each node make together, over all edges and from a frontier, and what ranks make of that."""
    graph = graphs.HARD["random"]()
    graph = graph._replace(weights=2 ** (np.arange(graph.num_edges) % 3))
    path = graphs.write(shared_tmp / "g.h5", graph, weight="u1")
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, csc=csc)
    operator, sync = EdgeOperator("weight", "dst.total"), parts.make_sync(part)
    first = reduction.identity(np.dtype(dtype)).item()
    gids = to_host(part.gids)
    for chosen in (None, gids % 2 == 0):
        label, starts = Label(part, dtype, first, reduction), Label(part, np.int32, 0, MIN)
        for gid in range(0, graph.num_nodes, 2):
            starts.write(gid, 1)
        operator(part, frontier=None if chosen is None else starts.swap_updated(), total=label)
        assert all(to_host(label.values)[lid] != first for lid in to_host(label.take_updated()).tolist())
        label.mark_all()
        sync.reduce(label)
        arriving = [[first] for _ in range(graph.num_nodes)]
        for source, target, weight in graph.triples():
            if chosen is None or source % 2 == 0:
                arriving[target].append(int(weight))
        expected = np.array([JOIN[reduction](values) for values in arriving], dtype)
        np.testing.assert_array_equal(parts.gather(part, label.masters()), expected)


BROKEN = {
    "unknown operation": (
        ("mul", "old ** value", 1, False),
        r"'old \*\* value', column 1: \*\* is nothing that .*; operators are \+ - \* & \| \^",
    ),
    "unknown name": (("mul", "old * weight", 1, False), "weight is nothing that a reduction of old, value can say"),
    "unknown function": (("mul", "gcd(old, value)", 1, False), "gcd"),
    "one value": (("min", "min(old)", 1, True), r"min\(\) takes 2 values or more, not 1"),
    "no expression": (("mul", "old *", 1, False), "'old \\*': invalid syntax"),
    "no text": (("mul", 3, 1, False), "reduction mul: 3: "),
    "no identity": (("mul", "old * value", None, False), "old \\* value needs an identity, and neutral is None"),
    "changes": (
        ("mul", "old * value", 1, False, "result is old"),
        "column 1: result is old is nothing that",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_reductions(name):
    """They say what is wrong with them when they are made."""
    arguments, why = BROKEN[name]
    with pytest.raises(ReductionError, match=why):
        Reduction(*arguments)


def test_what_labels_refuse(comm, shared_tmp):
    """What is no reduction, a wrong identity, and types that cannot be combined."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of("oec"), comm)

    def refused(reduction: object, dtype: str, why: str) -> None:
        with pytest.raises(InputError, match=why):
            Label(part, dtype, 0, reduction)

    refused("min", "i4", "'min' is not a Reduction such as gluon.reduction.MIN")
    refused(min, "i4", "is not a Reduction")
    refused(Reduction("mul", "old * value", 0, False), "i4", r"0 is not the identity of old \* value: it makes 0 of 1")
    refused(Reduction("minus", "old - value", 0, False), "i4", "0 is not the identity of old - value: it makes -1 of 1")
    refused(Reduction("low", "min(old, value)", math.inf, True), "i4", "reduction low is not for int32, with inf")
    refused(UNION, "f8", "reduction union is not for float64, with 0 as its identity")
    with pytest.raises(ReductionError, match="reduction assign has no identity"):
        ASSIGN.identity(np.dtype("i4"))
    Label(part, "i4", 0, ASSIGN)


@np.errstate(all="ignore")
@pytest.mark.parametrize("dtype", ["u1", "i4", "f8"])
def test_texts(dtype):
    """The texts of what is built in mean what NumPy does; brackets say what binds first."""
    rng = np.random.default_rng(3)
    old, value = rng.integers(0, 100, (2, 50)).astype(dtype)
    scope = {"least": np.minimum, "largest": np.maximum, "old": old, "value": value}
    for reduction, expected in ((ASSIGN, value), (MIN, np.minimum(old, value)), (MAX, np.maximum(old, value)),
                                (ADD, old + value), (MUL, old * value)):  # fmt: skip
        np.testing.assert_array_equal(eval(reduction.joined, dict(scope)), expected)
    bits = Reduction("bits", "old & value == old or value < 3 and not old", 0, True)
    assert Reduction("least", "min(old, value, 3)", 0, True).joined == "least(least(old, value), 3)"
    assert bits.joined == "(((old & value) == old) or ((value < 3) and (not (old != 0))))"


TWICE = """
import sys
import numpy as np
from gluon import message_cpu
from gluon.reduction import ADD, MIN, Reduction
MUL = Reduction("mul", sys.argv[1], 1, False)
values, updated = np.full(3, 5), np.zeros(1, np.uint64)
words = np.array([1 | 3 << 8, 2, 3, 4], np.uint64)  # ALL, three values
loops = [message_cpu.combine_by(reduction) for reduction in (MIN, ADD, MUL)]
for loop in loops:
    views = words, words.view("u4"), words.view("i8")
    loop(np.arange(3, dtype=np.int32), values, updated, True, 0, *views, 0, 0, 3, 0, True)
print(values.tolist(), sum(sum(loop.stats.cache_misses.values()) for loop in loops))
"""


def test_compiled_once(tmp_path):
    """The second process finds all that the first has compiled, and no reduction is taken for another."""

    def run(text: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", TWICE, text], capture_output=True, text=True, check=True,
            cwd=parts.FOLDER.parents[1], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        )  # fmt: skip
        return done.stdout.strip()

    first, second, other = run("old * value"), run("old * value"), run("old * value * value")
    assert (first, second) == ("[8, 18, 32] 3", "[8, 18, 32] 0")
    assert other == "[16, 54, 128] 1"
