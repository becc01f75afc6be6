"""Prop: what a rule may ask about the graph and the partition (CuSP, IPDPS 2019, section III).

An ordinary Python class that numba also understands: each method below is written once and is
both what Python runs and what numba compiles into the streaming loop.
"""

from collections.abc import Callable

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import (
    NativeValue,
    make_attribute_wrapper,
    models,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)

from cusp.graph_file import EdgeSlice

GUESSES = 4096


class Prop:
    """The graph as this rank sees it while it assigns its slice.

    Attributes
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    num_parts : int
        Number of ranks to divide it among.
    rows, columns : int
        The grid of ranks for two-dimensional cuts: ``rows * columns == num_parts``.
    threshold : int
        Degree above which a node counts as a hub.
    """

    __slots__ = (
        "num_nodes", "num_edges", "num_parts", "rows", "columns", "threshold",
        "first_node", "shift", "bounds", "guess", "indptr", "targets",
    )  # fmt: skip

    def __init__(self, edges: EdgeSlice, num_parts: int, grid: tuple[int, int], threshold: int) -> None:
        self.num_nodes, self.num_edges = edges.num_nodes, edges.num_edges
        self.num_parts, self.threshold = num_parts, threshold
        self.rows, self.columns = grid
        self.first_node = edges.first_node
        self.indptr, self.targets = edges.indptr, edges.targets
        self.bounds = edges.bounds
        # reader(): a table says for each block of 2**shift nodes which rank reads its first node
        self.shift = max(0, (edges.num_nodes - 1).bit_length() - GUESSES.bit_length() + 1)
        blocks = np.arange((edges.num_nodes >> self.shift) + 1) << self.shift
        guess = np.searchsorted(edges.bounds, blocks, side="right") - 1
        self.guess = np.minimum(guess, num_parts - 1).astype(np.int32)

    def out_degree(self, node):  # type: ignore[no-untyped-def]
        """Number of out-edges of a node of this rank's slice (every ``src`` is one); -1 for any other."""
        row = node - self.first_node
        if row < 0 or row >= self.indptr.size - 1:
            return -1
        return self.indptr[row + 1] - self.indptr[row]

    def out_neighbors(self, node):  # type: ignore[no-untyped-def]
        """Targets of the out-edges of a node of this rank's slice, a view; empty for any other."""
        row = node - self.first_node
        if row < 0 or row >= self.indptr.size - 1:
            return self.targets[:0]
        return self.targets[self.indptr[row] : self.indptr[row + 1]]

    def reader(self, node):  # type: ignore[no-untyped-def]
        """Rank that reads a node: contiguous blocks of nodes with equal numbers of edges."""
        rank = self.guess[node >> self.shift]
        while node >= self.bounds[rank + 1]:
            rank += 1
        return rank


METHODS: tuple[Callable, ...] = (Prop.out_degree, Prop.out_neighbors, Prop.reader)


class PropType(types.Type):
    """numba's type of a Prop; the width of global ids is its only parameter."""

    def __init__(self, gid: types.Type) -> None:
        self.fields = [
            (name, types.int64)
            for name in ("num_nodes", "num_edges", "num_parts", "rows", "columns", "threshold", "first_node", "shift")
        ] + [
            ("bounds", types.Array(types.int64, 1, "C")),
            ("guess", types.Array(types.int32, 1, "C")),
            ("indptr", types.Array(types.int64, 1, "C")),
            ("targets", types.Array(gid, 1, "C")),
        ]
        super().__init__(f"Prop({gid})")


@typeof_impl.register(Prop)
def _typeof_prop(prop, context):  # type: ignore[no-untyped-def]
    return PropType(types.uint32 if prop.targets.dtype == np.uint32 else types.uint64)


@register_model(PropType)
class _PropModel(models.StructModel):
    def __init__(self, manager, prop_type):  # type: ignore[no-untyped-def]
        super().__init__(manager, prop_type, prop_type.fields)


@unbox(PropType)
def _unbox_prop(prop_type, prop, context):  # type: ignore[no-untyped-def]
    struct = cgutils.create_struct_proxy(prop_type)(context.context, context.builder)
    for name, field_type in prop_type.fields:
        field = context.pyapi.object_getattr_string(prop, name)
        setattr(struct, name, context.unbox(field_type, field).value)
        context.pyapi.decref(field)
    failed = cgutils.is_not_null(context.builder, context.pyapi.err_occurred())
    return NativeValue(struct._getvalue(), is_error=failed)


def _compiled_as(method: Callable) -> Callable:
    return lambda self, node: method


for _name in Prop.__slots__:
    make_attribute_wrapper(PropType, _name, _name)
for _method in METHODS:
    overload_method(PropType, _method.__name__)(_compiled_as(_method))
