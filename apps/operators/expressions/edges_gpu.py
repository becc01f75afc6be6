"""Edge operators on the GPU: the kernels of edges.cuh around an expression, compiled by NVRTC when first called."""

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import cupy as cp
import numpy as np

from apps.operators.expressions.passes import Load, Pass
from apps.operators.frontier_gpu import Queue, queue_for, threads_for
from cusp.kernels.cuda import BLOCK, c_type, load, many_threads
from cusp.partition import Partition
from gluon.reduction import ADD, MAX, MIN

EDGES = "apps/operators/expressions/edges.cuh"
BLOCK_EDGES, BLOCK_WARPS = 1024, BLOCK // 32  # edges that a block takes at least
MOST_WARPS = 1 << 16  # several for each that a GPU runs at once, so that all of it ends at about the same time
CODES = {reduction.name: str(reduction.code) for reduction in (MIN, MAX, ADD)}
TEMPLATE = """
__device__ inline Wide identity() {{ return {identity}; }}
struct Operator {{
  static const bool FILTERED = {filtered}, CONDITIONAL = {conditional};
{members}
  __device__ bool where(i64 row, i64 col, i64 edge) const {{
{where_loads}
    return {where};
  }}
  __device__ Value candidate(i64 row, i64 col, i64 edge) const {{
{loads}
    return {candidate};
  }}
}};
extern "C" __global__ void over_edges({memory}{parameters}) {{
  {way}(Operator{{{arguments}}}, {passed});
}}
"""
LABEL = "const int* columns, Value* values, unsigned* updated"
WAYS = {  # ways through the edges, with what they are given
    "push_queue": f"Queues queues, {LABEL}",
    "push_all": f"i64 rows, const i64* offsets, {LABEL}",
    "pull": f"i64 rows, const i64* offsets, {LABEL}, const unsigned* frontier, int* piece_rows, Wide* pieces",
}


def compile_pass(edges: Pass) -> Callable[..., None]:
    """The kernel of a pass: ``run(part, frontier, offsets, columns, values, updated, *parameters)``."""
    way = way_of(edges)
    kernels = functools.partial(load, EDGES, text_of(edges), **defines_of(edges))

    def push_queue(
        part: Partition, frontier: Any, offsets: Any, columns: Any, values: Any, updated: Any, *given: Any
    ) -> None:
        queues = _queue(part, offsets).struct
        kernels().queue_bits(threads_for(values.size), frontier, values.size, offsets, queues)
        kernels().over_edges(many_threads(), queues, columns, values, updated, *given)

    def push_all(
        part: Partition, frontier: Any, offsets: Any, columns: Any, values: Any, updated: Any, *given: Any
    ) -> None:
        kernels().over_edges(32 * _warps(columns), values.size, offsets, columns, values, updated, *given)

    def pull(
        part: Partition, frontier: Any, offsets: Any, columns: Any, values: Any, updated: Any, *given: Any
    ) -> None:
        warps, (piece_rows, pieces) = _warps(columns), _pieces(edges.wide)
        kernels().over_edges(
            32 * warps, values.size, offsets, columns, values, updated, frontier, piece_rows, pieces, *given
        )
        kernels().join_pieces(32 * warps, warps, piece_rows, pieces, values, updated)

    run: Callable[..., None] = {"push_queue": push_queue, "push_all": push_all, "pull": pull}[way]
    return lambda part, *arguments: run(part, *arguments) if part.num_local_edges else None


def way_of(edges: Pass) -> str:
    """How a pass goes through the edges."""
    return "pull" if edges.into_row else "push_queue" if edges.filtered else "push_all"


def defines_of(edges: Pass) -> dict[str, str]:
    """Macros of edges.cuh."""
    wide = "double" if edges.wide == "Float" else "long long"
    return {"VALUE": c_type(edges.dtype), "WIDE": wide, "REDUCTION": CODES[edges.reduction]}


def text_of(edges: Pass) -> str:
    """What stands behind edges.cuh for a pass."""
    way = way_of(edges)
    declared = [
        f"{kind} {name}" if isinstance(kind, str) else f"const {c_type(kind)}* {name}"
        for name, kind in edges.parameters
    ]
    return TEMPLATE.format(
        identity=edges.identity, filtered=str(edges.filtered and edges.into_row).lower(),
        conditional=str(bool(edges.where)).lower(), members="\n".join(f"  {member};" for member in declared),
        where_loads=_lines(edges.where_loads), where=edges.where or "true", loads=_lines(edges.loads),
        candidate=edges.candidate, memory=WAYS[way], parameters="".join(f", {member}" for member in declared), way=way,
        arguments=", ".join(name for name, _ in edges.parameters),
        passed=", ".join(part.split()[-1] for part in WAYS[way].split(",")),
    )  # fmt: skip


def _lines(loads: Iterable[Load]) -> str:
    return "\n".join(f"    const {load.kind} {load.variable} = {load.text};" for load in loads)


def _warps(columns: Any) -> int:
    return min(-(-columns.size // BLOCK_EDGES) * BLOCK_WARPS, MOST_WARPS)


@functools.cache
def _pieces(wide: str) -> tuple[Any, Any]:
    """Memory for what warps have of a row that began in another one's run."""
    return cp.empty(MOST_WARPS, np.int32), cp.empty(MOST_WARPS, np.float64 if wide == "Float" else np.int64)


_QUEUES: dict[tuple[int, int], Queue] = {}


def _queue(part: Partition, offsets: Any) -> Queue:
    """Memory for frontiers of rows that have edges, kept as long as the partition."""
    key = (id(part), offsets.data.ptr)
    if key not in _QUEUES:
        rows = int(cp.count_nonzero(offsets[1:] > offsets[:-1]))
        _QUEUES[key] = queue_for(rows, part.num_local_edges, 1)
        weakref.finalize(part, _QUEUES.pop, key, None)
    return _QUEUES[key]
