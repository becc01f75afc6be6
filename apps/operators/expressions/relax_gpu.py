"""What is compiled for a drain on the GPU: the kernels of relax.cuh around an operator and its priority."""

import functools
from typing import Any

import numpy as np

from cusp.apps.operators.expressions.edges_gpu import defines_of, kernel_text, lines_of, operator_text
from cusp.apps.operators.expressions.interfaces import Pass, Priority
from cusp.kernels.cuda import Kernels, c_type, load
from cusp.language.terms import FLOAT, SATURATE, converted, loaded, negative, number
from gluon.reduction import MAX, MIN

RELAX, RELAX_PEERS = (f"cusp/apps/operators/expressions/{name}.cuh" for name in ("relax", "peers/relax"))
SIGN = 1 << 63
INFINITE = SIGN + (0x7FF << 52)  # code_of(infinity()) in relax.cuh
MORE = """
  static const bool FALLS = {falls};  // of a node: its priority never rises when its value changes
  __device__ Key priority(i64 node, Value value) const {{
{loads}
    return {priority};
  }}
  __device__ void prefetch_edge(i64 edge) const {{ {ahead} }}
"""
DRAIN = "Nodes nodes, Queues queues, Key until, Key delta, i64 edges, i64 steps, i64* done"
KERNELS = {  # what each is given
    "relax_drain": DRAIN,
    "add_bits": "Nodes nodes, const unsigned* bits, u64* sums, u64* host",
    "find_steps": "Nodes nodes, Float* found, i64 most, u64* count",
}


def key_of(edges: Pass, priority: Priority) -> np.dtype:
    """The type of priorities on a GPU: that of the label, if they are its values; a float32 as a float64."""
    return edges.dtype if priority.kind == "Value" and edges.dtype != np.float32 else np.dtype(np.float64)


def highest(key: np.dtype) -> Any:
    return MIN.identity(key).item()


def key_below(below: int, key: np.dtype) -> Any:
    """The key that is so far below the highest one: twin of key_below in relax.cuh."""
    if key.kind != "f":
        return highest(key) - below
    code = INFINITE - below
    bits = code - SIGN if code >= SIGN else ~code & (2 * SIGN - 1)
    return np.array([bits], np.uint64).view(np.float64)[0].item()


@functools.cache
def kernels_of(edges: Pass, priority: Priority, among_peers: bool = False) -> Kernels:
    """The kernels of an operator and its priority."""
    return load(*relax_source(edges, priority, among_peers), **relax_defines(edges, priority))


def relax_defines(edges: Pass, priority: Priority) -> dict[str, str]:
    """Macros of relax.cuh."""
    return {"KEY": c_type(key_of(edges, priority)), **defines_of(edges)}


def relax_source(edges: Pass, priority: Priority, among_peers: bool = False) -> tuple[str, str]:
    """The file of kernels, and what follows it in the source."""
    memory = {"relax_peers": f"ManyRanks::Given given, {DRAIN}"} if among_peers else KERNELS
    kernels = (
        kernel_text(edges, f"{name}_of", name, memory, "512, RESIDENT" if name.startswith("relax") else "256, 4")
        for name, memory in memory.items()
    )
    return RELAX_PEERS if among_peers else RELAX, ordered_text(edges, priority) + "".join(kernels)


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
