"""Drains on the GPU, see interfaces.py: each pass takes the lowest bucket of what is pending, near before far.

The near and the far pile of Davidson, Baxter, Garland, Owens (IPDPS 2014), as bits: a bucket begins at the lowest
priority of a pending node, whatever came before. The kernels are in drains.cuh and edges.cuh.
"""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.expressions.edges_gpu import defines_of, lines_of, text_of
from apps.operators.expressions.interfaces import Ordered
from apps.operators.frontier_gpu import queue_for, threads_for
from apps.shared.lengths import width_of_steps
from cusp.kernels.cuda import c_type, load, many_threads, sums_of
from cusp.partition import Partition
from gluon.device_gpu import count_bits, no_bits

DRAINS = "apps/operators/expressions/drains.cuh"
SAMPLE_SIZE = 1 << 10
GUESSES = (0, 1 << 14)  # after how many edges the width of a bucket is chosen, unless it is given
TEMPLATE = """
struct Given {{
  Operator edges;
{members}
  __device__ Float priority(i64 node, Value value) const {{
{loads}
    return {priority};
  }}
}};
"""
KERNEL = """
extern "C" __global__ void {name}_of({declared}{parameters}) {{
  {name}(Given{{Operator{{{arguments}}}{also}}}, {passed});
}}
"""
KERNELS = {  # what each is given
    "find_lowest": "const unsigned* pending, i64 size, const Value* values, u64* lowest",
    "take_lowest": "unsigned* pending, i64 size, const i64* offsets, const Value* values, Value* relaxed_at, "
    "const u64* lowest, Float delta, unsigned* frontier, u64* sums, u64* host",
    "find_steps": "const unsigned* pending, i64 size, const i64* offsets, const int* columns, const Value* values, "
    "Float* found, i64 most, u64* count",
}


class Drain:
    def __init__(self, part: Partition, ordered: Ordered, delta: float | None) -> None:
        self._part, self._ordered, self._label, self._delta = part, ordered, ordered.label, delta or 1.0
        self._kernels = load(DRAINS, drain_text(ordered), **defines_of(ordered.edges))
        self._size, self._threads = part.num_proxies, threads_for(part.num_proxies)
        self._pending, self._frontier, self._fresh = (no_bits(self._size) for _ in range(3))
        self._relaxed_at: Any = None
        self._queue = queue_for(
            int(cp.count_nonzero(ordered.offsets[1:] > ordered.offsets[:-1])), part.num_local_edges, 1
        )
        self._lowest = cp.empty(1, np.uint64)
        self._guesses = 0 if delta is None else len(GUESSES)
        self.edges = 0

    def add(self, bits: Any) -> None:
        self._add(bits, self._relaxed_at)
        if self._relaxed_at is None:
            self._relaxed_at = self._label.values.copy()

    def count(self) -> int:
        return int(count_bits(self._pending, self._size))

    def run(self, edges: int) -> bool:
        most = self.edges + edges
        while self.edges < most:
            if self._guesses < len(GUESSES) and self.edges >= GUESSES[self._guesses]:
                self._guess()
            if not self._relax_bucket():
                return False
        return self.count() > 0

    def _relax_bucket(self) -> bool:
        """One pass over the edges of the nodes in the lowest bucket; returns whether there are any."""
        kernels, label, given, rows = self._kernels, self._label, self._ordered.given, self._ordered
        sums = sums_of(2)
        self._lowest.fill(np.uint64(2**64 - 1))
        kernels.find_lowest_of(self._threads, self._pending, self._size, label.values, self._lowest, *given)
        kernels.take_lowest_of(self._threads, self._pending, self._size, rows.offsets, label.values, self._relaxed_at,
                               self._lowest, np.float64(self._delta), self._frontier, sums.counters, sums.address,
                               *given)  # fmt: skip
        nodes, edges = sums.read()
        if edges > 0:
            kernels.queue_bits(self._threads, self._frontier, self._size, rows.offsets, self._queue.struct)
            kernels.over_edges(many_threads(), self._queue.struct, rows.columns, label.values, self._fresh, *given)
            cp.bitwise_or(label.updated, self._fresh, out=label.updated)
            self._add(self._fresh, None)
            self._fresh.fill(0)
        self.edges += edges
        return nodes > 0

    def _add(self, bits: Any, relaxed_at: Any) -> None:
        old = np.uint64(0) if relaxed_at is None else relaxed_at
        self._kernels.add_bits(self._threads, bits, self._size, self._label.values, old, self._pending)

    def _guess(self) -> None:
        """Choose the width of buckets: it follows from how much higher priorities are behind edges of pending nodes."""
        self._guesses += 1
        found, count, rows = cp.empty(SAMPLE_SIZE), cp.zeros(1, np.uint64), self._ordered
        self._kernels.find_steps_of(self._threads, self._pending, self._size, rows.offsets, rows.columns,
                                    self._label.values, found, SAMPLE_SIZE, count, *rows.given)  # fmt: skip
        steps = found.get()[: int(count.get()[0])]
        self._delta = width_of_steps(steps, self._part, rows.priority.whole)


def drain_text(ordered: Ordered) -> str:
    """What follows drains.cuh in the source of a drain."""
    edges, priority = ordered.edges, ordered.priority
    declared = [
        f"{kind} {name}" if isinstance(kind, str) else f"const {c_type(kind)}* {name}"
        for name, kind in edges.parameters
    ]
    arguments = ", ".join(name for name, _ in edges.parameters)
    given = TEMPLATE.format(
        members="\n".join(f"  {member};" for member in declared), loads=lines_of(priority.loads), priority=priority.text
    )
    parameters = "".join(f", {member}" for member in declared)
    return text_of(edges) + given + "".join(
        KERNEL.format(
            name=name, declared=takes, parameters=parameters, arguments=arguments, also=arguments and f", {arguments}",
            passed=", ".join(each.split()[-1] for each in takes.split(",")),
        )
        for name, takes in KERNELS.items()
    )  # fmt: skip
