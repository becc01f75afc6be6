"""partition_graph(): read, then the four phases of CuSP (Hoang et al., IPDPS 2019), nothing else."""

from typing import TYPE_CHECKING, Any

from cusp.allocate import allocate
from cusp.assign_edges import assign_edges
from cusp.assign_masters import assign_masters
from cusp.construct import construct, exchange_edges, number_proxies
from cusp.errors import OptionError, together
from cusp.input.edge_slice import EdgeSlice, read_slice
from cusp.input.memory_input import is_path, named_everywhere, slice_in_memory, with_in_degrees
from cusp.neighbors import meet_neighbors
from cusp.partition import Partition
from cusp.policies.compile_rules import Rules
from cusp.policies.node_map import read_node_map
from cusp.policies.policy import Policy, load_policy
from cusp.policies.prop import Prop
from cusp.runtime.devices import move
from cusp.runtime.stopwatch import Stopwatch

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

ORDERS = ("degree", "natural")


def partition_graph(
    graph: Any,
    policy: Policy | str,
    comm: "Intracomm",
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
        frame or arrays, see :func:`cusp.input.memory_input.slice_in_memory`, which has more choices and makes an
        EdgeSlice.
    policy : Policy or str
        A name as of ``--policy``, with the usual parameters.
    split : str
        How the ranks share the reading of a file, see :func:`cusp.input.edge_slice.read_slice`.
    weights : bool
        Read edge weights if there are some.
    order : str
        Local ids of masters: ``degree`` (hubs first) or ``natural`` (by global id).
    csc : bool
        Build the local CSC too.
    watch : Stopwatch, optional
        Gets the seconds of each phase.
    memory_limit : int, optional
        Bytes that each rank may use for the graph, see :mod:`cusp.runtime.storage`. The partition is the same.
    device : {'cpu', 'gpu'}
        Where the partition is made and stays. It is the same, bit for bit. Rules that cannot run on the GPU
        run on the host, see :mod:`cusp.policies.translate_rules`.

    Raises
    ------
    GraphFileError, GraphError, PolicyError, OptionError
        On every rank, whichever of them met it.
    """
    watch = watch or Stopwatch()
    with watch("read"):
        with together(comm):
            if memory_limit is not None and device != "cpu":
                raise OptionError("--memory-limit is for partitions on the CPU; leave it out, or use --device cpu")
            if memory_limit is not None and not is_path(graph):
                raise OptionError("--memory-limit is for graph files; this graph is in memory")
            policy = load_policy(policy) if isinstance(policy, str) else policy
            rules = Rules(policy, device)
        if named_everywhere(graph, comm):
            edges = [read_slice(graph, comm, split, weights, rules.uses_in_degrees, memory_limit, rules.device)]
        else:
            edges = [graph if isinstance(graph, EdgeSlice) else slice_in_memory(graph, comm, weights=weights)]
    return partition_slice(edges.pop(), policy, comm, order, csc, watch, device)


def partition_slice(
    edges: EdgeSlice,
    policy: Policy,
    comm: "Intracomm",
    order: str = "degree",
    csc: bool = False,
    watch: Stopwatch | None = None,
    device: str = "cpu",
) -> Partition:
    """Partition a graph that the ranks already hold in slices. Collective."""
    watch = watch or Stopwatch()
    with watch("assign_masters"):
        with together(comm):
            rules = Rules(policy, device)
        if rules.uses_in_degrees and edges.in_degrees is None:
            edges = with_in_degrees(edges, comm)
        with together(comm):
            edges = edges.on(rules.device)
            prop = Prop(edges, comm.size, comm.rank, policy.grid_for(comm.size), policy.threshold)
            if policy.node_map:
                prop.node_map = move(read_node_map(policy.node_map, edges), edges.device)
        neighbors = meet_neighbors(edges, rules, prop, comm) if rules.uses_neighbors else None
        masters = assign_masters(edges, rules, prop, neighbors, comm)
    with watch("assign_edges"):
        owners = assign_edges(edges, masters, rules, prop, comm)
    edges, masters, owners = edges.on(device), masters.on(device), move(owners, device)  # if the rules ran elsewhere
    with watch("allocate"):
        layout = allocate(edges, owners, comm)
    with watch("construct"):
        arrivals = exchange_edges(edges, owners, layout, comm)
        edges = edges.without_edges()
        del prop, owners, neighbors  # what was read is not needed any more, and its memory is
        proxies = number_proxies(edges, arrivals, masters, layout, order, comm)
        del masters
        part = construct(edges, arrivals, proxies, layout, order, comm)
        return part.with_csc() if csc else part
