"""Phase 1: every reader applies the master rule to each node of its slice, to find the rank of its master."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp.errors import together
from cusp.kernels.arrays import numbers, sizes_of, total
from cusp.kernels.interfaces import Build
from cusp.neighbors import Neighbors, exchange_block, exchange_neighbors, fetch_from_readers
from cusp.policies.inspect_rules import ARGUMENTS
from cusp.policies.prop import MastersView
from cusp.policies.state import block_starts, combine_state, copy_state, start_state
from cusp.prepare_rules import PreparedRules
from cusp.runtime.devices import backend, device_of, move, to_host
from cusp.runtime.mpi import MPI


@dataclass(frozen=True)
class Masters:
    """Which rank is the master of which node, as far as this rank has to know.

    Attributes
    ----------
    of_slice : (nodes of the slice,) int8 or int16
        Master of each node that this rank read.
    view : MastersView or None
        Masters of the slice and of its neighbours, as rules see them; None if any rank can compute them.
    my_nodes : (n,) int64
        Global ids, ascending, of the nodes of which this rank is the master.
    my_degrees : (n,) int64
        Their out-degrees in the whole graph.
    of : function
        Masters of any ascending array of global ids: computed, or fetched from their readers.
        No rank holds the masters of all nodes. Collective.
    """

    of_slice: np.ndarray
    view: MastersView | None
    my_nodes: np.ndarray
    my_degrees: np.ndarray
    of: Callable[[np.ndarray], np.ndarray]

    def on(self, device: str) -> "Masters":
        """The same for phases that run on another device; ``of`` still computes where the rules run."""
        if device == device_of(self.my_nodes):
            return self
        my_nodes, my_degrees = move(self.my_nodes, device), move(self.my_degrees, device)
        return replace(
            self, my_nodes=my_nodes, my_degrees=my_degrees, of=lambda gids: move(self.of(to_host(gids)), device)
        )


def assign_masters(rules: PreparedRules, comm: MPI.Intracomm) -> Masters:
    """Ask the master rule about each node of this slice, and send each master its nodes. Collective.

    Raises
    ------
    PolicyError
        The rule raised, could not be compiled or returned a rank that does not exist.
    """
    edges, neighbors = rules.edges, rules.neighbors
    build = backend(Build, edges.device)
    xp = build.xp
    narrow = np.int8 if rules.prop.num_parts <= 127 else np.int16  # small tables stay in the cache
    of_slice = rules.before.masters.astype(narrow) if rules.before else xp.full(edges.indptr.size - 1, -1, narrow)
    view = None
    if neighbors is not None and not rules.compiled.uses.computed:
        others = xp.full(neighbors.size, -1, narrow)
        if rules.before:
            others = exchange_neighbors(neighbors, of_slice, edges.bounds, comm)
        view = MastersView(edges.first_node, of_slice, neighbors.index, others)
        _assign_in_rounds(rules, neighbors, view, comm)
    else:
        with together(comm):
            _assign_rows(rules, 0, of_slice.size, None, None, of_slice)
    nodes = edges.storage.aside(numbers(edges.first_node, edges.first_node + of_slice.size, np.int64, edges.device))
    degrees = sizes_of(edges.indptr)
    degrees = edges.storage.aside(degrees + rules.before.degrees if rules.before else degrees)
    if comm.allreduce(total(of_slice != comm.rank)) > 0:
        nodes, degrees = (
            xp.concatenate(build.all_to_all(comm, [values[of_slice == rank] for rank in range(comm.size)]))
            for values in (nodes, degrees)
        )

    # the functions below outlive the slice
    bounds, compiled, prop = edges.bounds, rules.compiled, rules.prop.without_slice()

    def computed(gids: np.ndarray) -> np.ndarray:
        masters = xp.empty(gids.size, narrow)
        compiled.run("masters_of", prop, gids, masters)
        return masters

    def fetched(gids: np.ndarray) -> np.ndarray:
        return fetch_from_readers(gids, bounds, of_slice, comm)

    return Masters(of_slice, view, nodes, degrees, computed if compiled.uses.computed else fetched)


def _assign_in_rounds(rules: PreparedRules, neighbors: Neighbors, view: MastersView, comm: MPI.Intracomm) -> None:
    """Assign block by block; after each, ranks learn the masters that they requested and combine their states.

    A round is one block of every slice, so results depend on the number of rounds and ranks, never on
    timing. In a second pass (restreaming; Nishimura and Ugander, KDD 2013) the rule sees the masters
    of the pass before, and starts with fresh state.
    """
    policy, bounds = rules.compiled.policy, rules.edges.bounds
    stateful = rules.compiled.uses.masters or policy.make_mstate or policy.make_state
    passes, rounds = (policy.passes, policy.rounds_for(comm.size)) if stateful else (1, 1)
    blocks = block_starts(bounds, rounds)
    rows = blocks[comm.rank] - rules.edges.first_node
    by, order = (policy.master, ARGUMENTS["master"].index("mstate")), None
    if policy.order:
        order, rows = _by_degree(rules, rounds)
        blocks = block_starts(bounds, 1)
    for last in range(1 - passes, 1):
        state, before = start_state(policy.make_mstate, rules.prop, policy, comm)
        if rules.state is not None:
            state = rules.state if last == 0 else copy_state(rules.state)
            before = copy_state(state)
        for block in range(rows.size - 1):
            with together(comm):
                _assign_rows(rules, rows[block], rows[block + 1], state, view, view.own, order)
            if order is None:
                exchange_block(neighbors, view.own, view.table, blocks, block, comm)
            if state is not None:
                combine_state(state, before, policy.combine, comm, neighbors, by if block else None)
        if order is not None:
            exchange_block(neighbors, view.own, view.table, blocks, 0, comm)


def _by_degree(rules: PreparedRules, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the slice by descending degree, and where each round begins: each has as many edges."""
    degrees = rules.prop.degrees[: rules.edges.indptr.size - 1]
    degrees = degrees if degrees.size else np.diff(rules.edges.indptr)
    order = np.argsort(-degrees, kind="stable")
    edges = np.cumsum(degrees[order])
    shares = np.arange(1, rounds) * (int(edges[-1]) if edges.size else 0) // rounds
    return order, np.concatenate([[0], np.searchsorted(edges, shares, side="right"), [order.size]])


def _assign_rows(
    rules: PreparedRules, begin: int, end: int, state: Any, view: MastersView | None, own: np.ndarray,
    order: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Ask about some rows, and about the first rows of the slice once more, before and with a copy of the state."""
    edges = rules.edges

    def ask(begin: int, end: int, state: Any) -> None:
        if order is not None:
            some = order[begin:end]
            some = some if rules.before is None else some[rules.before.masters[some] < 0]
            rules.run("assign_masters", some, int(some.size), rules.prop.num_parts, state, view, own)
            return
        for span in rules.spans_without_masters(begin, end):
            for first, last in edges.storage.rows(edges.indptr, *span):
                rules.run("assign_masters", first, last, rules.prop.num_parts, state, view, own)

    if begin > 0:
        ask(begin, end, state)
        return
    again = rules.rows_to_repeat(rules.compiled.policy.master, begin, end)
    rows = slice(0, again) if order is None else order[:again]
    before = own[rows].copy()
    ask(0, again, copy_state(state))
    said, own[rows] = own[rows].copy(), before
    ask(begin, end, state)
    rules.check_repeated("assign_masters", said, own[rows], order)
