"""Before the first phase: read, count or exchange the data about a slice and its neighbours that the rules use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from cusp.errors import OptionError, PolicyError, check_same, together
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.arrays import total
from cusp.names.node_map import read_node_map
from cusp.neighbors import Neighbors, both_directions, exchange_neighbors, find_neighbors, in_degrees_of
from cusp.policies.compile_rules import CompiledPolicy, is_ours
from cusp.policies.inspect_rules import ARGUMENTS, described
from cusp.policies.policy import DEFAULT_THRESHOLD, of_the_user
from cusp.policies.prop import Prop
from cusp.policies.rule_errors import question
from cusp.policies.state import block_starts, combine_state, start_state
from cusp.runtime.devices import move, xp_of
from cusp.runtime.files import described as described_file
from cusp.runtime.mpi import MPI

REPEATED_ROWS = 251  # prime: a rule that counts its calls modulo the number of ranks says something else afterwards
REPEATED_EDGES = 1 << 14
MEAN_DEGREES = 100  # as many make the threshold that nobody gives; with a higher one, HEP is no better


@dataclass(frozen=True)
class Before:
    """What the nodes of a slice have in a partition to which the edges of the slice are added.

    Attributes
    ----------
    masters : (nodes of the slice,) int16
        -1 for nodes that are new.
    degrees, in_degrees : (nodes of the slice,) int64
        In the whole graph without these edges; in-degrees are None if no rule asks for them.
    """

    masters: np.ndarray
    degrees: np.ndarray
    in_degrees: np.ndarray | None


@dataclass(frozen=True)
class PreparedRules:
    """The rules of a policy, ready to be asked about the nodes and edges of one slice.

    Attributes
    ----------
    compiled : CompiledPolicy
    edges : EdgeSlice
        Where the rules run.
    prop : Prop
    neighbors : Neighbors or None
        None if no rule needs them.
    state : namedtuple of arrays or None
        Of both rules, if the policy has ``make_state``; the phases change it.
    before : Before or None
        Of a slice that is added to a partition.
    """

    compiled: CompiledPolicy
    edges: EdgeSlice
    prop: Prop
    neighbors: Neighbors | None
    state: Any = None
    before: Before | None = None

    def run(self, loop: str, *arguments: Any) -> None:
        """Call one of the loops of :class:`~cusp.policies.compile_rules.CompiledPolicy` with this ``prop``."""
        self.compiled.run(loop, self.prop, *arguments)

    def spans_without_masters(self, begin: int, end: int) -> list[tuple[int, int]]:
        """The rows ``begin`` to ``end - 1`` whose nodes have no masters before, as spans of rows."""
        if self.before is None:
            return [(begin, end)]
        new = np.concatenate([[False], self.before.masters[begin:end] < 0, [False]])
        ends = (begin + np.flatnonzero(new[1:] != new[:-1])).tolist()
        return list(zip(ends[::2], ends[1::2]))

    def rows_to_repeat(self, rule: Callable, begin: int, end: int) -> int:
        """Of some rows of the slice, how many a rule is asked about before all, to compare: 0 if it is one of ours.

        A rule that draws random numbers, or keeps what it saw anywhere but in its state, says something else then.
        Rules that run on a GPU can do neither.
        """
        if is_ours(rule) or self.edges.device != "cpu":
            return 0
        last = int(np.searchsorted(self.edges.indptr, self.edges.indptr[begin] + REPEATED_EDGES, side="right")) - 1
        return min(max(last - begin, 1), REPEATED_ROWS, end - begin)

    def check_repeated(self, loop: str, before: np.ndarray, now: np.ndarray, order: np.ndarray | None = None) -> None:
        """Compare what a rule said in a loop, twice, of the same nodes or edges, the first ones or those in an order.

        Raises
        ------
        PolicyError
            Something else.
        """
        if before.size and (before != now).any():
            at = int((before != now).argmax())
            asked = question(loop, (self.prop,), at if order is None else int(order[at]))
            raise PolicyError(
                f"policy {self.compiled.policy.name}: {asked} is {before[at]}, and {now[at]} when asked again; "
                "a rule may depend on its state, but not on random numbers, nor on other data that it changes"
            )


def prepare_rules(rules: PreparedRules, comm: MPI.Intracomm) -> PreparedRules:
    """Choose a threshold for what :func:`gather_facts` returned, and let the policy look ahead. Collective.

    Errors are those of :func:`with_threshold`.
    """
    rules = with_threshold(rules, rules.edges.storage.memory_limit, comm)
    if rules.neighbors is None or rules.compiled.policy.make_state is None:
        return rules
    return replace(rules, state=_look_ahead(rules, rules.neighbors, comm))


def gather_facts(
    edges: EdgeSlice,
    compiled: CompiledPolicy,
    comm: MPI.Intracomm,
    bounds: np.ndarray | None = None,
    with_neighbors: bool = False,
    before: Before | None = None,
) -> PreparedRules:
    """The rules of a policy, without state, and all that they may ask about a slice. Collective.

    Parameters
    ----------
    bounds : (parts + 1,) int64, optional
        Blocks of nodes that the parts would read, if there are not as many parts as ranks.
    with_neighbors : bool
        Find the neighbours even if no rule needs them.
    before : Before, optional
        The edges are added to a partition: then degrees count all edges, but neighbours are those along added ones.

    Raises
    ------
    OptionError, PolicyError
        The grid does not fit the number of parts; the node map cannot be read.
    """
    policy, uses = compiled.policy, compiled.uses
    num_parts = comm.size if bounds is None else bounds.size - 1
    with together(comm):
        grid, shares = policy.grid_for(num_parts), policy.shares_for(num_parts)
        edges = edges.on(compiled.device)
        node_map = move(read_node_map(policy.node_map, edges), edges.device) if policy.node_map else None
        given = described(policy), described_file(policy.node_map) if policy.node_map else None
    check_same(comm, "policies", given)
    indptr, targets = both_directions(edges, comm) if uses.all_neighbors else (None, None)
    found = uses.neighbors or with_neighbors
    neighbors = find_neighbors(edges, comm, None if edges.symmetric else targets) if found else None
    xp, facts = xp_of(edges.device), dict[str, Any]()
    if neighbors is not None:
        facts = {"num_neighbors": neighbors.size, "neighbor_index": neighbors.index}
        tell = partial(exchange_neighbors, neighbors, bounds=edges.bounds, comm=comm)
        if uses.degrees:
            facts["neighbor_degrees"] = tell(xp.diff(edges.indptr) + (before.degrees if before else 0))
        if uses.in_degrees:
            own = in_degrees_of(edges, comm) + (0 if before is None or before.in_degrees is None else before.in_degrees)
            facts["in_degrees"] = xp.concatenate([own, tell(own)])
        if indptr is not None:
            own = np.diff(indptr)
            facts |= {"all_indptr": indptr, "all_targets": targets, "degrees": np.concatenate([own, tell(own)])}
    threshold = DEFAULT_THRESHOLD if policy.threshold is None else policy.threshold
    prop = Prop(
        edges, num_parts, comm.rank, grid, threshold, bounds, node_map=node_map, shares=shares, slack=policy.slack,
        degrees_before=None if before is None else before.degrees, **facts,
    )  # fmt: skip
    return PreparedRules(compiled, edges, prop, neighbors, before=before)


def with_threshold(rules: PreparedRules, limit: int | None, comm: MPI.Intracomm) -> PreparedRules:
    """The same rules with a threshold for what rank 0 needs, if nobody gave one and that depends on it. Collective.

    It is a hundred times the mean degree of nodes with out-edges, counting edges in both directions; or, as HEP's from
    a bound on memory, the highest below with which rank 0 needs no more than its ``limit`` of bytes.

    Raises
    ------
    OptionError
        On every rank: there is no such threshold.
    """
    policy, edges = rules.compiled.policy, rules.edges
    if policy.memory is None or policy.threshold is not None:
        return rules
    senders = comm.allreduce(total(edges.indptr[1:] > edges.indptr[:-1]))
    threshold = MEAN_DEGREES * edges.num_edges * (1 if edges.symmetric else 2) // max(senders, 1)
    limit = comm.bcast(limit)
    if limit is not None:
        needed, _ = memory_needed(rules, np.arange(threshold + 1), comm)
        threshold = int(np.searchsorted(needed, limit, side="right")) - 1
        if threshold < 0:
            raise OptionError(
                f"--memory-limit: {limit:,} bytes are not enough for policy {policy.name}, for which rank 0 needs at "
                f"least {int(needed[0]):,} besides its part. Raise it, or take another policy"
            )
    return replace(rules, prop=rules.prop.with_threshold(threshold))


def memory_needed(rules: PreparedRules, thresholds: np.ndarray, comm: MPI.Intracomm) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that rank 0 needs for the policy with each of some thresholds, and edges it collects. Collective."""
    policy = rules.compiled.policy
    assert policy.memory is not None
    with together(comm), of_the_user(f"policy {policy.name}: memory raised"):
        needed, edges = (np.asarray(said, np.int64) for said in policy.memory(rules.prop, thresholds, comm))
    return comm.bcast((needed, edges))


def _look_ahead(rules: PreparedRules, neighbors: Neighbors, comm: MPI.Intracomm) -> Any:
    """Let the policy visit every node, and finish; the state that it leaves. Collective."""
    policy = rules.compiled.policy
    state, before = start_state(policy.make_state, rules.prop, policy, comm)
    if policy.visit:
        rows = block_starts(rules.edges.bounds, policy.rounds_for(comm.size))[comm.rank] - rules.edges.first_node
        by = policy.visit, ARGUMENTS["visit"].index("state")
        for block, (begin, end) in enumerate(policy.passes * [*pairwise(map(int, rows))]):
            with together(comm):
                rules.run("visit_nodes", begin, end, state)
            combine_state(state, before, policy.combine, comm, neighbors, by if block else None)
    call_once(replace(rules, state=state), policy.finish, before, comm)
    return state


def call_once(rules: PreparedRules, function: Callable | None, before: Any, comm: MPI.Intracomm) -> None:
    """Let a policy change its state on all ranks between phases; ``before`` is a copy of the state. Collective."""
    if function is None:
        return
    policy, state = rules.compiled.policy, rules.state
    with together(comm), of_the_user(f"policy {policy.name}: {function.__name__} raised"):
        function(rules.prop, state, comm)
    combine_state(state, before, policy.combine, comm, rules.neighbors)
