"""What a partition would look like, for any number of parts, without any edge having travelled."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from cusp.assign_edges import assign_edges
from cusp.assign_masters import Masters, assign_masters
from cusp.errors import together
from cusp.estimates.quality import Quality
from cusp.input.edge_slice import EdgeSlice
from cusp.input.split import split_weights
from cusp.kernels import build_cpu as build
from cusp.kernels.bits import popcount
from cusp.neighbors import Neighbors, meet_neighbors
from cusp.policies.compile_rules import Rules
from cusp.policies.node_map import read_node_map
from cusp.policies.policy import Policy
from cusp.policies.prop import Prop
from cusp.runtime.exchange import all_to_all
from cusp.runtime.stopwatch import Stopwatch

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@dataclass(frozen=True)
class Estimate:
    """Quality of a partition that was not built, and its edges between nodes with different masters."""

    quality: Quality
    cut_edges: int


def estimate(
    edges: EdgeSlice, policy: Policy, num_parts: int, split: str, comm: "Intracomm", watch: Stopwatch | None = None
) -> Estimate:
    """Evaluate both rules of a policy and count what each part would hold. Collective.

    Parameters
    ----------
    edges : EdgeSlice
        What this rank reads; ranks and parts may differ in number.
    policy : Policy
    num_parts : int
    split : str
        The reading split, applied to the parts where their number differs.
    watch : Stopwatch, optional
        Gets the seconds of assign_masters and assign_edges, as in a partition, and of counting.
    """
    watch = watch or Stopwatch()
    with together(comm):
        rules = Rules(policy)
        bounds = edges.bounds
    if num_parts != comm.size:
        bounds = part_bounds(edges, num_parts, split, comm)
    with together(comm):
        prop = Prop(edges, num_parts, comm.rank, policy.grid_for(num_parts), policy.threshold, bounds)
        if policy.node_map:
            prop.node_map = read_node_map(policy.node_map, edges)
    with watch("assign_masters" if rules.uses_neighbors else "count"):  # who only counts needs the neighbours too
        neighbors = meet_neighbors(edges, rules, prop, comm)
    with watch("assign_masters"):
        masters = assign_masters(edges, rules, prop, neighbors, comm)
    with watch("assign_edges"):
        owners = assign_edges(edges, masters, rules, prop, comm)
        if owners is None:
            owners = np.full(edges.targets.size, comm.rank, np.uint16)
    with watch("count"):
        return _count(edges, prop, neighbors, masters, owners, rules, comm)


def part_bounds(edges: EdgeSlice, num_parts: int, split: str, comm: "Intracomm") -> np.ndarray:
    """(num_parts + 1,) int64: blocks of consecutive nodes of equal weight. Collective."""
    node_weight, edge_weight = split_weights(split, edges.num_nodes, edges.num_edges)
    first_edge = int(comm.exscan(edges.targets.size) or 0)
    nodes = np.arange(edges.first_node, edges.first_node + edges.indptr.size)
    weight = nodes * node_weight + (edges.indptr + first_edge) * edge_weight
    total = edges.num_nodes * node_weight + edges.num_edges * edge_weight
    wanted = -(-total * np.arange(1, num_parts) // num_parts)
    place = np.searchsorted(weight, wanted)
    found = np.where(place < weight.size, nodes[np.minimum(place, weight.size - 1)], edges.num_nodes)
    return np.array([0, *np.min(comm.allgather(found), axis=0), edges.num_nodes], np.int64)


def _count(
    edges: EdgeSlice,
    prop: Prop,
    neighbors: Neighbors,
    masters: Masters,
    owners: np.ndarray,
    rules: Rules,
    comm: "Intracomm",
) -> Estimate:
    """Collect at each node's reader which parts hold in- and out-edges of it, then count by part."""
    parts, words = prop.num_parts, (prop.num_parts + 63) // 64
    rows = edges.indptr.size - 1
    out_bits = np.zeros((rows, words), np.uint64)
    in_bits = np.zeros((rows + neighbors.size, words), np.uint64)
    neighbor_masters = _neighbor_masters(neighbors, masters, prop, rules)
    place_masters = np.concatenate([masters.of_slice, neighbor_masters])
    cut = _mark_parts(prop, owners, place_masters, out_bits, in_bits)
    starts = rows + neighbors.starts
    told = all_to_all(comm, [in_bits[starts[r] : starts[r + 1]].ravel() for r in range(comm.size)])
    for asked, bits in zip(neighbors.asked, told):
        if asked.size:
            in_bits[asked] |= bits.reshape(-1, words)
    counts = np.zeros((5, parts), np.int64)
    shared = np.zeros((parts, parts), np.int64)
    count_parts(out_bits, in_bits, masters.of_slice, counts, shared)
    counts[4] = build.count_owners(owners, parts)
    totals, links = comm.allreduce(counts), comm.allreduce(shared)
    partners = ((links + links.T) > 0).sum(axis=1)
    quality = Quality(totals[0], totals[1], totals[4], partners, totals[2], totals[3], edges.num_nodes)
    return Estimate(quality, comm.allreduce(int(cut)))


def _neighbor_masters(neighbors: Neighbors, masters: Masters, prop: Prop, rules: Rules) -> np.ndarray:
    if masters.view is not None:
        return masters.view.table
    gids = np.empty(neighbors.size, np.int64)
    build.list_marked(neighbors.index, gids)
    found = np.empty(gids.size, masters.of_slice.dtype)
    rules.run("masters_of", prop, gids, found)
    return found


@njit(cache=True, nogil=True)
def _mark_parts(prop, owners, masters, out_bits, in_bits):  # type: ignore[no-untyped-def]
    """Note each edge's owner at both of its ends; returns the number of cut edges."""
    cut = 0
    for row in range(out_bits.shape[0]):
        for edge in range(prop.indptr[row], prop.indptr[row + 1]):
            place = prop.place(np.int64(prop.targets[edge]))
            bit = np.uint64(1) << np.uint64(owners[edge] & 63)
            out_bits[row, owners[edge] >> 6] |= bit
            in_bits[place, owners[edge] >> 6] |= bit
            cut += masters[place] != masters[row]
    return cut


@njit(cache=True, nogil=True)
def count_parts(out_bits, in_bits, masters, counts, shared):  # type: ignore[no-untyped-def]
    """Masters, proxies, mirrors with in-edges and with out-edges by part; mirrors by part and master's part."""
    for row in range(masters.size):
        master = masters[row]
        counts[0, master] += 1
        counts[1, master] += 1
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
