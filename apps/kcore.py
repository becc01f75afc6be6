"""k-core: the core number of every node, ignoring edge direction; or the nodes in the core of one k.

``mpirun -n 4 python -m apps.kcore graph.h5 --verify --output cores.h5``

>>> from cusp import kcore, partition_graph
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> kcore(graph).core
array([2, 2, 2, 1], dtype=int32)
"""

from typing import Any

import numpy as np

from cusp import Answer, App, Partition, Sync, everywhere, main, run_main
from cusp.apps.operators.structure.interfaces import Cores, Kcore
from cusp.apps.operators.ways import Algorithm, Form
from cusp.apps.shared.graphs.undirected import UndirectedGraph, undirected_graph
from cusp.apps.verify.cores import verify_cores
from cusp.kernels.arrays import total
from cusp.program.cli import positive
from cusp.runtime.devices import backend
from gluon.mail.post import Channel, until_quiet

MOST = int(np.iinfo(np.int32).max)  # no node has as many neighbours, so no higher k makes a difference


def kcore(part: Partition, sync: Sync, graph: UndirectedGraph, k: int | None = None) -> Answer:
    """Core numbers: the largest k such that a node is in a k-core. Collective.

    All nodes of a k-core have k neighbours or more in it. So nodes are peeled off by ascending degree (Matula and Beck,
    J. ACM 1983), all of the lowest degree at once. Mirrors of a node learn that it was peeled, and take a neighbour
    from each node of their rank that they touch: once in all. On GPUs that reach each other's memory ranks peel
    together, each node when the round comes in which one GPU would peel it. Elsewhere a rank peels its own until all
    that are left have more neighbours, as far as it knows, and then broadcasts.

    Asynchronously, every node has an estimate, its degree at first, and lowers it where too few neighbours have one as
    high (Montresor, De Pellegrini, Miorandi, IEEE TPDS 2013): that needs no order.

    Parameters
    ----------
    sync : Sync
        Its traffic counts what is sent.
    graph : UndirectedGraph
        What :func:`prepare` made of ``part``.
    k : int, optional
        Only peel off the nodes that are not in the k-core.

    Returns
    -------
    Answer
        ``core`` (int32) of this rank's masters, and the highest as the figure ``degeneracy``; with ``k``, ``in_core``
        (uint8, 0 or 1), and their number as the figure ``members``.
    """
    first, last = (0, MOST - 1) if k is None else (min(k, MOST) - 1,) * 2
    core, rounds = CORES.run(graph.part, sync.on(graph.plan), graph.prepared, first, last)
    if k is None:
        highest = sync.highest(int(core.max()) if core.size else 0)
        return Answer({"core": core}, None, rounds, {"degeneracy": highest})
    (members,) = sync.total(total(core < 0))
    return Answer({"in_core": (core < 0).astype(np.uint8)}, None, rounds, {"members": members})


def _peel_levels(part: Partition, sync: Sync, plan: Any, first: int, last: int) -> tuple[Any, Any]:
    core, rounds = backend(Kcore, part.device).peel_levels(part, sync, plan, first, last)
    sync.count_peers(rounds)
    return core, rounds


def _lower_estimates(part: Partition, sync: Sync, plan: Any, first: int, last: int) -> tuple[Any, int]:
    """Core numbers from estimates, which are degrees at first, and the most steps of a rank. Collective."""
    ops = backend(Cores, part.device)
    cores = everywhere(part, sync, part.degrees.astype(np.int32), MOST)

    def step() -> bool:
        ops.lower_cores(part, plan, cores.swap_updated(), cores.values, cores.updated)
        return part.device == "gpu" and cores.device.count_bits(cores.updated, part.num_proxies) > 0

    rounds = until_quiet(sync, step, Channel("broadcast", cores, "any"))
    core = cores.masters()
    core[core > last] = -1
    return core, rounds


PEELING = Form(_peel_levels, lambda part, sync, way: backend(Kcore, part.device).plan_levels(part, sync, way))
LOWERING = Form(_lower_estimates, lambda part, sync, way: backend(Cores, part.device).plan_cores(part))
FORMS = {"whole": PEELING, "peers": PEELING, "rounds": PEELING, "mail": LOWERING}
CORES = Algorithm(FORMS, gpus_only=("whole", "peers"))


def prepare(part: Partition, sync: Sync) -> UndirectedGraph:
    """The undirected graph, made once. Collective."""
    return undirected_graph(part, sync, CORES.prepare)


APP = App(
    name="kcore",
    summary="core number of every node, or one k-core, ignoring edge direction",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, _, graph, options: kcore(part, sync, graph, options.k),
    verify=lambda part, sync, _, answer, graph, options: verify_cores(
        graph.part, sync.on(graph.plan), *answer.labels.values(), k=options.k and min(options.k, MOST), **answer.figures
    ),
    add_options=lambda parser: parser.add_argument(
        "--k", type=positive, help="only find the core of this k (default: all core numbers)"
    ),
    needs_source=False,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
