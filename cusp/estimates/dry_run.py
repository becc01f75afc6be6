"""The memory and traffic of a partition before it is made: what its rules say about every edge, and bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cusp.errors import Intracomm, together
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import LABEL_BYTES, NODE_BYTES, TARGET_BYTES, Quality
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import GraphHeader
from cusp.input.split import bounds_of_parts
from cusp.policies.compile_rules import compile_policy
from cusp.policies.policy import Policy
from cusp.prepare_rules import gather_facts, memory_needed, with_threshold

PROGRAM_MB, MOVING_MB = 185, 34  # interpreter, libraries, compiled code; what it takes to send edges at all


class RankZero(NamedTuple):
    """What rank 0 needs for a policy, besides its part: bytes for the edges that it collects with a threshold."""

    threshold: int
    bytes: int
    edges: int


@dataclass(frozen=True)
class DryRun:
    """The quality of a partition that was not built; its ``figures`` and their ``bounds`` by name, as in rows.

    Memory counts edge weights; ``peak_mb`` is that of a rank while the graph is built. ``note`` says what may differ in
    a real run. ``rank_0`` is None for policies that need nothing there.
    """

    parts: int
    quality: Quality
    figures: dict[str, float]
    bounds: dict[str, float]
    note: str
    header: GraphHeader
    rank_0: RankZero | None = None


def dry_run(
    header: GraphHeader, policy: Policy, parts: int, split: str, comm: Intracomm, limit: int | None = None
) -> DryRun:
    """What a policy makes of a graph in ``parts`` parts: its rules are asked about every edge. Collective.

    ``limit`` is that of ``--memory-limit`` on CPUs, for policies whose threshold follows from it.
    """
    with together(comm):
        compiled = compile_policy(policy)
        shares = policy.shares_for(parts)
    edges = read_slice(header.path, comm, split, weights=False, in_degrees=compiled.uses.in_degrees)
    rank_0 = None
    if policy.memory:
        bounds = bounds_of_parts(edges, parts, split, comm, shares)
        rules = with_threshold(gather_facts(edges, compiled, comm, bounds), limit, comm)
        needed, collected = memory_needed(rules, np.array([rules.prop.threshold]), comm)
        rank_0 = RankZero(rules.prop.threshold, int(needed[0]), int(collected[0]))
        compiled = compile_policy(replace(policy, threshold=rank_0.threshold))
        del rules  # estimate makes its own
    quality = estimate(edges, compiled, parts, split, comm).quality
    note = ""
    if parts != comm.size and compiled.uses.history:
        note = f"; rules with state ran on {comm.size} ranks; {parts} ranks see less of each other's"
    figures = quality.summary() | {
        "memory_mb": quality.memory_mb(header.weight_bytes), "peak_mb": peak_mb(header, quality),
    }  # fmt: skip
    return DryRun(parts, quality, figures, bounds_of(header, parts, shares), note, header, rank_0)


def bounds_of(header: GraphHeader, parts: int, shares: Sequence[int] = ()) -> dict[str, float]:
    """Bounds for any policy, by name; those on memory for policies that balance the edges, or keep to shares."""
    nodes, edges = header.num_nodes, header.num_edges
    most, of = (max(shares), sum(shares)) if shares else (1, parts)
    most_edges, masters = -(-edges * most // of), -(-nodes * most // of)
    proxies = min(nodes, masters + 2 * most_edges)
    memory = (most_edges * (TARGET_BYTES + header.weight_bytes) + proxies * NODE_BYTES + nodes // 4) / 1e6
    peak = _peak(header, of / most, most_edges, proxies, True)
    ends = min(2 * edges, 2 * nodes * (parts - 1))
    return {
        "replication": min(float(parts), 1 + 2 * edges / nodes), "edge_balance": parts, "memory_mb": memory,
        "peak_mb": 1.5 * peak,  # rules with state take more than others
        "mb_a_round": ends * LABEL_BYTES / 1e6,
    }  # fmt: skip


def peak_mb(header: GraphHeader, quality: Quality) -> float:
    """Most memory of a rank while its part of the graph is built, in MB: what it reads, what it makes, the program."""
    of_parts = _peak(header, quality.masters.size, quality.edges, quality.proxies, quality.moved_edges > 0)
    return float(of_parts.max())


def least_peak_mb(header: GraphHeader) -> float:
    """What a rank takes while a graph is built that is divided among ever so many, in MB."""
    return float(_peak(header, math.inf, 0, 0, False))


def _peak(header: GraphHeader, parts: float, edges: Any, proxies: Any, moves: bool) -> Any:
    """In MB, of a rank that reads one of so many parts and holds so many edges and proxies.

    As fitted to 47 partitions of four graphs, with and without weights, in 2 to 8 parts under policies without state,
    which took 0.95 to 1.07 times as much: nodes have more beside what remains, and what was read of edges goes early.
    """
    weight = header.weight_bytes
    of_edges = header.num_edges / parts * (header.index_dtype.itemsize + weight) + edges * (TARGET_BYTES + weight)
    of_nodes = header.num_nodes * 8 / parts + proxies * NODE_BYTES
    bits = header.num_nodes // 4
    return (0.93 * of_edges + 2.37 * of_nodes + 1.1 * bits) / 1e6 + PROGRAM_MB + MOVING_MB * moves


def fraction_within(header: GraphHeader, limit: float) -> float:
    """The share of a graph that a rank can partition within so many bytes, 0 to 1, if it met all nodes at worst."""
    nodes, edges, weight = header.num_nodes, header.num_edges, header.weight_bytes
    for_nodes = 2 * (nodes * NODE_BYTES + nodes // 4)
    for_all = 2 * edges * (TARGET_BYTES + weight) + 1.25 * (edges * (header.index_dtype.itemsize + weight) + nodes * 8)
    return max(0.0, min(1.0, (limit - for_nodes) / max(for_all, 1)))
