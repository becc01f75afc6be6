"""State of rules: a namedtuple of arrays that the policy makes and that ranks combine after every round."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from mpi4py import MPI

from cusp.errors import PolicyError, together
from cusp.policies.policy import Policy

COMBINE = ("add", "max", "min", "local")


def make_state(make: Any, prop: Any, combine: Mapping[str, str], name: str) -> Any:
    """State of one rule on this rank, or None if the policy makes none.

    Raises
    ------
    PolicyError
        It is not a namedtuple of arrays, or the way to combine a field is unknown.
    """
    if make is None:
        return None
    state = make(prop)
    if not hasattr(state, "_fields") or not all(isinstance(field, np.ndarray) for field in state):
        made = type(state).__name__
        raise PolicyError(f"policy {name}: {make.__name__} must return a namedtuple of arrays, not {made}")
    for field in state._fields:
        how = combine.get(field, "add")
        if how not in COMBINE:
            raise PolicyError(f"policy {name}: field {field} is to be combined by {how!r}; choose one of {COMBINE}")
    return state


def start_state(make: Callable | None, prop: Any, policy: Policy, comm: MPI.Intracomm) -> tuple[Any, Any]:
    """The state of a rule before its first round, and a copy to see later what changed. Collective."""
    with together(comm):
        state = make_state(make, prop, policy.combine, policy.name)
    return state, copy_state(state)


def block_starts(bounds: np.ndarray, rounds: int) -> np.ndarray:
    """(ranks, rounds + 1) int64: first node of each block when every slice is cut into ``rounds`` blocks.

    The last entry of a rank ends its slice. State is combined after each block.
    """
    sizes = np.diff(bounds)[:, None]
    return bounds[:-1, None] + sizes * np.arange(rounds + 1)[None, :] // rounds


def copy_state(state: Any) -> Any:
    """The same values in new arrays."""
    return None if state is None else type(state)(*(field.copy() for field in state))


def combine_state(state: Any, before: Any, combine: Mapping[str, str], comm: MPI.Intracomm) -> Any:
    """Combine what every rank did to a state since ``before``, in place; returns a copy. Collective.

    ``add``: the sum of all changes is added to what was known; ``max`` and ``min``: the extreme of all
    ranks; ``local``: each rank keeps its own (scratch arrays, facts about its own neighbours).
    """
    for name, field, old in zip(state._fields, state, before):
        how = combine.get(name, "add")
        if how == "add":
            field -= old
            comm.Allreduce(MPI.IN_PLACE, field, MPI.SUM)
            field += old
        elif how != "local":
            comm.Allreduce(MPI.IN_PLACE, field, MPI.MAX if how == "max" else MPI.MIN)
    return copy_state(state)
