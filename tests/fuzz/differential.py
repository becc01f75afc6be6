"""Random graphs, policies and options on all ranks: each answer beside that of another library or algorithm.

``mpirun -n 3 python -m tests.fuzz.differential --seed 1 --answers 1000``

One process a rank stays alive for all answers. A wrong one is shown with the words that repeat its graph; an
exception ends the job, after showing them.
"""

import argparse
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # graphs, ranks and this folder, as in the tests
os.environ.setdefault("CUSP_DEVICE", "cpu")

import ranks  # noqa: E402 - prepares the process before numba is imported

# isort: split
import graphs  # noqa: E402
import networkx  # noqa: E402
import numpy as np  # noqa: E402
from fuzz.oracles import Oracle  # noqa: E402
from fuzz.saved_parts import as_stored, edits  # noqa: E402

from apps import library, semiring  # noqa: E402
from apps.run.function import function_of  # noqa: E402
from apps.run.partitioned_graph import PartitionedGraph  # noqa: E402
from cusp.errors import InputError  # noqa: E402
from cusp.output.saved import save_partition  # noqa: E402
from cusp.policies.policy import POLICIES  # noqa: E402

LIMIT = 600.0  # seconds for a graph: much is compiled for the first
MIXED = ("hash+hybrid", "fennel+hdrf", "ldg+dbh")  # policies that have no name
TYPES = ("i8", "i8", "f8")  # of weights; every other one would be compiled for minutes
Random = np.random.Generator


class Question(NamedTuple):
    """What an app is asked, and how its answer is looked at.

    Attributes
    ----------
    app, other : str
        What is compared with what.
    arguments, options
        Of the function of ``apps.library``.
    wrong : function (Result) -> str
        How the answer differs from the other one, or an empty text.
    """

    app: str
    other: str
    arguments: tuple[int, ...]
    options: dict[str, Any]
    wrong: Callable[[Any], str]

    def __str__(self) -> str:
        return f"{self.app} {self.arguments} {self.options}"


def main() -> int:
    """Answer questions until there are enough; exit code 1 if one was wrong. Collective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answers", type=int, default=1000, metavar="N")
    parser.add_argument("--case", type=int, help="this graph alone, with each of its answers")
    parsed = parser.parse_args()
    tried: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    number, began = parsed.case or 0, time.monotonic()
    with _rehearsed_once(), _shared_folder() as folder:
        while tried.total() < parsed.answers:
            words = f"--seed {parsed.seed} --case {number} on {ranks.COMM.size} ranks"
            try:
                with ranks.limited(words, LIMIT):
                    for question, why in case(parsed.seed, number, folder):
                        tried[question.app, question.other] += 1
                        wrong[question.app, question.other] += bool(why)
                        if ranks.COMM.rank == 0 and (why or parsed.case is not None):
                            print(f"{words}: {question}: {why or 'right'}", flush=True)
            except Exception:
                ranks.end_job(words, traceback.format_exc())
            number += 1
            if parsed.case is not None:
                break
    if ranks.COMM.rank == 0:
        _show(tried, wrong, number, time.monotonic() - began)
    return int(any(wrong.values()))


def case(seed: int, number: int, folder: Path) -> Iterator[tuple[Question, str]]:
    """Questions about one graph under one policy, and what was wrong with each answer. Collective."""
    random = np.random.default_rng([seed, number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rank without nodes is what some of these graphs are for
        part, oracle, symmetric = partition(random, random_graph(random), folder)
        if random.integers(4) == 0:
            yield DAMAGED, damaged_parts(random, part, oracle, folder)
        for place in random.permutation(len(ASKED))[: random.integers(6, len(ASKED) + 1)].tolist():
            question = ASKED[place](random, oracle, symmetric)
            yield question, ask(question, part, verify=bool(random.integers(8) == 0))


def ask(question: Question, part: PartitionedGraph, verify: bool) -> str:
    """What is wrong with the answer to a question, on every rank. Collective."""
    name = question.app.split()[0]
    function = SEMIRING if name == "semiring" else getattr(library, name)
    result = function(part, *question.arguments, verify=verify, **question.options)
    labels = b"".join(label.tobytes() for label in result.values.values())
    digests, why = ranks.COMM.gather(hashlib.sha256(labels).digest()), ""
    if digests is not None:
        why = "the ranks have different answers" if len(set(digests)) > 1 else question.wrong(result)
    return str(ranks.COMM.bcast(why))


def damaged_parts(random: Random, part: PartitionedGraph, oracle: Oracle, folder: Path) -> str:
    """What is wrong with the use of a saved partition that somebody edited, on every rank. Collective.

    All ranks refuse it, or hops and distances are those of the graph that its files hold.
    """
    save(part, folder)
    for _, edit in edits(random):
        if ranks.COMM.rank == 0:
            edit(folder)
    ranks.COMM.Barrier()
    found, error = [], None
    try:
        again = library.partition_graph(str(folder / "parts"), comm=ranks.COMM, device=os.environ["CUSP_DEVICE"])
        found = [library.bfs(again, 0).hops, library.sssp(again, 0).distance]
    except InputError as caught:
        error = caught
    why = ""
    if len(set(ranks.COMM.allgather(error is None))) > 1:
        why = f"refused by some ranks only: {error}"
    elif error is None and ranks.COMM.rank == 0:
        held = as_stored(folder / "parts", weighted=True)
        if isinstance(held, str):
            why = held
        else:
            why = differs(found[0], graphs.serial_hops(held, 0)) or differs(found[1], graphs.serial_distances(held, 0))
    return str(ranks.COMM.bcast(why))


@contextlib.contextmanager
def _shared_folder() -> Iterator[Path]:
    """One empty folder for all ranks. Collective."""
    made = tempfile.mkdtemp(prefix="cusp-fuzz-") if ranks.COMM.rank == 0 else None
    folder = Path(str(ranks.tell(made)))
    yield folder
    ranks.COMM.Barrier()
    if ranks.COMM.rank == 0:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _rehearsed_once() -> Iterator[None]:
    """Code is loaded for the first graph of each type only: a rehearsal takes longer than these graphs."""
    seen: set[tuple] = set()

    def once(rehearse: Callable[..., None], key: Callable[..., tuple]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            if key(*arguments) not in seen:
                seen.add(key(*arguments))
                rehearse(*arguments)

        return call

    partitions = once(library._warm_up, lambda header, policy, *_: (policy.name, header.weight_dtype, header.symmetric))
    apps = once(
        PartitionedGraph._rehearse, lambda graph, app, _: (app.name, str(getattr(graph.part.weights, "dtype", 0)))
    )
    with mock.patch.object(library, "_warm_up", partitions), mock.patch.object(PartitionedGraph, "_rehearse", apps):
        yield


def _show(tried: Counter[tuple[str, str]], wrong: Counter[tuple[str, str]], cases: int, seconds: float) -> None:
    print(f"{'app':<30}{'compared with':<52}{'answers':>8}{'wrong':>8}")
    for (app, other), count in sorted(tried.items()):
        print(f"{app:<30}{other:<52}{count:>8}{wrong[app, other]:>8}")
    every = f"{ranks.COMM.size} ranks, {cases} graphs, {seconds:.0f} s"
    print(f"{'all':<30}{every:<52}{tried.total():>8}{wrong.total():>8}")


def random_graph(random: Random) -> graphs.Graph:
    """Of one of the shapes below, its nodes numbered at random, its weights of some type."""
    kind = str(random.choice(["random"] * 4 + ["dense", "path", "ring", "lattice", "tree", "star", "skewed", "none"]))
    size = int(random.choice([random.integers(1, 8), random.integers(1, 60), random.integers(1, 200)]))
    node = np.arange(size)
    if kind == "random":
        pairs = random.integers(0, size, (int(random.integers(0, 4 * size)), 2))
    elif kind == "dense":
        size = min(size, 30)
        pairs = np.argwhere(random.random((size, size)) < 0.6)
    elif kind == "path":
        pairs = np.stack([node[:-1], node[1:]], axis=1)
    elif kind == "ring":
        pairs = np.stack([node, (node + random.integers(1, size + 1)) % size], axis=1)
    elif kind == "lattice":
        width = int(random.integers(1, 15))
        pairs = np.concatenate([np.stack([node[:-1], node[1:]], axis=1)[(node[1:] % width) > 0],
                                np.stack([node[:-width], node[width:]], axis=1)])  # fmt: skip
    elif kind == "tree":
        pairs = np.stack([(random.random(size - 1) * node[1:]).astype(np.int64), node[1:]], axis=1)
    elif kind == "star":
        pairs = np.stack([np.zeros_like(node), node], axis=1)[:, :: 1 if random.integers(2) else -1]
    elif kind == "skewed":
        pairs = (random.random((3 * size, 2)) ** 3 * size).astype(np.int64)
    else:
        pairs = np.empty((0, 2), np.int64)
    pairs = random.permutation(size)[pairs.reshape(-1, 2)]
    dtype = np.dtype(TYPES[random.integers(len(TYPES))])
    weights = random.integers(0 if random.integers(2) else 1, 20, len(pairs)).astype(dtype)
    if dtype.kind == "f" and random.integers(2):
        weights = random.random(len(pairs)).astype(dtype)
    graph = graphs.make(size, pairs, weights)
    return graphs.both_ways(graph) if random.integers(2) else graph


def partition(random: Random, graph: graphs.Graph, folder: Path) -> tuple[PartitionedGraph, Oracle, bool]:
    """The graph from a file, arrays or a saved partition, divided among the ranks, and its oracle. Collective."""
    size = ranks.COMM.size
    policy = str(random.choice([*POLICIES, *MIXED]))
    rows = int(random.choice([rows for rows in range(1, size + 1) if size % rows == 0]))
    parameters: dict[str, Any] = {
        "threshold": int(random.integers(0, 9)), "state_rounds": int(random.integers(1, 6)),
        "passes": int(random.integers(1, 3)), "grid": [None, (rows, size // rows)][random.integers(2)],
        "order": str(random.choice(["degree", "natural"])),
        "split": str(random.choice(["edges", "nodes", "weighted", "10:1"])),
    }  # fmt: skip
    if policy == "map":
        parameters["node_map"] = str(folder / "map.txt")
        _write(folder / "map.txt", "".join(f"{rank}\n" for rank in random.integers(0, size, graph.num_nodes)))
    turned = graphs.make(graph.num_nodes, np.stack([graph.targets, graph.sources], axis=1), graph.weights)
    symmetric = turned.triples() == graph.triples() and bool(random.integers(2))
    weighted, way = bool(random.integers(4)), int(random.integers(5))
    oracle = Oracle(graph, weighted)
    options = {"comm": ranks.COMM, "device": os.environ["CUSP_DEVICE"]}
    weight = graph.weights.dtype if weighted else None
    storage = {"sums": bool(random.integers(2)), "transpose": bool(random.integers(2)) and not symmetric}
    path = graphs.write(folder / "g.h5", graph, weight=weight, symmetric=symmetric, **storage)
    if way == 0:
        edges = (graph.sources, graph.targets, graph.weights)[: 2 + weighted]
        made = library.partition_graph(edges, policy, num_nodes=graph.num_nodes, **options, **parameters)
        return made, oracle, made.part.symmetric
    made = library.partition_graph(path, policy, **options, **parameters)
    if way == 1:
        save(made, folder)
        made = library.partition_graph(str(folder / "parts"), **options)
    return made, oracle, symmetric


def save(made: PartitionedGraph, folder: Path) -> None:
    """Save a partition of the graph file in the folder ``parts``. Collective."""
    if ranks.COMM.rank == 0:
        shutil.rmtree(folder / "parts", ignore_errors=True)
    ranks.COMM.Barrier()
    names = ("grid", "threshold", "rounds", "passes", "node_map", "strict")
    parameters = {name: getattr(made.policy, name) for name in names}
    save_partition(
        str(folder / "parts"), made.part.on("cpu"), ranks.COMM, graph=str(folder / "g.h5"), policy=made.policy.name,
        parameters=parameters, order="degree", split="edges",
    )  # fmt: skip


def _write(path: Path, text: str) -> None:
    """A file from rank 0, there for all when this returns. Collective."""
    if ranks.COMM.rank == 0:
        path.write_text(text)
    ranks.COMM.Barrier()


def ask_bfs(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source, parents = int(random.integers(oracle.size)), bool(random.integers(2))
    options = {"direction": str(random.choice(["auto", "push", "pull"])), "parents": parents}

    def wrong(result: Any) -> str:
        tree = oracle.wrong_tree(source, result.hops, result.parents, hops=True) if parents else ""
        return differs(result.hops, graphs.serial_hops(oracle.graph, source)) or tree

    return Question("bfs" + " --parents" * parents, "a serial queue", (source,), options, wrong)


def ask_sssp(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source = int(random.integers(oracle.size))
    delta = [None, 0.3, 1.0, 7.0, 1e9][random.integers(5)]
    return Question(
        "sssp", "Dijkstra with a heap", (source,), {"delta": delta},
        lambda result: differs(result.distance, graphs.serial_distances(oracle.graph, source)),
    )  # fmt: skip


def ask_widest(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source = int(random.integers(oracle.size))
    return Question(
        "widest", "a heap of the widest", (source,), {},
        lambda result: differs(result.width, graphs.serial_widths(oracle.graph, source)),
    )  # fmt: skip


def ask_forest(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    roots = random.integers(0, oracle.size, random.integers(1, 5)).tolist()

    def wrong(result: Any) -> str:
        hops, lowest = oracle.forest(roots)
        return differs(result.hops, hops) or differs(result.root, lowest)

    return Question("forest", "a serial queue for each root", (), {"roots": roots}, wrong)


def ask_path(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source, hops = int(random.integers(oracle.size)), bool(random.integers(2))

    def wrong(result: Any) -> str:
        expected = (graphs.serial_hops if hops else graphs.serial_distances)(oracle.graph, source)
        found = result.values["hops" if "hops" in result.values else "distance"]
        return differs(found, expected) or oracle.wrong_tree(source, found, result.parents, hops)

    other = "a serial queue" if hops else "Dijkstra with a heap"
    return Question("path" + " --hops" * hops, f"{other}, each parent looked at", (source,), {"hops": hops}, wrong)


def ask_cc(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    return Question("cc", "SciPy", (), {}, lambda result: differs(result.component, oracle.components("weak")))


def ask_scc(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    return Question("scc", "SciPy", (), {}, lambda result: differs(result.component, oracle.components("strong")))


def ask_kcore(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    k = [None, int(random.integers(1, 6))][random.integers(2)]

    def wrong(result: Any) -> str:
        cores = oracle.by_node(networkx.core_number(oracle.undirected))
        return differs(result.core, cores) if k is None else differs(result.in_core, cores >= k)

    return Question("kcore" + " --k" * (k is not None), "NetworkX", (), {"k": k}, wrong)


def ask_triangles(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    per_node = bool(random.integers(2))

    def wrong(result: Any) -> str:
        other = oracle.undirected
        at_node = oracle.by_node(networkx.triangles(other))
        found, expected = [result.figures["transitivity"]], [networkx.transitivity(other)]
        if result.figures["triangles"] * 3 != at_node.sum():
            return f"{result.figures['triangles']} triangles, expected {at_node.sum() // 3}"
        if per_node:
            found.append(result.figures["average_clustering"])
            expected.append(networkx.average_clustering(other))
            shares = oracle.by_node(networkx.clustering(other))
            return differs(result.triangles, at_node) or near(result.clustering, shares) or near(found, expected)
        return near(found, expected)

    return Question("triangles" + " --per-node" * per_node, "NetworkX", (), {"per_node": per_node}, wrong)


def ask_communities(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    options = {"algorithm": str(random.choice(["louvain", "label-propagation"]))}

    def wrong(result: Any) -> str:
        names, other = np.unique(result.community), oracle.undirected
        groups = [set(np.flatnonzero(result.community == name).tolist()) for name in names]
        if [min(group) for group in groups] != names.tolist() or len(groups) != result.figures["communities"]:
            return f"communities {names[:8]} are not named by their smallest nodes"
        if not other.size(weight="weight"):
            return ""
        expected = networkx.community.modularity(other, groups)
        return near([result.figures["modularity"]], [expected])

    return Question(f"communities {options['algorithm']}", "the modularity of NetworkX", (), options, wrong)


def ask_pagerank(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    damping = [0.85, 0.5, 0.99][random.integers(3)]
    starts = random.integers(0, oracle.size, 2).tolist() if random.integers(4) == 0 else None
    options: dict[str, Any] = {"damping": damping, "tolerance": 1e-10, "personalize": starts}
    way = int(random.integers(5))
    name, other, error = "pagerank", "NumPy, the equations solved", 1e-10 / (1 - damping) + 1e-12
    rounds = None
    if way == 0:
        options |= {"algorithm": "push-residual"}
        name = "pagerank push-residual"
    elif way == 1:
        options |= {"precision": "float32", "tolerance": 1e-5}
        name, error = "pagerank float32", 2e-5 / (1 - damping)
    elif way == 2:
        rounds = int(random.integers(1, 6))
        options |= {"tolerance": 0, "iterations": rounds}
        name, other, error = "pagerank --iterations", "NumPy, as many steps on a dense matrix", 1e-12
    elif way == 3 and starts is None:
        other = "NetworkX"

    def wrong(result: Any) -> str:
        solved = oracle.pagerank(damping, sorted(set(starts)) if starts else None, rounds)
        expected = oracle.pagerank_of_networkx(damping) if other == "NetworkX" else solved
        off = float(abs(result.pagerank - expected).sum())
        return "" if off <= error else f"the ranks are {off:.3g} off in all, more than {error:.3g}"

    return Question(name, other, (), options, wrong)


def ask_betweenness(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    normalized = bool(random.integers(2))
    options: dict[str, Any] = {"normalized": normalized}
    if oracle.size <= 40 and random.integers(2):
        sources, options["sources"] = list(range(oracle.size)), "all"
    else:
        sources = sorted(set(random.integers(0, oracle.size, 3).tolist()))
        options["source"] = sources
    simple = not oracle.has_parallel_edges
    if not simple and oracle.size > 60:
        return ask_kcore(random, oracle, symmetric)  # its definition takes too long

    def wrong(result: Any) -> str:
        scale = max((oracle.size - 1) * (oracle.size - 2), 1) if normalized else 2 if symmetric else 1
        return near(result.betweenness, oracle.betweenness(sources) / scale)

    other = "NetworkX" if simple else "all shortest paths, counted"
    return Question("betweenness", other, (), options, wrong)


def ask_semiring(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    algorithm, source = str(random.choice(["bfs", "sssp", "pagerank"])), int(random.integers(oracle.size))
    options = {"algorithm": algorithm, "tolerance": 1e-10}

    def wrong(result: Any) -> str:
        if algorithm == "bfs":
            return differs(result.hops, graphs.serial_hops(oracle.graph, source))
        if algorithm == "sssp":
            return differs(result.distance, graphs.serial_distances(oracle.graph, source))
        return near(result.pagerank, oracle.pagerank(0.85, None, None))

    other = {"bfs": "a serial queue", "sssp": "Dijkstra with a heap", "pagerank": "NumPy, the equations solved"}
    return Question(f"semiring {algorithm}", other[algorithm], (source,), options, wrong)


def differs(found: np.ndarray, expected: np.ndarray) -> str:
    """Where two answers that must be equal are not."""
    places = np.flatnonzero(found != expected)[:4]
    return f"{found[places]} at {places}, expected {expected[places]}" if places.size else ""


def near(found: Any, expected: Any) -> str:
    """Where two answers are further apart than rounding makes them."""
    found, expected = np.asarray(found), np.asarray(expected)
    places = np.flatnonzero(~np.isclose(found, expected, rtol=1e-7, atol=1e-8))[:4]
    return f"{found[places]} at {places}, expected {expected[places]}" if places.size else ""


SEMIRING = function_of(semiring.APP)
DAMAGED = Question("a saved partition, edited", "refused, or what its files hold", (), {}, lambda result: "")
ASKED = (
    ask_bfs, ask_bfs, ask_sssp, ask_widest, ask_forest, ask_path, ask_cc, ask_scc, ask_kcore, ask_triangles,
    ask_communities, ask_pagerank, ask_betweenness, ask_semiring,
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
