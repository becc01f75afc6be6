"""From a sample to the whole graph: estimates of sums and of the number of different pairs, with their errors."""

import numpy as np

from cusp.estimates.sample import Sample

MOST_PAIRS = 1 << 21  # pairs of node and part that are looked at; of larger samples those of some nodes only


def thinning_of(sample: Sample) -> int:
    """One in this many nodes has its pairs looked at."""
    return 1 << max(0, sample.num_edges // MOST_PAIRS).bit_length()


def standard_error(means: np.ndarray) -> float:
    """Standard error of the sum of weight * mean over blocks, from the differences between neighbours."""
    if len(means) < 2:
        return 0.0
    weights, values = means.T
    steps = np.diff(values) ** 2 / 2
    return float(np.sqrt((weights[1:] ** 2 * steps).sum() * len(weights) / (len(weights) - 1)))


def without_noise(loads: np.ndarray) -> np.ndarray:
    """(parts,) sums of (blocks, parts) loads, drawn towards their mean by as much of their spread as is chance.

    The largest of many uncertain sums is mostly too large: a hub in a sample stands for hubs that do not exist.
    This is James and Stein's shrinkage, with the variance from the differences between neighbouring blocks.
    """
    sums = loads.sum(axis=0)
    apart = sums - sums.mean()
    spread, chance = (apart**2).sum(), (np.diff(loads, axis=0) ** 2).sum() / 2
    return sums.mean() + apart * np.sqrt(max(0.0, 1 - chance / spread) if spread > 0 else 0.0)


def all_targets(pairs: list[np.ndarray], sample: Sample) -> tuple[float, float, float]:
    """Number of pairs in the whole graph, from those of a sample: an estimate, the least and the most.

    The number of different pairs grows with the sample, ever more slowly. Its growth over the last doublings
    is continued to the whole graph: on a logarithmic scale the slope keeps falling at the same rate.
    """
    share, thinning = sample.num_edges / max(1, sample.header.num_edges), thinning_of(sample)
    different, times = np.unique(np.concatenate(pairs), return_counts=True)
    if different.size == 0 or share >= 1:
        return (float(different.size * thinning),) * 3
    sizes = np.log2([max(1, np.unique(np.concatenate(pairs[:: 2**step])).size) for step in (3, 2, 1, 0)])
    slopes = np.diff(sizes)
    fall = max(0.0, (slopes[0] - slopes[2]) / 2)
    slope, left, grown = float(slopes[2]), float(-np.log2(share)), 0.0
    while left > 0:
        slope = max(0.0, slope - fall)
        grown += slope * min(1.0, left)
        left -= 1
    once = np.count_nonzero(times == 1)
    most = once / share + different.size - once
    return min(different.size * 2**grown, most) * thinning, float(different.size * thinning), float(most * thinning)


def both_roles(
    out_pairs: list[tuple[float, np.ndarray]], pairs: list[np.ndarray], sample: Sample, out: float, into: float
) -> float:
    """Number of mirrors with out-edges that have in-edges too, from those in the sample."""
    known = np.unique(np.concatenate(pairs))
    sources = sum(weight * seen.size for weight, seen in out_pairs)
    if not known.size or not sources:
        return 0.0
    met = sum(weight * _count_members(known, seen) for weight, seen in out_pairs)
    share_of_in = known.size * thinning_of(sample) / into
    return float(min(out, into, out * met / sources / share_of_in))


def _count_members(known: np.ndarray, some: np.ndarray) -> int:
    """How many of ``some`` occur in ``known``, which ascends."""
    places = np.minimum(np.searchsorted(known, some), known.size - 1)
    return int(np.count_nonzero(known[places] == some))
