"""Near the neighbours, at a price for load: what a user would write for the built-in policy fec."""

import math
from collections import namedtuple

import numpy as np

Load = namedtuple("Load", "nodes edges score")
combine = {"score": "local"}


def make_mstate(prop):  # type: ignore[no-untyped-def]
    """Nodes and edges of each rank so far; scratch space for the scores."""
    return Load(*(np.zeros(prop.num_parts, kind) for kind in (np.int64, np.int64, np.float64)))


def add(load, rank, degree):  # type: ignore[no-untyped-def]
    """One node more on a rank."""
    load.nodes[rank] += 1
    load.edges[rank] += degree
    return rank


def get_master(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """The rank with most neighbours, less the price of its load; a hub stays where it was read."""
    degree = prop.out_degree(node)
    if degree > prop.threshold:
        return add(mstate, prop.reader(node), degree)
    alpha = 1.5 * prop.num_edges * math.sqrt(prop.num_parts / prop.num_nodes) / prop.num_nodes
    ratio = prop.num_nodes / max(prop.num_edges, 1)
    mstate.score[:] = 0.0
    for neighbor in prop.out_neighbors(node):
        if masters[neighbor] >= 0:
            mstate.score[masters[neighbor]] += 1.0
    best = 0
    for rank in range(prop.num_parts):
        load = (mstate.nodes[rank] + ratio * mstate.edges[rank]) / 2
        mstate.score[rank] -= alpha * math.sqrt(load)
        if mstate.score[rank] >= mstate.score[best]:  # of equals the last
            best = rank
    return add(mstate, best, degree)
