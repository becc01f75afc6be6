"""The algorithms as functions, for scripts and notebooks, in one process or on all ranks of mpirun.

::

    from cusp.apps.library import partition_graph, bfs, sssp

    graph = partition_graph(matrix, policy="cvc")     # or a graph file, a NetworkX graph, a data frame, arrays
    result = bfs(graph, source=17)
    result.hops                                       # (nodes,) int32 by global id, on every rank
    result.to_pandas()                                # with names, where nodes have some

Every function is collective: call it on all ranks, with the same arguments. Its keywords are the options of the
program of the same name, ``python -m apps.bfs --help``, with ``_`` for ``-``; ``help(bfs)`` lists them. What an
algorithm prepares is kept with the partition, so only its first run waits for that.
"""

import argparse
import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from cusp import partitioner
from cusp.apps.harness import App
from cusp.apps.run.cli import add_transport_option
from cusp.apps.run.function import function_of
from cusp.apps.run.inputs import open_input, open_slice
from cusp.apps.run.keywords import Keywords
from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.apps.run.result import Result
from cusp.convert.memory_input import NamedSlice, named_everywhere, named_slice
from cusp.errors import OptionError, check_same, together
from cusp.formats import FORMATS
from cusp.formats.source import IDS
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader
from cusp.policies import Policy
from cusp.policies.compile_rules import compile_policy
from cusp.program import report
from cusp.program.choose import named_policy
from cusp.program.cli import add_partition_options
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime import debugging
from cusp.runtime.devices import choose_device
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch
from gluon.plan import make_plan
from gluon.transports import open_transport

if TYPE_CHECKING:  # made by scripts.signatures, for editors
    from cusp.apps.run.functions import *  # noqa: F403

OF_A_RANK = ("device", "threads", "policy", "node_map")  # ranks may differ in them; rules and maps are compared later
APPS = (  # names of functions here, and of modules beside with their Apps
    "bfs", "sssp", "widest", "forest", "path", "cc", "scc", "kcore", "triangles", "communities", "pagerank",
    "betweenness", "closeness", "eigenvector", "katz", "hits", "mis", "coloring", "msf", "similarity", "truss", "ppr",
    "table", "paths", "sample", "walks",
)  # fmt: skip


def __getattr__(name: str) -> Callable[..., Result]:
    """The functions of ``APPS``, made when they are first asked for."""
    if name not in APPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; the algorithms are {', '.join(APPS)}")
    function = globals()[name] = function_of(app_of(name), importlib.import_module(f"cusp.apps.{name}").__doc__)
    return function


def __dir__() -> list[str]:
    return sorted([*globals(), *APPS])


def app_of(name: str) -> App:
    """The app that the module of this name has."""
    app: App = importlib.import_module(f"cusp.apps.{name}").APP
    return app


@cache
def partition_keywords() -> Keywords:
    """The options of the command line that say how a graph is partitioned."""

    def add_options(parser: argparse.ArgumentParser) -> None:
        add_partition_options(parser)
        add_transport_option(parser)
        parser.set_defaults(purpose="")  # for policy="auto": any

    return Keywords("partition_graph", add_options)


def partition_graph(
    graph: Any,
    policy: str = "oec",
    *,
    comm: MPI.Intracomm | None = None,
    weights: bool = True,
    num_nodes: int | None = None,
    symmetrize: bool = False,
    share: bool = False,
    columns: str | Sequence[str] | None = None,
    ids: str = "auto",
    format: str | None = None,
    **options: Any,
) -> PartitionedGraph:
    """Partition a graph across the ranks. Collective.

    Parameters
    ----------
    graph : str or graph in memory
        A graph file, the folder of a saved partition, a file of any format that ``cusp convert`` takes, or what
        :func:`cusp.convert.memory_input.named_slice` takes or makes: a SciPy sparse matrix, a NetworkX graph, a data
        frame, an Arrow table or arrays; an EdgeSlice; an igraph graph. Ids of nodes may be names.
    policy : str
        ``oec``, ``cvc`` ...: see ``cusp --help``.
    comm : Intracomm, optional
        The ranks; all of the job if left out, which is one without mpirun.
    weights : bool
        Take the weights of edges, if they have some.
    num_nodes, share
        Of a graph in memory, see :func:`cusp.convert.memory_input.named_slice`.
    symmetrize : bool
        Add the reverse of every edge, unless the graph is in a graph file.
    columns : str or list of str, optional
        Columns of a table: source, target and perhaps weight, such as ``"from,to,km"``; those with the usual headings
        if left out. Of a NetworkX or igraph graph: the attribute of edges that is their weight.
    ids : str
        What node ids that are whole numbers are: ``numbers`` from 0 on; ``names``; or ``auto``, names if one is
        negative or fewer than half of the ids 0, 1 ... up to the largest occur.
    format : str, optional
        Of a file, as ``cusp convert --help`` lists them; recognised if left out.
    options
        Those of the command line: device, order, grid, threshold, memory_limit, transport ...

    Raises
    ------
    InputError
        On every rank: a graph, policy or option that is not right.

    Examples
    --------
    The edges 0 -> 1, 0 -> 2, 1 -> 3 and 2 -> 3:

    >>> graph = partition_graph(([0, 0, 1, 2], [1, 2, 3, 3]), device="cpu")
    >>> graph
    PartitionedGraph(4 nodes, 4 edges; oec on 1 rank(s), cpu, replication 1.00)

    A matrix of SciPy, divided along rows and columns among the ranks of mpirun:

    >>> import scipy.sparse
    >>> partition_graph(scipy.sparse.eye_array(5, k=1), policy="cvc").part.num_edges
    4
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    with together(comm):
        chosen = partition_keywords().read(options | {"policy": policy})
        debugging.start(chosen.debug)
    placement = choose_device(chosen.device, comm, chosen.threads)
    device = placement.device
    open_transport(chosen.transport, comm, device)
    chosen.columns = columns if columns is None or isinstance(columns, str) else ",".join(columns)
    chosen.symmetrize, chosen.ids, chosen.format, chosen.weights = symmetrize, ids, format, "keep"
    others = {name: value for name, value in vars(chosen).items() if name not in OF_A_RANK}
    check_same(comm, "options", ", ".join(f"{name}={value}" for name, value in others.items()))
    if named_file := named_everywhere(graph, comm):
        with together(comm):
            if num_nodes is not None or share:
                raise OptionError("num_nodes and share are for graphs in memory")
            if ids not in IDS or format not in (None, *FORMATS):
                raise OptionError(f"ids={ids!r}, format={format!r}: expected {', '.join(IDS)}; {', '.join(FORMATS)}")
        chosen.graph = str(graph)
        source = open_input(comm, chosen, weights, placement, insist=False)
    else:
        with together(comm):
            compiled = compile_policy(named_policy(chosen, comm.size), device)
            if chosen.memory_limit:
                raise OptionError("memory_limit is for graph files; this graph is in memory")
            if format is not None:
                raise OptionError("format is for files; this graph is in memory")
        if isinstance(graph, EdgeSlice):
            made = NamedSlice(graph, None)
        else:
            made = named_slice(
                graph, comm, num_nodes=num_nodes, symmetrize=symmetrize, share=share, weights=weights,
                columns=chosen.columns and chosen.columns.split(","), ids=ids,
            )  # fmt: skip
        source = open_slice(comm, "memory", made, compiled, chosen, placement)
    report.hint(comm.rank, source.settled)
    for note in source.notes[named_file:]:  # the first says how such a file opens faster
        report.warn(comm.rank, note.replace("--ids numbers", "ids='numbers'"))
    hints = [f"{each.split(',')[-1]} was not taken; columns={each!r} takes it as the weight" for each in source.unused]
    report.hint(comm.rank, hints)
    _warm_up(source.header, source.policy, weights, comm, device, chosen.transport)
    watch = Stopwatch()
    part = source.build(watch, False)
    return PartitionedGraph(
        part, comm, source.policy, source.names, chosen.transport, watch, source.unused if weights else ()
    )


def _warm_up(
    header: GraphHeader, policy: Policy, weights: bool, comm: MPI.Intracomm, device: str, transport: str
) -> None:
    """Load the partitioner and what makes the plan, compiled by few ranks for all. Collective."""

    def partition_tiny(few: MPI.Intracomm, path: str) -> None:
        part = partitioner.partition_graph(path, tiny_policy(policy, path), few, weights=weights, device=device)
        make_plan(part, few, transport if device == "cpu" else "mpi")  # GPUs would be connected again

    warm_up(comm, header, partition_tiny, (policy.master, policy.edge, weights, device, transport))
