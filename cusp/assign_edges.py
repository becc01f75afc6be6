"""Phase 2: every reader asks the edge rule which rank stores each edge of its slice."""

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from cusp.assign_masters import Masters
from cusp.compile_rules import explain
from cusp.errors import PolicyError, together
from cusp.graph_file import EdgeSlice
from cusp.policies import Policy
from cusp.prop import Prop

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def assign_edges(
    edges: EdgeSlice, masters: Masters, policy: Policy, rules: ModuleType, prop: Prop, comm: "Intracomm"
) -> np.ndarray | None:
    """Owner of each edge of this slice. Collective.

    Returns
    -------
    (edges,) uint8 or uint16, or None
        None on every rank if every edge stays where it was read. Owners are computed once and
        kept, so an edge rule may depend on what it saw before.

    Raises
    ------
    PolicyError
        The rule raised, could not be compiled or returned a rank that does not exist.
    """
    owners = np.empty(edges.targets.size, np.uint8 if comm.size <= 256 else np.uint16)
    with together(comm):
        try:
            wrong = rules.assign_edges(prop, comm.size, masters.of_slice, owners)
        except Exception as error:
            raise explain(policy, error) from error
        if wrong >= 0:
            source = edges.first_node + int(np.searchsorted(edges.indptr, wrong, side="right")) - 1
            raise PolicyError(
                f"policy {policy.name}: get_edge_owner of the edge {source:,} -> {int(edges.targets[wrong]):,} "
                f"is not one of the ranks 0 to {comm.size - 1}"
            )
    travels = bool((owners != comm.rank).any())
    return owners if comm.allreduce(int(travels)) else None
