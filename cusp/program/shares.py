"""Option ``--shares``: how much of the graph each rank gets in proportion to the others, given or measured."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp.errors import OptionError, together
from cusp.estimates.dry_run import fraction_within
from cusp.input.graph_file import GraphHeader
from cusp.kernels.interfaces import Build
from cusp.policies.policy import Policy
from cusp.runtime.devices import Placement, backend, finisher, free_bytes, xp_of
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import in_parallel, ranges
from cusp.runtime.timeline import Stopwatch

PER_MILLE = 1000  # measured shares are rounded to
GATHERED = {"cpu": 1 << 20, "gpu": 1 << 24}  # values in a pass
AMONG = 1 << 23  # nodes that have them
SENT = 1 << 17  # values that a rank sends to all others together
PASSES = 3
LABEL_BYTES = 8


Wanted = str | tuple[int, ...] | None  # ``auto``, or as given


@dataclass(frozen=True)
class Machine:
    """The measurements of a rank.

    Attributes
    ----------
    rate : float
        Edges a second in a pass that gathers values of random nodes.
    bandwidth : float
        Bytes a second that it exchanges with the other ranks.
    fits : float
        The share of the graph for which it has memory, 0 to 1: 1 on a CPU.
    """

    rate: float
    bandwidth: float
    fits: float


def with_shares(
    policy: Policy, wanted: Wanted, header: GraphHeader, placement: Placement, comm: MPI.Intracomm
) -> tuple[Policy, str | None]:
    """A policy with the shares that an option names, and a line about them if ranks get other ones. Collective.

    A GPU gets no more than what fits into its memory; the others get the rest.

    Raises
    ------
    OptionError
        On every rank: there are not as many shares as ranks.
    """
    if wanted is None:
        return policy, None
    fits = comm.allgather(fraction_within(header, free_bytes(placement, comm.rank)))
    if isinstance(wanted, str):
        machines = comm.allgather(measure(placement.device, fits[comm.rank], comm))
        shares = best_shares(machines, placement.devices, header.num_nodes, header.num_edges)
        rates = ", ".join(f"rank {rank} {machine.rate / 1e6:,.0f}" for rank, machine in enumerate(machines))
        policy = replace(policy, shares=_whole(shares))
        return policy, f"shares: {_text(policy)} (--shares {_text(policy)} repeats them), from million edges/s: {rates}"
    with together(comm):
        policy = replace(policy, shares=wanted)
        policy.shares_for(comm.size)
    shares = [share / sum(wanted) for share in wanted]
    limited = limit_shares(shares, fits)
    if limited == shares:
        return policy, None
    policy = replace(policy, shares=_whole(limited))
    return policy, f"shares: {_text(policy)}, limited by the memory of GPUs"


def given_shares(policy: Policy, wanted: Wanted, parts: int) -> Policy:
    """A policy with the shares that an option names, for so many parts, where no rank gets them.

    Raises
    ------
    OptionError
        They are to be measured, or not as many as parts.
    """
    if isinstance(wanted, str):
        raise OptionError("--shares auto needs ranks that partition a graph; give integers such as 8,8,1 here")
    policy = replace(policy, shares=wanted)
    policy.shares_for(parts)
    return policy


def best_shares(machines: list[Machine], devices: tuple[str, ...], num_nodes: int, num_edges: int) -> list[float]:
    """Shares, which add up to 1, with which a pass over all edges and an exchange after it take the least time.

    In proportion to the rates, for all ranks or, in a mixed job, for GPUs only: what a CPU saves beside them may be
    less than what it costs that values of nodes travel between the two. At worst, each edge is about a mirror of its
    own, until all nodes are.
    """
    everyone = [True] * len(machines)
    choices = [everyone] + ([[device == "gpu" for device in devices]] if {"cpu", "gpu"} == {*devices} else [])
    fits = [machine.fits for machine in machines]
    found = []
    for chosen in choices:
        rates = [machine.rate * takes_part for machine, takes_part in zip(machines, chosen)]
        shares = limit_shares([rate / sum(rates) for rate in rates], fits)
        seconds = max(share * num_edges / machine.rate for share, machine in zip(shares, machines))
        if sum(share > 0 for share in shares) > 1:
            mirrors = (min(num_nodes, share * num_edges) for share in shares)
            seconds += max(LABEL_BYTES * each / machine.bandwidth for each, machine in zip(mirrors, machines))
        found.append((seconds, shares))
    return min(found)[1]


def limit_shares(shares: list[float], fits: list[float]) -> list[float]:
    """The same shares, but none above what fits: the others get the rest in proportion, or those that have room do.

    If all of it fits nowhere, shares are in proportion to what does.
    """
    if sum(fits) < 1:
        return [fit / (sum(fits) or 1) for fit in fits] if any(fits) else shares
    full: set[int] = set()
    while over := {rank for rank, share in enumerate(shares) if share > fits[rank]}:
        full |= over
        left = 1 - sum(fits[rank] for rank in full)
        open_to = [0.0 if rank in full else share for rank, share in enumerate(shares)]
        if not any(open_to):
            open_to = [0.0 if rank in full else fit for rank, fit in enumerate(fits)]
        shares = [fits[rank] if rank in full else left * open_to[rank] / sum(open_to) for rank in range(len(fits))]
    return shares


def _whole(shares: list[float]) -> tuple[int, ...]:
    """Shares in whole numbers; none becomes 0 that was above."""
    return tuple(max(round(PER_MILLE * share), int(share > 0)) for share in shares)


def _text(policy: Policy) -> str:
    return ",".join(map(str, policy.shares or ()))


def measure(device: str, fits: float, comm: MPI.Intracomm) -> Machine:
    """What a rank can do: a pass of random gathers and an exchange, each the fastest of a few.

    Collective: all ranks measure at once.
    """
    xp, build = xp_of(device), backend(Build, device)
    values = xp.ones(AMONG)
    edges = GATHERED[device]
    nodes = xp.arange(edges, dtype=np.int64) * 2654435761 % AMONG  # all over memory: a prime modulo a power of two
    sent = [xp.zeros(SENT // comm.size) for _ in range(comm.size)]
    pieces = ranges(edges) if device == "cpu" else [(0, edges)]
    gather = _fastest(device, comm, lambda: in_parallel(lambda first, last: values[nodes[first:last]].sum(), pieces))
    exchange = _fastest(device, comm, lambda: build.all_to_all(comm, sent))
    return Machine(edges / gather, LABEL_BYTES * SENT * (comm.size - 1) / comm.size / exchange, fits)


def _fastest(device: str, comm: MPI.Intracomm, call: Any) -> float:
    """Seconds of the fastest of a few calls. Collective."""
    finish, seconds = finisher(device) or (lambda: None), []
    for _ in range(PASSES):
        watch = Stopwatch()
        finish()
        comm.Barrier()
        with watch("calibrate"):
            call()
            finish()
        seconds.append(watch.seconds["calibrate"])
    return min(seconds)
