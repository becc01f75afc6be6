"""Phase 1: every reader asks the master rule who is master of each node of its slice."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.errors import PolicyError, together
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.interfaces import Build
from cusp.neighbors import Neighbors, ask_readers, tell_neighbors
from cusp.policies.compile_rules import Rules
from cusp.policies.prop import MastersView, Prop
from cusp.policies.state import combine_state, copy_state, make_state
from cusp.runtime.devices import backend, device_of, move, to_host

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@dataclass(frozen=True)
class Masters:
    """Who is master of whom, as far as this rank has to know.

    Attributes
    ----------
    of_slice : (nodes of the slice,) int8 or int16
        Master of each node that this rank read.
    view : MastersView or None
        Masters of the slice and its neighbours, as rules see them; None if any rank can compute them.
    my_nodes : (n,) int64
        Global ids, ascending, of the nodes whose master this rank is.
    my_degrees : (n,) int64
        Their out-degrees in the whole graph.
    of : function
        Masters of any ascending array of global ids: computed, or asked of their readers.
        No rank holds the masters of all nodes. Collective.
    """

    of_slice: np.ndarray
    view: MastersView | None
    my_nodes: np.ndarray
    my_degrees: np.ndarray
    of: Callable[[np.ndarray], np.ndarray]

    def on(self, device: str) -> "Masters":
        """The same for phases that go on on another device; ``of`` still asks where the rules run."""
        if device == device_of(self.my_nodes):
            return self
        my_nodes, my_degrees = move(self.my_nodes, device), move(self.my_degrees, device)
        return replace(
            self, my_nodes=my_nodes, my_degrees=my_degrees, of=lambda gids: move(self.of(to_host(gids)), device)
        )


def assign_masters(
    edges: EdgeSlice, rules: Rules, prop: Prop, neighbors: Neighbors | None, comm: "Intracomm"
) -> Masters:
    """Evaluate the master rule for the nodes of this slice and tell each master of its nodes. Collective.

    Raises
    ------
    PolicyError
        The rule raised, could not be compiled or returned a rank that does not exist.
    """
    build = backend(Build, edges.device)
    xp = build.xp
    narrow = np.int8 if prop.num_parts <= 127 else np.int16  # small tables stay in the cache
    of_slice = xp.full(edges.indptr.size - 1, -1, narrow)
    view = None
    if neighbors is not None and not rules.computed:
        view = MastersView(edges.first_node, of_slice, neighbors.index, xp.full(neighbors.size, -1, narrow))
        _assign_in_rounds(edges, rules, prop, neighbors, view, comm)
    else:
        with together(comm):
            _assign_rows(edges, rules, prop, 0, of_slice.size, None, None, of_slice)
    nodes = xp.arange(edges.first_node, edges.first_node + of_slice.size)
    degrees = xp.diff(edges.indptr)
    if comm.allreduce(int(xp.count_nonzero(of_slice != comm.rank))) > 0:
        nodes, degrees = (
            xp.concatenate(build.all_to_all(comm, [values[of_slice == rank] for rank in range(comm.size)]))
            for values in (nodes, degrees)
        )

    bounds, prop = edges.bounds, prop.without_slice()  # the functions below live on when the slice is gone

    def computed(gids: np.ndarray) -> np.ndarray:
        found = xp.empty(gids.size, narrow)
        rules.run("masters_of", prop, gids, found)
        return found

    def asked(gids: np.ndarray) -> np.ndarray:
        return ask_readers(gids, bounds, of_slice, comm)

    return Masters(of_slice, view, nodes, degrees, computed if rules.computed else asked)


def _assign_in_rounds(
    edges: EdgeSlice, rules: Rules, prop: Prop, neighbors: Neighbors, view: MastersView, comm: "Intracomm"
) -> None:
    """Assign block by block; after each, ranks learn the masters they asked for and combine their states.

    A round is one block of every slice, so results depend on the number of rounds and ranks, never on
    timing. In a second pass (restreaming; Nishimura and Ugander, KDD 2013) the rule sees the masters
    of the pass before, and its state begins anew.
    """
    policy = rules.policy
    stateful = rules.uses_masters or policy.make_mstate is not None
    blocks = block_starts(edges.bounds, policy.rounds if stateful else 1)
    rows = blocks[comm.rank] - edges.first_node
    for _ in range(policy.passes if stateful else 1):
        state, before = start_state(rules, policy.make_mstate, prop, comm)
        for block in range(rows.size - 1):
            with together(comm):
                _assign_rows(edges, rules, prop, rows[block], rows[block + 1], state, view, view.own)
            tell_neighbors(neighbors, view.own, view.table, blocks, block, comm)
            if state is not None:
                before = combine_state(state, before, policy.combine, comm)


def block_starts(bounds: np.ndarray, rounds: int) -> np.ndarray:
    """(ranks, rounds + 1) int64: first node of each block when every slice is cut into so many."""
    sizes = np.diff(bounds)[:, None]
    return bounds[:-1, None] + sizes * np.arange(rounds + 1)[None, :] // rounds


def start_state(rules: Rules, make: Callable | None, prop: Prop, comm: "Intracomm") -> tuple[Any, Any]:
    """The state of a rule before its first round, and a copy to see later what changed. Collective."""
    with together(comm):
        state = make_state(make, prop, rules.policy.combine, rules.policy.name)
    return state, copy_state(state)


def _assign_rows(
    edges: EdgeSlice,
    rules: Rules,
    prop: Prop,
    begin: int,
    end: int,
    state: Any,
    view: MastersView | None,
    own: np.ndarray,
) -> None:
    for first, last in edges.storage.rows(edges.indptr, begin, end):
        wrong = rules.run("assign_masters", prop, first, last, prop.num_parts, state, view, own)
        if wrong >= 0:
            raise PolicyError(
                f"policy {rules.policy.name}: get_master of node {prop.first_node + wrong:,} is not one of the "
                f"ranks 0 to {prop.num_parts - 1}"
            )
