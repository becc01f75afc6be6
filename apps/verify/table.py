"""Verifiers of tables of distances and of paths, and of closeness: see apps/verify/check.py."""

import numpy as np

from cusp import MIN, Answer, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.betweenness import RELAX, ROUNDING, differ
from cusp.apps.verify.check import raise_first, require, tell_node
from cusp.runtime.devices import move, to_host, xp_of
from cusp.runtime.mpi import MPI

STEP = EdgeOperator("weight", into="dst.step", where="src.place >= 0 and src.place + 1 == dst.place")


def verify_table(part: Partition, sync: Sync, answer: Answer) -> None:
    """Check a table, of distances or of bounds, by a search from one origin after the other. Collective.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    """
    origin, destination, *found = answer.table.values()
    low, high, nodes = found[0], found[-1], destination.ravel()  # one matrix if the distances are exact
    own, lids = part.masters_among(nodes)
    for source, *row in zip(origin.ravel().tolist(), low[:, own], high[:, own]):
        label = _lengths_from(part, sync, source)
        expected, (least, most) = to_host(label.masters())[lids], np.where(np.array(row) < 0, np.inf, row)
        slack = ROUNDING * np.where(most < np.inf, most, expected)
        wrong = np.flatnonzero(~((least <= expected + slack) & (expected <= most + slack)))
        message = None
        if wrong.size:
            place = wrong[0]
            given = f"{least[place]:g}" if len(found) == 1 else f"{least[place]:g} to {most[place]:g}"
            message = f"{given} from {source} to {nodes[own[place]]}, which are {expected[place]:g} apart"
        raise_first(sync, message)


def verify_paths(part: Partition, sync: Sync, answer: Answer, source: int, target: int, k: int) -> None:
    """Check that paths lead along edges, that their lengths are right and ascend, and that the first is shortest.

    Also that all differ, and none visits a node twice; not that no other path is shorter than the last. Collective.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    k : int
        How many were asked for.
    """
    number, node, values = answer.table.values()
    begins = np.flatnonzero(np.diff(number, prepend=-1))
    routes, lengths = np.split(node, begins[1:]), np.split(values, begins[1:])
    label = _lengths_from(part, sync, source)
    shortest = _everywhere_of(part, sync, label, np.array([target]))[0]
    found = 0 if node.size == 0 else len(routes)
    require(sync, (found > 0) == (shortest < np.inf) and found <= k, f"{found} paths of {k}")
    if not found:
        return
    totals = np.array([far[-1] for far in lengths])
    require(
        sync, np.isclose(totals[0], shortest, ROUNDING, 0), f"the first path is {totals[0]:g} long, not {shortest:g}"
    )
    require(sync, (np.diff(totals) >= -ROUNDING * totals[1:]).all(), "lengths of paths do not ascend")
    require(sync, len({route.tobytes() for route in routes}) == found, "a path is there twice")
    for place, (route, far) in enumerate(zip(routes, lengths)):
        ends = (int(route[0]), int(route[-1])) == (source, target)
        require(sync, ends and np.unique(route).size == route.size, f"path {place} is no path without circles")
        places, step = np.full(part.num_proxies, -1, np.int64), Label(part, np.float64, np.inf, MIN)
        lids = part.lid_map.lids(route)
        places[lids[lids >= 0]] = np.flatnonzero(lids >= 0)
        STEP(part, step=step, place=move(places, part.device))
        sync.reduce(step, write="dst")
        steps = _everywhere_of(part, sync, step, route[1:])
        right = far[0] == 0 and np.isclose(np.diff(far), steps, ROUNDING, 1e-9 * max(far[-1], 0)).all()
        require(sync, right, f"path {place} has other edges, or lengths")


def _lengths_from(part: Partition, sync: Sync, source: int) -> Label:
    """float64: the lengths of shortest paths from a node, inf where there is none. Collective."""
    label = Label(part, np.float64, np.inf, MIN)
    label.write(source, 0)
    RELAX.until_quiet(part, sync, length=label)
    return label


def _everywhere_of(part: Partition, sync: Sync, label: Label, nodes: np.ndarray) -> np.ndarray:
    """(nodes,) float64: the values of nodes, on every rank. Collective."""
    (own, lids), values = part.masters_among(nodes), np.full(nodes.size, np.inf)
    values[own] = to_host(label.masters())[lids]
    sync.comm.Allreduce(MPI.IN_PLACE, values, MPI.MIN)
    return values


def verify_closeness(part: Partition, sync: Sync, answer: Answer, sources: list[int], scale: float) -> None:
    """Check closeness by searching from one source after the other. Collective.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    scale : float
        How many nodes each of the sources stands for.
    """
    xp, masters = xp_of(part.device), part.num_masters
    closeness, harmonic, eccentricity, reaching = answer.labels.values()
    reached, lengths, inverse = xp.zeros(masters), xp.zeros(masters), xp.zeros(masters)
    for source in sources:
        label = _lengths_from(part, sync, source)
        found, lid = label.masters(), part.lid(source)
        others = found < np.inf
        farthest = sync.highest(float(xp.where(others, found, 0).max()) if masters else 0.0)
        if 0 <= lid < masters:
            others[lid] = False
        own = 0 <= lid < masters and float(eccentricity[lid]) != farthest
        require(sync, not own, f"eccentricity: that of node {source} is not {farthest:g}")
        reached += others
        lengths += xp.where(others, found, 0)
        inverse += xp.where(others & (found > 0), 1 / xp.where(found > 0, found, 1), 0)
    expected = xp.where(lengths > 0, reached**2, 0) / xp.where(lengths > 0, lengths, 1)
    expected *= scale / max(part.num_nodes - 1, 1)
    expected = xp.minimum(expected, reached / xp.where(lengths > 0, lengths, np.inf))
    tell_node(part, sync, "reaching: is not the number of sources that lead to node", reaching != reached)
    tell_node(part, sync, "closeness: is not that of the distances to node", differ(part, closeness, expected))
    tell_node(part, sync, "harmonic: is not that of the distances to node", differ(part, harmonic, inverse * scale))
