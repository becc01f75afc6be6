"""Minimum spanning forest: edges that connect all that the graph connects, and weigh least in all.

``mpirun -n 4 python -m apps.msf graph.h5 --policy cvc --verify --output forest.h5``

>>> from cusp import msf, partition_graph
>>> found = msf(partition_graph(([0, 1, 2, 2], [1, 2, 0, 3], [4, 2, 3, 7])))
>>> found.weight, found.edges["in_forest"]
(12, array([0, 1, 1, 1], dtype=uint8))
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.shared.components import Directory, come_first
from cusp.apps.verify.msf import verify_msf
from cusp.kernels.arrays import compress, mapped, take, total, total_of_floats
from cusp.runtime.devices import backend, device_of, move, to_host, xp_of

SIGN = np.int64(-(2**63))
LAST = np.uint64(2**64 - 1)
Key = Callable[[Any], Any]  # from places of edges to uint64


def msf(part: Partition, sync: Sync, maximum: bool = False) -> Answer:
    """The minimum spanning forest of the graph without directions; without weights every edge weighs 1. Collective.

    Every component takes its lightest edge to another, until none has one (Boruvka, 1926; on GPUs: Fallin et al., SC
    2023). Of edges that weigh the same, that with the lowest end is first, then that with the lower other end, then the
    one from the lower end to the other: so the forest does not depend on the partition.

    Parameters
    ----------
    maximum : bool
        The heaviest edges in place of the lightest.

    Returns
    -------
    Answer
        Of this rank's masters, ``component`` (int64): the smallest node of the tree. Of its edges, ``in_forest``
        (uint8): 1 of those in the forest, each in one direction only. Figures: their ``weight``; ``members``, how many.
    """
    xp, rows = xp_of(part.device), backend(Undirected, part.device).rows_of_edges(part.offsets)
    keys, directory, names = _keys(part, rows, maximum), Directory(sync, part.num_nodes), to_host(part.gids)
    in_forest, edges = xp.zeros(part.num_local_edges, np.uint8), xp.arange(part.num_local_edges)
    number, rounds = xp.arange(part.num_proxies, dtype=np.int32), 0  # of the component in names
    while True:
        ends = [take(number, take(nodes, edges)) for nodes in (rows, part.targets)]
        between = mapped(np.not_equal, *ends, dtype=np.bool_)
        edges, *ends = (compress(between, each) for each in (edges, *ends))
        if sync.total(edges.size) == (0,):
            break
        found, first = _first_of_each(keys, xp.concatenate(ends), xp.concatenate([edges, edges]), names.size)
        own = come_first(sync, names[to_host(found)], [to_host(key(first)) for key in keys[:-1]])
        first = first[move(own, part.device)]
        in_forest[first] = 1
        directory.unite(*(names[to_host(number[nodes[first]])] for nodes in (rows, part.targets)))
        names, places = np.unique(directory.look_up(names), return_inverse=True)
        number = take(move(places.astype(np.int32), part.device), number)
        sync.end_round()
        rounds += 1
    component = move(names, part.device)[number[: part.num_masters]]
    return Answer({"component": component}, None, rounds, _figures(part, sync, in_forest), {"in_forest": in_forest})


def _keys(part: Partition, rows: Any, maximum: bool) -> list[Key]:
    """By what edges are ordered, all differently: what decides first comes first, and last the place on this rank."""
    xp, gids, weights = xp_of(part.device), part.gids.astype(np.uint64), part.weights

    def weight(edges: Any) -> Any:
        values = take(weights, edges)
        if values.dtype.kind == "f":  # the bits of floats rise with them, and below 0 fall
            bits = (values.astype(np.float64) + 0.0).view(np.int64)
            values = (bits ^ (bits >> 63 | SIGN)).view(np.uint64)
        elif values.dtype.kind == "i":
            values = (values.astype(np.int64) ^ SIGN).view(np.uint64)
        values = values.astype(np.uint64, copy=False)
        return ~values if maximum else values

    def source(edges: Any) -> Any:
        return take(gids, rows[edges])

    def target(edges: Any) -> Any:
        return take(gids, part.targets[edges])

    return [
        *([] if weights is None else [weight]),
        lambda edges: xp.minimum(source(edges), target(edges)),
        lambda edges: xp.maximum(source(edges), target(edges)),
        source,
        lambda edges: edges.astype(np.uint64),
    ]


def _first_of_each(keys: list[Key], components: Any, edges: Any, size: int) -> tuple[Any, Any]:
    """Of each component that occurs, numbered below ``size``, the first of its edges; both as arrays."""
    xp = xp_of(device_of(edges))
    for key in keys:
        values, first = key(edges), xp.full(size, LAST)
        xp.minimum.at(first, components, values)
        kept = values == take(first, components)
        components, edges = compress(kept, components), compress(kept, edges)
    return components, edges


def _figures(part: Partition, sync: Sync, in_forest: Any) -> dict[str, Any]:
    """The weight, exact if weights are whole numbers and it is below 2^62, and the number of edges. Collective."""
    edges = in_forest.nonzero()[0]
    weights = in_forest[edges] if part.weights is None else part.weights[edges]
    floats = weights.dtype.kind == "f"
    whole, weight, members = sync.total(
        0 if floats else total(weights), total_of_floats(weights.astype(np.float64)), edges.size
    )
    return {"weight": weight if floats or abs(weight) >= 2.0**62 else whole, "members": members}


APP = App(
    name="msf",
    summary="a minimum spanning forest, ignoring edge direction",
    run=lambda part, sync, source, prepared, options: msf(part, sync, options.maximum),
    verify=lambda part, sync, source, answer, prepared, options: verify_msf(part, sync, answer, options.maximum),
    nodes=("component",),
    add_options=lambda parser: parser.add_argument(
        "--maximum", action="store_true", help="the heaviest edges in place of the lightest"
    ),
    needs_source=False,
    weighted=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
