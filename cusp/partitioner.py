"""partition_graph(): read the graph, then the four phases of CuSP (Hoang et al., IPDPS 2019)."""

from typing import Any

from cusp.allocate import allocate
from cusp.assign_edges import assign_edges
from cusp.assign_masters import assign_masters
from cusp.card.limit import limit_card
from cusp.construct import construct, exchange_edges, number_proxies
from cusp.convert.memory_input import is_path, named_everywhere, named_slice
from cusp.errors import OptionError, together
from cusp.growth.parts import what_was_before, with_rows_of
from cusp.input.edge_slice import EdgeSlice, read_slice
from cusp.input.graph_file import read_header
from cusp.input.split import bounds_of_parts
from cusp.partition import Partition
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.policies.policy import Policy
from cusp.prepare_rules import gather_facts, prepare_rules
from cusp.runtime.devices import move
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch

ORDERS = ("degree", "natural")


def partition_graph(
    graph: Any,
    policy: Policy | CompiledPolicy | str,
    comm: MPI.Intracomm,
    split: str = "edges",
    weights: bool = True,
    order: str = "degree",
    csc: bool = False,
    watch: Stopwatch | None = None,
    memory_limit: int | None = None,
    device: str = "cpu",
) -> Partition:
    """Partition a graph among the ranks of ``comm``. Collective.

    Parameters
    ----------
    graph : str, path, EdgeSlice or graph in memory
        The name of a graph file, see :mod:`cusp.input.graph_file`; or a SciPy sparse matrix, a NetworkX graph, a data
        frame or arrays, see :func:`cusp.convert.memory_input.named_slice`, which has more options and makes an
        EdgeSlice.
    policy : Policy, CompiledPolicy or str
        A name as for ``--policy``, with default parameters. A policy that is compiled already must be compiled for
        ``device``.
    split : str
        How the ranks share the reading of a file, see :func:`cusp.input.edge_slice.read_slice`.
    weights : bool
        Read the edge weights, if there are any.
    order : str
        Local ids of masters: ``degree`` (hubs first) or ``natural`` (by global id).
    csc : bool
        Build the local CSC too.
    watch : Stopwatch, optional
        Gets the seconds of each phase.
    memory_limit : int, optional
        Bytes that each rank may use for the graph: on a CPU of memory, see :mod:`cusp.runtime.storage`; on a GPU of the
        card, see :mod:`cusp.card`. The partition is the same, unless the threshold of a policy such as ``hep`` follows
        from a limit on CPUs.
    device : {'cpu', 'gpu'}
        Where the partition of this rank is made and stays. It is the same on both, bit for bit. Rules that cannot run
        on the GPU run on the host, see :mod:`cusp.policies.translate_rules`.

    Raises
    ------
    GraphFileError, GraphError, PolicyError, OptionError
        On every rank, whichever of them met it.

    Examples
    --------
    A ring of six nodes, on one rank:

    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> from cusp.partitioner import partition_graph
    >>> ring = np.arange(6), (np.arange(6) + 1) % 6
    >>> part = partition_graph(ring, "cvc", MPI.COMM_SELF)
    >>> part.num_nodes, part.num_masters, part.num_local_edges
    (6, 6, 6)
    """
    watch = watch or Stopwatch()
    with watch("read"):
        with together(comm):
            if memory_limit is not None and not is_path(graph):
                raise OptionError("--memory-limit is for graph files; this graph is in memory")
            compiled = compile_policy(policy, device)
            shares = compiled.policy.shares_for(comm.size)
        if named_everywhere(graph, comm):
            with together(comm):
                header = read_header(graph)
            limit_card(header, device, memory_limit, comm)
            in_degrees, limit = compiled.uses.in_degrees, memory_limit if device == "cpu" else None
            edges = [read_slice(graph, comm, split, weights, in_degrees, limit, compiled.device, shares)]
        else:
            edges = [graph if isinstance(graph, EdgeSlice) else named_slice(graph, comm, weights=weights).edges]
    # taken out of the list, the slice is referred to by partition_slice alone, which frees its edges as soon as it can
    return partition_slice(edges.pop(), compiled, comm, order, csc, watch, device, split)


def partition_slice(
    edges: EdgeSlice,
    policy: Policy | CompiledPolicy,
    comm: MPI.Intracomm,
    order: str = "degree",
    csc: bool = False,
    watch: Stopwatch | None = None,
    device: str = "cpu",
    split: str = "edges",
    onto: Partition | None = None,
) -> Partition:
    """Partition a graph that the ranks already hold in slices; see :func:`partition_graph`. Collective.

    Blocks of nodes are those that ranks hold; if ranks have shares, then those that ``split`` and the shares say.

    Parameters
    ----------
    onto : Partition, optional
        On the host: the edges are added to it, all others stay where they are, and nodes keep their masters. The slices
        have the numbers of nodes and edges of the whole graph; nodes that are new have no proxies in it.
    """
    watch = watch or Stopwatch()
    with watch("assign_masters"):
        with together(comm):
            compiled = compile_policy(policy, device, adding=onto is not None)
            shares = compiled.policy.shares_for(comm.size)
        bounds = bounds_of_parts(edges, comm.size, split, comm, shares) if shares else None
        before = None if onto is None else what_was_before(onto, edges, compiled.uses.in_degrees, comm)
        rules = prepare_rules(gather_facts(edges, compiled, comm, bounds, before=before), comm)
        edges = rules.edges
        masters = assign_masters(rules, comm)
    with watch("assign_edges"):
        owners = assign_edges(rules, masters, comm)
    # the rules may have run on the host
    edges, masters, owners = edges.on(device), masters.on(device), move(owners, device)
    with watch("allocate"):
        layout = allocate(edges, owners, comm)
    with watch("construct"):
        targets, weights = exchange_edges(edges, owners, layout, comm)
        edges = edges.without_edges()
        targeted, gids = targets, None
        if onto is not None:
            layout, targets, weights, gids, targeted = with_rows_of(onto, layout, targets, weights)
        del rules, owners  # frees the memory of what was read
        proxies = number_proxies(edges, targeted, masters, layout, order, comm)
        del masters, targeted
        part = construct(edges, targets, weights, proxies, layout, order, comm, gids)
        del edges, targets, weights, proxies
        return part.with_csc().kept() if csc else part.kept()
