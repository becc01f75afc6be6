"""Bags of nodes by priority, for threads that drain a rank together.

They are like OBIM, the work list of Nguyen, Lenharth, Pingali (SOSP 2013). Every thread has a bag for each of SLOTS
consecutive buckets. A bag is a list of full chunks, first in, first out, and one that is being filled, which nobody
else sees. A thread works on its lowest bag; before it goes on to a higher one it takes a full chunk of a lower bag from
another thread, if there is one. Nobody waits until a bucket is empty everywhere.

An entry is a hint: what counts is the bit of a node in ``pending``. So a node may be in several bags, as its priority
has fallen meanwhile, and if chunks run out, bags are emptied and made again from the bits.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cusp.kernels.atomics import atomic_add, atomic_and, atomic_or, give_way
from cusp.kernels.bits import first_bit

SLOTS = 512  # buckets at a time; what is beyond has no entry until it is their turn
CHUNK = 64  # nodes
LINE = 8  # words between counters of which different threads write one
TAKEN, ACTIVE, EDGES = 0, LINE, 2 * LINE  # places of ``counters``
NONE = -1
EMPTY = np.int64(NONE)  # the index of no chunk


class Bags(NamedTuple):
    """The bags of all threads.

    Attributes
    ----------
    nodes : (chunks, CHUNK) int32
    links : (chunks,) int32
        The next chunk of the same bag, or of those that a thread may use again.
    firsts, lasts : (threads, SLOTS) int32
        The full chunks of a bag.
    opens, sizes : (threads, SLOTS) int32
        The chunk that is being filled, and how many nodes are in it.
    full, opened : (threads, SLOTS / 64) uint64
        Bits of the bags that have full chunks; that have one that is being filled.
    locks, free : (threads * LINE,) int64
        1 while a thread changes its full chunks or another takes one; the first chunk that it may use again.
    counters : (3 * LINE,) int64
        Chunks that have been used, threads that have work, edges that have been relaxed.
    """

    nodes: np.ndarray
    links: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    opens: np.ndarray
    sizes: np.ndarray
    full: np.ndarray
    opened: np.ndarray
    locks: np.ndarray
    free: np.ndarray
    counters: np.ndarray


def make_bags(threads: int, num_nodes: int) -> Bags:
    """Empty bags, with chunks for at least twice as many entries as there are nodes."""
    chunks = 2 * (num_nodes // CHUNK) + 2 * SLOTS * threads
    firsts, lasts, opens, sizes = np.full((4, threads, SLOTS), NONE, np.int32)
    full, opened = np.zeros((2, threads, SLOTS // 64), np.uint64)
    locks, free, counters = (
        np.zeros(threads * LINE, np.int64),
        np.full(threads * LINE, NONE),
        np.zeros(3 * LINE, np.int64),
    )
    nodes, links = np.empty((chunks, CHUNK), np.int32), np.empty(chunks, np.int32)
    return Bags(nodes, links, firsts, lasts, opens, sizes, full, opened, locks, free, counters)


def is_empty(bags: Bags) -> bool:
    """Whether no bag has an entry."""
    return not (bags.full.any() or bags.opened.any())


def lowest_bag(bags: Bags) -> int:
    """The lowest bag of any thread that is not empty, or SLOTS."""
    words = np.bitwise_or.reduce(bags.full | bags.opened)
    return int(_lowest(words))


def forget(bags: Bags) -> None:
    """Empty all bags."""
    for array in (bags.full, bags.opened):
        array.fill(0)
    for array in (bags.opens, bags.free):
        array.fill(NONE)
    bags.counters[TAKEN] = 0


def steal_order(thread: int, sockets: np.ndarray) -> np.ndarray:
    """The other threads in the order in which one looks at their bags: those on its socket first.

    Each begins behind itself, so that not all come to the same one.

    Parameters
    ----------
    thread : int
    sockets : (threads,) integers
        Where each thread runs.
    """
    others = (thread + np.arange(1, sockets.size)) % sockets.size
    return others[np.argsort(sockets[others] != sockets[thread], kind="stable")]


@njit(cache=True, nogil=True)
def put(bags, me, slot, node):  # type: ignore[no-untyped-def]
    """Put a node into a bag of this thread, unless there is no chunk for it."""
    chunk = bags.opens[me, slot]
    if chunk < 0:
        chunk = _unused(bags, me)
        if chunk < 0:
            return
        bags.opens[me, slot], bags.sizes[me, slot] = chunk, 0
        bags.opened[me, slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
    size = bags.sizes[me, slot]
    bags.nodes[chunk, size] = node
    bags.sizes[me, slot] = size + 1
    if size + 1 == CHUNK:
        bags.opens[me, slot] = EMPTY
        bags.opened[me, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
        _append(bags, me, slot, chunk)


@njit(cache=True, nogil=True)
def take(bags, me, others, held, limit):  # type: ignore[no-untyped-def]
    """A chunk to work on, of a bag up to ``limit``: its index or -1, its size, the bag. ``held``: the bag before."""
    slot = min(_lowest(bags.full[me]), _lowest(bags.opened[me]))
    if slot > held:
        for other in others:
            lower = _lowest(bags.full[other])
            if lower < slot and lower <= limit:
                chunk = _first(bags, other, lower, False)
                if chunk >= 0:
                    return chunk, CHUNK, lower
    if slot > limit or slot == SLOTS:
        return EMPTY, 0, slot
    chunk, size = _first(bags, me, slot, True), CHUNK
    if chunk < 0:
        chunk, size = np.int64(bags.opens[me, slot]), np.int64(bags.sizes[me, slot])
        bags.opens[me, slot] = EMPTY
        bags.opened[me, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
    return chunk, size, slot


@njit(cache=True, nogil=True)
def use_again(bags, me, chunk):  # type: ignore[no-untyped-def]
    """Keep a chunk that has been worked on for new entries of this thread."""
    bags.links[chunk] = bags.free[me * LINE]
    bags.free[me * LINE] = chunk


@njit(cache=True, nogil=True)
def _unused(bags, me):  # type: ignore[no-untyped-def]
    """A chunk for new entries, or -1."""
    chunk = bags.free[me * LINE]
    if chunk >= 0:
        bags.free[me * LINE] = bags.links[chunk]
        return chunk
    if bags.counters[TAKEN] >= bags.links.size:
        return EMPTY
    chunk = atomic_add(bags.counters, TAKEN, 1)
    return chunk if chunk < bags.links.size else EMPTY


@njit(cache=True, nogil=True)
def _lowest(words):  # type: ignore[no-untyped-def]
    """The lowest bag whose bit is set, or SLOTS."""
    for word in range(words.size):
        if words[word]:
            return word * 64 + first_bit(words[word])
    return SLOTS


@njit(cache=True, nogil=True)
def _append(bags, me, slot, chunk):  # type: ignore[no-untyped-def]
    """Add a full chunk to a bag of this thread."""
    while atomic_or(bags.locks, me * LINE, 1):
        give_way()
    word, bit = slot >> 6, np.uint64(1) << np.uint64(slot & 63)
    if bags.full[me, word] & bit:
        bags.links[bags.lasts[me, slot]] = chunk
    else:
        bags.firsts[me, slot] = chunk
        bags.full[me, word] |= bit
    bags.lasts[me, slot] = chunk
    atomic_and(bags.locks, me * LINE, 0)


@njit(cache=True, nogil=True)
def _first(bags, owner, slot, patient):  # type: ignore[no-untyped-def]
    """Take the first full chunk of a bag, or -1: it has none, or someone else is at it and we are not patient."""
    word, bit = slot >> 6, np.uint64(1) << np.uint64(slot & 63)
    if not bags.full[owner, word] & bit:
        return EMPTY
    while atomic_or(bags.locks, owner * LINE, 1):
        if not patient:
            return EMPTY
        give_way()
    chunk = EMPTY
    if bags.full[owner, word] & bit:
        chunk = np.int64(bags.firsts[owner, slot])
        if chunk == bags.lasts[owner, slot]:
            bags.full[owner, word] &= ~bit
        else:
            bags.firsts[owner, slot] = bags.links[chunk]
    atomic_and(bags.locks, owner * LINE, 0)
    return chunk
