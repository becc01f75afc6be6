"""python -m scripts.convert INPUT -o GRAPH.h5: turn a graph of any known format into a graph file.

Runs on any number of ranks; all take part in sorting and writing, and in reading where a file can be divided.
"""

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cusp.errors import GraphFileError, OptionError, together
from cusp.launch import num_bytes, parse_together, run_main
from scripts.formats import FORMATS, EdgeSource, open_edges
from scripts.formats.text import FractionalWeightError
from scripts.formats.weights import WEIGHT_TYPES, Weigher, is_column, make_weigher

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from cusp.edge_lists.csr_builder import CsrBuilder


class SparseIdsError(GraphFileError):
    """A file's comment counts the nodes that occur, and an id is larger: ids are not dense."""


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    known = "\n".join(f"  {name:12} {entry[3]}" for name, entry in FORMATS.items())
    parser = argparse.ArgumentParser(
        prog="python -m scripts.convert",
        description="Convert a graph to a graph file (HDF5, CSR), or say what a file holds.",
        epilog=f"formats, recognised by content and extension, with or without .gz:\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("input", metavar="INPUT", help="file of any format below")
    add("-o", "--output", metavar="GRAPH.h5", help="graph file to write")
    add("--info", action="store_true", help="print what INPUT holds instead of converting it")
    add("--check", action="store_true", help="with --info: also compare the checksums of a graph file")
    add("--format", choices=list(FORMATS), metavar="FORMAT", help="format of INPUT (default: recognised)")
    add("--columns", metavar="S,T[,W]", help="columns of an edge list or table: names, or numbers from 1")
    add("--symmetrize", action="store_true", help="add the reverse of every edge")
    add("--drop-loops", action="store_true", help="leave out edges from a node to itself")
    add("--dedup", action="store_true", help="keep one of parallel edges, that of the smallest weight")
    add("--transpose", action="store_true", help="store the transpose too, in the group csc")
    add(
        "--nodes",
        type=_count,
        metavar="N",
        help="number of nodes (default: from the header or the largest id)",
    )
    add("--weights", default="keep", metavar="W", help=_WEIGHTS_HELP)
    add(
        "--weight-type",
        choices=WEIGHT_TYPES,
        metavar="TYPE",
        help="number type of the stored weights, such as uint8",
    )
    add("--seed", type=int, default=1, help="of random weights (default: 1)")
    add("--memory-limit", type=num_bytes, metavar="4G", help="buffers of one rank; more goes to scratch files")
    add("--scratch", metavar="FOLDER", help="for scratch files (default: the system's)")
    return parser


_WEIGHTS_HELP = (
    "keep those of the file (default), none, a COLUMN of an edge list or table, "
    "or LOW:HIGH for random ones, the same in both directions: 1:255 integers, 0.0:1.0 floats"
)


def main(comm: "Intracomm", argv: list[str]) -> int:
    """Parse the command line and do what it says. Collective."""
    options = parse_together(comm, make_parser(), argv)
    if options.info:
        _print_info(comm, options)
        return 0
    if options.output is None:
        raise OptionError("name the graph file to write with -o GRAPH.h5, or ask for --info")
    started = time.perf_counter()
    num_nodes, num_edges = convert(comm, options)
    if comm.rank == 0:
        seconds = time.perf_counter() - started
        print(f"{options.output}: {num_nodes:,} nodes, {num_edges:,} edges ({seconds:.2f} s)")
    return 0


def convert(comm: "Intracomm", options: argparse.Namespace) -> tuple[int, int]:
    """Read, sort and write; return the numbers of nodes and edges. Collective.

    Two guesses from the first lines of a text file may prove wrong further down: that weights are
    integers, and that its comment ``# Nodes: N`` counts all ids. Then the file is read again without.
    """
    from cusp.output.dataset_writer import check_target

    check_target(options.output, comm)
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


def _print_info(comm: "Intracomm", options: argparse.Namespace) -> None:
    with together(comm):
        if comm.rank == 0:
            from scripts.formats.info import describe

            print(describe(Path(options.input), options.format, _columns(options), options.check))


def _convert_once(comm: "Intracomm", options: argparse.Namespace, real: bool, dense: bool) -> tuple[int, int]:
    from cusp.edge_lists.csr_builder import CsrBuilder

    with together(comm):
        source = open_edges(options.input, options.format, _columns(options), real)
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
    with together(comm):
        source.check_complete(edges_read)
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
    """Add this rank's share of the edges: ``nodes`` are asked for, ``stated`` ones the file's guess.

    Returns their asymmetry: in sum over all ranks 0 if the file lists edges at both ends as it should.
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
        _check_memory(source, largest + 1)
        if source.reverse_stored:
            from scripts.formats.symmetry import asymmetry

            unpaired += asymmetry(sources, targets, weights)
        builder.add(sources, targets, weigh(sources, targets, weights))
    return unpaired


def _num_nodes(options: argparse.Namespace, source: EdgeSource) -> int | None:
    if source.num_nodes is not None:
        if options.nodes is not None and options.nodes < source.num_nodes:
            raise OptionError(f"--nodes {options.nodes}: {source.path} states {source.num_nodes:,} nodes")
        _check_memory(source, source.num_nodes)
    return options.nodes if options.nodes is not None else source.num_nodes


def _check_memory(source: EdgeSource, num_nodes: int) -> None:
    """Refuse ids so large that the offsets alone fill the computer's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 8 * num_nodes > memory:
        raise GraphFileError(
            f"{source.path}: the id {num_nodes - 1:,} needs offsets of {8 * num_nodes / 1e9:,.0f} GB, more "
            f"than the {memory / 1e9:,.0f} GB of this computer; number the nodes from 0 without gaps first"
        )


def _columns(options: argparse.Namespace) -> list[str] | None:
    """The columns to read; a column named by --weights takes the place of the third."""
    columns = options.columns.split(",") if options.columns else None
    return (columns or ["1", "2"])[:2] + [options.weights] if is_column(options.weights) else columns


def _count(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of at least 1")
    return value


_count.__name__ = "number of nodes"  # as argparse names it in its message


if __name__ == "__main__":
    run_main(main)
