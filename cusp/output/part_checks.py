"""What must hold of the part of a rank, whoever wrote its file: the invariants of a partition that was just made.

Whether mirrors have their master where they say is found by :func:`gluon.plan.make_plan`, which asks these ranks.
"""

import numpy as np

from cusp.errors import Intracomm
from cusp.input.checksum import combine
from cusp.kernels.bits import GOLDEN, mix
from cusp.output.manifest import Manifest, SavedError
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_or


@njit(cache=True, nogil=True)
def mark_targets(targets, words):  # type: ignore[no-untyped-def]
    """Set the bit of each target; several threads may do so."""
    for edge in range(targets.size):
        target = targets[edge]
        word, bit = np.int64(target >> np.uint32(6)), np.uint64(1) << np.uint64(target & np.uint32(63))
        if words[word] & bit == 0:
            atomic_or(words, word, bit)


@njit(cache=True, nogil=True)
def first_wrong_gid(gids, num_nodes):  # type: ignore[no-untyped-def]
    """Local id of the first proxy that is no node, or one that came before; -1."""
    known = np.zeros((num_nodes + 63) // 64, np.uint64)
    for lid in range(gids.size):
        gid = gids[lid]
        bit = np.uint64(1) << np.uint64(gid & 63)
        if gid < 0 or gid >= num_nodes or known[gid >> 6] & bit != 0:
            return lid
        known[gid >> 6] |= bit
    return -1


@njit(cache=True, nogil=True)
def sum_of_nodes(first, last):  # type: ignore[no-untyped-def]
    """The sum (mod 2**64) of the codes of the nodes ``first`` to ``last - 1``."""
    total = np.uint64(0)
    for node in range(first, last):
        total += mix(np.uint64(node) + GOLDEN)
    return total


@njit(cache=True, nogil=True)
def sums_of_proxies(gids, offsets, degrees):  # type: ignore[no-untyped-def]
    """Sums (mod 2**64) of codes: of the masters, of these times their degrees, of all proxies times their edges here.

    Over all ranks, the first is that of all nodes, and the second equals the third.
    """
    masters = whole = here = np.uint64(0)
    for lid in range(gids.size):
        code = mix(np.uint64(gids[lid]) + GOLDEN)
        here += code * np.uint64(offsets[lid + 1] - offsets[lid])
        if lid < degrees.size:
            masters += code
            whole += code * np.uint64(degrees[lid])
    return masters, whole, here


def check_proxies(
    rank: int, manifest: Manifest, num_masters: int, mirror_starts: np.ndarray, gids: np.ndarray, degrees: np.ndarray
) -> str:
    """What is wrong with the nodes of a part, or an empty text."""
    starts = mirror_starts
    if starts[0] != num_masters or starts[-1] != gids.size or (starts[1:] < starts[:-1]).any():
        return f"/mirror_starts must rise from {num_masters:,} masters to {gids.size:,} proxies"
    if starts[rank] != starts[rank + 1]:
        return f"/mirror_starts gives {starts[rank + 1] - starts[rank]:,} mirrors to the rank itself"
    wrong = first_wrong_gid(gids, manifest.num_nodes)
    if wrong >= 0:
        return f"/gids[{wrong:,}] is {gids[wrong]:,}: no node of the graph, or there twice"
    wrong_degrees = (degrees < 0) | (degrees > manifest.num_edges)
    wrong_degrees[1:] |= (degrees[:-1] == 0) & (degrees[1:] > 0)
    if wrong_degrees.any():
        wrong = int(wrong_degrees.argmax())
        return (
            f"/degrees[{wrong:,}] is {degrees[wrong]:,}: not between 0 and {manifest.num_edges:,} edges, or after a "
            "master without out-edges, which must come last"
        )
    return ""


def check_whole(
    folder: str, manifest: Manifest, gids: np.ndarray, offsets: np.ndarray, degrees: np.ndarray, comm: Intracomm
) -> None:
    """Raise SavedError unless each node has one master, and the parts have all edges. Collective.

    Sums of random-looking codes stand for the sets.
    """
    first, last = (manifest.num_nodes * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    held = comm.allreduce(degrees.size)
    if held != manifest.num_nodes:
        raise SavedError(
            f"{folder}: damaged: the parts have {held:,} masters for {manifest.num_nodes:,} nodes; "
            "save the partition again"
        )
    own = (int(offsets[-1]), int(sum_of_nodes(first, last)), *map(int, sums_of_proxies(gids, offsets, degrees)))
    edges, nodes, masters, whole, here = (combine(list(sums)) for sums in zip(*comm.allgather(own)))
    wrong = ""
    if edges != manifest.num_edges:
        wrong = f"the parts have {edges:,} edges for {manifest.num_edges:,} of the graph"
    elif masters != nodes:
        wrong = "some node has two masters, and another none"
    elif whole != here:
        wrong = "the degrees of the masters are not those of the edges"
    if wrong:
        raise SavedError(f"{folder}: damaged: {wrong}; save the partition again")
