"""Communities on the GPU: see interfaces.py; the kernels are in communities.cuh."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.communities.interfaces import Sweep
from cusp.apps.operators.undirected_gpu import rows_of_edges
from cusp.kernels.arrays import offsets_of, sizes_of
from cusp.kernels.cuda import Struct, c_type, load, many_threads, multiprocessors, struct, threads_for_edges
from cusp.runtime.devices import to_host

KERNELS = "cusp/apps/operators/communities/communities.cuh"
SWEEP = "cusp/apps/operators/communities/sweep.cuh"
EACH = 6  # blocks of a sweep on a multiprocessor
PIECE = 4096  # edges of a hub that a block takes
HUB = 4 * PIECE  # edges from which rows are hubs, the longest first, as long as their tables have as many slots
HUB_SLOTS = 1 << 20  # or as the graph has pairs of edges
MOST_TURNS = 8  # of a sweep
SHORT = 128  # edges up to which a warp takes a row
MIDDLE = 8 * SHORT  # up to which any table fits into the shared memory of a block, where 8 warps have one each
BLOCK, LARGE_BLOCK = 256, 1024  # threads for a row of up to MIDDLE edges, and of more


def sweep(of: Sweep, factor: int, lots: tuple[int, ...]) -> tuple[int, float]:
    if not of.kept:
        of.kept.append(_bench(of))
    known = of.offsets, of.targets, _known(of.weights), of.gids, of.strengths, _bits(of.scale)
    given = struct(of.strengths.size, *known, of.numbers, of.totals, of.states, of.seen, int(of.refines))
    bench, results, blocks = of.kept[0]
    results.fill(0)
    drawn = (int(np.uint64(lot).view(np.int64)) for lot in lots + (0,) * (MOST_TURNS - len(lots)))
    turns = struct(int(np.uint64(factor).view(np.int64)), 65 - len(lots).bit_length(), *drawn)
    kernels = load(SWEEP, SHORT=str(SHORT), JOB="Choose", PIECE=str(PIECE))
    kernels.resident("sweep", EACH, BLOCK)(given, bench, turns, at_most=blocks)
    gained, moved = to_host(results)
    return int(moved.view(np.int64)), float(gained)


def _bench(of: Sweep) -> tuple[Struct, Any, int]:
    """Struct Bench of sweep.cuh, its results, and how many blocks find work in a turn."""
    masters, most_blocks = of.strengths.size, EACH * multiprocessors(cp.cuda.Device().id)
    edges = sizes_of(of.offsets[: masters + 1])
    wide = cp.flatnonzero(edges > SHORT)
    wide = wide[cp.argsort(-edges[wide])]
    rows = cp.concatenate([wide, cp.flatnonzero((edges > 0) & (edges <= SHORT))]).astype(np.int32)
    longest = to_host(edges[wide[: of.targets.size // HUB + most_blocks]])
    room = 2 * np.minimum(longest, masters)
    first = offsets_of(room)
    hubs = int(np.count_nonzero((longest >= HUB) & (first[1:] <= max(of.targets.size // 2, HUB_SLOTS))))
    shared = np.zeros((hubs, 6), np.int64)
    shared[:, 0] = np.cumsum(-(-longest[:hubs] // PIECE))
    shared[:, 1], shared[:, 2] = first[:hubs], room[:hubs]
    far = room[hubs : hubs + most_blocks]
    begins = first[hubs] + offsets_of(np.where(far > 2 * MIDDLE, far, 0))
    slots, blocks = int(begins[-1]), 1 + int(shared[-1:, 0].sum()) + wide.size // 4 + rows.size // 32 + masters // 1024
    tables = cp.full(slots, -1, np.int32), cp.zeros(slots, np.float64), cp.empty(int(first[hubs]), np.int32)
    bounds = cp.empty(masters, np.float64) if of.refines else None
    best, drawn, results = cp.empty(masters, np.int32), cp.zeros(7, np.uint64), cp.empty(2, np.float64)
    sizes, places = (rows, hubs, wide.size, rows.size), (cp.asarray(shared), cp.asarray(begins))
    return struct(*sizes, *places, *tables, best, bounds, drawn, results), results, blocks


def _bits(value: float) -> int:
    """A struct has members of 64 bits, whatever they mean."""
    return int(np.float64(value).view(np.int64))


def moves(
    rows: Any, offsets: Any, targets: Any, weights: Any, numbers: Any, strengths: Any, totals: Any, gids: Any,
    factor: int, scale: float, spare: list[Any],
) -> tuple[Any, Any, Any]:  # fmt: skip
    best = cp.empty(rows.size, np.int32)
    job = struct(strengths, totals, gids, int(np.uint64(factor).view(np.int64)), best, _bits(scale))
    _take(rows, offsets, targets, weights, numbers, totals.size, "Choose", job)
    old = numbers[rows]
    moved = cp.flatnonzero(best != old)
    return rows[moved], old[moved], best[moved]


def settle(rows: Any, offsets: Any, targets: Any, weights: Any, before: Any, after: Any, states: Any) -> Any:
    gains, starts = cp.zeros(rows.size, np.float64), offsets_of(sizes_of(offsets, rows))
    moves = struct(rows, starts, offsets, targets, _known(weights), before, after)
    kernels = load(KERNELS, SHORT=str(SHORT), JOB="Choose", NAME=c_type(before.dtype))
    kernels.settle(threads_for_edges(int(starts[-1])), moves, rows.size, states, gains)
    return gains


def join(
    offsets: Any, targets: Any, weights: Any, numbers: Any, loops: Any, strengths: Any, communities: int
) -> tuple[Any, Any, Any, Any, Any]:
    begins, entries, sums, inside = _join_targets(offsets, targets, weights, numbers, communities)
    if 2 * entries.size <= targets.size or communities**2 <= 4 * entries.size:  # else most nodes lead to others
        each = cp.arange(communities, dtype=np.int32)
        begins, entries, sums, _ = _join_targets(begins, entries, sums, each, communities)
    members, own = numbers[: loops.size], cp.zeros((2, communities), np.float64)
    add_by_number(members, inside[: loops.size] + loops, own[0])
    add_by_number(members, strengths, own[1])
    return begins, entries, sums, own[0], own[1]


def _join_targets(
    offsets: Any, targets: Any, weights: Any, numbers: Any, communities: int
) -> tuple[Any, Any, Any, Any]:
    """Of every row, the targets in each other community joined into one entry, and the weight to its own.

    Entries come by the communities of their rows, of which the first array says where they begin.
    """
    rows = cp.arange(offsets.size - 1)
    given = rows, offsets, targets, weights, numbers, communities
    begins, inside = cp.zeros(communities + 1, np.int64), cp.zeros(rows.size, np.float64)
    _take(*given, "Join", struct(begins[1:], None, None, inside))
    cp.cumsum(begins, out=begins)
    entries, sums = cp.empty(int(begins[-1]), np.int32), cp.empty(int(begins[-1]), np.float64)
    _take(*given, "Join", struct(begins[:-1].copy(), entries, sums, inside))
    return begins, entries, sums, inside


def weight_inside(offsets: Any, targets: Any, weights: Any, numbers: Any) -> Any:
    inside = cp.zeros(offsets.size - 1, np.float64)
    of = struct(None, offsets, targets, _known(weights), numbers, 0)
    _kernels("Choose").add_inside(threads_for_edges(targets.size), of, inside.size, inside)
    return inside


def leads_out(offsets: Any, targets: Any, numbers: Any) -> Any:
    return weight_inside(offsets, targets, cp.empty(0), numbers) < sizes_of(offsets)


def edges_inside(offsets: Any, targets: Any, weights: Any, numbers: Any) -> tuple[Any, Any, Any]:
    stays = numbers[rows_of_edges(offsets)] == numbers[targets]
    return offsets_of(stays)[offsets], targets[stays], weights[stays] if weights.size else weights


def add_by_number(numbers: Any, values: Any, sums: Any) -> None:
    threads = min(numbers.size, many_threads())
    _kernels("Choose").add_by_number(threads, numbers, values, numbers.size, sums)


def _known(weights: Any) -> Any:
    """What kernels take for weights: null if all are 1."""
    return weights if weights.size else None


def _take(
    rows: Any, offsets: Any, targets: Any, weights: Any, numbers: Any, communities: int, name: str, job: Struct
) -> None:
    """Do a job with the table of each row. The longest are first, on a stream of their own: others run beside them."""
    kernels, of = _kernels(name), struct(rows, offsets, targets, _known(weights), numbers, communities)
    edges = offsets[rows + 1] - offsets[rows]
    short = cp.flatnonzero(edges <= SHORT)
    middle = cp.flatnonzero((edges > SHORT) & (edges <= MIDDLE))
    long = cp.flatnonzero(edges > MIDDLE)
    long = long[cp.argsort(-edges[long])]
    blocks = min(long.size, many_threads() // LARGE_BLOCK)
    begins, drawn = cp.zeros(blocks + 1, np.int64), cp.zeros(2, np.uint64)
    cp.cumsum(2 * cp.minimum(edges[long[:blocks]], communities), out=begins[1:])
    tables = begins, cp.empty(int(begins[-1]), np.int32), cp.empty(int(begins[-1]), np.float64)
    here, beside = cp.cuda.get_current_stream(), _beside(cp.cuda.Device().id)
    beside.wait_event(here.record())
    with beside:
        kernels.take_by_blocks(LARGE_BLOCK * blocks, of, job, long, long.size, *tables, drawn[:1], block=LARGE_BLOCK)
    threads = min(BLOCK * middle.size, many_threads())
    kernels.take_by_blocks(threads, of, job, middle, middle.size, *tables, drawn[1:], block=BLOCK)
    kernels.take_by_warps(min(32 * short.size, many_threads()), of, job, short, short.size, block=BLOCK)
    here.wait_event(beside.record())


@functools.cache
def _beside(device: int) -> Any:
    """A stream that work on the current one does not wait for unless an event is awaited."""
    return cp.cuda.Stream(non_blocking=True)


def _kernels(job: str) -> Any:
    return load(KERNELS, SHORT=str(SHORT), JOB=job, NAME="int")
