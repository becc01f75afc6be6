"""Verifier of communities: see apps/verify/check.py."""

import argparse

import numpy as np

from cusp import ADD, Answer, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, raise_first, require, sum_by_name, tell_node
from cusp.apps.verify.components import ALONG, reach_all
from cusp.kernels.arrays import distinct
from cusp.runtime.devices import move, to_host
from gluon.plan import make_plan

STRENGTH = EdgeOperator("weight / largest", into="src.strength")
INSIDE = EdgeOperator("weight / largest", into="src.inside", where="src.community == dst.community")


def verify_communities(graph: Partition, sync: Sync, answer: Answer, options: argparse.Namespace) -> None:
    """Check communities of an undirected graph. Collective.

    1. A community is named by one of its nodes, the smallest. 2. Their number is right. 3. The modularity follows from
    edges, strengths and communities. 4. It is not below that of all nodes on their own, except of label propagation,
    and 5. of Leiden, walks inside of each community, from the node that names it, reach all of its nodes.

    Parameters
    ----------
    graph : Partition
        See :func:`~cusp.apps.shared.graphs.undirected.as_undirected`.
    """
    community, gids = move(answer.labels["community"], graph.device), graph.gids[: graph.num_masters]
    communities, modularity = answer.figures["communities"], answer.figures["modularity"]
    tell_node(graph, sync, "community: not between 0 and the id of node", (community < 0) | (community > gids))
    names, numbers = distinct(to_host(community))
    kept, _ = sum_by_name(sync.comm, names, np.ones(names.size))
    members = to_host(gids[community == gids])
    named, _ = sum_by_name(sync.comm, members, np.ones(members.size))
    bad = np.setdiff1d(kept, named)
    raise_first(sync, f"node {bad[0]} is not in the community that has its name" if bad.size else None)
    (right,) = sync.total(kept.size)
    require(sync, right == communities, f"there are {right} communities, not {communities}")
    label_sync = Sync(make_plan(graph, sync.comm, sync.plan.transport), sync.comm)
    label = everywhere(graph, label_sync, community, -1)
    strengths, within = _strengths(graph, sync, label)
    _, totals = sum_by_name(sync.comm, names, np.bincount(numbers, strengths, names.size))
    whole, inside, squares, alone = sync.total(
        float(strengths.sum()), within, float((totals**2).sum()), float((strengths**2).sum())
    )
    expected = inside / whole - options.resolution * squares / whole**2 if whole else 0.0
    right = np.isclose(modularity, expected, atol=1e-9)
    require(sync, right, f"the modularity is {expected}, not {modularity}")
    floor = -options.resolution * alone / whole**2 if whole else 0.0
    right = options.algorithm == "label-propagation" or expected >= floor - 1e-9 * max(options.resolution, 1)
    require(sync, right, f"the modularity {expected} is below {floor}, that of single nodes")
    if options.algorithm == "leiden":
        reach_all(graph, label_sync, label, [ALONG], "community")


def _strengths(graph: Partition, sync: Sync, community: Label) -> tuple[np.ndarray, float]:
    """(masters,) float64, the strengths; and the weight of this rank's edges inside of communities. Collective.

    Both as multiples of the largest weight, so that their squares are neither infinite nor 0.
    """
    largest = sync.highest(float(graph.weights.max()) if graph.weights is not None and graph.weights.size else 0.0)
    strength, inside = Label(graph, np.float64, 0, ADD), Label(graph, np.float64, 0, ADD)
    STRENGTH(graph, strength=strength, largest=largest or 1.0)
    INSIDE(graph, inside=inside, community=community, largest=largest or 1.0)
    return to_host(strength.masters()), float(inside.masters().sum())
