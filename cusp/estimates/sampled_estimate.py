"""What a partition would look like, from a small sample of the graph: for rules that decide without knowing the rest.

Where the sample has the in-edges of its nodes too (symmetric graphs, stored transposes), it shows all proxies of these
nodes, and their mean is that of all nodes but for chance. Otherwise how many targets each part will meet has to be
guessed from how their number grows with the sample, which is the less sure the smaller the sample is.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from cusp.errors import PolicyError
from cusp.estimates.estimate import count_parts
from cusp.estimates.quality import Quality
from cusp.estimates.sample import Block, Rows, Sample
from cusp.input.edge_slice import EdgeSlice
from cusp.policies.compile_rules import KNOWN_EVERYWHERE, Rules, attributes_used
from cusp.policies.policy import Policy
from cusp.policies.prop import Prop

MOST_PAIRS = 1 << 21  # pairs of target and part that are looked at, of larger samples those of some targets only
GRID = 1 << 20  # nodes that are asked for their masters


@dataclass(frozen=True)
class SampledEstimate:
    """A quality that is estimated, and how far its replication factor may be off.

    Attributes
    ----------
    quality : Quality
    low, high : float
        Of the replication factor: twice the standard error apart from it, by the differences of neighbouring
        blocks; where targets are guessed, as if none, all of those seen once were met again.
    """

    quality: Quality
    low: float
    high: float


def why_not(policy: Policy, sample: Sample) -> str | None:
    """Why a sample cannot say what a policy would do; None if it can."""
    rules = Rules(policy)
    if policy.make_mstate or policy.make_estate or rules.uses_masters:
        return "its rules have state: what they do with a node depends on all that they did before"
    if not rules.computed:
        return "its master rule asks what only the reader of a node knows"
    asked = attributes_used(policy.edge) & set(dir(Prop))
    unknown = asked - {*KNOWN_EVERYWHERE, "out_degree", "neighbor_degree"}
    if unknown:
        return f"its edge rule asks for prop.{min(unknown)}, which a sample does not know"
    has_in_edges = sample.header.symmetric or sample.header.has_transpose
    needs_all = "neighbor_degree" in asked or ("out_degree" in asked and has_in_edges)
    if needs_all and sample.offsets is None:
        megabytes = 8 * sample.header.num_nodes / 1e6
        return f"its edge rule asks for degrees; those of all nodes are {megabytes:,.0f} MB, more than half the sample"
    return None


def estimate_from_sample(sample: Sample, policy: Policy, num_parts: int, split: str) -> SampledEstimate:
    """Ask the rules about the edges of a sample and scale up. No communication.

    Raises
    ------
    PolicyError
        A rule raised or returned a rank that does not exist.
    """
    asked = _Asked(sample, policy, num_parts, split)
    totals = np.zeros((5, num_parts))
    means, loads, pairs, out_pairs = [], [], [], []
    for block in sample.blocks:
        counts, seen, seen_out = asked.about(block)
        totals += counts * np.array([block.nodes] * 4 + [block.edges])[:, None]
        nodes = block.out.indptr.size - 1
        means.append((block.nodes * nodes, counts[1].sum() / nodes))
        loads.append(counts[4] * block.edges)
        pairs.append(seen)
        out_pairs.append((block.nodes, seen_out))
    num_nodes = sample.header.num_nodes
    masters = asked.masters_of_parts()
    edges = _without_noise(np.array(loads)) * (sample.header.num_edges / max(1.0, totals[4].sum()))
    out, into = totals[3], totals[2]
    if asked.sees_in_edges:
        mirrors = totals[1] - totals[0]
        error = 2 * _standard_error(np.array(means)) / num_nodes
        low, high = (mirrors.sum() / num_nodes + 1 + sign * error for sign in (-1, 1))
    else:
        total, least, most = _all_targets(pairs, sample)
        by_block = [np.bincount(seen % num_parts, minlength=num_parts) for seen in pairs]
        by_part = _without_noise(np.array(by_block) * np.array([[block.edges] for block in sample.blocks]))
        into = by_part * (total / max(1.0, by_part.sum()))
        both = _both(out_pairs, pairs, sample, out.sum(), into.sum())
        mirrors = out + into - both * out / max(1.0, out.sum())
        least, most = max(out.sum(), least), out.sum() + most
        low, high = (1 + count / num_nodes for count in (least, most))
    proxies = np.minimum(masters + mirrors, num_nodes)
    figures = (masters, proxies, edges, np.zeros(num_parts), into, out)  # partners are not estimated
    whole = [np.rint(figure).astype(np.int64) for figure in figures]
    quality = Quality(whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], num_nodes)
    ceiling = min(float(num_parts), 1 + 2 * sample.header.num_edges / num_nodes)
    return SampledEstimate(
        quality, min(max(low, 1.0), quality.replication), max(min(high, ceiling), quality.replication)
    )


class _Asked:
    """The rules of a policy, for any edges of a sample."""

    def __init__(self, sample: Sample, policy: Policy, num_parts: int, split: str) -> None:
        self.sample, self.policy, self.num_parts = sample, policy, num_parts
        self.rules = Rules(policy)
        self.sees_in_edges = sample.header.symmetric or sample.header.has_transpose
        self.bounds = sample.part_bounds(num_parts, split)
        nothing = np.empty(0, sample.blocks[0].out.ends.dtype if sample.blocks else np.uint32)
        self.nowhere = Rows(np.zeros(1, np.int64) if sample.offsets is None else sample.offsets, nothing)
        self.thinning = _thinning(sample)

    def prop(self, first_node: int, rows: Rows) -> Prop:
        """What rules may ask: of all nodes if their degrees are known, else of some rows."""
        header, policy = self.sample.header, self.policy
        graph = (header.num_nodes, header.num_edges, header.symmetric)
        if self.sample.offsets is not None:
            first_node, rows = 0, self.nowhere
        edges = EdgeSlice(*graph, self.bounds, first_node, rows.indptr, rows.ends, None)
        return Prop(edges, self.num_parts, 0, policy.grid_for(self.num_parts), policy.threshold, self.bounds)

    def masters(self, prop: Prop, nodes: np.ndarray) -> np.ndarray:
        """Masters of any nodes."""
        found = np.empty(nodes.size, np.int64)
        self.rules.run("masters_of", prop, nodes, found)
        if found.size and not 0 <= int(found.min()) <= int(found.max()) < self.num_parts:
            raise PolicyError(f"policy {self.policy.name}: get_master returned a rank that does not exist")
        return found

    def masters_of_parts(self) -> np.ndarray:
        """Masters of each part, by nodes at equal distances if there are many."""
        nodes = np.arange(0, self.sample.header.num_nodes, max(1, self.sample.header.num_nodes // GRID))
        counts = np.bincount(self.masters(self.prop(0, self.nowhere), nodes), minlength=self.num_parts)
        return counts * (self.sample.header.num_nodes / nodes.size)

    def owners(self, prop: Prop, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Owners of any edges."""
        found = np.empty(sources.size, np.int64)
        masters = self.masters(prop, sources), self.masters(prop, targets)
        wrong = self.rules.run("owners_of", prop, self.num_parts, sources, targets, *masters, found)
        if wrong >= 0:
            raise PolicyError(
                f"policy {self.policy.name}: get_edge_owner of the edge {sources[wrong]:,} -> {targets[wrong]:,} is "
                f"not one of the ranks 0 to {self.num_parts - 1}"
            )
        return found

    def about(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(5, parts) counts of a block as in ``count_parts``; (target, part) and (source, part) of its mirrors.

        The pairs are numbers ``node * num_parts + part``, ascending, those of some nodes only in large samples.
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
        """Pairs of nodes and other parts than their masters' that hold an edge of theirs, each once."""
        chosen = owners != masters
        if self.thinning > 1:
            lots = nodes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
            chosen &= lots % np.uint64(self.thinning) == 0
        return np.unique(nodes[chosen] * self.num_parts + owners[chosen])


def _thinning(sample: Sample) -> int:
    """Of so many nodes the pairs of one are looked at."""
    return 1 << max(0, sample.num_edges // MOST_PAIRS).bit_length()


def _standard_error(means: np.ndarray) -> float:
    """Of the sum of weight * mean over blocks, from the differences between neighbours."""
    if len(means) < 2:
        return 0.0
    weights, values = means.T
    steps = np.diff(values) ** 2 / 2
    return float(np.sqrt((weights[1:] ** 2 * steps).sum() * len(weights) / (len(weights) - 1)))


def _without_noise(loads: np.ndarray) -> np.ndarray:
    """(parts,) sums of (blocks, parts) loads, drawn towards their mean by as much of their spread as is chance.

    The largest of many uncertain sums is mostly too large: a hub in a sample stands for hubs that there are not.
    James and Stein's shrinkage, with the variance from the differences of neighbouring blocks.
    """
    sums = loads.sum(axis=0)
    apart = sums - sums.mean()
    spread, chance = (apart**2).sum(), (np.diff(loads, axis=0) ** 2).sum() / 2
    return sums.mean() + apart * np.sqrt(max(0.0, 1 - chance / spread) if spread > 0 else 0.0)


def _all_targets(pairs: list[np.ndarray], sample: Sample) -> tuple[float, float, float]:
    """Number of pairs in the whole graph, from those of a sample: an estimate, the least and the most.

    The number of different pairs grows with the sample, ever more slowly. Its growth over the last doublings
    is carried on to the whole graph: on a logarithmic scale the slope falls on as it fell.
    """
    share, thinning = sample.num_edges / max(1, sample.header.num_edges), _thinning(sample)
    found, times = np.unique(np.concatenate(pairs), return_counts=True)
    if found.size == 0 or share >= 1:
        return (float(found.size * thinning),) * 3
    sizes = np.log2([max(1, np.unique(np.concatenate(pairs[:: 2**step])).size) for step in (3, 2, 1, 0)])
    slopes = np.diff(sizes)
    fall = max(0.0, (slopes[0] - slopes[2]) / 2)
    slope, left, grown = float(slopes[2]), float(-np.log2(share)), 0.0
    while left > 0:
        slope = max(0.0, slope - fall)
        grown += slope * min(1.0, left)
        left -= 1
    once = np.count_nonzero(times == 1)
    most = once / share + found.size - once
    return min(found.size * 2**grown, most) * thinning, float(found.size * thinning), float(most * thinning)


def _both(
    out_pairs: list[tuple[float, np.ndarray]], pairs: list[np.ndarray], sample: Sample, out: float, into: float
) -> float:
    """Mirrors with out-edges that have in-edges too: of those in the sample, had it met all in-edges."""
    known = np.unique(np.concatenate(pairs))
    sources = sum(weight * seen.size for weight, seen in out_pairs)
    if not known.size or not sources:
        return 0.0
    met = sum(weight * _count_members(known, seen) for weight, seen in out_pairs)
    share_of_in = known.size * _thinning(sample) / into
    return float(min(out, into, out * met / sources / share_of_in))


def _count_members(known: np.ndarray, some: np.ndarray) -> int:
    """How many of ``some`` occur in ``known``, which ascends."""
    places = np.minimum(np.searchsorted(known, some), known.size - 1)
    return int(np.count_nonzero(known[places] == some))


@njit(cache=True, nogil=True)
def _mark(indptr, owners, bits):  # type: ignore[no-untyped-def]
    """Note the owner of each edge at its row."""
    for row in range(indptr.size - 1):
        for edge in range(indptr[row], indptr[row + 1]):
            bits[row, owners[edge] >> 6] |= np.uint64(1) << np.uint64(owners[edge] & 63)
