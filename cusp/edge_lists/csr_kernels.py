"""Loops over edges before they are a CSR: count them, scatter them, sort and unpack buckets; their asymmetry.

While it is sorted an edge is a *record*: one unsigned 64-bit key made of the source (relative to the first node
of its bucket), the target and, if it fits, the code of the weight, from high to low bits::

    | source - first node | target: target_bits | code: weight_bits |

so that sorting keys sorts edges by source, target and weight. Codes that do not fit (then weight_bits is 0)
are in a second array ``extra``, which is empty otherwise.
"""

import numpy as np

from cusp.input.checksum import as_bits
from cusp.kernels.bits import mix
from cusp.runtime.compiled_code import njit

DIGIT_BITS = 11  # that one pass sorts by


def buckets_of(ids: np.ndarray) -> tuple[np.ndarray, np.uint64]:
    """Where ids, (n,) int64, ascending, of the same high bits begin, and last n; and how far these are shifted.

    They are bits of what an id is above the first. Where ids are spread evenly, two to eight have the same.
    """
    if ids.size == 0:
        return np.zeros(1, np.int64), np.uint64(0)
    first, last = int(ids[0]), int(ids[-1])
    shift = min(63, max(0, (last - first).bit_length() - ids.size.bit_length() + 2))
    above = np.arange(((last - first) >> shift) + 1, dtype=np.uint64) << np.uint64(shift)
    begins = np.searchsorted(ids, (above + ids[:1].view(np.uint64)).view(np.int64))
    return np.append(begins, ids.size), np.uint64(shift)


@njit(cache=True, nogil=True)
def number_ends(first, last, ids, starts, shift, numbers, ends, found):  # type: ignore[no-untyped-def]
    """``found[i] = numbers[place of ends[i] among the ids]``, all of which are there; a bisection in a bucket."""
    for i in range(first, last):
        end = np.int64(ends[i])
        bucket = np.int64((np.uint64(end) - np.uint64(ids[0])) >> shift)
        low, high = starts[bucket], starts[bucket + 1]
        while low + 1 < high:
            middle = (low + high) >> 1
            if ids[middle] <= end:
                low = middle
            else:
                high = middle
        found[i] = numbers[low]


@njit(cache=True, nogil=True)
def count_cells(sources, targets, shift, symmetrize, drop_loops, cells):  # type: ignore[no-untyped-def]
    """Add the number of records that the edges make to ``cells[source >> shift]``."""
    for i in range(sources.size):
        source, target = np.int64(sources[i]), np.int64(targets[i])
        if source == target:
            cells[source >> shift] += np.int64(not drop_loops)
        else:
            cells[source >> shift] += 1
            if symmetrize:
                cells[target >> shift] += 1


@njit(cache=True, nogil=True)
def scatter(  # type: ignore[no-untyped-def]
    sources, targets, codes, shift, bucket_of_cell, first_node, bits, options, free, keys, extra
):
    """Write the records of the edges into ``keys`` and ``extra``: those of bucket b from ``free[b]`` on.

    ``options`` is (symmetrize, drop_loops). ``shift``, ``first_node`` and ``bits``, which is (target_bits,
    weight_bits), are uint64, so that no index can be negative. ``codes`` and ``extra`` may be empty.
    """
    symmetrize, drop_loops = options
    target_bits, weight_bits = bits
    code = np.uint64(0)
    for i in range(sources.size):
        source, target = np.uint64(sources[i]), np.uint64(targets[i])
        if source == target and drop_loops:
            continue
        if codes.size:
            code = codes[i]
        for turn in range(2):
            bucket = np.uint64(bucket_of_cell[source >> shift])
            at = free[bucket]
            free[bucket] = at + np.uint64(1)
            key = ((source - first_node[bucket]) << target_bits) | target
            if extra.size:
                keys[at], extra[at] = key, code
            else:
                keys[at] = (key << weight_bits) | code
            if turn == 1 or source == target or not symmetrize:
                break
            source, target = target, source


@njit(cache=True, nogil=True)
def radix_sort(keys, payload, num_bits):  # type: ignore[no-untyped-def]
    """Sort by the ``num_bits`` low bits of the keys, stably; returns (keys, payload), new or the same arrays.

    Goes digit by digit from the lowest, with up to 2048 counters, which fit into the L1 cache. ``payload`` moves
    along with the keys; it may be empty. A digit that is the same in all keys is skipped.
    """
    passes = max(1, (num_bits + DIGIT_BITS - 1) // DIGIT_BITS)
    width = (num_bits + passes - 1) // passes
    mask = np.uint64((1 << width) - 1)
    free = np.empty(1 << width, np.int64)
    to_keys, to_payload = np.empty_like(keys), np.empty_like(payload)
    for turn in range(passes):
        shift = np.uint64(turn * width)
        free[:] = 0
        for i in range(keys.size):
            free[np.int64((keys[i] >> shift) & mask)] += 1
        if keys.size == 0 or free[np.int64((keys[0] >> shift) & mask)] == keys.size:
            continue
        start = 0
        for digit in range(free.size):
            start, free[digit] = start + free[digit], start
        for i in range(keys.size):
            digit = np.int64((keys[i] >> shift) & mask)
            at = free[digit]
            free[digit] = at + 1
            to_keys[at] = keys[i]
            if payload.size:
                to_payload[at] = payload[i]
        keys, to_keys = to_keys, keys
        payload, to_payload = to_payload, payload
    return keys, payload


@njit(cache=True, nogil=True)
def unpack(keys, extra, bits, dedup, degrees, indices, codes):  # type: ignore[no-untyped-def]
    """Turn sorted records into targets and codes, counting them per source; returns how many there are.

    With ``dedup`` only the first of parallel edges counts: the one with the smallest weight. ``codes`` may be empty.
    """
    target_mask = (np.uint64(1) << bits[0]) - np.uint64(1)
    code_mask = (np.uint64(1) << bits[1]) - np.uint64(1)
    count = 0
    before = np.uint64(0)
    for i in range(keys.size):
        edge = keys[i] >> bits[1]
        if dedup and i > 0 and edge == before:
            continue
        before = edge
        degrees[np.int64(edge >> bits[0])] += 1
        indices[count] = edge & target_mask
        if codes.size:
            codes[count] = extra[i] if extra.size else keys[i] & code_mask
        count += 1
    return count


@njit(cache=True, nogil=True)
def _asymmetry(sources, targets, weights):  # type: ignore[no-untyped-def]
    first, second = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95)
    total = np.uint64(0)
    for i in range(sources.size):
        u, v = np.uint64(sources[i]), np.uint64(targets[i])
        weight = mix(np.uint64(weights[i]) + first) if weights.size > 0 else np.uint64(0)
        total += mix(u * first + v * second + weight) - mix(v * first + u * second + weight)
    return total


def asymmetry(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> int:
    """Sum over some edges of ``hash(edge) - hash(its reverse)``, mod 2**64.

    Over all edges of a graph it is 0 if each edge has its reverse, of the same weight, the same number
    of times; if not, it is 0 with a probability of about 2**-64.
    """
    bits = np.empty(0, np.int64) if weights is None else as_bits(np.ascontiguousarray(weights)).astype(np.int64)
    return int(_asymmetry(sources.astype(np.int64), targets.astype(np.int64), bits))
