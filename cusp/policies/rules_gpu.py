"""The streaming loops of phases 1 and 2 on the GPU, with the rules of a policy translated into them."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import c_type, load, struct, threads_for_rows
from cusp.policies.inspect_rules import Uses
from cusp.policies.policy import Policy
from cusp.policies.prop import NUMBERS
from cusp.policies.translate_rules import translate

NUM_FIELDS = len(NUMBERS) + 17
NOTHING_WRONG = (1 << 63) - 1
DIVISIONS = ("", "integer division by zero", "integer modulo by zero", "division by zero")


class Loops:
    """The loops of :data:`cusp.policies.compile_rules.TEMPLATE` for device arrays, under the same names.

    Parameters
    ----------
    policy : Policy
    uses : Uses
        What its rules look at.

    Raises
    ------
    UntranslatableError
        A rule cannot be translated, so it has to run on the host.
    """

    def __init__(self, policy: Policy, uses: Uses) -> None:
        self._text = translate(policy.master, policy.edge)
        self._target_master = 0 if not uses.target_master else 1 if uses.computed else 2  # as in rules.cuh

    def assign_masters(
        self, prop: Any, begin: int, end: int, num_parts: int, mstate: Any, masters: Any, own: Any, at: Any
    ) -> int:
        wrong = cp.full(1, NOTHING_WRONG, cp.int64)
        kernels = self._kernels(prop, own.dtype, np.dtype(np.uint8))
        kernels.assign_masters(end - begin, _struct(prop, None, None), int(begin), int(end), own, wrong)
        return _first_wrong(wrong, at)

    def masters_of(self, prop: Any, nodes: Any, masters: Any, at: Any) -> None:
        kernels = self._kernels(prop, masters.dtype, np.dtype(np.uint8))
        nodes = nodes.astype(cp.int64, copy=False)
        kernels.masters_of(nodes.size, _struct(prop, None, None), nodes, nodes.size, masters)

    def assign_edges(
        self, prop: Any, begin: int, end: int, num_parts: int, masters: Any, own: Any, estate: Any, owners: Any, at: Any
    ) -> int:
        wrong = cp.full(1, NOTHING_WRONG, cp.int64)
        kernels = self._kernels(prop, own.dtype, owners.dtype)
        kernels.assign_edges(
            threads_for_rows(prop.indptr[begin : end + 1]), _struct(prop, own, masters), int(begin), int(end), own,
            owners, wrong,
        )  # fmt: skip
        return _first_wrong(wrong, at)

    def _kernels(self, prop: Any, rank: np.dtype, owner: np.dtype) -> Any:
        return load(
            "cusp/policies/rules.cuh", self._text,
            GID=c_type(prop.targets.dtype), RANK=c_type(rank), OWNER=c_type(owner),
            DST_MASTER=str(self._target_master), NUM_FIELDS=str(NUM_FIELDS),
        )  # fmt: skip


def _first_wrong(wrong: Any, at: Any) -> int:
    """Index of the first row or edge; a rule that divided by zero there raises what it raises on the host."""
    first = int(wrong[0])
    if first == NOTHING_WRONG:
        return -1
    if first & 3:
        at[0] = first >> 2
        raise ZeroDivisionError(DIVISIONS[first & 3])
    return first >> 2


def _struct(prop: Any, own: Any, masters: Any) -> np.ndarray:
    """The struct Prop of rules.cuh."""
    arrays = [
        cp.asarray(prop.guess, cp.int32), cp.asarray(prop.bounds, cp.int64), prop.indptr, prop.targets,
        prop.neighbor_index, prop.neighbor_degrees, prop.in_degrees, prop.node_map,
        cp.asarray(prop.share_starts, cp.int64), own,
        None if masters is None else masters.table,
    ]  # fmt: skip
    sizes = [prop.indptr.size - 1, prop.shift, prop.neighbor_index.size, prop.in_degrees.size, prop.node_map.size]
    sizes.append(prop.share_starts.size)
    numbers = [getattr(prop, name) for name in NUMBERS]
    on_device = [array if isinstance(array, cp.ndarray) else None for array in arrays]  # others are empty
    return struct(*numbers, *sizes, *on_device)
