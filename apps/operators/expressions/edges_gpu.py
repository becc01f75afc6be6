"""Edge operators on the GPU: the kernels of edges.cuh around an expression, compiled by NVRTC when first called."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.interfaces import Load, Pass
from cusp.apps.operators.frontier_gpu import queue_of, threads_for
from cusp.apps.operators.interfaces import kept_with
from cusp.apps.operators.sums.rows_gpu import RowGroups, group_rows
from cusp.kernels.cuda import Struct, c_type, load, many_threads, struct
from cusp.partition import Partition
from gluon.reduction import ADD, MAX, MIN, OR

EDGES = "cusp/apps/operators/expressions/edges.cuh"
# what a GPU has an atomic operation for
ATOMICS = {MIN.joined: "MINIMUM", MAX.joined: "MAXIMUM", ADD.joined: "SUM", OR.joined: "BITS"}
OPERATOR = """
__device__ inline Wide identity() {{ return {identity}; }}
struct Operator {{
  static const bool FILTERED = {filtered}, CONDITIONAL = {conditional}, BY_ROW = {by_row};
{members}
  __device__ bool where(i64 row, i64 col, i64 edge) const {{
{where_loads}
    return {where};
  }}
  __device__ Value candidate(i64 row, i64 col, i64 edge) const {{
{loads}
    return {candidate};
  }}
{more}}};
"""
KERNEL = """
extern "C" __global__ void __launch_bounds__({bounds}) {name}({memory}{parameters}) {{
  {way}(Operator{{{arguments}}}, {passed});
}}
"""
LABEL = "const int* columns, Value* values, unsigned* updated"
WAYS = {  # ways through the edges, with what they are given
    "push_queue": f"Queues queues, {LABEL}",
    "push_all": f"Rows rows, {LABEL}",
    "pull": f"Rows rows, {LABEL}, const unsigned* frontier, int* piece_rows, Wide* pieces",
}


def compile_pass(edges: Pass) -> Callable[..., None]:
    way = way_of(edges)
    kernels = functools.partial(load, EDGES, text_of(edges), **defines_of(edges))

    def run(part: Partition, frontier: Any, offsets: Any, columns: Any, values: Any, updated: Any, *given: Any) -> None:
        if part.num_local_edges == 0:
            return
        if way == "push_queue":
            queues = queue_of(part, offsets).struct
            kernels().queue_bits(threads_for(values.size), frontier, values.size, offsets, queues)
            kernels().over_edges(many_threads(), queues, columns, values, updated, *given)
            return
        rows, listed = kept_with(part, ("rows", offsets.data.ptr), lambda: _list_rows(offsets))
        warps, pieces = rows.piece_lids.size, rows.pieces.view(np.float64 if edges.wide == "Float" else np.int64)
        memory = (frontier, rows.piece_lids, pieces) if way == "pull" else ()
        kernels().over_edges(32 * warps, listed, columns, values, updated, *memory, *given)
        if way == "pull":
            kernels().join_pieces(32 * warps, warps, rows.piece_lids, pieces, values, updated)

    return run


def way_of(edges: Pass) -> str:
    """How a pass goes through the edges."""
    return "pull" if edges.into_row else "push_queue" if edges.filtered else "push_all"


def defines_of(edges: Pass) -> dict[str, str]:
    """Macros of edges.cuh."""
    atomic = ATOMICS.get(edges.reduction.joined, "SWAP")
    wide = "double" if edges.wide == "Float" else "long long"
    return {"VALUE": c_type(edges.dtype), "WIDE": wide, "ATOMIC": atomic, **edges.reduction.macros()}


def text_of(edges: Pass) -> str:
    """What follows edges.cuh in the source of a pass."""
    way = way_of(edges)
    return operator_text(edges) + kernel_text(edges, "over_edges", way, WAYS[way], "256, 4")


def operator_text(edges: Pass, more: str = "") -> str:
    """Struct Operator, with more functions."""
    return OPERATOR.format(
        identity=edges.identity, filtered=str(edges.filtered and edges.into_row).lower(),
        conditional=str(bool(edges.where)).lower(), by_row=str(edges.leaves_out_rows).lower(),
        members="".join(f"  {each};\n" for each in _declared(edges)),
        where_loads=lines_of(edges.where_loads), where=edges.where or "true", loads=lines_of(edges.loads),
        candidate=edges.candidate, more=more,
    )  # fmt: skip


def kernel_text(edges: Pass, name: str, way: str, memory: str, bounds: str) -> str:
    """A kernel that calls ``way`` with the operator and what it is given."""
    return KERNEL.format(
        name=name, way=way, bounds=bounds, memory=memory,
        parameters="".join(f", {member}" for member in _declared(edges)),
        arguments=", ".join(name for name, _ in edges.parameters),
        passed=", ".join(part.split()[-1] for part in memory.split(",")),
    )  # fmt: skip


def _declared(edges: Pass) -> list[str]:
    """The parameters of a pass in C++."""
    return [
        f"{kind} {name}" if isinstance(kind, str) else f"const {c_type(kind)}* {name}"
        for name, kind in edges.parameters
    ]


def lines_of(loads: Iterable[Load]) -> str:
    return "\n".join(f"    const {load.kind} {load.variable} = {load.text};" for load in loads)


def _list_rows(offsets: Any) -> tuple[RowGroups, Struct]:
    """All rows that have edges, with memory for pieces of them, and struct Rows of runs.cuh."""
    rows = group_rows(cp.arange(offsets.size - 1, dtype=np.int32), [0, offsets.size - 1], offsets)
    return rows, struct(rows.lids, rows.starts, rows.shifts, rows.lids.size, 0, rows.edges[0])
