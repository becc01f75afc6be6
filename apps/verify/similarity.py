"""Verifier of similarities: see apps/verify/check.py. It works on the host."""

import numpy as np

from cusp import Answer, Partition, Sync
from cusp.apps.verify.check import raise_first, require
from cusp.runtime.devices import to_host

SAMPLE = 256  # pairs of each rank at most


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
