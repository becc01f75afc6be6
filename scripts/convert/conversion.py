"""From the edges of any format to a graph file: read, weigh, sort and write on all ranks."""

import argparse
from typing import TYPE_CHECKING

from cusp.edge_lists.csr_plan import check_num_nodes
from cusp.errors import GraphFileError, OptionError, together
from scripts.convert.weights import Weigher, is_column, make_weigher
from scripts.formats import EdgeSource, open_edges
from scripts.formats.text import FractionalWeightError

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from cusp.edge_lists.csr_builder import CsrBuilder


SMALL = 1 << 30  # bytes of offsets that any file may ask for
LONELY = 1000  # bytes of offsets for each byte of the file: most nodes would have no edge


class SparseIdsError(GraphFileError):
    """A file's comment counts the nodes that occur, and an id is larger: ids are not dense."""


def convert(comm: "Intracomm", options: argparse.Namespace) -> tuple[int, int]:
    """Read, sort and write; return the numbers of nodes and edges. Collective.

    Two guesses from the first lines of a text file may prove wrong further down: that weights are
    integers, and that its comment ``# Nodes: N`` counts all ids. If so, the file is read again without the guess.
    """
    from cusp.output.whole_file import check_target

    check_target(options.output, comm)  # which may be the input: it is replaced when the new file is complete
    real = (options.weight_type or "").startswith("float")
    dense = True
    while True:
        try:
            return _convert_once(comm, options, real, dense)
        except FractionalWeightError:
            if real:
                raise
            real = True
        except SparseIdsError:
            dense = False


def _convert_once(comm: "Intracomm", options: argparse.Namespace, real: bool, dense: bool) -> tuple[int, int]:
    from cusp.edge_lists.csr_builder import CsrBuilder

    with together(comm):
        source = open_edges(options.input, options.format, columns_of(options), real)
        stated = source.min_nodes if dense else 0
        num_nodes = _num_nodes(options, source) or stated or None
        weigh = make_weigher(options.weights, options.weight_type, options.seed, source)
        builder = CsrBuilder(
            comm,
            num_nodes=num_nodes,
            weight_dtype=weigh.dtype,
            symmetrize=options.symmetrize and not source.symmetric,
            drop_loops=options.drop_loops,
            dedup=options.dedup,
            memory_limit=options.memory_limit,
            scratch=options.scratch,
            symmetric=source.symmetric,
        )
    with together(comm):
        asymmetry = _fill(builder, source, weigh, comm, options.nodes, 0 if options.nodes else stated)
    edges_read, asymmetry = comm.allreduce(source.edges_read), comm.allreduce(asymmetry) % 2**64
    sums = comm.allgather(source.sums)
    with together(comm):
        source.check_complete(edges_read, sums)
        if edges_read == 0 and not num_nodes:
            raise GraphFileError(f"{source.path}: has no edges and states no nodes; give their number with --nodes")
        if asymmetry:
            raise GraphFileError(
                f"{source.path}: is an undirected graph by its header, but not every edge is listed at both "
                "ends; correct the file, or convert it as a list of edges with --symmetrize --dedup"
            )
    return builder.write(options.output, transpose=options.transpose)


def _fill(
    builder: "CsrBuilder",
    source: EdgeSource,
    weigh: Weigher,
    comm: "Intracomm",
    nodes: int | None,
    stated: int,
) -> int:
    """Add this rank's share of the edges: ``nodes`` is the requested number, ``stated`` the file's guess.

    Returns their asymmetry: 0 in sum over all ranks if the file lists each edge at both ends as it should.
    """
    unpaired = 0
    for sources, targets, weights in source.chunks(comm.rank, comm.size):
        if sources.size == 0:
            continue
        largest = max(int(sources.max()), int(targets.max()))
        if stated and largest >= stated:
            raise SparseIdsError(f"{source.path}: states {stated:,} nodes but has the id {largest:,}")
        if nodes is not None and largest >= nodes:
            raise OptionError(f"--nodes {nodes}: {source.path} has the id {largest:,}, so at least {largest + 1} nodes")
        if nodes is None:
            _check_size(source, largest + 1)
        if source.reverse_stored:
            from scripts.convert.symmetry import asymmetry

            unpaired += asymmetry(sources, targets, weights)
        builder.add(sources, targets, weigh(sources, targets, weights))
    return unpaired


def _num_nodes(options: argparse.Namespace, source: EdgeSource) -> int | None:
    if source.num_nodes is not None:
        if options.nodes is not None and options.nodes < source.num_nodes:
            raise OptionError(f"--nodes {options.nodes}: {source.path} states {source.num_nodes:,} nodes")
        if options.nodes is None:
            _check_size(source, source.num_nodes)
    return options.nodes if options.nodes is not None else source.num_nodes


def _check_size(source: EdgeSource, num_nodes: int) -> None:
    """Refuse a number of nodes that the file is too small to mean, unless --nodes confirms it."""
    check_num_nodes(num_nodes, str(source.path))
    size = source.path.stat().st_size
    if 8 * num_nodes > max(SMALL, LONELY * size):
        raise GraphFileError(
            f"{source.path}: a file of {size:,} bytes has the id {num_nodes - 1:,}, or states as many nodes: their "
            f"offsets take {8 * num_nodes / 1e9:,.1f} GB; number the nodes from 0 without gaps first, or confirm "
            f"with --nodes {num_nodes}"
        )


def columns_of(options: argparse.Namespace) -> list[str] | None:
    """The columns to read; a column that --weights names replaces the third."""
    columns = options.columns.split(",") if options.columns else None
    return (columns or ["1", "2"])[:2] + [options.weights] if is_column(options.weights) else columns
