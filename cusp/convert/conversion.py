"""From the edges of any format to rows of a graph, in a graph file or in memory: read, weigh, sort on all ranks."""

import argparse
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.convert.memory_input import NamedSlice
from cusp.convert.weights import Weigh, is_column, make_weigher
from cusp.edge_lists.csr_plan import check_num_nodes
from cusp.errors import GraphFileError, OptionError, check_same, shortened, together
from cusp.formats import EdgeSource, open_edges
from cusp.formats.source import Asked, EncodingError, FractionalWeightError, WideIdsError
from cusp.names.numbering import NameSlab, name_ids, names_of, number_names, slab_of
from cusp.output.tables import HDF5, TABLES, check_suffix, suffix_of, write_columns
from cusp.output.whole_file import check_targets
from cusp.runtime.files import check_unchanged, described, stamp
from cusp.runtime.mpi import MPI

if TYPE_CHECKING:
    from cusp.edge_lists.csr_builder import CsrBuilder

SMALL = 1 << 30  # bytes of offsets that any file may ask for
LONELY = 1000  # bytes of offsets for each byte of the file: most nodes would have no edge


class SparseIdsError(GraphFileError):
    """A file's comment counts the nodes that occur, and an id is larger: ids are not dense."""


@dataclass(frozen=True)
class Request(Asked):
    """What is to be read, and what is to become of it; see ``cusp convert --help``.

    Attributes
    ----------
    weights : str
        ``keep``, ``none`` or ``LOW:HIGH``.
    memory_limit : int, optional
        Bytes of one rank.
    insist : bool
        Refuse a file without weights whose columns of numbers may be meant as such.
    dense : bool
        The comment ``# Nodes: N`` of a text file counts all ids.
    """

    input: str
    format: str | None = None
    symmetrize: bool = False
    drop_loops: bool = False
    dedup: bool = False
    nodes: int | None = None
    weights: str = "keep"
    weight_type: str | None = None
    seed: int = 1
    memory_limit: int | None = None
    scratch: str | None = None
    insist: bool = False
    dense: bool = True


# Guesses from the first lines of a text file, which may prove wrong further down -> what the file is read again with.
WRONG_GUESSES: dict[type[GraphFileError], dict[str, Any]] = {
    FractionalWeightError: {"real_weights": True},
    WideIdsError: {"ids": "names"},
    EncodingError: {"latin1": True},
    SparseIdsError: {"dense": False},
}


def request_of(options: argparse.Namespace, **more: Any) -> Request:
    """What a command line asks for; a column that --weights names replaces the third."""
    given = {field.name: getattr(options, field.name) for field in fields(Request) if hasattr(options, field.name)}
    columns = options.columns.split(",") if options.columns else None
    if is_column(options.weights):
        columns = (columns or ["", ""])[:2] + [options.weights]
    return Request(**given | {"columns": columns} | more)


def convert(
    comm: MPI.Intracomm, request: Request, output: str, transpose: bool = False, notes: list[str] | None = None
) -> tuple[int, int]:
    """Write a graph file, or a table of its edges; return the numbers of nodes and edges; add hints to ``notes``.

    Collective.

    Raises
    ------
    InputError
        On every rank.
    """
    check_targets(comm, {"--output": output})  # which may be the input: it is replaced when the new file is complete
    builder, source, names = _read(comm, request)
    if notes is not None:
        notes += source.notes
        notes += [
            f"{source.path}: {three.split(',')[-1]} was not taken; --columns {three} takes it as the weight of edges"
            for three in source.unused
        ]
    return write_graph(builder, comm, output, transpose, names)


def check_output(output: str, transpose: bool) -> None:
    """Raise unless :func:`write_graph` knows the suffix of a file, and what to do with a transpose."""
    check_suffix(output, (*HDF5, *TABLES), "--output")
    if transpose and suffix_of(output) in TABLES:
        raise OptionError("--transpose: is for graph files; a table has each edge once")


def write_graph(
    builder: "CsrBuilder", comm: MPI.Intracomm, output: str, transpose: bool = False, slab: NameSlab | None = None
) -> tuple[int, int]:
    """Write a graph file, or by the suffix a table that :func:`convert` reads again; numbers of nodes and edges.

    Collective.
    """
    if suffix_of(output) not in TABLES:
        return builder.write(output, transpose, slab)
    rows, names = builder.build(), None if slab is None else names_of(slab, comm)
    sources = rows.first_node + np.repeat(np.arange(rows.indptr.size - 1), np.diff(rows.indptr))
    columns = {"source": sources, "target": rows.targets} | ({} if rows.weights is None else {"weight": rows.weights})
    write_columns(output, columns, names, ("source", "target"), comm)
    return rows.num_nodes, rows.num_edges


def read_slice(comm: MPI.Intracomm, request: Request) -> NamedSlice:
    """A file of any format in memory: this rank's slice of it. Collective.

    Raises
    ------
    InputError
        On every rank.
    """
    builder, source, slab = _read(comm, request)
    names = None if slab is None else names_of(slab, comm)
    return NamedSlice(builder.build(names), names, source.notes, source.unused)


def _read(comm: MPI.Intracomm, request: Request) -> "tuple[CsrBuilder, EdgeSource, NameSlab | None]":
    """Read all edges; again, if a guess from the first lines was wrong. Collective."""
    request = replace(request, real_weights=(request.weight_type or "").startswith("float"))
    while True:
        try:
            return _fill_builder(comm, request)
        except tuple(WRONG_GUESSES) as error:
            again = replace(request, **WRONG_GUESSES[type(error)])
            if again == request or (again.ids != request.ids and request.ids != "auto"):
                raise
            request = again


def _fill_builder(comm: MPI.Intracomm, request: Request) -> "tuple[CsrBuilder, EdgeSource, NameSlab | None]":
    from cusp.edge_lists.csr_builder import CsrBuilder, memory_for_one  # takes time, which graph files save

    limit = request.memory_limit or memory_for_one()
    with together(comm):
        before = stamp(request.input)
        source = open_edges(request.input, request.format, request)
        if request.insist and source.unused and request.weights == "keep":
            raise OptionError(
                f"{source.path}: no column is known to be the weight of edges, and there is "
                f"{', '.join(columns.split(',')[-1] for columns in source.unused)}; say --columns {source.unused[0]}, "
                "or --weights none for lengths of 1"
            )
        stated = source.min_nodes if request.dense else 0
        num_nodes = _num_nodes(request, source) or stated or None
        weight_dtype, weigh = make_weigher(request.weights, request.weight_type, request.seed, source)
        if source.dictionary is not None:
            source.dictionary.limit = limit // 2
            limit //= 2
        any_ids = source.dictionary is None and num_nodes is None and request.ids != "numbers"
        builder = CsrBuilder(
            comm, num_nodes=num_nodes, weight_dtype=weight_dtype, drop_loops=request.drop_loops, dedup=request.dedup,
            symmetrize=not source.reverse_stored if source.symmetric else request.symmetrize,
            symmetric=source.symmetric, memory_limit=limit, scratch=request.scratch, any_ids=any_ids,
        )  # fmt: skip
        given = described(source.path)
    check_same(comm, "graphs", given)
    with together(comm):
        asymmetry = _fill(builder, source, weigh, comm, request.nodes, 0 if request.nodes else stated, any_ids)
        check_unchanged(request.input, before)
    edges_read, asymmetry = comm.allreduce(source.edges_read), comm.allreduce(asymmetry) % 2**64
    sums = comm.allgather(source.sums)
    with together(comm):
        source.check_complete(edges_read, sums)
        if edges_read == 0 and not num_nodes and not source.named:
            raise GraphFileError(f"{source.path}: has no edges and states no nodes; give their number with --nodes")
        if asymmetry:
            raise GraphFileError(
                f"{source.path}: is an undirected graph by its header, but not every edge is listed at both "
                "ends; correct the file, or convert it as a list of edges with --symmetrize --dedup"
            )
    slab = _names(comm, source, builder, request.ids if any_ids else "numbers")
    if slab is not None and slab.note:
        source.notes.append(f"{source.path}: {slab.note}")
    return builder, source, slab


def _names(comm: MPI.Intracomm, source: EdgeSource, builder: "CsrBuilder", ids: str) -> NameSlab | None:
    """The names of nodes, if they have some: those that were read, by which nodes are now numbered. Collective."""
    if source.dictionary is not None:
        numbers, slab = number_names(source.dictionary.known(), comm)
        builder.renumber(numbers, slab.num_nodes)
        return slab
    with together(comm):
        names = source.stored_names(comm.rank, comm.size)
    return name_ids(builder, comm, ids) if names is None else replace(slab_of(names.packed(), comm), whole=names.whole)


def _fill(
    builder: "CsrBuilder", source: EdgeSource, weigh: Weigh, comm: MPI.Intracomm, nodes: int | None, stated: int,
    any_ids: bool,
) -> int:  # fmt: skip
    """Add this rank's share of the edges: ``nodes`` is the requested number, ``stated`` the file's guess.

    Returns their asymmetry: 0 in sum over all ranks if the file lists each edge at both ends as it should.
    """
    unpaired = 0
    for sources, targets, weights in source.chunks(comm.rank, comm.size):
        if sources.size == 0:
            continue
        largest = max(int(sources.max()), int(targets.max()))
        if stated and (largest >= stated or min(int(sources.min()), int(targets.min())) < 0):
            raise SparseIdsError(f"{source.path}: states {stated:,} nodes but has the id {largest:,}")
        if nodes is not None and largest >= nodes:
            raise OptionError(f"--nodes {nodes}: {source.path} has the id {largest:,}, so at least {largest + 1} nodes")
        if nodes is None and not any_ids:
            _check_size(source, largest + 1)
        if source.reverse_stored:
            from cusp.edge_lists.csr_kernels import asymmetry

            unpaired += asymmetry(sources, targets, weights)
        weighed = weigh(sources, targets, weights)
        _check_weights(source, sources, targets, weighed)
        builder.add(sources, targets, weighed)
    return unpaired


def _check_weights(source: EdgeSource, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> None:
    if weights is not None and weights.dtype.kind == "f" and np.isnan(weights).any():
        at = int(np.isnan(weights).argmax())
        names = None if source.dictionary is None else source.dictionary.known()
        ends = (str(end) if names is None else shortened(names[end].decode()) for end in (sources[at], targets[at]))
        raise GraphFileError(f"{source.path}: the edge {' -> '.join(ends)} has no weight, or one that is not a number")


def _num_nodes(request: Request, source: EdgeSource) -> int | None:
    if source.named and request.nodes is not None:
        raise OptionError(f"--nodes {request.nodes}: the nodes of {source.path} have names, and are as many as names")
    if source.num_nodes is not None:
        if request.nodes is not None and request.nodes < source.num_nodes:
            raise OptionError(f"--nodes {request.nodes}: {source.path} states {source.num_nodes:,} nodes")
        if request.nodes is None:
            _check_size(source, source.num_nodes)
    return request.nodes if request.nodes is not None else source.num_nodes


def _check_size(source: EdgeSource, num_nodes: int) -> None:
    """Refuse a number of nodes that the file is too small to mean, unless --nodes confirms it."""
    check_num_nodes(num_nodes, str(source.path))
    size = source.path.stat().st_size
    if 8 * num_nodes > max(SMALL, LONELY * size):
        names = ", or take ids as names with --ids names" if source.takes_names else ""
        raise GraphFileError(
            f"{source.path}: a file of {size:,} bytes has the id {num_nodes - 1:,}, or states as many nodes: their "
            f"offsets take {8 * num_nodes / 1e9:,.1f} GB; number the nodes from 0 without gaps first, or confirm "
            f"with --nodes {num_nodes}{names}"
        )
