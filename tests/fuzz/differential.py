"""Random graphs, policies and options on all ranks: each answer beside that of another library or algorithm.

``mpirun -n 3 python -m tests.fuzz.differential --seed 1 --answers 1000``, with ``--extreme`` for weights at the limits
of their types.

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
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # graphs, ranks and this folder, as in the tests
os.environ.setdefault("CUSP_DEVICE", "cpu")

import ranks  # noqa: E402 - prepares the process before numba is imported

# isort: split
import graphs  # noqa: E402
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402
from fuzz import extreme_weights  # noqa: E402
from fuzz.questions import ASKED, Question, differs  # noqa: E402
from fuzz.saved_parts import as_stored, edits  # noqa: E402
from oracles import Oracle  # noqa: E402
from scipy.sparse import csgraph  # noqa: E402

from cusp.apps import library, maze  # noqa: E402
from cusp.apps.harness import main as run_app  # noqa: E402
from cusp.apps.run.partitioned_graph import PartitionedGraph  # noqa: E402
from cusp.errors import InputError  # noqa: E402
from cusp.output.saved import save_partition  # noqa: E402
from cusp.policies.policy import POLICIES  # noqa: E402

LIMIT = 600.0  # seconds for a graph: much is compiled for the first
MIXED = ("hash+hybrid", "fennel+hdrf", "ldg+dbh")  # policies that have no name
Random = np.random.Generator


def main() -> int:
    """Answer questions until there are enough; exit code 1 if one was wrong. Collective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answers", type=int, default=1000, metavar="N")
    parser.add_argument("--minutes", type=float, default=1e9, help="end earlier, after the graph of that moment")
    parser.add_argument("--case", type=int, help="this graph alone, with each of its answers")
    parser.add_argument("--extreme", action="store_true", help="weights at the limits of their types")
    parsed = parser.parse_args()
    tried: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    number, began = parsed.case or 0, time.monotonic()
    with rehearsed_once(), _shared_folder() as folder:
        while ranks.tell(tried.total() < parsed.answers and time.monotonic() < began + parsed.minutes * 60):
            words = f"--seed {parsed.seed} --case {number} on {ranks.COMM.size} ranks"
            try:
                with ranks.limited(words, LIMIT):
                    for question, why in (extreme_case if parsed.extreme else case)(parsed.seed, number, folder):
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
        part, oracle, symmetric = partition(random, graphs.of_any_shape(random), folder)
        if random.integers(4) == 0:
            yield DAMAGED, damaged_parts(random, part, oracle, folder)
        if random.integers(8) == 0:
            yield MAZE, way_through(random, folder)
        for place in random.permutation(len(ASKED))[: random.integers(6, len(ASKED) + 1)].tolist():
            question = ASKED[place](random, oracle, symmetric)
            yield question, ask(question, part, verify=bool(random.integers(8) == 0))


def extreme_case(seed: int, number: int, folder: Path) -> Iterator[tuple[Question, str]]:
    """The same about a graph with extreme weights; what does not fit must be refused. Collective."""
    random = np.random.default_rng([seed, number])
    graph = extreme_weights.make_graph(random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = graphs.write(folder / "g.h5", graph, weight=graph.weights.dtype)
        policy = str(random.choice(["oec", "cvc", "random2d", "hvc"]))
        part = library.partition_graph(path, policy, comm=ranks.COMM, device=os.environ["CUSP_DEVICE"])
        for question in extreme_weights.questions(random, graph):
            try:
                yield question, ask(question, part, verify=bool(random.integers(2)))
            except InputError as error:
                yield question, extreme_weights.refused(question.app, graph, question, error)


def ask(question: Question, part: PartitionedGraph, verify: bool) -> str:
    """What is wrong with the answer to a question, on every rank. Collective."""
    result = question.answer(part, verify)
    labels = b"".join(label.tobytes() for label in result.values.values())
    digests, why = ranks.COMM.gather(hashlib.sha256(labels).digest()), ""
    if digests is not None:
        why = "the ranks have different answers" if len(set(digests)) > 1 else question.wrong(result)
    return str(ranks.COMM.bcast(why))


def way_through(random: Random, folder: Path) -> str:
    """What is wrong with the way through a random maze, on every rank. Collective."""
    height, width = int(random.integers(1, 25)), int(random.integers(2, 25))
    letters = np.where(random.random(height * width) < 0.3, "#", " ")
    start, end = random.choice(letters.size, 2, replace=False).tolist()
    letters[start], letters[end] = "S", "E"
    _write(folder / "maze.txt", "".join(f"{''.join(row)}\n" for row in letters.reshape(height, width)))
    files = [str(folder / "maze.txt"), "--output", str(folder / "way.h5")]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        run_app(maze.APP, ranks.COMM, [*files, "--policy", str(random.choice(["oec", "cvc"]))])
    why = ""
    if ranks.COMM.rank == 0:
        with h5py.File(folder / "way.h5") as file:
            hops, step = file["hops"][...], file["step"][...]
        pairs = graphs.lattice(letters.size, width)
        pairs = pairs[(letters[pairs] != "#").all(axis=1)]
        matrix = scipy.sparse.coo_matrix((np.ones(len(pairs)), pairs.T), shape=(letters.size, letters.size))
        expected = csgraph.shortest_path(matrix, directed=False, unweighted=True, indices=start)
        why = differs(hops, np.where(np.isfinite(expected), expected, -1))
        way = np.argsort(step)[np.count_nonzero(step < 0) :]
        if way.size != max(hops[end], -1) + 1 or not np.array_equal(hops[way], np.arange(way.size)):
            why = why or f"the way {way} is not as long as the distance {hops[end]}"
        elif way.size and ((way[0], way[-1]) != (start, end) or not np.isin(abs(np.diff(way)), (1, width)).all()):
            why = why or f"the way {way} does not lead from {start} to {end}"
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
def rehearsed_once() -> Iterator[None]:
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


DAMAGED = Question("a saved partition, edited", "refused, or what its files hold", (), {}, lambda result: "")
MAZE = Question("maze", "SciPy", (), {}, lambda result: "")


if __name__ == "__main__":
    sys.exit(main())
