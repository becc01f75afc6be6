"""Edge operators from an expression: every way of walking through the edges, against Python's own evaluation."""

import math
from types import SimpleNamespace

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.apps.edge_operator import EdgeOperator
from cusp.errors import OptionError
from cusp.runtime.devices import move, to_host
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN, MAX, MIN

FAR = 2**31 - 1
PASSES = {  # expression, into, where, type of the label, reduction; whether there is a CSC
    "shortest": ("src.near + weight", "dst.best", None, "i4", MIN, False),
    "levels": ("near + 1", "src.best", "dst.share > 0.25", "i8", MIN, True),
    "widest": ("min(share, weight)", "dst.best", "not (dst.level == 2 and src.gid < 30)", "f4", MAX, True),
    "counts": ("1", "dst.best", "src.level < dst.level", "u4", ADD, False),
    "shares": ("src.share * rate / dst.level", "dst.best", None, "f8", ADD, True),
    "back": ("dst.share / src.level * (1 + dst.near)", "src.best", "dst.level == src.level + 1", "f8", ADD, False),
}


def gaps() -> graphs.Graph:
    """Rows of 700, 200 and few edges with many nodes without edges between them, and the same reversed."""
    random = np.random.default_rng(5)
    sources = np.r_[[0] * 700, [90] * 200, random.integers(91, 99, 40), random.integers(190, 230, 120), [299] * 2]
    pairs = np.stack([sources, random.integers(0, 300, sources.size)], axis=1)
    return graphs.make(300, np.r_[pairs, pairs[:, ::-1]])


def inputs(num_nodes: int) -> dict[str, np.ndarray]:
    """Values of all nodes by global id."""
    random = np.random.default_rng(7)
    near = random.integers(0, 1000, num_nodes)
    near[random.random(num_nodes) < 0.2] = FAR
    return {"near": near.astype(np.int32), "share": random.random(num_nodes), "level": random.integers(1, 5, num_nodes)}


def expected(part, operator, label, given, chosen, rate) -> np.ndarray:
    """The label after a pass, by a loop over the edges and Python's eval."""
    sources, targets, weights = parts.edges_of(part)
    result = to_host(label.values).copy()
    candidates = [[] for _ in result]
    lids = {gid: lid for lid, gid in enumerate(part.gids.tolist())}
    for source, target, weight in zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True):
        ends = {"src": lids[source], "dst": lids[target]}
        if not chosen[ends[operator.read]]:
            continue
        names = {end: SimpleNamespace(gid=gid) for end, gid in (("src", source), ("dst", target))}
        for end, lid in ends.items():
            vars(names[end]).update({name: values[lid].item() for name, values in given.items()})
        bare = {name: values[ends[operator.read]].item() for name, values in given.items()}
        scope = bare | names | {"weight": weight, "rate": rate}
        if operator.where is None or eval(operator.where.text, scope):
            candidates[ends[operator.write]].append(eval(operator.expression.text, scope))
    limit = np.inf if result.dtype.kind == "f" else np.iinfo(result.dtype).max
    join = {"min": min, "max": max, "add": lambda values: sum(values)}[label.reduction.name]
    for lid, found in enumerate(candidates):
        result[lid] = join([result[lid].item(), *(min(value, limit) for value in found)])
    return result


@pytest.mark.mpi
@pytest.mark.parametrize("name", PASSES)
def test_passes(comm, shared_tmp, name):
    """Over all edges and from a frontier, written at either end, the same values and bits as in Python."""
    text, into, where, dtype, reduction, csc = PASSES[name]
    operator = EdgeOperator(text, into, where)
    for graph, policy in ((graphs.HARD["loops_and_doubles"](), "hvc-2"), (gaps(), "cvc"), (gaps(), "iec")):
        path = graphs.write(shared_tmp / "g.h5", graph, weight="u1")
        part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=csc, order="natural")
        host = part.on("cpu")
        given = {key: values[host.gids] for key, values in inputs(graph.num_nodes).items()}
        used = {key.name for key in (*operator.expression.names, *(operator.where.names if operator.where else ()))}
        given = {key: values for key, values in given.items() if key in used}
        rate = {"rate": 0.85} if "rate" in used else {}
        for share in (None, 0.0, 0.4):
            label = Label(part, dtype, 0 if reduction is ADD else reduction.identity(np.dtype(dtype)), reduction)
            label.values += label.values.dtype.type(reduction is ADD)
            chosen = np.random.default_rng(comm.rank).random(host.num_proxies) < (1 if share is None else share)
            frontier = None if share is None else as_bits(part, chosen)
            answer = expected(host, operator, label, given, chosen, 0.85)
            before = to_host(label.values).copy()
            on_device = {key: move(values, part.device) for key, values in given.items()}
            operator(part, frontier=frontier, best=label, **on_device, **rate)
            found = to_host(label.values)
            if reduction is ADD and dtype == "f8":
                np.testing.assert_allclose(found, answer, rtol=1e-13)
            else:
                np.testing.assert_array_equal(found, answer)
            assert np.array_equal(np.flatnonzero(found != before), to_host(label.take_updated()))


def as_bits(part, chosen):
    """Chosen proxies as the bits of a label."""
    bits = np.zeros(-(-chosen.size // 64) * 64, np.uint8)
    bits[: chosen.size] = chosen
    words = np.packbits(bits, bitorder="little")
    return move(words.view(np.uint32 if part.device == "gpu" else np.uint64), part.device)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed"])
def test_until_quiet(comm, shared_tmp, policy):
    """Distances along out-edges and, from the same partition, against them; the largest number is no distance."""
    graph = graphs.HARD["random"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    turned = graphs.make(graph.num_nodes, np.stack([graph.targets, graph.sources], axis=1), graph.weights)
    for ends, edges in (("dst", graph), ("src", turned)):
        relax = EdgeOperator("distance + weight", f"{ends}.distance")
        label = Label(part, np.int32, FAR, MIN)
        label.write(3, 0)
        assert relax.until_quiet(part, sync, distance=label) > 1
        found = parts.gather(part, label.masters())
        np.testing.assert_array_equal(np.where(found == FAR, -1, found), graphs.serial_distances(edges, 3))
        assert sync.total(label.num_updated_masters())[0] == 0
        host, host_sync = parts.on_host(part)  # the same operator on another device
        again = Label(host, np.int32, FAR, MIN)
        again.write(3, 0)
        relax.until_quiet(host, host_sync, distance=again)
        np.testing.assert_array_equal(parts.gather(host, again.masters()), found)


INTEGERS = [0, 1, -1, 2, -3, 7, 10, 255, 2**31 - 1, -(2**31), 2**31, 2**32 + 1, 3037000500, 2**53 + 1, 2**62, -(2**62)]
INTEGERS += [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1e-300,
    2.0**31,
    -(2.0**53),
    2.0**63,
    -(2.0**63),
    1e300,
    -1e19,
    np.inf,
    -np.inf,
    np.nan,
]


def whole(x: float, rounding) -> int:
    """A float as a whole number: 0 for what is none, and what has more than 64 bits for infinity."""
    return 0 if math.isnan(x) else rounding(math.copysign(2.0**64, x) if math.isinf(x) else x)


WHOLE = {  # expression -> what it is before it is brought within 64 bits
    "a + b": lambda a, b, x: a + b,
    "a - b": lambda a, b, x: a - b,
    "a * b": lambda a, b, x: a * b,
    "a // b": lambda a, b, x: a // b if b else 0,
    "a % b": lambda a, b, x: a % b if b else 0,
    "-a": lambda a, b, x: -a,
    "abs(a)": lambda a, b, x: abs(a),
    "a + 9223372036854775807": lambda a, b, x: a + 2**63 - 1,
    "a * -9223372036854775808": lambda a, b, x: a * -(2**63),
    "min(a, b, 3)": lambda a, b, x: min(a, b, 3),
    "max(a, b)": lambda a, b, x: max(a, b),
    "(a & b) + ((a | b) & 65535) + ((a ^ b) & 1)": lambda a, b, x: (a & b) + ((a | b) & 65535) + ((a ^ b) & 1),
    "a if a < b else b if b > 3 else 5": lambda a, b, x: a if a < b else b if b > 3 else 5,
    "(a == b) + (a != 3) + (0 <= a < 10)": lambda a, b, x: (a == b) + (a != 3) + (0 <= a < 10),
    "(a and not b or a > 9) * 2 + (not a)": lambda a, b, x: bool(a and not b or a > 9) * 2 + (not a),
    "floor(x)": lambda a, b, x: whole(x, math.floor),
    "int(x)": lambda a, b, x: whole(x, int),
    "a < x": lambda a, b, x: float(a) < x,
}
REAL = {
    "x + a": lambda a, b, x, y: x + a,
    "x - y": lambda a, b, x, y: x - y,
    "x * y + x": lambda a, b, x, y: x * y + x,
    "x / y": lambda a, b, x, y: np.divide(x, y),
    "a / b": lambda a, b, x, y: np.divide(float(a), float(b)),
    "-x": lambda a, b, x, y: -x,
    "abs(x) * 0.1": lambda a, b, x, y: abs(x) * 0.1,
    "min(x, a)": lambda a, b, x, y: float(a) if not x < a else x,
    "max(x, y)": lambda a, b, x, y: x if x > y else y,
    "sqrt(y)": lambda a, b, x, y: np.sqrt(y),
    "-inf if x < y else 1e-3": lambda a, b, x, y: -np.inf if x < y else 1e-3,
    "a if x else y": lambda a, b, x, y: float(a) if x else y,
    "float(a) + True": lambda a, b, x, y: float(a) + 1,
}
NEARLY = {"exp(y)": np.exp, "log(y)": np.log}


@pytest.fixture
def evaluate(shared_tmp):
    """Function (expressions, type) -> values of each for pairs of special numbers, by one operator for all of them."""
    a, b = (grid.ravel() for grid in np.meshgrid(np.array(INTEGERS), np.array(INTEGERS)))
    x, y = (np.resize(grid.ravel(), a.size) for grid in np.meshgrid(FLOATS, FLOATS))
    graph = graphs.make(2 * a.size, [(v, a.size + v) for v in range(a.size)])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    sources = to_host(part.gids) % a.size

    def values(expressions, dtype):
        text = " ".join(f"({text}) if case == {case} else" for case, text in enumerate(expressions))
        operator = EdgeOperator(f"{text} 0")
        given = {name: move(column[sources], part.device) for name, column in zip("abxy", (a, b, x, y))}
        given = {
            name: column for name, column in given.items() if name in {key.name for key in operator.expression.names}
        }
        for case, text in enumerate(expressions):
            label = Label(part, dtype, 0, ADD)
            operator(part, value=label, case=case, **given)
            yield text, parts.gather(part, label.masters())[a.size :], tuple(of.tolist() for of in (a, b, x, y))

    return values


@np.errstate(all="ignore")
def test_whole_numbers(evaluate):
    """What does not fit into 64 bits becomes the nearest number that does, and nothing wraps around."""
    for text, found, (a, b, x, _) in evaluate(WHOLE, np.int64):
        answer = [min(max(int(WHOLE[text](*of)), -(2**63)), 2**63 - 1) for of in zip(a, b, x, strict=True)]
        np.testing.assert_array_equal(found, answer, text)


@np.errstate(all="ignore")
def test_floats(evaluate):
    """To the last bit what IEEE says; exp and log nearly so."""
    for text, found, values in evaluate({**REAL, **NEARLY}, np.float64):
        if text in REAL:
            np.testing.assert_array_equal(found, [REAL[text](*of) for of in zip(*values, strict=True)], text)
        else:
            np.testing.assert_allclose(found, NEARLY[text](values[3]), rtol=1e-14, err_msg=text)


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("i4", -(2**31), 2**31 - 1), ("u4", 0, 2**32 - 1), ("i8", 0, 2**62)]
)
def test_what_a_label_cannot_hold(shared_tmp, dtype, low, high):
    """A candidate stops at the limits of a narrow label; a uint64 above all int64 counts as the largest of those."""
    graph = graphs.make(4, [(0, 1), (2, 3)], np.array([1, 1]))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    far = to_host(part.gids) == 0
    near = move(np.where(far, np.uint64(2**64 - 5), np.uint64(7)), part.device)
    for text, limit in (("near + weight", high), ("-near", low)):
        label = Label(part, dtype, 0, ADD)
        EdgeOperator(text if high < 2**62 else f"({text}) // 2 + 1")(part, near=near, value=label)
        found = parts.gather(part, label.masters())
        if high == 2**62:
            assert found.tolist() == ([0, high, 0, 5] if limit else [0, -high + 1, 0, -3])
        else:
            assert found.tolist() == [0, limit, 0, 8 if limit == high else max(low, -7)]


WRONG = {
    "value +": "column 1: this is not an expression",
    "value + 'a'": "column 9: 'a' is not a number",
    "sin(value)": r"column 1: sin\(\) is not allowed in an edge expression; functions are min, ",
    "value ** 2": r"column 1: \*\* is not allowed in an edge expression; operators are \+ - \* ",
    "src + 1": "column 1: src is not allowed in an edge expression",
    "value[0]": r"column 1: value\[0\] is not allowed",
    "min(value)": r"column 1: min\(\) takes 2 values or more, not 1",
    "value in value": "column 1: value in value is not allowed in an edge expression; comparisons are == ",
    "größe + 1": "column 1: names must consist of ASCII letters",
    "lambda: 1": "is not allowed in an edge expression",
    f"value + {2**64}": "column 9: 18446744073709551616 has more than 64 bits",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_expressions(text):
    """They say where and what, before any graph is there."""
    with pytest.raises(OptionError, match=WRONG[text]):
        EdgeOperator(text)
    with pytest.raises(OptionError, match="into=.*: expected"):
        EdgeOperator("value", into="value")


def test_wrong_calls(shared_tmp):
    """Names that are missing, too many or of another kind; labels of another partition, type or reduction."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part, other = (parts.partition_graph(path, parts.policy_of("oec"), ranks.COMM) for _ in range(2))
    label, best = Label(part, np.int64, 0, MAX), Label(part, np.int32, 0, MIN)
    mean = EdgeOperator("src.share / rate", into="dst.value", where="dst.level > 0")
    good = {"value": Label(part, np.float64, 0, ADD), "share": label, "rate": 0.5, "level": best}

    def refused(why: str, operator: EdgeOperator = mean, **changed: object) -> None:
        given = {key: value for key, value in (good | changed).items() if value is not None}
        with pytest.raises(OptionError, match=why):
            operator(part, **given)

    mean(part, **good)
    refused('"src.share / rate", column 1: src.share is not given; given are value, rate, level', share=None)
    refused('"dst.level > 0", column 1: dst.level is a number|level is a number, which is the same', level=3)
    refused("speed is given, but is not one of its names", speed=1)
    refused("value is written, so it must be a Label, not an array of shape", value=label.values)
    refused("value is written, so it must be a Label, not NoneType", value=None)
    refused("the label share belongs to another partition", share=Label(other, np.int64, 0, MAX))
    refused(r"share is an array of shape \(3,\) and type .*; expected a Label, a number, or an array", share=np.ones(3))
    refused("rate is str; expected a Label", rate="much")
    refused("value is uint8 with the reduction add; written can be int32", value=Label(part, np.uint8, 0, ADD))
    refused("value is float64 with the reduction assign", value=Label(part, np.float64, 0, ASSIGN))
    refused('"src.share / rate", column 1: this is a float, and value is int64: write floor', value=label)
    with pytest.raises(OptionError, match="until_quiet is for idempotent reductions; value has add"):
        mean.until_quiet(part, parts.make_sync(part), **good)
    frontiers = {"is where the operator marks changes": good["value"].updated, "is an array of shape": best.values}
    for why, frontier in frontiers.items():
        with pytest.raises(OptionError, match=f"frontier {why}"):
            mean(part, frontier=frontier, **good)
    with pytest.raises(OptionError, match='"gid", column 1: gid: there are weight, src.gid and dst.gid'):
        EdgeOperator("gid")(part, value=label)
