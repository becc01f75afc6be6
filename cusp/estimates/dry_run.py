"""The memory and traffic of a partition before it is made: an estimate from a sample of the file, and bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cusp.errors import together
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import LABEL_BYTES, NODE_BYTES, TARGET_BYTES, Quality
from cusp.estimates.sample import read_sample
from cusp.estimates.sampled_estimate import SampledEstimate, estimate_from_sample, why_not
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import GraphHeader
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.policies.policy import Policy

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

PROGRAM_MB = 300  # interpreter, libraries, compiled code


@dataclass(frozen=True)
class Bounds:
    """What follows from the sizes alone, for any policy; memory only for policies that balance the edges.

    Attributes
    ----------
    replication : float
    memory_mb, peak_mb : float
        Of a rank: for its part of the graph; at most, while that is built.
    mb_a_round : float
    """

    replication: float
    memory_mb: float
    peak_mb: float
    mb_a_round: float


@dataclass(frozen=True)
class DryRun:
    """Bounds, and an estimate or the reason why there is none.

    Attributes
    ----------
    parts : int
    bounds : Bounds
    quality : Quality or None
    low, high : float
        Range of the replication factor.
    source : str
        What the estimate is based on, or why there is none.
    header : GraphHeader
    """

    parts: int
    bounds: Bounds
    quality: Quality | None
    low: float
    high: float
    source: str
    header: GraphHeader

    def figure(self, name: str) -> float:
        """An estimate by its name in rows, with the memory of edge weights; ``peak_mb``: while the graph is built."""
        assert self.quality is not None
        memory = self.quality.memory_mb(weight_bytes(self.header))
        if name == "peak_mb":
            return peak(self.header, self.parts, memory)
        return memory if name == "memory_mb" else float(getattr(self.quality, name))


def dry_run(header: GraphHeader, policy: Policy, parts: int, split: str, limit: int, comm: "Intracomm") -> DryRun:
    """Estimate what a policy makes of a graph in ``parts`` parts, from at most ``limit`` bytes of the file. Collective.

    If the whole graph fits into the limit, it is read and the rules are asked about every edge.
    """
    with together(comm):
        compiled = compile_policy(policy)
        shares = policy.shares_for(parts)
    bounds = bounds_of(header, parts, shares)
    needed = header.num_edges * header.index_dtype.itemsize + 8 * (header.num_nodes + comm.size)
    if needed <= limit:
        edges = read_slice(header.path, comm, split, weights=False, in_degrees=compiled.uses.in_degrees)
        quality = estimate(edges, compiled, parts, split, comm).quality
        source = f"computed from all edges ({needed / 1e6:,.1f} MB)"
        if parts != comm.size and compiled.uses.history:
            source += f"; rules with state ran on {comm.size} ranks; {parts} ranks see less of each other's"
        return DryRun(parts, bounds, quality, quality.replication, quality.replication, source, header)
    sampled: SampledEstimate | None = None
    with together(comm):
        if comm.rank == 0 and limit > 0:
            sampled, source = _from_sample(header, compiled, parts, split, limit)
        else:
            source = "no estimate: no edges were read"
    sampled, source = comm.bcast((sampled, source))
    if sampled is None:
        return DryRun(parts, bounds, None, 1.0, bounds.replication, source, header)
    return DryRun(parts, bounds, sampled.quality, sampled.low, sampled.high, source, header)


def _from_sample(
    header: GraphHeader, compiled: CompiledPolicy, parts: int, split: str, limit: int
) -> tuple[SampledEstimate | None, str]:
    """The estimate and what it is based on, or None and the reason."""
    sample = read_sample(header, limit)
    reason = why_not(compiled, sample)
    if reason is not None:
        name = compiled.policy.name
        return None, f"no estimate: policy {name} cannot be sampled; {reason}; use cusp compare"
    share = sample.num_edges / max(1, header.num_edges)
    source = f"estimated from {sample.num_bytes / 1e6:,.1f} MB of the file, {share:.1%} of the edges"
    if not (header.symmetric or header.has_transpose):
        source += "; in-edges are a guess, since the file has no transpose"
    return estimate_from_sample(sample, compiled, parts, split), source


def bounds_of(header: GraphHeader, parts: int, shares: Sequence[int] = ()) -> Bounds:
    """Bounds that hold for any policy; those on memory for policies that balance the edges, or keep to shares."""
    nodes, edges = header.num_nodes, header.num_edges
    most, of = (max(shares), sum(shares)) if shares else (1, parts)
    most_edges, masters = -(-edges * most // of), -(-nodes * most // of)
    proxies = min(nodes, masters + 2 * most_edges)
    memory = (most_edges * (TARGET_BYTES + weight_bytes(header)) + proxies * NODE_BYTES + nodes // 4) / 1e6
    ends = min(2 * edges, 2 * nodes * (parts - 1))
    replication = min(float(parts), 1 + 2 * edges / nodes)
    return Bounds(replication, memory, peak(header, of / most, memory), ends * LABEL_BYTES / 1e6)


def peak(header: GraphHeader, parts: float, memory_mb: float) -> float:
    """Most memory of a rank while its part of the graph is built, in MB: what it reads, what it makes, the program."""
    width = header.index_dtype.itemsize + weight_bytes(header)
    slice_mb = (header.num_edges * width + header.num_nodes * 8) / parts / 1e6
    return 1.25 * slice_mb + 2 * memory_mb + PROGRAM_MB


def fraction_within(header: GraphHeader, limit: float) -> float:
    """The share of a graph that a rank can partition within so many bytes, 0 to 1, if it met all nodes at worst."""
    nodes, edges, weight = header.num_nodes, header.num_edges, weight_bytes(header)
    for_nodes = 2 * (nodes * NODE_BYTES + nodes // 4)
    for_all = 2 * edges * (TARGET_BYTES + weight) + 1.25 * (edges * (header.index_dtype.itemsize + weight) + nodes * 8)
    return max(0.0, min(1.0, (limit - for_nodes) / max(for_all, 1)))


def weight_bytes(header: GraphHeader) -> int:
    """Bytes of an edge weight."""
    return header.weight_dtype.itemsize if header.weight_dtype else 0
