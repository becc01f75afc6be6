"""Slices of graphs that are in memory already, on one rank or on all: a rank's share of their edges, sorted."""

import os
import zlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cusp.errors import OptionError, together
from cusp.formats.in_memory import EdgeList, GraphError, edge_list_of, node_list
from cusp.formats.source import IDS
from cusp.input.checksum import checksum
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader, index_dtype
from cusp.names.dictionary import Dictionary
from cusp.names.names import ListedNames, Names
from cusp.names.numbering import name_ids, names_of, number_names
from cusp.partition import Partition
from cusp.runtime.mpi import MPI


@dataclass(frozen=True)
class _Summary:
    """What the ranks tell each other of their graphs, to find out whether they fit together."""

    num_nodes: int | None
    both_ways: bool
    num_edges: int
    weight_dtype: np.dtype | None
    named: bool
    unused: list[str]
    content: int


def is_path(graph: Any) -> bool:
    """Whether a graph is given as the name of a file."""
    return isinstance(graph, (str, os.PathLike))


def named_everywhere(graph: Any, comm: MPI.Intracomm) -> bool:
    """Whether the ranks give the name of a file; GraphError on every rank if only some do. Collective."""
    names = comm.allgather(is_path(graph))
    if any(names) and not all(names):
        raise GraphError(f"rank {names.index(True)} names a file, rank {names.index(False)} does not; name it on all")
    return all(names)


class NamedSlice(NamedTuple):
    """A rank's slice of a graph, what its nodes are called if they have names, and what to say about both.

    Attributes
    ----------
    notes, unused
        See :class:`cusp.formats.source.EdgeSource`.
    """

    edges: EdgeSlice
    names: Names | None
    notes: list[str] = []
    unused: list[str] = []


def named_slice(
    graph: Any,
    comm: MPI.Intracomm,
    *,
    num_nodes: int | None = None,
    symmetrize: bool = False,
    share: bool = False,
    weights: bool = True,
    columns: list[str] | None = None,
    ids: str = "auto",
) -> NamedSlice:
    """This rank's slice of a graph in memory, and what its nodes are called, if they have names. Collective.

    Checks whether the graph is symmetric. Loops and parallel edges stay.

    >>> from mpi4py.MPI import COMM_SELF
    >>> edges, names, *_ = named_slice((["c", "b"], ["b", "a"]), COMM_SELF, symmetrize=True)
    >>> edges.indptr, edges.targets, edges.symmetric, list(names)
    (array([0, 1, 3, 4]), array([1, 0, 2, 1], dtype=uint32), True, ['a', 'b', 'c'])

    Parameters
    ----------
    graph : matrix, graph of NetworkX or igraph, data frame or tuple of arrays
        The same on every rank, or on rank 0 alone with None on the others. A SciPy sparse matrix has an edge
        row -> column for each stored entry, whose value is its weight, unless it is bool. The nodes of a NetworkX
        graph are numbered in the order of ``graph.nodes``; the weight of an edge is its attribute ``weight``, or 1
        if only others have one; undirected edges stand for both directions. Data frames (pandas, Polars) and Arrow
        tables have columns of sources, targets and perhaps weights. There and in arrays, ids that are texts are
        names: nodes are then numbered in their order. So are whole numbers with gaps, see ``ids``.
    num_nodes : int, optional
        For edge lists whose last nodes have no edges.
    symmetrize : bool
        Add the reverse, with the same weight, of every edge that is not a loop.
    share : bool
        Every rank gives edges of its own, or None; together they are the graph. For data frames and arrays.
    weights : bool
        Use the weights, if there are any.
    columns : list of str, optional
        Of a table: source, target and perhaps weight; else those with the usual headings, see
        :func:`cusp.formats.columns.choose_columns`. Of a graph of NetworkX or igraph: the attribute of edges that is
        their weight.
    ids : str
        What whole numbers in tables and arrays are: ``numbers`` of nodes, as with ``num_nodes``; ``names``; or
        ``auto``: names if one is negative, or fewer than half of the ids 0, 1 ... up to the largest occur.

    Raises
    ------
    GraphError
        On every rank: not a graph, ids that are not integers, negative or too large, weights that are not numbers
        or of another length, ranks that give different graphs.
    """
    from cusp.edge_lists.csr_builder import CsrBuilder  # takes time, which graph files save

    with together(comm):
        if ids not in IDS:
            raise OptionError(f"ids={ids!r}: expected one of {', '.join(IDS)}")
        edges = None if graph is None else edge_list_of(graph, num_nodes, columns, ids)
        listed = None if graph is None else node_list(graph)
        if edges is not None and share and edges.num_nodes is not None and num_nodes is None:
            raise GraphError("share=True is for data frames and arrays: a matrix or NetworkX graph is whole")
        if edges is not None and not weights:
            edges = replace(edges, weights=None)
    summary = edges and _Summary(
        edges.num_nodes, edges.both_ways, edges.sources.size, edges.weight_dtype, edges.dictionary is not None,
        edges.unused if weights else [], 0 if share else _content(edges, listed),
    )  # fmt: skip
    summaries = comm.allgather(summary)
    with together(comm):
        given = {rank: other for rank, other in enumerate(summaries) if other is not None}
        _check_agreement(given, comm.size, share)
        first_given = given[min(given)]
        with_edges = [other for other in given.values() if other.num_edges] or list(given.values())
        dtype = _common_type([other.weight_dtype for other in with_edges])
        both_ways = symmetrize or first_given.both_ways
        any_ids = first_given.num_nodes is None and not with_edges[0].named and ids != "numbers"
        builder = CsrBuilder(
            comm, num_nodes=first_given.num_nodes, weight_dtype=dtype, symmetrize=both_ways, any_ids=any_ids
        )
        if edges is not None:
            copies = 1 if share else len(given)  # of the same edges: each rank adds an even part
            first, last = (edges.sources.size * (comm.rank % copies + side) // copies for side in (0, 1))
            values = None if dtype is None or edges.weights is None else edges.weights[first:last].astype(dtype)
            if last > first:
                builder.add(edges.sources[first:last], edges.targets[first:last], values)
    slab = name_ids(builder, comm, ids) if any_ids else None
    if with_edges[0].named:
        known = Dictionary() if edges is None or edges.dictionary is None else edges.dictionary
        numbers, slab = number_names(known.known(), comm)
        builder.renumber(numbers, slab.num_nodes)
    names = _listed_names(listed, comm) if slab is None else names_of(slab, comm)
    rows = builder.build(names)
    with together(comm):
        if rows.num_nodes == 0:
            raise GraphError("the graph has no nodes; give num_nodes, or edges")
    notes = [slab.note] if slab and slab.note else []
    return NamedSlice(rows, names, notes, first_given.unused)


def _content(edges: EdgeList, listed: list[Any] | None) -> int:
    """A checksum of all that ranks have to bring alike; of names only those that are texts or numbers."""
    names = None if edges.dictionary is None else edges.dictionary.known()
    arrays = [edges.sources, edges.targets, edges.weights, *((names.offsets, names.text) if names else ())]
    sums = [checksum(array) for array in arrays if array is not None]
    plain = [name for name in listed or () if isinstance(name, (str, int, float))]
    return zlib.crc32(repr((sums, plain)).encode(errors="backslashreplace"))


def _listed_names(names: list[Any] | None, comm: MPI.Intracomm) -> Names | None:
    """The names of the nodes 0, 1, 2 ..., if a rank has them. Collective."""
    known = comm.allgather(names is not None)
    if not all(known) and any(known):
        names = comm.bcast(names, root=known.index(True))
    return None if names is None else ListedNames(names)


def header_of(name: str, graph: EdgeSlice | Partition) -> GraphHeader:
    """What the file of a graph would say."""
    weights = None if graph.weights is None else graph.weights.dtype
    index = index_dtype(graph.num_nodes)
    return GraphHeader(name, graph.num_nodes, graph.num_edges, graph.symmetric, index, weights, False)


def _check_agreement(given: dict[int, _Summary], num_ranks: int, share: bool) -> None:
    """Raise unless the ranks that give a graph give the same, or may give different edges of one."""
    if not given:
        raise GraphError("no rank brings a graph; give it on every rank, or on rank 0 and None on the others")
    first = min(given)
    for rank, summary in given.items():
        if summary.named != given[first].named and summary.num_edges and given[first].num_edges:
            raise GraphError(f"of ranks {first} and {rank}, only one brings nodes with names; bring them on both")
        if share and (summary.num_nodes, summary.both_ways) != (given[first].num_nodes, given[first].both_ways):
            raise GraphError(
                f"ranks {first} and {rank} bring edges of {given[first].num_nodes} and {summary.num_nodes} nodes"
            )
        if not share and summary != given[first]:
            before, edges = given[first].num_edges, summary.num_edges
            sizes = f"{before:,} and {edges:,} edges" if before != edges else f"{edges:,} edges each, but others"
            raise GraphError(
                f"ranks {first} and {rank} bring different graphs ({sizes}); with share=True, each rank brings edges "
                "of its own"
            )
    if not share and len(given) not in (1, num_ranks):
        raise GraphError(
            f"only the ranks {', '.join(map(str, given))} bring a graph; give it on every rank, or on one of them"
        )


def _common_type(dtypes: list[np.dtype | None]) -> np.dtype | None:
    """The type that holds the weights of all ranks."""
    known = [dtype for dtype in dtypes if dtype is not None]
    if known and len(known) < len(dtypes):
        raise GraphError("some ranks bring edges with weights, others without")
    return np.result_type(*known) if known else None
