"""Hints how to run a job better; shown on terminals, and by ``--log``."""

from dataclasses import replace

from cusp.estimates.quality import Quality
from cusp.policies.inspect_rules import attributes_used
from cusp.policies.policy import Policy

FEW_EDGES = 1_000_000  # of a rank: a round takes less than its messages
MANY_PARTNERS = 5  # ranks, from which on a grid saves messages
MUCH = 0.75  # of all ranks, that a node is on
FEW_NEIGHBORS, SPREAD = 5, 1.5  # edges of a node; ranks that a node with so few of them is on


def about_partition(policy: Policy, quality: Quality) -> list[str]:
    """Hints about how a graph was divided."""
    ranks = quality.masters.size
    found = []
    uses_grid = any({"rows", "columns"} & attributes_used(rule) for rule in (policy.master, policy.edge))
    if ranks >= MANY_PARTNERS and uses_grid and 1 in policy.grid_for(ranks):
        squarest = replace(policy, grid=None).grid_for
        better = " or ".join(f"{near} ({'x'.join(map(str, squarest(near)))})" for near in (ranks - 1, ranks + 1))
        found.append(
            f"{ranks} ranks make a grid of {'x'.join(map(str, policy.grid_for(ranks)))}, so that all ranks are "
            f"partners; policy {policy.name} works best with {better}"
        )
    elif ranks >= MANY_PARTNERS and quality.replication > MUCH * ranks:
        found.append(
            f"a node is on {quality.replication:.1f} of {ranks} ranks on average; cusp compare --policies all "
            "may show a better policy; or use fewer ranks"
        )
    elif ranks > 1 and quality.replication > SPREAD and quality.edges.sum() < FEW_NEIGHBORS * quality.num_nodes:
        found.append(
            f"policy {policy.name} puts neighbours on different ranks, though a node has few: each step along a path "
            "waits for a message, so searches through long paths take long; oec keeps nodes of near numbers "
            "together, fec neighbours whatever their numbers"
        )
    return found


def about_run(quality: Quality, edges: int, local: int, cores: int) -> list[str]:
    """Hints about a run on CPUs.

    Parameters
    ----------
    edges : int
        Of the whole graph.
    local, cores : int
        Ranks and cores of the host of rank 0.
    """
    ranks = quality.masters.size
    if local > cores:
        return [f"{local} ranks share {cores} cores here and wait for each other; use {cores} ranks or fewer"]
    if 1 < ranks == local and edges < FEW_EDGES * ranks:
        return [
            f"{edges:,} edges are few for {ranks} ranks: messages take longer than computing; one rank with --threads "
            f"{cores} sends none"
        ]
    return []
