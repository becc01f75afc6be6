"""Core numbers from estimates on CPUs: see interfaces.py."""

from typing import NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import own_neighbours
from cusp.kernels.bits import first_bit
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import get_bit, no_bits, set_bit


class CoresPlan(NamedTuple):
    """What runs share.

    Attributes
    ----------
    offsets, neighbours : CSR of proxies
        The masters of this rank that are neighbours of each.
    queue : (masters + 1,) int32
    waits : bits of masters
    counts : (highest degree + 1,) int32
    """

    offsets: np.ndarray
    neighbours: np.ndarray
    queue: np.ndarray
    waits: np.ndarray
    counts: np.ndarray


def plan_cores(part: Partition) -> CoresPlan:
    highest = int(part.degrees.max(initial=0))
    queue, counts = np.empty(part.num_masters + 1, np.int32), np.empty(highest + 1, np.int32)
    return CoresPlan(*own_neighbours(part), queue, no_bits(part.num_masters), counts)


def lower_cores(part: Partition, plan: CoresPlan, lowered: np.ndarray, cores: np.ndarray, updated: np.ndarray) -> None:
    _lower_cores(lowered, part.offsets, part.targets, *plan, cores, updated)


@njit(cache=True, nogil=True)
def _lower_cores(lowered, offsets, targets, rows, neighbours, queue, waits, counts, cores, updated):  # type: ignore[no-untyped-def]
    head, tail = 0, 0
    for word in range(lowered.size):
        bits = lowered[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            if lid < rows.size - 1:
                tail = _ask_neighbours(lid, rows, neighbours, queue, waits, cores, tail)
    while head != tail:
        lid = queue[head]
        head = head + 1 if head + 1 < queue.size else 0
        waits[lid >> 6] &= ~(np.uint64(1) << np.uint64(lid & 63))
        core = _core_of(lid, offsets, targets, counts, cores)
        if core < cores[lid]:
            cores[lid] = core
            set_bit(updated, lid)
            tail = _ask_neighbours(lid, rows, neighbours, queue, waits, cores, tail)


@njit(cache=True, nogil=True)
def _ask_neighbours(lid, rows, neighbours, queue, waits, cores, tail):  # type: ignore[no-untyped-def]
    """The masters above a proxy among its neighbours wait to be looked at; returns the tail of the queue."""
    for edge in range(rows[lid], rows[lid + 1]):
        master = neighbours[edge]
        if cores[master] > cores[lid] and not get_bit(waits, master):
            set_bit(waits, master)
            queue[tail] = master
            tail = tail + 1 if tail + 1 < queue.size else 0
    return tail


@njit(cache=True, nogil=True)
def _core_of(lid, offsets, targets, counts, cores):  # type: ignore[no-untyped-def]
    """The largest number, up to that of the node, that so many of its neighbours have, or a larger one."""
    most = cores[lid]
    counts[: most + 1] = 0
    for edge in range(offsets[lid], offsets[lid + 1]):
        counts[min(cores[targets[edge]], most)] += 1
    core, have = most, counts[most]
    while have < core:
        core -= 1
        have += counts[core]
    return core
