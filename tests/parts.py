"""Policies to test at this number of ranks, and what all ranks hold together."""

import argparse
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import ranks
from graphs import HARD, SYMMETRIC, Graph, write

from cusp import partitioner
from cusp.apps.harness import App
from cusp.apps.run.cli import with_gids
from cusp.apps.run.keywords import Keywords
from cusp.partition import Partition
from cusp.policies import Policy, load_policy
from cusp.runtime.compiled_code import cache_folder
from cusp.runtime.devices import choose_device, to_host
from gluon.plan import make_plan
from gluon.sync import Sync

WANTED = os.environ["CUSP_DEVICE"]  # where the tests of algorithms compute: a device, or a list of those of the ranks
PLACEMENT = choose_device(WANTED, ranks.COMM)  # a GPU that cannot be used is an error here, not a test that is skipped
DEVICE = PLACEMENT.device
FOLDER = Path(__file__).resolve().parent / "user_policies"
SIZE = ranks.COMM.size
GRIDS = [(rows, SIZE // rows) for rows in range(1, SIZE + 1) if SIZE % rows == 0]
COMPUTED = {  # policies whose masters and owners an array expression gives -> name and parameters
    "oec": ("oec", {}),
    "iec": ("iec", {}),
    "cvc": ("cvc", {}),
    **{f"cvc-{rows}x{columns}": ("cvc", {"grid": (rows, columns)}) for rows, columns in GRIDS},
    "hvc-2": ("hvc", {"threshold": 2}),
    "hvc-1000": ("hvc", {"threshold": 1000}),
    "contiguous+hybrid": ("contiguous+hybrid", {"threshold": 3}),
    **{path.stem: (str(path), {"threshold": 5}) for path in sorted(FOLDER.glob("*.py"))},
}
OTHER = ("fec", "gvc", "svc", "ldg", "dbh", "hdrf", "random", "random2d", "2ps", "hep", "fennel+hdrf", "hash+hybrid")
POLICIES = COMPUTED | {name: (name, {"threshold": 5}) for name in OTHER}

# All graphs with the policies that differ most, a few graphs with the others. At one rank all partitions are alike,
# and what is left out at 2, 3 or 4 ranks is in at another of them.
CORE = {1: ("oec",), 2: ("oec",), 3: ("iec", "mixed"), 4: ("cvc", "mixed")}.get(SIZE, ("oec", "iec", "cvc", "mixed"))
FEW = {1: ("random",), 2: ("loops_and_doubles", "random"), 3: ("loops_and_doubles", "random")}.get(
    SIZE, ("three_nodes", "random")
)
PAIRS = [(graph, policy) for policy in POLICIES for graph in (HARD if policy in CORE else FEW)]
PLAIN = ("oec", "cvc", "fec") if SIZE == 1 else ("oec", "iec", "cvc", "hvc-2", "mixed", "one_rank", "fec")
ON_GRIDS = tuple(f"cvc-{rows}x{columns}" for rows, columns in GRIDS if SIZE > 1)
SOME = PLAIN + ON_GRIDS


def user_file(text: str, name: str = "mine.py") -> str:
    """Path of a policy file with this text, the same in every run: numba finds what it made of it. Collective."""
    path = cache_folder("tests") / hashlib.sha256(text.encode()).hexdigest()[:16] / name
    if ranks.COMM.rank == 0 and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(text)
        scratch.replace(path)
    ranks.COMM.Barrier()
    return str(path)


def share(cases: Iterable[Any]) -> list[Any]:
    """Cases to which the number of ranks matters little: all at one rank, each at one of 2, 3 and 4 ranks."""
    return list(cases)[SIZE - 2 :: 3] if 2 <= SIZE <= 4 else list(cases)


# Each hard graph with one policy, and the graph that has most with all, for what is made of passes and syncs, as BFS
# and SSSP are, which try PAIRS. On a GPU, where not every number of ranks is tried, nothing is shared.
ONCE = list(zip(HARD, SOME * 9))
if WANTED == "cpu":
    ONCE = sorted({*zip(share(HARD), SOME * 9), *(("random", policy) for policy in (*share(PLAIN), *ON_GRIDS))})


def policy_of(name: str) -> Policy:
    """One of the policies by its name in this file."""
    kind, parameters = POLICIES[name]
    return load_policy(kind, **parameters)


def partition_graph(*arguments: Any, **options: Any) -> Partition:
    """A partition on the device under test. Collective."""
    return partitioner.partition_graph(*arguments, **options, device=DEVICE)


def hard_parts(
    comm: Any, folder: Path, policy: str, more: dict[str, Graph] | None = None, **options: Any
) -> Iterator[tuple[Partition, Sync, Graph]]:
    """All hard graphs, and ``more``, under one policy, with a sync layer each. Collective."""
    for name, graph in ({name: make() for name, make in HARD.items()} | (more or {})).items():
        path = write(folder / f"{name}.h5", graph, symmetric=name in SYMMETRIC)
        part = partition_graph(path, policy_of(policy), comm, weights=False, **options)
        yield part, make_sync(part), graph


def options_of(app: App, **chosen: Any) -> argparse.Namespace:
    """Options of an app: the defaults, and these."""
    return argparse.Namespace(**(vars(Keywords(app.name, app.add_options, app.seeded).read({})) | chosen))


def read_options(app: App, num_nodes: int, **chosen: Any) -> argparse.Namespace:
    """Options of an app as its function reads them; nodes are numbers, as texts or not."""
    parser = Keywords(app.name, app.add_options, app.seeded)
    return with_gids(parser, parser.read(chosen), None, num_nodes)


def on_host(part: Partition) -> tuple[Partition, Sync]:
    """The same partition on the CPU, and a sync layer for it: for verifiers. Collective."""
    host = part.on("cpu")
    return host, make_sync(host)


def edges_of(part: Partition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources, targets (global ids) and weights of a rank's edges; weight 1 if it has none."""
    sources = np.repeat(part.gids, np.diff(part.offsets))
    weights = np.ones(part.num_local_edges, np.int64) if part.weights is None else part.weights
    return sources, part.gids[part.targets], weights


def gather_parts(part: Partition) -> list[SimpleNamespace]:
    """What each rank holds, on every rank. Collective."""
    sources, targets, weights = edges_of(part)
    csc = None
    if part.csc is not None:
        in_weights = np.ones(part.csc.sources.size, np.int64) if part.weights is None else part.csc.weights
        csc = (part.gids[part.csc.sources], np.repeat(part.gids, np.diff(part.csc.offsets)), in_weights)
    record = {
        "rank": part.rank, "num_masters": part.num_masters, "mirror_starts": part.mirror_starts, "gids": part.gids,
        "has_in": part.has_in, "has_out": part.has_out, "degrees": part.degrees,
        "sources": sources, "targets": targets, "weights": weights, "csc": csc,
    }  # fmt: skip
    return [SimpleNamespace(**other) for other in ranks.COMM.allgather(record)]


def gather(part: Partition, values: np.ndarray) -> np.ndarray:
    """(nodes,) values of all masters by global id, on every rank. Collective."""
    pieces = ranks.COMM.allgather((to_host(part.gids[: part.num_masters]), to_host(values)))
    everywhere = np.empty(part.num_nodes, values.dtype)
    filled = np.zeros(part.num_nodes, np.int64)
    for gids, mine in pieces:
        everywhere[gids] = mine
        filled[gids] += 1
    assert (filled == 1).all()
    return everywhere


def make_sync(part: Partition) -> Sync:
    """A sync layer for a partition. Collective."""
    return Sync(make_plan(part, ranks.COMM), ranks.COMM)


def triples(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> list[tuple]:
    """Edges as tuples."""
    return list(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))


def check_partition(part: Partition, graph: Graph, weighted: bool = True) -> list[SimpleNamespace]:
    """Assert every invariant that holds for any policy, on what all ranks hold together. Collective."""
    parts = gather_parts(part)
    weights = graph.weights if weighted else np.ones(graph.num_edges, np.int64)
    found = [edge for p in parts for edge in triples(p.sources, p.targets, p.weights)]
    assert Counter(found) == Counter(triples(graph.sources, graph.targets, weights))
    masters = np.concatenate([p.gids[: p.num_masters] for p in parts])
    assert np.array_equal(np.sort(masters), np.arange(graph.num_nodes))
    master_of, lid_there = np.empty((2, graph.num_nodes), np.int64)
    for p in parts:
        master_of[p.gids[: p.num_masters]] = p.rank
        lid_there[p.gids[: p.num_masters]] = np.arange(p.num_masters)
    for p in parts:
        _check_rank(p, graph, master_of, lid_there, len(parts))
    return parts


def _check_rank(
    p: SimpleNamespace, graph: Graph, master_of: np.ndarray, lid_there: np.ndarray, size: int
) -> None:  # fmt: skip
    assert np.unique(p.gids).size == p.gids.size
    assert p.mirror_starts.size == size + 1
    assert (p.mirror_starts[0], p.mirror_starts[-1]) == (p.num_masters, p.gids.size)
    for rank in range(size):
        mirrors = p.gids[p.mirror_starts[rank] : p.mirror_starts[rank + 1]]
        assert (master_of[mirrors] == rank).all()
        assert (np.diff(lid_there[mirrors]) > 0).all()
    assert p.mirror_starts[p.rank] == p.mirror_starts[p.rank + 1]
    assert np.array_equal(p.has_out, np.isin(p.gids, p.sources))
    assert np.array_equal(p.has_in, np.isin(p.gids, p.targets))
    assert (p.has_in | p.has_out)[p.num_masters :].all()  # a mirror is there for an edge
    assert np.array_equal(p.degrees, graph.degrees[p.gids[: p.num_masters]])
    if p.csc is not None:
        assert Counter(triples(*p.csc)) == Counter(triples(p.sources, p.targets, p.weights))
