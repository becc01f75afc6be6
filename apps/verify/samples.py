"""Verifiers of samples and walks: see apps/verify/check.py. They count edges where these are, on the host."""

import argparse
from typing import Any

import numpy as np

from cusp import Answer, Partition, Sync
from cusp.apps.verify.check import raise_first, require
from cusp.runtime.devices import to_host
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI


def verify_samples(part: Partition, sync: Sync, answer: Answer, seeds: np.ndarray, options: argparse.Namespace) -> None:
    """Check the seeds and nodes of batches, that their edges exist, and how many each node has. Collective.

    Parameters
    ----------
    seeds : (n,) int64
        Of all batches.
    """
    found = {name: to_host(values) for name, values in answer.arrays.items()}
    fan_out, replace, until = options.fan_out, options.replace, options.until
    node, num_nodes, num_edges = found["node"], found["num_nodes"], found["num_edges"]
    hop = np.tile(np.arange(len(fan_out) + 1), len(num_nodes)).repeat(num_nodes.ravel())
    turn = np.tile(np.arange(len(fan_out)), len(num_edges)).repeat(num_edges.ravel())
    sizes, drawn = num_nodes.sum(axis=1), num_edges.sum(axis=1)
    right = sizes.sum() == node.size and drawn.sum() == found["row"].size == found["col"].size
    require(sync, right, "num_nodes and num_edges do not add up to the nodes and edges")
    inside = [(found[end] >= 0) & (found[end] < sizes.repeat(drawn)) for end in ("row", "col")]
    require(sync, np.all(inside), "an edge names a place behind the nodes of its batch")
    row, col = (found[end] + (np.cumsum(sizes) - sizes).repeat(drawn) for end in ("row", "col"))
    everyone = np.concatenate(sync.comm.allgather(node[hop == 0]))
    require(sync, np.array_equal(everyone, seeds), "the first nodes of the batches are not their seeds")
    alone = hop == 0
    alone[row[hop[row] == turn + 1]] = True
    raise_first(sync, _tell(~alone, "no edge of its hop has found node {}", node))
    wrong = (hop[col] != turn) | (hop[row] > turn + 1)
    raise_first(sync, _tell(wrong, "drawn in another hop is an edge of node {}", node[col]))
    twice = _times(np.arange(sizes.size).repeat(sizes), node) > 1
    raise_first(sync, _tell(twice, "twice in a batch is node {}", node))
    late = np.zeros(row.size, np.bool_) if until is None else found["weight"] > until
    raise_first(sync, _tell(late, f"later than {until} is an edge of node {{}}", node[col]))
    ends = (node[row], node[col]) if options.incoming else (node[col], node[row])
    (first, parallel), times = _places_of_edges(part, sync.comm, *ends), _times(col, node[row])
    raise_first(sync, _tell(parallel == 0, "there is no edge from {} to {}", *ends))
    raise_first(sync, _tell((times > parallel) & (not replace), "drawn too often: an edge from {} to {}", *ends))
    if "edge" in found:
        number = found["edge"]
        wrong = (number < first) | (number >= first + parallel)
        raise_first(sync, _tell(wrong, "{} is not the number of an edge from {} to {}", number, *ends))
        twice = _times(np.arange(drawn.size).repeat(drawn), number) > 1
        raise_first(sync, _tell(twice & (not replace), "drawn twice in a batch is edge {}", number))
    degrees, wanted = _degrees(part, sync.comm, node, options.incoming), np.array([*fan_out, 0])[hop]
    most = np.where(wanted < 0, degrees, np.where(replace & (degrees > 0), wanted, np.minimum(degrees, wanted)))
    taken = np.bincount(col, minlength=node.size)
    wrong = taken > most if options.weighted or until is not None else taken != most
    raise_first(sync, _tell(wrong, "{} edges are drawn, not {}, of node {}", taken, most, node))


def verify_walks(part: Partition, sync: Sync, answer: Answer, starts: np.ndarray, options: argparse.Namespace) -> None:
    """Check that walks start where they are to, follow edges, and end where there are none. Collective.

    Parameters
    ----------
    starts : (walks,) int64
        Of all ranks.
    """
    walks = to_host(answer.arrays["walks"])
    everyone = np.concatenate(sync.comm.allgather(walks[:, 0]))
    require(sync, np.array_equal(everyone, starts), "walks start elsewhere")
    source, target = walks[:, :-1].ravel(), walks[:, 1:].ravel()
    raise_first(sync, _tell((source < 0) & (target >= 0), "after its end, a walk goes on at node {}", target))
    goes, ends = target >= 0, (source >= 0) & (target < 0)
    _, parallel = _places_of_edges(part, sync.comm, source[goes], target[goes])
    raise_first(sync, _tell(parallel == 0, "there is no edge from {} to {}", source[goes], target[goes]))
    degrees = _degrees(part, sync.comm, source[ends], False)
    early = (degrees > 0) & (not options.weighted)
    raise_first(sync, _tell(early, "a walk ends, but there are edges, at node {}", source[ends]))


def _tell(wrong: np.ndarray, message: str, *values: np.ndarray) -> str | None:
    """What is wrong first, if anything is."""
    return message.format(*(some[wrong.argmax()] for some in values)) if wrong.any() else None


def _times(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n,) int64: how often each pair is there."""
    _, places, counts = np.unique(np.stack([first, second]), axis=1, return_inverse=True, return_counts=True)
    times: np.ndarray = counts[places.ravel()]
    return times


def _places_of_edges(part: Partition, comm: MPI.Intracomm, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(2, n) int64: how many edges come before each pair, by source and target, and how many join it. Collective."""
    gids, offsets = to_host(part.gids), to_host(part.offsets)
    known = np.sort(gids)
    place = np.searchsorted(known, gids)
    edges = np.sort(place.repeat(np.diff(offsets)) << 32 | place[to_host(part.targets)])

    def count(asked: np.ndarray) -> np.ndarray:
        source, target = np.searchsorted(known, asked.reshape(2, -1))
        has_source, has_target = np.isin(asked, known).reshape(2, -1)
        pairs = source << 32 | target * has_source
        before = np.searchsorted(edges, pairs)
        parallel = np.searchsorted(edges, pairs, side="right") - before
        return np.concatenate([before, parallel * (has_source & has_target)])

    return _ask_all(comm, np.concatenate([sources, targets]), count).reshape(2, -1)


def _degrees(part: Partition, comm: MPI.Intracomm, gids: np.ndarray, incoming: bool) -> np.ndarray:
    """(n,) int64: out-edges or in-edges of nodes in the whole graph. Collective."""
    targets, size = to_host(part.targets), part.num_proxies
    local = np.bincount(targets, minlength=size) if incoming else np.diff(to_host(part.offsets))

    def count(asked: np.ndarray) -> np.ndarray:
        lids = part.lid_map.lids(asked)
        return np.where(lids < 0, 0, np.append(local, 0)[lids])

    return _ask_all(comm, gids, count)


def _ask_all(comm: MPI.Intracomm, question: np.ndarray, answer: Any) -> np.ndarray:
    """The sum of what all ranks answer. Collective."""
    asked = all_to_all(comm, [question] * comm.size)
    answers = all_to_all(comm, [answer(some).astype(np.int64) for some in asked])
    return np.sum(answers, axis=0)
