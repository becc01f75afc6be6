"""Phase 1: every reader asks the master rule who is master of each node of its slice."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from cusp.compile_rules import explain
from cusp.errors import PolicyError, together
from cusp.exchange import all_to_all
from cusp.graph_file import EdgeSlice
from cusp.policies import Policy
from cusp.prop import Prop

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@dataclass(frozen=True)
class Masters:
    """Who is master of whom, as far as this rank has to know.

    Attributes
    ----------
    of_slice : (nodes of the slice,) int32
        Master of each node that this rank read.
    my_nodes : (n,) int64
        Global ids, ascending, of the nodes whose master this rank is.
    my_degrees : (n,) int64
        Their out-degrees in the whole graph.
    of : function
        Masters, int32, of any array of global ids. A pure rule is evaluated anew for them: no
        rank holds the masters of all nodes.
    """

    of_slice: np.ndarray
    my_nodes: np.ndarray
    my_degrees: np.ndarray
    of: Callable[[np.ndarray], np.ndarray]


def assign_masters(edges: EdgeSlice, policy: Policy, rules: ModuleType, prop: Prop, comm: "Intracomm") -> Masters:
    """Evaluate the master rule for the nodes of this slice and tell each master of its nodes. Collective.

    Raises
    ------
    PolicyError
        The rule raised, could not be compiled or returned a rank that does not exist.
    """
    of_slice = np.empty(edges.indptr.size - 1, np.int32)
    with together(comm):
        try:
            wrong = rules.assign_masters(prop, edges.first_node, comm.size, of_slice)
        except Exception as error:
            raise explain(policy, error) from error
        if wrong >= 0:
            raise PolicyError(
                f"policy {policy.name}: get_master of node {edges.first_node + wrong:,} is not one of the "
                f"ranks 0 to {comm.size - 1}"
            )
    nodes = np.arange(edges.first_node, edges.first_node + of_slice.size)
    degrees = np.diff(edges.indptr)
    if comm.allreduce(int(np.count_nonzero(of_slice != comm.rank))) > 0:
        nodes = np.concatenate(all_to_all(comm, [nodes[of_slice == rank] for rank in range(comm.size)]))
        degrees = np.concatenate(all_to_all(comm, [degrees[of_slice == rank] for rank in range(comm.size)]))

    def masters_of(gids: np.ndarray) -> np.ndarray:
        masters = np.empty(gids.size, np.int32)
        rules.masters_of(prop, gids, masters)
        return masters

    return Masters(of_slice, nodes, degrees, masters_of)
