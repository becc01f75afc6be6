"""The quality of a partition, for any number of parts, without moving any edge."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cusp.assign_edges import assign_edges
from cusp.assign_masters import Masters, assign_masters
from cusp.errors import Intracomm, together
from cusp.estimates.quality import Quality
from cusp.input.edge_slice import EdgeSlice
from cusp.input.split import bounds_of_parts
from cusp.kernels import build_cpu as build
from cusp.kernels.arrays import total
from cusp.kernels.bits import GOLDEN, popcount
from cusp.neighbors import Neighbors
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.policies.policy import Policy
from cusp.prepare_rules import PreparedRules, gather_facts, prepare_rules
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import all_to_all
from cusp.runtime.teams.atomics import atomic_or
from cusp.runtime.threads import in_parallel, row_ranges


@dataclass(frozen=True)
class Estimate:
    """Quality of a partition that was not built, and how many edges connect nodes with different masters."""

    quality: Quality
    cut_edges: int


def estimate(
    edges: EdgeSlice, policy: Policy | CompiledPolicy, num_parts: int, split: str, comm: Intracomm, one_in: int = 1
) -> Estimate:
    """Ask both rules of a policy and count what each part would hold. Collective.

    Parameters
    ----------
    edges : EdgeSlice
        What this rank reads; ranks and parts may differ in number.
    policy : Policy or CompiledPolicy
        If compiled, for the CPU.
    num_parts : int
    split : str
        The reading split, applied to the parts if there are not as many as ranks, or if they have shares.
    one_in : int
        Count the mirrors of one in so many nodes, drawn by a hash of their ids, and the edges out of them that are
        cut, for all; the others take no memory for the parts that have edges. Masters and edges of parts are counted.
    """
    with together(comm):
        compiled = compile_policy(policy)
        shares = compiled.policy.shares_for(num_parts)
    own_blocks = num_parts == comm.size and not shares
    bounds = None if own_blocks else bounds_of_parts(edges, num_parts, split, comm, shares)
    facts = gather_facts(edges, compiled, comm, bounds, with_neighbors=True)  # counting needs them, too
    rules = prepare_rules(facts, comm)
    masters = assign_masters(rules, comm)
    owners = assign_edges(rules, masters, comm)
    if owners is None:
        owners = np.full(edges.targets.size, comm.rank, np.uint16)
    assert rules.neighbors is not None
    return _count(rules, rules.neighbors, masters, owners, one_in, comm)


def _count(
    rules: PreparedRules, neighbors: Neighbors, masters: Masters, owners: np.ndarray, one_in: int, comm: Intracomm
) -> Estimate:
    """Collect at each node's reader which parts hold in-edges and out-edges of it; count by part. Collective."""
    edges, prop = rules.edges, rules.prop
    parts, words = prop.num_parts, (prop.num_parts + 63) // 64
    rows = edges.indptr.size - 1
    numbers = _numbers(prop.first_node, rows, neighbors, one_in)
    own = np.flatnonzero(np.diff(numbers[: rows + 1]))
    out_bits = np.zeros((own.size, words), np.uint64)
    in_bits = np.zeros((numbers[-1], words), np.uint64)
    place_masters = np.concatenate([masters.of_slice, _neighbor_masters(rules, neighbors, masters)])
    given = prop, owners, place_masters, one_in, numbers, out_bits, in_bits.reshape(-1)
    cut = one_in * sum(in_parallel(lambda *some: int(_mark_parts(*some, *given)), row_ranges(edges.indptr)))
    starts = numbers[rows + neighbors.starts]
    bits_for_readers = [in_bits[starts[r] : starts[r + 1]].ravel() for r in range(comm.size)]
    for rows_of_others, bits in zip(neighbors.requested, all_to_all(comm, bits_for_readers)):
        if bits.size:
            counted = rows_of_others[numbers[rows_of_others] < numbers[rows_of_others + 1]]
            in_bits[numbers[counted]] |= bits.reshape(-1, words)
    counts = np.zeros((5, parts), np.int64)
    shared = np.zeros((parts, parts), np.int64)
    count_parts(out_bits, in_bits, masters.of_slice[own], counts, shared)
    counts[0] = build.count_owners(masters.of_slice, parts)
    counts[4] = build.count_owners(owners, parts)
    starts_of_parts = edges.indptr[np.clip(prop.bounds - prop.first_node, 0, rows)]
    moved = sum(total(owners[begin:end] != part) for part, (begin, end) in enumerate(pairwise(starts_of_parts)))
    masters_of, counted, in_, out, held = comm.allreduce(counts)
    proxies = masters_of + one_in * counted
    mirrors = one_in * comm.allreduce(shared)
    roles = one_in * in_, one_in * out
    quality = Quality(masters_of, proxies, held, mirrors, *roles, edges.num_nodes, comm.allreduce(moved))
    return Estimate(quality, comm.allreduce(cut))


def _numbers(first_node: int, rows: int, neighbors: Neighbors, one_in: int) -> np.ndarray:
    """(places + 1,) int64: of a place, how many nodes before it count, and so its number if it counts."""
    if one_in == 1:
        return np.arange(rows + neighbors.size + 1)
    numbers = np.zeros(rows + neighbors.size + 1, np.int64)
    _number(np.arange(first_node, first_node + rows), one_in, numbers[: rows + 1])
    _number(_gids(neighbors), one_in, numbers[rows:])
    return numbers


def _gids(neighbors: Neighbors) -> np.ndarray:
    """(neighbours,) int64: the global id of each."""
    gids = np.empty(neighbors.size, np.int64)
    build.list_marked(neighbors.index, gids)
    return gids


def _neighbor_masters(rules: PreparedRules, neighbors: Neighbors, masters: Masters) -> np.ndarray:
    """(neighbours,): the master of each."""
    if masters.view is not None:
        return masters.view.table
    gids = _gids(neighbors)
    of_neighbors = np.empty(gids.size, masters.of_slice.dtype)
    rules.run("masters_of", gids, of_neighbors)
    return of_neighbors


@njit(cache=True, nogil=True)
def _mark_parts(begin, end, prop, owners, masters, one_in, numbers, out_bits, in_bits):  # type: ignore[no-untyped-def]
    """Record each edge's owner at those of its ends that count; returns how many edges of these that count are cut.

    Several threads set bits of a target, which has most of them already when an edge leads there.
    """
    cut, words = 0, out_bits.shape[1]
    for row in range(begin, end):
        source = _counts(prop.first_node + row, one_in)
        own = numbers[row]
        for edge in range(prop.indptr[row], prop.indptr[row + 1]):
            node = np.int64(prop.targets[edge])
            target = _counts(node, one_in)
            if not (source or target):
                continue
            place = prop.place(node)
            bit = np.uint64(1) << np.uint64(owners[edge] & 63)
            if source:
                out_bits[own, owners[edge] >> 6] |= bit
                cut += masters[place] != masters[row]
            if target:
                word = (place if one_in == 1 else numbers[place]) * words + (owners[edge] >> 6)
                if not in_bits[word] & bit:
                    atomic_or(in_bits, word, bit)
    return cut


@njit(cache=True, nogil=True)
def _number(gids, one_in, numbers):  # type: ignore[no-untyped-def]
    """Count on from the first of ``numbers``, at each of the nodes that count."""
    for place in range(gids.size):
        numbers[place + 1] = numbers[place] + _counts(gids[place], one_in)


@njit(cache=True, nogil=True)
def _counts(node, one_in):  # type: ignore[no-untyped-def]
    """Whether a node is one of the sample: by Fibonacci hashing, so ids that follow each other, or a step, may not."""
    return one_in == 1 or (np.uint64(node) * GOLDEN >> np.uint64(32)) % np.uint64(one_in) == 0


@njit(cache=True, nogil=True)
def count_parts(out_bits, in_bits, masters, counts, shared):  # type: ignore[no-untyped-def]
    """Mirrors, those with in-edges and those with out-edges by part; mirrors by part and master's part."""
    for row in range(masters.size):
        master = masters[row]
        for word in range(out_bits.shape[1]):
            bits = out_bits[row, word] | in_bits[row, word]
            while bits:
                lowest = bits & (~bits + np.uint64(1))
                part = word * 64 + np.int64(popcount(lowest - np.uint64(1)))
                bits ^= lowest
                if part != master:
                    counts[1, part] += 1
                    counts[2, part] += (in_bits[row, word] & lowest) != 0
                    counts[3, part] += (out_bits[row, word] & lowest) != 0
                    shared[part, master] += 1
