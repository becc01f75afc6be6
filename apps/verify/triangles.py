"""Verifiers of triangles and of common neighbours: see apps/verify/check.py. They count on the host."""

from typing import Any

import numpy as np

from cusp.apps.run.app import Answer
from cusp.apps.shared.splitmix64 import splitmix64
from cusp.apps.verify.check import raise_first, require, tell_node
from cusp.kernels.arrays import runs_of_rows
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import to_host
from gluon.sync import Sync

LEAST_WORK, WORK_PER_EDGE = 1 << 22, 16  # entries of rows to look at
SAMPLE = 256  # pairs of each rank, at most
CAPACITY = 1 << 22  # entries of neighbourhoods that travel at a time


def verify_triangles(graph: Partition, sync: Sync, figures: dict[str, Any], labels: dict[str, np.ndarray]) -> None:
    """Check triangles. Collective.

    1. The counts of all nodes add up to three times the number of triangles. 2. The count of a node is half the number
    of common neighbours that it has with each of its neighbours, added up: recounted for all nodes if that is
    little work, else for a sample drawn by global ids. 3. The coefficients follow from the counts and the degrees.

    Parameters
    ----------
    graph : Partition
        Undirected, see :func:`~cusp.apps.shared.graphs.undirected.as_undirected`.
    figures, labels
        As of :func:`cusp.apps.triangles.triangles` with ``per_node``; ``average_clustering`` may be missing.
    """
    graph = graph.on("cpu")
    counts, clustering = (to_host(labels[name]) for name in ("node_triangles", "clustering"))
    pairs = graph.degrees * (graph.degrees - 1) // 2
    total, paths = sync.total(int(counts.sum()), int(pairs.sum()))
    triangles = figures["triangles"]
    require(sync, total == 3 * triangles, f"{total} triangles at all nodes are not 3 times {triangles}")
    share = 3 * triangles / max(paths, 1)
    require(sync, np.isclose(figures["transitivity"], share), f"the transitivity is not {share}")
    expected = counts / np.maximum(pairs, 1)
    wrong = ~np.isclose(clustering, expected)
    tell_node(graph, sync, "clustering: not the fraction of connected pairs of neighbours at node", wrong)
    mean = sync.total(float(expected.sum()))[0] / graph.num_nodes
    require(sync, np.isclose(figures.get("average_clustering", mean), mean), f"the average clustering is not {mean}")
    recount(graph, sync, counts)


def recount(graph: Partition, sync: Sync, counts: np.ndarray) -> None:
    """Compare twice the triangles at nodes with the common neighbours counted anew. Collective."""
    gids = graph.gids[: graph.num_masters]
    allowed = max(LEAST_WORK, WORK_PER_EDGE * graph.num_edges)
    share = allowed / max(allowed, *sync.total(int((graph.degrees**2).sum())))
    drawn = np.flatnonzero(splitmix64(gids, seed=1) <= np.uint64(share * (2**64 - 2048)))
    cuts = runs_of_rows(graph.degrees[drawn], CAPACITY // sync.comm.size)
    for turn in range(max(sync.comm.allgather(len(cuts)))):
        local = drawn[cuts[turn]] if turn < len(cuts) else drawn[:0]
        sizes = graph.degrees[local]
        places = np.repeat(graph.offsets[local + 1] - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        everyone = sync.comm.allgather((sizes, graph.gids[graph.targets[places]]))
        twice = sync.comm.allreduce(np.concatenate([_count_common(graph, *lists) for lists in everyone]))
        first = sum(sizes.size for sizes, _ in everyone[: sync.comm.rank])
        wrong = np.flatnonzero(twice[first : first + local.size] != 2 * counts[local])
        message = None
        if wrong.size:
            lid, right = local[wrong[0]], twice[first + wrong[0]] // 2
            message = f"at node {gids[lid]} there are {right} triangles, not {counts[lid]}"
        raise_first(sync, message)


def _count_common(graph: Partition, sizes: np.ndarray, members: np.ndarray) -> np.ndarray:
    """For each list of global ids, the entries in rows of its masters that are in the list too."""
    marks = np.zeros(graph.num_proxies, np.bool_)
    common = np.zeros(sizes.size, np.int64)
    ends = np.cumsum(sizes)
    _count(graph.offsets, graph.targets, graph.num_masters, ends, graph.lid_map.lids(members), marks, common)
    return common


@njit(cache=True, nogil=True)
def _count(offsets, targets, masters, ends, members, marks, common):  # type: ignore[no-untyped-def]
    begin = 0
    for i in range(ends.size):
        for lid in members[begin : ends[i]]:
            if lid >= 0:
                marks[lid] = True
        for lid in members[begin : ends[i]]:
            if 0 <= lid < masters:
                for edge in range(offsets[lid], offsets[lid + 1]):
                    common[i] += marks[targets[edge]]
        for lid in members[begin : ends[i]]:
            if lid >= 0:
                marks[lid] = False
        begin = ends[i]


def verify_similarity(part: Partition, sync: Sync, answer: Answer, pairs: np.ndarray) -> None:
    """Check similarities. Collective.

    1. They are those of the pairs asked for. 2. Of some pairs of each rank, spread over all of them, the sets of
    neighbours are collected from the edges of all ranks, and compared.

    Parameters
    ----------
    pairs : (2, n) int64
        Those of this rank.
    """
    found = {name: to_host(values) for name, values in answer.edges.items()}
    ends = np.stack([found["source"], found["target"]])
    require(sync, np.array_equal(ends, pairs), "these are other pairs than those asked for")
    (count,) = sync.total(ends.shape[1])
    require(sync, count == answer.figures["pairs"], f"there are {count} pairs, not {answer.figures['pairs']}")
    chosen = np.unique(np.linspace(0, max(ends.shape[1] - 1, 0), SAMPLE).astype(np.int64))[: ends.shape[1]]
    near = _neighbours(part.on("cpu"), sync, np.unique(np.concatenate(sync.comm.allgather(ends[:, chosen].ravel()))))
    message = None
    for place in chosen.tolist():
        source, target = ends[:, place].tolist()
        one, other = near[source], near[target]
        common = len(one & other)
        right = {
            "common": common,
            "jaccard": common / max(len(one | other), 1),
            "overlap": common / max(min(len(one), len(other)), 1),
            "cosine": common / max(len(one) * len(other), 1) ** 0.5,
        }
        for name, value in right.items():
            if not np.isclose(found[name][place], value, rtol=1e-12):
                message = message or f"{name} of {source} and {target} is {value}, not {found[name][place]}"
    raise_first(sync, message)


def _neighbours(part: Partition, sync: Sync, nodes: np.ndarray) -> dict[int, set[int]]:
    """The neighbours of some nodes, themselves left out, from the edges of all ranks. Collective."""
    sources, targets = np.repeat(part.gids, np.diff(part.offsets)), part.gids[part.targets]
    near: dict[int, set[int]] = {node: set() for node in nodes.tolist()}
    for one, other in (sources, targets), (targets, sources):
        wanted = np.isin(one, nodes) & (one != other)
        for node, neighbour in zip(
            *(np.concatenate(sync.comm.allgather(each[wanted])).tolist() for each in (one, other))
        ):
            near[node].add(neighbour)
    return near
