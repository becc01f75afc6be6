"""python -m scripts.convert INPUT -o GRAPH.h5: turn a graph of any known format into a graph file.

Runs on any number of ranks; all take part in sorting and writing, and in reading where a file can be divided.
"""

import argparse
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from cusp.convert.conversion import Request, convert
from cusp.convert.weights import WEIGHT_TYPES, is_column
from cusp.errors import OptionError, together
from cusp.formats import FORMATS
from cusp.launch import Parser, num_bytes, parse_together, program, run_main

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

_WEIGHTS_HELP = (
    "keep those of the file (default), none, a COLUMN of an edge list or table, "
    "or LOW:HIGH for random ones, the same in both directions: 1:255 integers, 0.0:1.0 floats"
)


def _count(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of at least 1")
    return value


_count.__name__ = "number of nodes"  # as argparse names it in its message


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    known = "\n".join(f"  {name:12} {entry[3]}" for name, entry in FORMATS.items())
    parser = Parser(
        prog=program("scripts.convert"),
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
    add("--names", action="store_true", help="node ids are names (default: if they are not whole numbers)")
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


def main(comm: "Intracomm", argv: list[str]) -> int:
    """Parse the command line and do what it says. Collective."""
    options = parse_together(comm, make_parser(), argv)
    if options.info:
        _print_info(comm, options)
        return 0
    if options.output is None:
        raise OptionError("name the graph file to write with -o GRAPH.h5, or ask for --info")
    from cusp.names.graph_names import has_names

    started = time.perf_counter()
    num_nodes, num_edges = convert(comm, request_of(options), options.output, options.transpose)
    if comm.rank == 0:
        seconds = time.perf_counter() - started
        named = " with names" if has_names(options.output) else ""
        print(f"{options.output}: {num_nodes:,} nodes{named}, {num_edges:,} edges ({seconds:.2f} s)")
    return 0


def request_of(options: argparse.Namespace) -> Request:
    """What the command line asks for; a column that --weights names replaces the third."""
    given = {field.name: getattr(options, field.name) for field in fields(Request) if hasattr(options, field.name)}
    columns = options.columns.split(",") if options.columns else None
    if is_column(options.weights):
        columns = (columns or ["", ""])[:2] + [options.weights]
    return Request(**given | {"columns": columns})


def _print_info(comm: "Intracomm", options: argparse.Namespace) -> None:
    with together(comm):
        if comm.rank == 0:
            from scripts.convert.info import describe

            print(describe(Path(options.input), options.format, request_of(options).columns, options.check))


if __name__ == "__main__":
    run_main(main)
