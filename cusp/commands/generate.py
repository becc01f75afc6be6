"""Generate a synthetic graph and write it, in parallel and, as a graph file, in bounded memory.

cusp generate rmat --scale 20 --symmetrize --drop-loops --dedup --output kron20.h5
mpirun -n 2 cusp generate road --width 1000 --height 1000 --output road.h5
"""

import argparse
import os
import time

from cusp.errors import together
from cusp.launch import num_bytes, parse_together, parser_for, run_main
from cusp.runtime.mpi import MPI

# What each kind of graph takes: option -> (type, default or None if it must be given, help).
_NODES = {"nodes": (int, None, "number of nodes")}
_LATTICE = {"width": (int, None, "nodes in a row"), "height": (int, None, "rows")}
_KEEP = {"keep": (float, 0.6, "probability of each lattice edge")}
KINDS: dict[str, tuple[str, dict]] = {
    "rmat": (
        "skewed degrees, as in Graph500",
        {
            "scale": (int, None, "2**SCALE nodes"),
            "edge-factor": (int, 16, "edges per node, before any are dropped"),
        },
    ),
    "uniform": ("both ends of each edge at random", {**_NODES, "edges": (int, None, "number of edges")}),
    "road": ("a lattice with gaps, both directions", {**_LATTICE, **_KEEP}),
    "grid": ("a whole lattice, both directions", _LATTICE),
    "star": ("node 0 to all others", _NODES),
    "path": ("each node to the next", _NODES),
    "cycle": ("each node to the next, the last to the first", _NODES),
    "complete": ("each node to every other", _NODES),
    "tree": ("binary tree, parents to children", _NODES),
}


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = parser_for("cusp.commands.generate", __doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind, (summary, options) in KINDS.items():
        sub = kinds.add_parser(kind, help=summary, description=summary)
        for name, (read, default, text) in options.items():
            text += "" if default is None else " (default %(default)s)"
            sub.add_argument(f"--{name}", type=read, default=default, required=default is None, help=text)
        _add_common(sub)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", required=True, metavar="GRAPH.h5",
        help="graph file to write; or its edges, by the suffix: .csv, .tsv, .json, .parquet",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="seed of all random choices (default %(default)s)")
    parser.add_argument("--weights", metavar="LOW:HIGH", help="edge weights: 1:255 integers, 0.0:1.0 floats")
    parser.add_argument("--symmetrize", action="store_true", help="add the reverse of every edge")
    parser.add_argument("--drop-loops", action="store_true", help="drop edges from a node to itself")
    parser.add_argument("--dedup", action="store_true", help="keep one of parallel edges")
    parser.add_argument("--transpose", action="store_true", help="also store the transpose, as group csc")
    parser.add_argument(
        "--memory-limit", type=num_bytes, metavar="BYTES",
        help="buffers of one rank, such as 2G; the rest goes to scratch files (default: half the memory / ranks)",
    )  # fmt: skip
    parser.add_argument("--scratch", metavar="FOLDER", help="folder for scratch files (default: the system's)")


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run the command line on all ranks; returns the exit code. Collective."""
    options = vars(parse_together(comm, make_parser(), argv))
    from cusp.convert.conversion import check_output, write_graph
    from cusp.edge_lists.generators import generate  # after the command line: numba and h5py take long to import
    from cusp.output.whole_file import check_targets

    start = time.perf_counter()
    output, transpose = options.pop("output"), options.pop("transpose")
    with together(comm):
        check_output(output, transpose)
    check_targets(comm, {"--output": output})
    num_nodes, num_edges = write_graph(generate(options.pop("kind"), comm, **options), comm, output, transpose)
    if comm.rank == 0:
        size = os.path.getsize(output) / 1e6
        seconds = time.perf_counter() - start
        print(f"{output}: {num_nodes:,} nodes, {num_edges:,} edges, {size:,.1f} MB, {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    run_main(main)
