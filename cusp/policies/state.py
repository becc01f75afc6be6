"""State of rules: a namedtuple of arrays that the policy makes and that ranks combine after every round."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.errors import PolicyError, shortened, together
from cusp.kernels.arrays import changed_rows
from cusp.policies.definitions import changed_fields
from cusp.policies.policy import Policy, of_the_user
from cusp.runtime.mpi import MPI

if TYPE_CHECKING:
    from cusp.neighbors import Neighbors

COMBINE = ("add", "max", "min", "split", "local", "reader", "or")
OF_NODES = ("reader", "or")  # of fields with an entry, or several, for each of prop.num_places nodes
MANY = 1 << 12  # entries of a field: of longer ones, only the changes are sent


def make_state(make: Any, prop: Any, combine: Mapping[str, str], name: str) -> Any:
    """State of one rule on this rank, or None if the policy makes none.

    Raises
    ------
    PolicyError
        It is not a namedtuple of arrays, or the way to combine a field is unknown.
    """
    if make is None:
        return None
    maker = f"policy {name}: {getattr(make, '__name__', 'the function that makes the state')}"
    with of_the_user(f"{maker} raised"):
        state = make(prop)
    if not hasattr(state, "_fields") or not all(isinstance(field, np.ndarray) for field in state):
        raise PolicyError(f"{maker} must return a namedtuple of arrays, not {shortened(repr(state))}")
    for field, values in zip(state._fields, state):
        how = combine.get(field, "add")
        if how not in COMBINE:
            raise PolicyError(
                f"policy {name}: field {field} is to be combined by {shortened(repr(how))}; choose one of {COMBINE}"
            )
        if how in OF_NODES and (values.size % max(prop.num_places, 1) or how == "or" and values.dtype.kind not in "iu"):
            raise PolicyError(
                f"{maker} makes the field {field} of {values.size:,} entries of type {values.dtype}; one that is "
                f"combined by {how!r} has as many for each of the {prop.num_places:,} of prop.num_places"
                f"{', whole numbers' if how == 'or' else ''}"
            )
        if how == "split" and values.dtype.kind not in "iu":
            raise PolicyError(
                f"{maker} makes the field {field} of type {values.dtype}; only whole numbers can be split"
            )
        number = values.dtype.kind in "iu" or values.dtype in (np.float32, np.float64)
        if how != "local" and not (
            number and values.dtype.isnative and values.flags.c_contiguous and values.flags.writeable
        ):
            raise PolicyError(
                f"{maker} makes the field {field} of type {values.dtype}, strides {values.strides}; only a contiguous, "
                "writeable array of int, uint, float32 or float64 can be combined"
            )
    return state


def start_state(make: Callable | None, prop: Any, policy: Policy, comm: MPI.Intracomm) -> tuple[Any, Any]:
    """The state of a rule before its first round, and a copy to see later what changed. Collective."""
    with together(comm):
        state = make_state(make, prop, policy.combine, policy.name)
    if state is not None:
        shared = {
            name: (values.dtype.str, values.shape)
            for name, values in zip(state._fields, state)
            if policy.combine.get(name, "add") not in ("local", *OF_NODES)
        }
        ranks = comm.allgather(shared)
        other = next((rank for rank, theirs in enumerate(ranks) if theirs != ranks[0]), 0)
        if other:
            raise PolicyError(
                f"policy {policy.name}: the state that ranks combine is {ranks[0]} on rank 0, but {ranks[other]} on "
                f"rank {other}; combine such fields by 'local'"
            )
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


def combine_state(
    state: Any, before: Any, combine: Mapping[str, str], comm: MPI.Intracomm, neighbors: "Neighbors | None" = None,
    by: tuple[Callable, int] | None = None,
) -> None:  # fmt: skip
    """Combine what every rank did to a state since ``before``, in place, and in ``before``, too. Collective.

    ``add``: the sum of all changes is added to what was known; ``max`` and ``min``: the extreme of all
    ranks; ``split``: what all ranks have of it is dealt out evenly; ``local``: each rank keeps its own (scratch
    arrays, facts about its own neighbours). Of fields with entries for each of the nodes that a rank touches
    (``prop.place``): ``reader``: what the node's reader says; ``or``: the bits that any rank has set. ``by``: only
    this rule, which has the state at this place of its arguments, has changed what was the same before.
    """
    if comm.size == 1:
        return
    changed = changed_fields(*by, state) if by else state._fields
    for name, field, known in zip(state._fields, state, before):
        if name not in changed:
            continue
        how = combine.get(name, "add")
        if how in OF_NODES and neighbors is not None:
            width = max(-(-field.size // max(neighbors.size + neighbors.rows, 1)), 1)
            neighbors.exchange_changes(field.reshape(-1, width), known.reshape(-1, width), how == "or", comm)
        elif how == "add" and field.size > MANY:
            new, old = field.reshape(-1), known.reshape(-1)
            at = changed_rows(new[:, None], old[:, None])  # of which there is little
            changes = comm.allgather((at, new[at] - old[at]))
            for places, more in changes:
                old[places] += more
            for places, _ in changes:
                new[places] = old[places]
        elif how not in ("local", *OF_NODES):
            if how == "add":
                field -= known
            comm.Allreduce(MPI.IN_PLACE, field, {"max": MPI.MAX, "min": MPI.MIN}.get(how, MPI.SUM))
            if how == "add":
                field += known
            elif how == "split":
                field[:] = field // comm.size + (comm.rank < field % comm.size)
            known[:] = field
