"""Relaxing by priority on the GPU: all buckets of a rank in one kernel, near before far.

The near and the far pile of Davidson, Baxter, Garland, Owens (IPDPS 2014), as bits: a bucket begins at the lowest
priority of a pending node, whatever came before. The kernels are in relax.cuh, around the operator of edges_gpu.py.
"""

import math
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.edges_gpu import defines_of, kept, kernel_text, lines_of, operator_text
from cusp.apps.operators.expressions.interfaces import Ordered, Pass, Priority
from cusp.apps.operators.frontier_gpu import Queue, blocks_for, queue_for, threads_for
from cusp.kernels.cuda import Kernels, Struct, c_type, load, struct, sums_of
from cusp.language.terms import FLOAT, SATURATE, converted, loaded, negative, number
from cusp.partition import Partition
from gluon.device_gpu import read
from gluon.reduction import MAX, MIN

RELAX = "cusp/apps/operators/expressions/relax.cuh"
AT_ONCE, STEPS_AT_ONCE = 1 << 30, 1 << 14  # edges and steps in one kernel: the host has control at least each second
SIGN = 1 << 63
INFINITE = SIGN + (0x7FF << 52)  # code_of(infinity()) in relax.cuh
SAMPLE_SIZE = 1 << 10
MORE = """
  static const bool FALLS = {falls};  // of a node: its priority never rises when its value changes
  __device__ Key priority(i64 node, Value value) const {{
{loads}
    return {priority};
  }}
  __device__ void prefetch_edge(i64 edge) const {{ {ahead} }}
"""
KERNELS = {  # what each is given
    "relax_drain": "Nodes nodes, Queues queues, Key until, Key delta, i64 edges, i64 steps, i64* done",
    "add_bits": "Nodes nodes, const unsigned* bits, u64* sums, u64* host",
    "find_steps": "Nodes nodes, Float* found, i64 most, u64* count",
}


class Relaxer:
    """The kernels of an operator on one partition, and the memory that they need while they run.

    Attributes
    ----------
    key : numpy type
        Of priorities.
    queue, stamps : Queue, (proxies,) int32
        Memory that all operators of a partition share.
    done : (4,) int64
        Buckets, edges, and rounds of the block that took most so far; whether the last kernel met its bound.
    """

    def __init__(self, part: Partition, ordered: Ordered) -> None:
        self._size, self._rows = part.num_proxies, (ordered.offsets, ordered.columns)
        self._given = [None if each is ordered.label.values else each for each in ordered.given]
        self.key, self._kernels = key_of(ordered.edges, ordered.priority), kernels_of(ordered.edges, ordered.priority)
        self._threads, self._blocks = threads_for(part.num_proxies), blocks_for(part)
        self.queue, self.stamps = kept(part, ordered.offsets, _make_memory)
        self.done = cp.zeros(4, np.int64)

    def nodes(self, values: Any, pending: Any, updated: Any = None, relaxed_at: Any = None) -> Struct:
        """Struct Nodes of relax.cuh."""
        return struct(self._size, *self._rows, values, pending, self.stamps, updated, relaxed_at)

    def given(self, values: Any) -> list[Any]:
        """The parameters of the operator, where the label that is written has these values."""
        return [values if each is None else each for each in self._given]

    def run(self, nodes: Struct, until: Any, delta: float, edges: int = AT_ONCE) -> bool:
        """Relax pending nodes up to a key, about so many edges at most; returns whether that was not the end."""
        width = width_in(self.key, delta)
        self._kernels.resident("relax_drain_of", self._blocks)(
            nodes, self.queue.struct, self.key.type(until), width, edges, STEPS_AT_ONCE, self.done,
            *self.given(nodes.members[3]),
        )  # fmt: skip
        return bool(read(self.done)[3])

    def look(self, nodes: Struct, bits: Any = None) -> tuple[Any, int]:
        """The lowest priority of a pending node, and how many there are, after those with a bit were added."""
        sums, added = sums_of(2), np.uint64(0) if bits is None else bits
        self._kernels.add_bits_of(
            self._threads, nodes, added, sums.counters, sums.address, *self.given(nodes.members[3])
        )
        below, count = sums.read()
        return key_below(below, self.key), count

    def steps(self, nodes: Struct) -> Any:
        """How much higher priorities are behind edges of pending nodes."""
        found, count = cp.empty(SAMPLE_SIZE), cp.zeros(1, np.uint64)
        self._kernels.find_steps_of(self._threads, nodes, found, SAMPLE_SIZE, count, *self.given(nodes.members[3]))
        return found.get()[: int(count.get()[0])]

    def last_below(self, limit: Any) -> Any:
        """The last key below a limit; the highest one is not left out. None if there is none."""
        if limit >= highest(self.key):
            return highest(self.key)
        if self.key.kind == "f":
            return np.nextafter(limit, -np.inf)
        return math.ceil(limit) - 1 if limit > np.iinfo(self.key).min else None


def _make_memory(part: Partition, offsets: Any) -> tuple[Queue, Any]:
    """Memory for two frontiers of rows with edges, and stamps of all proxies; a kernel leaves both for the next."""
    rows = int(cp.count_nonzero(offsets[1:] > offsets[:-1]))
    return queue_for(rows, part.num_local_edges, 2), cp.zeros(part.num_proxies, np.int32)


def key_of(edges: Pass, priority: Priority) -> np.dtype:
    """The type of priorities on a GPU: that of the label, if they are its values; a float32 as a float64."""
    return edges.dtype if priority.kind == "Value" and edges.dtype != np.float32 else np.dtype(np.float64)


def highest(key: np.dtype) -> Any:
    return MIN.identity(key).item()


def width_in(key: np.dtype, delta: float) -> Any:
    """The width of a bucket as a key; of whole numbers at least 1."""
    width = min(delta, highest(key))
    return key.type(width if key.kind == "f" else max(round(width), 1))


def key_below(below: int, key: np.dtype) -> Any:
    """The key that is so far below the highest one: twin of key_below in relax.cuh."""
    if key.kind != "f":
        return highest(key) - below
    code = INFINITE - below
    bits = code - SIGN if code >= SIGN else ~code & (2 * SIGN - 1)
    return np.array([bits], np.uint64).view(np.float64)[0].item()


def kernels_of(edges: Pass, priority: Priority) -> Kernels:
    """The kernels of an operator and its priority."""
    return load(RELAX, relax_text(edges, priority), **relax_defines(edges, priority))


def relax_defines(edges: Pass, priority: Priority) -> dict[str, str]:
    """Macros of relax.cuh."""
    return {"KEY": c_type(key_of(edges, priority)), **defines_of(edges)}


def relax_text(edges: Pass, priority: Priority) -> str:
    """What follows relax.cuh in the source of a drain."""
    kernels = (
        kernel_text(edges, f"{name}_of", name, memory, "512, RESIDENT" if name == "relax_drain" else "256, 4")
        for name, memory in KERNELS.items()
    )
    return ordered_text(edges, priority) + "".join(kernels)


def ordered_text(edges: Pass, priority: Priority) -> str:
    """The operator that relax.cuh needs, and the highest key."""
    key = key_of(edges, priority)
    top = "infinity()" if key.kind == "f" else number(highest(key)).text
    value = loaded("value", edges.dtype)
    rising = converted(negative(value, SATURATE), FLOAT).text
    falls = {MIN: ("value", converted(value, FLOAT).text), MAX: (rising,)}.get(edges.reduction, ())
    weighs = any(name == "all_weight" for name, _ in edges.parameters)
    more = MORE.format(
        falls=str(priority.text in falls).lower(), loads=lines_of(priority.loads), priority=priority.text,
        ahead="prefetch(&all_weight[edge]);" if weighs else "",
    )  # fmt: skip
    return f"__device__ inline Key highest() {{ return {top}; }}\n{operator_text(edges, more)}"
