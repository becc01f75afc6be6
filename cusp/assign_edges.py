"""Phase 2: every reader applies the edge rule to each edge of its slice, to find its owner."""

from typing import Any

import numpy as np

from cusp.assign_masters import Masters
from cusp.errors import together
from cusp.kernels.arrays import total
from cusp.policies.inspect_rules import ARGUMENTS
from cusp.policies.state import block_starts, combine_state, copy_state, start_state
from cusp.prepare_rules import PreparedRules, call_once
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import in_parallel, row_spans


def assign_edges(rules: PreparedRules, masters: Masters, comm: MPI.Intracomm) -> np.ndarray | None:
    """Owner of each edge of this slice. Collective.

    Returns
    -------
    (edges,) uint8 or uint16, or None
        None on every rank if every edge stays where it was read. Owners are computed once and
        kept, because an edge rule may depend on what it saw before.

    Raises
    ------
    PolicyError
        The rule raised, could not be compiled or returned a rank that does not exist.
    """
    edges, policy, num_parts = rules.edges, rules.compiled.policy, rules.prop.num_parts
    with together(comm):
        owners = edges.storage.empty(edges.targets.size, np.uint8 if num_parts <= 256 else np.uint16)
    travels = 0
    state, before = start_state(policy.make_estate, rules.prop, policy, comm)
    if rules.state is not None and rules.compiled.uses.estate:
        state, before = rules.state, copy_state(rules.state)
        call_once(rules, policy.settle, before, comm)
    if not rules.compiled.uses.changes:
        before = None  # any thread may ask, and no rank has anything to tell

    def ask(begin: int, end: int, state: Any = state) -> int:
        """Returns how many edges of the rows travel."""
        rules.run("assign_edges", begin, end, num_parts, masters.view, masters.of_slice, state, owners)
        return total(owners[int(edges.indptr[begin]) : int(edges.indptr[end])] != comm.rank)

    by = policy.edge, ARGUMENTS["edge"].index("estate")
    blocks = block_starts(edges.bounds, 1 if before is None else policy.rounds_for(comm.size))
    rows = blocks[comm.rank] - edges.first_node
    again = rules.rows_to_repeat(policy.edge, 0, int(rows[1]))
    with together(comm):
        ask(0, again, copy_state(state))
        said = owners[: int(edges.indptr[again])].copy()
    for block in range(rows.size - 1):
        with together(comm):
            for span in edges.storage.rows(edges.indptr, rows[block], rows[block + 1]):
                spans = row_spans(edges.indptr, *span) if before is None and edges.device == "cpu" else [span]
                travels += sum(in_parallel(ask, spans))
        if block == 0:
            with together(comm):
                rules.check_repeated("assign_edges", said, owners[: said.size])
        if before is not None:
            combine_state(state, before, policy.combine, comm, rules.neighbors, by if block else None)
    return owners if comm.allreduce(travels) else None
