"""The command line that all apps share."""

import argparse
from collections.abc import Iterable

from cusp.errors import OptionError
from cusp.partition import Partition
from cusp.program.cli import add_partition_options, add_trace, add_watching, integer, positive
from gluon.transports import CHOICES as TRANSPORTS

DEFAULT_SCALE = 16
EXECUTIONS = ("auto", "bulk", "async")


def check_nodes(part: Partition, nodes: Iterable[int], name: str) -> None:
    """Raise OptionError if one of ``nodes``, which the user knows by ``name``, is not in the graph."""
    for node in nodes:
        if not 0 <= node < part.num_nodes:
            raise OptionError(f"{name} {node}: the graph has the nodes 0 to {part.num_nodes - 1}")


def check_execution(name: str) -> str:
    """The name of a way to execute, if it is one."""
    if name not in EXECUTIONS:
        raise OptionError(f"execution={name!r}: choose one of {', '.join(EXECUTIONS)}")
    return name


def make_parser(name: str, summary: str, needs_source: bool = True) -> argparse.ArgumentParser:
    """Options of every app; an app adds its own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m apps.{name}",
        description=f"{summary[0].upper()}{summary[1:]}. Run it on several ranks with mpirun -n RANKS.",
    )
    default = f"an RMAT graph of scale {DEFAULT_SCALE}, generated at the start"
    parser.add_argument("graph", nargs="?", help=f"graph file, or folder of a saved partition (default: {default})")
    add_partition_options(parser)
    run = parser.add_argument_group("run")
    of_source = " per source" if needs_source else ""
    if needs_source:
        which = run.add_mutually_exclusive_group()
        which.add_argument("--source", type=integer, metavar="GID", help="start from this node")
        several = "start from K seeded nodes that have out-edges"
        which.add_argument("--sources", type=positive, metavar="K", help=several)
    run.add_argument("--seed", type=integer, default=1, help="seed of everything random (default: 1)")
    trials = f"timed runs{of_source} (default: 1)"
    run.add_argument("--trials", type=positive, default=1, metavar="N", help=trials)
    run.add_argument("--verify", action="store_true", help=f"check the answer of the first trial{of_source}")
    add_transport_option(run)
    execution = "bulk: rounds that all ranks end together; async: values travel as they change, and no rank waits for "
    execution += "others; auto: bulk, but searches of long graphs without rounds where CPU ranks share memory"
    run.add_argument("--execution", choices=EXECUTIONS, default="auto", help=execution + " (default: auto)")
    add_watching(run)
    out = parser.add_argument_group("output")
    out.add_argument("--output", metavar="FILE", help="write the last answer (HDF5, N entries by global id)")
    add_rows_option(out, "trial")
    add_trace(out)
    return parser


def add_transport_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--transport", choices=TRANSPORTS, default="auto", help="how messages travel between ranks")


def add_rows_option(parser: argparse._ActionsContainer, what: str) -> None:
    parser.add_argument("--rows", metavar="FILE", help=f"append a JSON line for each {what}")
