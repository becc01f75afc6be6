"""The pending nodes of a rank on a CPU, for compiled loops: a ring, a pile, and the bits of who is in them.

The near and the far pile of Davidson, Baxter, Garland, Owens (IPDPS 2014). A node may be in both: on the pile since its
priority was higher. The pile forgets it when it is next looked through.
"""

from typing import NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import kept_with
from cusp.kernels.bits import first_bit
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import get_bit, list_bits, no_bits, set_bit

HEAD, TAIL, PILED, OPENED, BUCKETS, EDGES, RING, PILE, SPARE, PLACES = range(10)
LIMIT, BEFORE, FIRST, WIDTH, LIMITS = range(5)


class Pending(NamedTuple):
    """Pending nodes: those of the bucket that is open are in the ring, those of later ones on the pile.

    Attributes
    ----------
    lists : (3, proxies + 1) uint32
        The ring, the pile, and a spare list; valid local ids everywhere, also where they are empty.
    near, later : bits of proxies
        Who is in the ring; who is on the pile.
    places : (PLACES,) int64
        Of the ring, where it begins and ends; how many are on the pile; whether a bucket was opened in this run; how
        many buckets had nodes, and edges were relaxed, in it; which list is the ring, the pile and the spare one.
    limits : (LIMITS,) of the type of priorities
        The highest priority in the bucket that is open, and in the one before. Where threads open some at once: in the
        last of them, and in the first; and how wide each is.
    """

    lists: np.ndarray
    near: np.ndarray
    later: np.ndarray
    places: np.ndarray
    limits: np.ndarray


def make_pending(part: Partition, dtype: np.dtype) -> Pending:
    """Nothing is pending. The lists serve all runs over a partition, one after the other."""
    near, later = no_bits(part.num_proxies), no_bits(part.num_proxies)
    places, limits = np.zeros(PLACES, np.int64), np.zeros(LIMITS, dtype)
    lists = kept_with(part, "ring and pile", lambda: np.zeros((3, part.num_proxies + 1), np.uint32))
    return Pending(lists, near, later, places, limits)


@njit(cache=True, nogil=True)
def mark_pending(bits, rows, values, relaxed_at, pending):  # type: ignore[no-untyped-def]
    """Nodes become pending whose value is not the one at which they were relaxed; all do if those are not given."""
    for word in range(bits.size):
        rest = bits[word]
        while rest:
            node = word * 64 + first_bit(rest)
            rest &= rest - np.uint64(1)
            if node < rows and (relaxed_at.size == 0 or values[node] != relaxed_at[node]):
                set_bit(pending, node)


@njit(cache=True, nogil=True)
def begin(pending):  # type: ignore[no-untyped-def]
    """A run begins: all that is pending is on the pile, ascending, and no bucket is open."""
    near, later, places = pending.near, pending.later, pending.places
    for word in range(near.size):
        later[word] |= near[word]
        near[word] = 0
    places[:] = 0
    places[RING], places[PILE], places[SPARE] = 0, 1, 2
    places[PILED] = list_bits(later, pending.lists[1])


@njit(cache=True, nogil=True)
def edges_of_ring(pending, offsets, most):  # type: ignore[no-untyped-def]
    """How many edges the nodes in the ring have; or so many, if not fewer."""
    ring, edges = pending.lists[pending.places[RING]], 0
    head, tail = pending.places[HEAD], pending.places[TAIL]
    while head != tail and edges < most:
        row = ring[head]
        edges += np.int64(offsets[row + np.uint64(1)] - offsets[row])
        head = head + 1 if head + 1 < ring.size else 0
    return edges


@njit(cache=True, nogil=True)
def admit(pending, node, key):  # type: ignore[no-untyped-def]
    """A node whose value has changed waits for the bucket that is open, or for a later one."""
    places, ring = pending.places, pending.lists[pending.places[RING]]
    if key <= pending.limits[LIMIT] and places[OPENED]:
        if not get_bit(pending.near, node):
            set_bit(pending.near, node)
            ring[places[TAIL]] = node
            places[TAIL] = places[TAIL] + 1 if places[TAIL] + 1 < ring.size else 0
    elif not get_bit(pending.later, node):
        set_bit(pending.later, node)
        pending.lists[places[PILE]][places[PILED]] = node
        places[PILED] += 1
