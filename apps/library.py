"""The algorithms as functions, for scripts and notebooks, in one process or on all ranks of mpirun.

::

    from apps.library import partition_graph, bfs, sssp

    part = partition_graph(matrix, policy="cvc")      # or a graph file, a NetworkX graph, a data frame, arrays
    result = bfs(part, source=17)
    result.hops                                       # (nodes,) int32 by global id, on every rank
    result.to_dataframe()

Every function is collective: call it on all ranks, with the same arguments. Its keywords are the options of the
program of the same name, ``python -m apps.bfs --help``, with ``_`` for ``-``; ``help(bfs)`` lists them. What an
algorithm prepares is kept with the partition, so only its first run waits for that.
"""

import argparse
import importlib
import inspect
import operator
from collections.abc import Callable, Hashable
from typing import Any

from mpi4py import MPI

from apps.harness import App, rehearse, wait
from apps.run.cli import check_nodes
from apps.run.inputs import open_input
from apps.run.keywords import Keywords
from apps.run.result import Result
from cusp import partitioner
from cusp.errors import OptionError, together
from cusp.estimates.quality import Quality, measure_quality
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader
from cusp.input.memory_input import named_everywhere, node_names, slice_in_memory
from cusp.output.graph_writer import index_dtype
from cusp.partition import Partition
from cusp.policies import Policy, load_policy
from cusp.program.cli import add_partition_options, node_list, policy_parameters, wanted_device
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime.devices import choose_device
from cusp.runtime.stopwatch import Stopwatch
from gluon.plan import SyncPlan, make_plan
from gluon.sync import Sync
from gluon.transports import CHOICES as TRANSPORTS
from gluon.transports import open_transport

APPS = {  # name of a function here -> module with its App
    "bfs": "apps.bfs",
    "sssp": "apps.sssp",
    "widest": "apps.widest",
    "forest": "apps.forest",
    "path": "apps.path",
    "cc": "apps.cc",
    "scc": "apps.scc",
    "kcore": "apps.kcore",
    "triangles": "apps.triangles",
    "communities": "apps.communities",
    "pagerank": "apps.pagerank",
    "betweenness": "apps.betweenness",
}


def __getattr__(name: str) -> Callable[..., Result]:
    """The functions of ``APPS``, made when they are first asked for."""
    if name not in APPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; the algorithms are {', '.join(APPS)}")
    function = globals()[name] = function_of(app_of(name))
    return function


def __dir__() -> list[str]:
    return sorted([*globals(), *APPS])


def app_of(name: str) -> App:
    """The app of a name in ``APPS``."""
    app: App = importlib.import_module(APPS[name]).APP
    return app


class PartitionedGraph:
    """A graph that is divided among the ranks, and what algorithms have prepared for it.

    Attributes
    ----------
    part : Partition
        What this rank has of it.
    names : list or None
        What the nodes 0, 1, 2 ... of a NetworkX graph are called.
    quality : Quality
    preparation_seconds : dict of float
        By name of an app, what it took to prepare for its runs, on the slowest rank.
    """

    def __init__(
        self, part: Partition, comm: MPI.Intracomm, policy: Policy, names: list[Hashable] | None, transport: str
    ) -> None:
        self.part, self.comm, self.policy, self.names = part, comm, policy, names
        self.plan: SyncPlan = make_plan(part, comm, transport)
        self.quality: Quality = measure_quality(part, comm)
        self.preparation_seconds: dict[str, float] = {}
        self._numbers: dict[Hashable, int] | None = None
        self._ready: dict[str, tuple[argparse.Namespace, Any]] = {}

    def __repr__(self) -> str:
        part = self.part
        return (
            f"PartitionedGraph({part.num_nodes:,} nodes, {part.num_edges:,} edges; {self.policy.name} on "
            f"{part.num_ranks} rank(s), {part.device}, replication {self.quality.replication:.2f})"
        )

    def gid(self, node: Any) -> int:
        """Global id of a node, which is given by its name if nodes have names.

        Raises
        ------
        OptionError
            There is no such node.
        """
        if self.names is not None:
            self._numbers = self._numbers or {name: number for number, name in enumerate(self.names)}
            if node not in self._numbers:
                raise OptionError(f"{node!r}: no node of the graph has this name")
            return self._numbers[node]
        try:
            number = operator.index(node)
        except TypeError:
            raise OptionError(f"{node!r}: nodes are integers, 0 to {self.part.num_nodes - 1}") from None
        check_nodes(self.part, [number], "node")
        return number

    def prepared(self, app: App, options: argparse.Namespace) -> Any:
        """What an app prepares for all its runs; kept until its options change. Collective."""
        known = self._ready.get(app.name)
        if known is None:
            device, weights = self.part.device, self.part.weights
            header = GraphHeader(
                app.name, self.part.num_nodes, self.part.num_edges, self.part.symmetric,
                index_dtype(self.part.num_nodes), None if weights is None else weights.dtype, False,
            )  # fmt: skip
            warm_up(self.comm, header, lambda few, path: rehearse(app, few, self.policy, options, path, device))
        if known is None or known[0] != options:
            if app.needs_csc(options, self.part.symmetric) and self.part.csc is None:
                self.part = self.part.with_csc()
                self._ready.clear()
            watch = Stopwatch()
            with watch("prepare"):
                state = app.prepare(self.part, Sync(self.plan, self.comm), options)
                wait(self.part)
            self.preparation_seconds[app.name] = self.comm.allreduce(watch.seconds["prepare"], MPI.MAX)
            known = self._ready[app.name] = (options, state)
        return known[1]


def partition_graph(
    graph: Any,
    policy: str = "oec",
    *,
    comm: MPI.Intracomm | None = None,
    weights: bool = True,
    num_nodes: int | None = None,
    symmetrize: bool = False,
    share: bool = False,
    **options: Any,
) -> PartitionedGraph:
    """Divide a graph among the ranks. Collective.

    Parameters
    ----------
    graph : str or graph in memory
        A graph file, the folder of a saved partition, or what :func:`cusp.input.memory_input.slice_in_memory` takes or
        makes: a SciPy sparse matrix, a NetworkX graph, a data frame or arrays; an EdgeSlice.
    policy : str
        ``oec``, ``cvc`` ...: see ``python -m cusp --help``.
    comm : Intracomm, optional
        The ranks; all of the job if left out, which is one without mpirun.
    weights : bool
        Take the weights of edges, if they have some.
    num_nodes, symmetrize, share
        Of a graph in memory, see :func:`cusp.input.memory_input.slice_in_memory`.
    options
        Those of the command line: device, order, grid, threshold, memory_limit, transport ...

    Raises
    ------
    InputError
        On every rank: a graph, policy or option that is not right.
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    with together(comm):
        chosen = Keywords("partition_graph", _add_partition_options).read(options | {"policy": policy})
    placement = choose_device(wanted_device(chosen), comm)
    open_transport(chosen.transport, comm, placement.device)
    if named_everywhere(graph, comm):
        with together(comm):
            if num_nodes is not None or symmetrize or share:
                raise OptionError("num_nodes, symmetrize and share are for graphs in memory; scripts.convert does so")
        chosen.graph = str(graph)
        source = open_input(comm, chosen, weights, placement.device)
        _warm_up(source.header, source.policy, weights, comm, placement.device)
        part = source.build(Stopwatch(), False)
        return PartitionedGraph(part, comm, source.policy, None, chosen.transport)
    with together(comm):
        loaded = load_policy(policy, **policy_parameters(chosen))
        loaded.grid_for(comm.size)
        if chosen.memory_limit:
            raise OptionError("memory_limit is for graph files; this graph is in memory")
    names, edges = None, graph
    if not isinstance(graph, EdgeSlice):
        names = node_names(graph, comm)
        edges = slice_in_memory(graph, comm, num_nodes=num_nodes, symmetrize=symmetrize, share=share, weights=weights)
    _warm_up(_header_of(edges), loaded, weights, comm, placement.device)
    part = partitioner.partition_slice(edges, loaded, comm, chosen.order, device=placement.device)
    return PartitionedGraph(part, comm, loaded, names, chosen.transport)


def function_of(app: App) -> Callable[..., Result]:
    """An app as a function of a partitioned graph, a source if it needs one, and its options."""
    parser = Keywords(app.name, app.add_options)
    nodes = {action.dest for action in parser.actions if action.type is node_list}

    def run(part: PartitionedGraph, source: Any, gather: bool, verify: bool, options: dict[str, Any]) -> Result:
        comm = part.comm
        with together(comm):
            named = {name: [part.gid(node) for node in options[name]] for name in nodes & options.keys()}
            chosen = parser.read(options | named)
            chosen.verify = False
            gid = part.gid(source) if app.needs_source else None
        state = part.prepared(app, chosen)
        sync, watch = Sync(part.plan, comm), Stopwatch()
        comm.Barrier()
        with watch("run"):
            answer = app.run(part.part, sync, gid, state, chosen)
            wait(part.part)
        answer = answer.on_host()
        if verify:
            app.check(part.part, Sync(part.plan, comm), gid, answer, state, chosen)
        seconds = comm.allreduce(watch.seconds["run"], MPI.MAX)
        return Result(answer, part.part, part.names, comm, seconds, gather)

    def with_source(
        part: PartitionedGraph, source: Any, *, gather: bool = True, verify: bool = False, **options: Any
    ) -> Result:
        return run(part, source, gather, verify, options)

    def without(part: PartitionedGraph, *, gather: bool = True, verify: bool = False, **options: Any) -> Result:
        return run(part, None, gather, verify, options)

    return _described(with_source if app.needs_source else without, app, parser)


def _described(function: Callable[..., Result], app: App, parser: Keywords) -> Callable[..., Result]:
    """The function with a name, a signature and a text for ``help``."""
    function.__name__ = function.__qualname__ = app.name
    plain = inspect.signature(function)
    own = [
        inspect.Parameter(action.dest, inspect.Parameter.KEYWORD_ONLY, default=action.default)
        for action in parser.actions
    ]
    kept = [parameter for parameter in plain.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
    function.__signature__ = plain.replace(parameters=[*kept, *own])  # type: ignore[attr-defined]
    lines = [
        f"{app.summary[0].upper()}{app.summary[1:]}. Collective.\n",
        *(["source : the node to start from, by global id or name"] if app.needs_source else []),
        "gather : the labels of all nodes go to every rank; else each keeps its own",
        "verify : check the answer by invariants, which raises VerificationError",
        *(f"{action.dest} : {(action.help or '').replace('%%', '%')}" for action in parser.actions),
    ]
    function.__doc__ = "\n".join(lines) + "\n\nReturns a Result."
    return function


def _add_partition_options(parser: argparse.ArgumentParser) -> None:
    add_partition_options(parser)
    parser.add_argument("--transport", choices=TRANSPORTS, default="auto", help="how messages travel between GPUs")


def _header_of(edges: EdgeSlice) -> GraphHeader:
    weights = None if edges.weights is None else edges.weights.dtype
    index = index_dtype(edges.num_nodes)
    return GraphHeader("memory", edges.num_nodes, edges.num_edges, edges.symmetric, index, weights, False)


def _warm_up(header: GraphHeader, policy: Policy, weights: bool, comm: MPI.Intracomm, device: str) -> None:
    """Load the partitioner, compiled by few ranks for all. Collective."""

    def partition_tiny(few: MPI.Intracomm, path: str) -> None:
        partitioner.partition_graph(path, tiny_policy(policy, path), few, weights=weights, device=device)

    warm_up(comm, header, partition_tiny)
