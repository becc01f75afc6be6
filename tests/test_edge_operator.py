"""Edge operators from an expression: every way of walking through the edges, against Python's own evaluation."""

from types import SimpleNamespace

import graphs
import numpy as np
import parts
import pytest
import ranks

from apps.edge_operator import EdgeOperator
from cusp.devices import move, to_host
from cusp.errors import OptionError
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN, MAX, MIN, Reduction

FAR = 2**31 - 1
PASSES = {  # expression, into, where, type of the label, reduction
    "shortest": ("src.near + weight", "dst.best", None, "i4", MIN),
    "levels": ("near + 1", "src.best", "dst.share > 0.25", "i8", MIN),
    "widest": ("min(share, weight)", "dst.best", "not (dst.level == 2 and src.gid < 30)", "f4", MAX),
    "counts": ("1", "src.best", "src.level < dst.level", "u4", ADD),
    "shares": ("src.share * rate / dst.level", "dst.best", None, "f8", ADD),
    "back": ("dst.share / src.level * (1 + dst.near)", "src.best", "dst.level == src.level + 1", "f8", ADD),
}


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
@pytest.mark.parametrize("csc", [False, True], ids=["rows_of_sources", "rows_of_targets_too"])
@pytest.mark.parametrize("name", PASSES)
def test_passes(comm, shared_tmp, name, csc):
    """Over all edges and from a frontier, written at either end, the same values and bits as in Python."""
    text, into, where, dtype, reduction = PASSES[name]
    operator = EdgeOperator(text, into, where)
    for graph_name, policy in (("random", "cvc"), ("loops_and_doubles", "hvc-2"), ("last_isolated", "iec")):
        graph = graphs.HARD[graph_name]()
        path = graphs.write(shared_tmp / f"{graph_name}.h5", graph, weight="u1")
        part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=csc)
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


WRONG = {
    "value +": "column 1: this is no expression",
    "value + 'a'": "column 9: 'a' is no number",
    "sin(value)": r"column 1: sin\(\) is no function of edge expressions, which are min, ",
    "value ** 2": r"column 1: value \*\* 2: Pow is not for Int",
    "src + 1": "column 1: src is nothing that an edge expression can say",
    "value[0]": r"column 1: value\[0\] is nothing",
    "min(value)": r"column 1: min\(\) of 1 values",
    "value in value": "column 1: In is nothing",
    "lambda: 1": "nothing that an edge expression can say",
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
    refused("speed is given, but is none of its names", speed=1)
    refused("value is written, so it must be a Label, not an array of shape", value=label.values)
    refused("value is written, so it must be a Label, not NoneType", value=None)
    refused("the label share belongs to another partition", share=Label(other, np.int64, 0, MAX))
    refused(r"share is an array of shape \(3,\) and type .*; expected a Label, a number, or an array", share=np.ones(3))
    refused("rate is str; expected a Label", rate="much")
    refused("value is uint8 with the reduction add; written can be int32", value=Label(part, np.uint8, 0, ADD))
    refused("value is float64 with the reduction assign", value=Label(part, np.float64, 0, ASSIGN))
    refused("value is float64 with the reduction mul", value=Label(part, "f8", 1, Reduction("mul", 9, False)))
    refused('"src.share / rate", column 1: this is a float, and value is int64: write floor', value=label)
    with pytest.raises(OptionError, match='"gid", column 1: gid: there are weight, src.gid and dst.gid'):
        EdgeOperator("gid")(part, value=label)
