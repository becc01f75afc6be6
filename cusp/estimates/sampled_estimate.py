"""The quality of a partition, from a small sample of the graph: for rules that need no data about the rest.

If the sample has the in-edges of its nodes too (symmetric graphs, stored transposes), it shows all proxies of these
nodes, and their mean is that of all nodes except for chance. Otherwise the number of targets that each part will meet
has to be guessed from how it grows with the sample: the smaller the sample, the less certain.
"""

from dataclasses import dataclass

import numpy as np

from cusp.errors import PolicyError
from cusp.estimates.estimate import count_parts
from cusp.estimates.quality import Quality
from cusp.estimates.sample import Block, Sample, SampledRows
from cusp.estimates.scale_up import all_targets, both_roles, standard_error, thinning_of, without_noise
from cusp.input.edge_slice import EdgeSlice
from cusp.policies.compile_rules import CompiledPolicy
from cusp.policies.inspect_rules import KNOWN_EVERYWHERE, attributes_used
from cusp.policies.prop import Prop
from cusp.runtime.compiled_code import njit

GRID = 1 << 20  # nodes whose masters are computed, at most twice as many


@dataclass(frozen=True)
class SampledEstimate:
    """An estimated quality, and how far its replication factor may be off.

    Attributes
    ----------
    quality : Quality
    low, high : float
        Of the replication factor: two standard errors below and above it, from the differences between
        neighbouring blocks; if targets are guessed, as if all or none of those seen once were met again.
    """

    quality: Quality
    low: float
    high: float


def why_not(compiled: CompiledPolicy, sample: Sample) -> str | None:
    """Why a sample cannot say what a policy would do; None if it can."""
    if compiled.uses.history:
        return "its rules have state, so each decision depends on all earlier ones"
    if not compiled.uses.computed:
        return "its master rule needs data that only the reader of a node has"
    used = attributes_used(compiled.policy.edge) & set(dir(Prop))
    unknown = used - {*KNOWN_EVERYWHERE, "out_degree", "neighbor_degree"}
    if unknown:
        return f"its edge rule asks for prop.{min(unknown)}, which a sample does not know"
    has_in_edges = sample.header.symmetric or sample.header.has_transpose
    needs_all = "neighbor_degree" in used or ("out_degree" in used and has_in_edges)
    if needs_all and sample.offsets is None:
        megabytes = 8 * sample.header.num_nodes / 1e6
        return f"its edge rule asks for degrees; those of all nodes are {megabytes:,.0f} MB, more than half the sample"
    return None


def estimate_from_sample(sample: Sample, compiled: CompiledPolicy, num_parts: int, split: str) -> SampledEstimate:
    """Ask the rules about the edges of a sample and scale up. No communication.

    Raises
    ------
    PolicyError
        A rule raised or returned a rank that does not exist.
    """
    rules = _SampledRules(sample, compiled, num_parts, split)
    totals = np.zeros((5, num_parts))
    means, loads, pairs, out_pairs = [], [], [], []
    for block in sample.blocks:
        counts, seen, seen_out = rules.ask(block)
        totals += counts * np.array([block.nodes] * 4 + [block.edges])[:, None]
        nodes = block.out.indptr.size - 1
        means.append((block.nodes * nodes, counts[1].sum() / nodes))
        loads.append(counts[4] * block.edges)
        pairs.append(seen)
        out_pairs.append((block.nodes, seen_out))
    num_nodes = sample.header.num_nodes
    masters = rules.masters_of_parts()
    edges = without_noise(np.array(loads)) * (sample.header.num_edges / max(1.0, totals[4].sum()))
    out, into = totals[3], totals[2]
    if rules.sees_in_edges:
        mirrors = totals[1] - totals[0]
        error = 2 * standard_error(np.array(means)) / num_nodes
        low, high = (mirrors.sum() / num_nodes + 1 + sign * error for sign in (-1, 1))
    else:
        into, least, most = _guess_in_edges(pairs, sample, num_parts)
        both = both_roles(out_pairs, pairs, sample, out.sum(), into.sum())
        mirrors = out + into - both * out / max(1.0, out.sum())
        low, high = (1 + count / num_nodes for count in (max(out.sum(), least), out.sum() + most))
    proxies = np.minimum(masters + mirrors, num_nodes)
    figures = (masters, proxies, edges, np.zeros(num_parts), into, out)  # partners are not estimated
    whole = [np.rint(figure).astype(np.int64) for figure in figures]
    quality = Quality(whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], num_nodes)
    ceiling = min(float(num_parts), 1 + 2 * sample.header.num_edges / num_nodes)
    return SampledEstimate(
        quality, min(max(low, 1.0), quality.replication), max(min(high, ceiling), quality.replication)
    )


def _guess_in_edges(pairs: list[np.ndarray], sample: Sample, num_parts: int) -> tuple[np.ndarray, float, float]:
    """Mirrors with in-edges of each part, from the (target, part) pairs of the blocks; least and most of their sum."""
    total, least, most = all_targets(pairs, sample)
    by_block = [np.bincount(seen % num_parts, minlength=num_parts) for seen in pairs]
    by_part = without_noise(np.array(by_block) * np.array([[block.edges] for block in sample.blocks]))
    return by_part * (total / max(1.0, by_part.sum())), least, most


class _SampledRules:
    """The rules of a policy, for any edges of a sample."""

    def __init__(self, sample: Sample, compiled: CompiledPolicy, num_parts: int, split: str) -> None:
        self.sample, self.compiled, self.num_parts = sample, compiled, num_parts
        self.policy = compiled.policy
        self.sees_in_edges = sample.header.symmetric or sample.header.has_transpose
        self.shares = self.policy.shares_for(num_parts)
        self.bounds = sample.part_bounds(num_parts, split, self.shares)
        nothing = np.empty(0, sample.blocks[0].out.ends.dtype if sample.blocks else np.uint32)
        self.nowhere = SampledRows(np.zeros(1, np.int64) if sample.offsets is None else sample.offsets, nothing)
        self.thinning = thinning_of(sample)

    def prop(self, first_node: int, rows: SampledRows) -> Prop:
        """What rules may ask: about all nodes if their degrees are known, else about some rows."""
        header, policy = self.sample.header, self.policy
        graph = (header.num_nodes, header.num_edges, header.symmetric)
        if self.sample.offsets is not None:
            first_node, rows = 0, self.nowhere
        edges = EdgeSlice(*graph, self.bounds, first_node, rows.indptr, rows.ends, None)
        grid = policy.grid_for(self.num_parts)
        return Prop(edges, self.num_parts, 0, grid, policy.threshold, self.bounds, shares=self.shares)

    def masters(self, prop: Prop, nodes: np.ndarray) -> np.ndarray:
        """Masters of any nodes."""
        masters = np.empty(nodes.size, np.int64)
        self.compiled.run("masters_of", prop, nodes, masters)
        if masters.size and not 0 <= int(masters.min()) <= int(masters.max()) < self.num_parts:
            raise PolicyError(f"policy {self.policy.name}: get_master returned a rank that does not exist")
        return masters

    def masters_of_parts(self) -> np.ndarray:
        """How many masters each part has, from evenly spaced nodes if there are many."""
        nodes = np.arange(0, self.sample.header.num_nodes, max(1, self.sample.header.num_nodes // GRID))
        counts = np.bincount(self.masters(self.prop(0, self.nowhere), nodes), minlength=self.num_parts)
        return counts * (self.sample.header.num_nodes / nodes.size)

    def owners(self, prop: Prop, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Owners of any edges."""
        owners = np.empty(sources.size, np.int64)
        masters = self.masters(prop, sources), self.masters(prop, targets)
        self.compiled.run("owners_of", prop, self.num_parts, sources, targets, *masters, owners)
        return owners

    def ask(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(5, parts) counts of a block as in ``count_parts``; (target, part) and (source, part) of its mirrors.

        The pairs are numbers ``node * num_parts + part``, ascending; in large samples those of some nodes only.
        """
        parts, words = self.num_parts, (self.num_parts + 63) // 64
        rows = block.out.indptr.size - 1
        prop = self.prop(block.first_node, block.out)
        nodes = np.arange(block.first_node, block.first_node + rows)
        masters = self.masters(prop, nodes)
        sources, targets = np.repeat(nodes, np.diff(block.out.indptr)), block.out.ends.astype(np.int64)
        owners = self.owners(prop, sources, targets)
        out_bits, in_bits = np.zeros((rows, words), np.uint64), np.zeros((rows, words), np.uint64)
        _mark(block.out.indptr, owners, out_bits)
        seen = seen_out = np.empty(0, np.int64)
        if block.into is not None:
            ends = block.into.ends.astype(np.int64)
            in_owners = self.owners(prop, ends, np.repeat(nodes, np.diff(block.into.indptr)))
            _mark(block.into.indptr, in_owners, in_bits)
        else:
            seen = self.pairs(targets, owners, self.masters(prop, targets))
            seen_out = self.pairs(sources, owners, self.masters(prop, sources))
        counts = np.zeros((5, parts), np.int64)
        count_parts(out_bits, in_bits, masters, counts, np.zeros((parts, parts), np.int64))
        counts[4] = np.bincount(owners, minlength=parts)
        return counts, seen, seen_out

    def pairs(self, nodes: np.ndarray, owners: np.ndarray, masters: np.ndarray) -> np.ndarray:
        """Pairs of a node and a part, not that of its master, that holds an edge of the node; each pair once."""
        chosen = owners != masters
        if self.thinning > 1:
            lots = nodes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
            chosen &= lots % np.uint64(self.thinning) == 0
        return np.unique(nodes[chosen] * self.num_parts + owners[chosen])


@njit(cache=True, nogil=True)
def _mark(indptr, owners, bits):  # type: ignore[no-untyped-def]
    """Record the owner of each edge at its row."""
    for row in range(indptr.size - 1):
        for edge in range(indptr[row], indptr[row + 1]):
            bits[row, owners[edge] >> 6] |= np.uint64(1) << np.uint64(owners[edge] & 63)
