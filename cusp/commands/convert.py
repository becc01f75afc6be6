"""cusp convert INPUT -o GRAPH.h5: turn a graph of any known format into a graph file.

Runs on any number of ranks; all take part in sorting and writing, and in reading where a file can be divided.
"""

import argparse
import time
from pathlib import Path

from cusp.convert.conversion import check_output, convert, request_of
from cusp.convert.weights import WEIGHT_TYPES
from cusp.errors import OptionError, together
from cusp.formats import FORMATS
from cusp.launch import Parser, num_bytes, parse_together, program, run_main
from cusp.output.tables import HDF5, TABLES, suffix_of
from cusp.program.cli import add_foreign_options
from cusp.runtime.mpi import MPI


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
        prog=program("cusp.commands.convert"),
        description="Convert a graph to a graph file (HDF5, CSR), or print a summary of a file.",
        epilog=f"formats, recognised by content and extension, with or without .gz:\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("input", metavar="INPUT", help="file of any format below")
    add("-o", "--output", metavar="GRAPH.h5", help=f"graph file to write; or its edges: {', '.join(TABLES)}")
    add("--info", action="store_true", help="print a summary of INPUT instead of converting it")
    add("--check", action="store_true", help="with --info: also compare the checksums of a graph file")
    add_foreign_options(parser)
    add("--drop-loops", action="store_true", help="drop edges from a node to itself")
    add("--dedup", action="store_true", help="keep one of parallel edges, the one with the smallest weight")
    add("--transpose", action="store_true", help="store the transpose too, in the group csc")
    add("--nodes", type=_count, metavar="N", help="number of nodes (default: from the header or the largest id)")
    add("--weight-type", choices=WEIGHT_TYPES, metavar="TYPE", help="number type of the stored weights, such as uint8")
    add("--seed", type=int, default=1, help="seed of random weights (default: 1)")
    add("--memory-limit", type=num_bytes, metavar="4G", help="buffers of one rank; the rest goes to scratch files")
    add("--scratch", metavar="FOLDER", help="folder for scratch files (default: the system's)")
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Parse the command line and do what it says. Collective."""
    options = parse_together(comm, make_parser(), argv)
    if options.info:
        with together(comm):
            if comm.rank == 0:
                from cusp.commands.info import describe

                print(describe(Path(options.input), options.format, request_of(options).columns, options.check))
        return 0
    if options.output is None:
        raise OptionError("name the graph file to write with -o GRAPH.h5, or ask for --info")
    with together(comm):
        check_output(options.output, options.transpose)
    from cusp.names.graph_names import has_names

    started = time.perf_counter()
    notes: list[str] = []
    num_nodes, num_edges = convert(comm, request_of(options), options.output, options.transpose, notes)
    if comm.rank == 0:
        for note in notes:
            print(note)
        seconds = time.perf_counter() - started
        named = " with names" if suffix_of(options.output) in HDF5 and has_names(options.output) else ""
        print(f"{options.output}: {num_nodes:,} nodes{named}, {num_edges:,} edges ({seconds:.2f} s)")
    return 0


if __name__ == "__main__":
    run_main(main)
