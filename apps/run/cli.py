"""The command line that all apps share."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from cusp.apps.run.app import App
from cusp.errors import OptionError, shortened
from cusp.launch import Parser, num_seconds, program
from cusp.names.names import Names
from cusp.output.tables import HDF5, TABLES
from cusp.program import cli
from cusp.runtime.files import open_text
from gluon.transports import CHOICES as TRANSPORTS

DEFAULT_SCALE = 16
EXECUTIONS = ("auto", "bulk", "async")


def with_gids(
    parser: argparse.ArgumentParser, options: argparse.Namespace, names: Names | None, num_nodes: int
) -> argparse.Namespace:
    """The options with global ids in place of the nodes that a user named.

    Raises
    ------
    OptionError
        There is no such node.
    """
    chosen = argparse.Namespace(**vars(options))
    for action in parser._actions:
        given = getattr(options, action.dest, None)
        if action.type not in (cli.one_node, cli.node_list, cli.weighted_node) or given is None:
            continue
        look_up = weights_of if action.type is cli.weighted_node else gid_of if isinstance(given, str) else gids_of
        setattr(chosen, action.dest, look_up(given, names, num_nodes, action.option_strings[-1]))
    return chosen


def gids_of(words: list[str], names: Names | None, num_nodes: int, option: str) -> list[int]:
    """Global ids of the nodes that a user named in an option, or in a file with a node a line.

    Raises
    ------
    OptionError
        There is no such node, and no such file.
    """
    lines, _ = _listed(words, names, num_nodes, option)
    with _or_file(words):
        return [gid_of(line, names, num_nodes, where) for where, line in lines]


def weights_of(words: list[str], names: Names | None, num_nodes: int, option: str) -> dict[int, float]:
    """Weights by global id, from ``NODE`` and ``NODE:WEIGHT``, or a file with a node, and maybe a weight, a line.

    What is the name of a node as it stands has the weight 1.

    Raises
    ------
    OptionError
        There is no such node, and no such file; or a weight is no number from 0 on.
    """
    lines, between = _listed(words, names, num_nodes, option)
    weights: dict[int, float] = {}
    for where, whole in lines:
        node, *weight = [whole] if _is_node(whole, names, num_nodes) else whole.rsplit(between, 1)
        with _or_file(words):
            gid = gid_of(node.rstrip(), names, num_nodes, where)
        weights[gid] = weights.get(gid, 0.0) + _weight(where, weight)
    return weights


def _listed(
    words: list[str], names: Names | None, num_nodes: int, option: str
) -> tuple[list[tuple[str, str]], str | None]:
    """Where each node stands, and its text, also of a file; and what is between a node and its weight."""
    if len(words) != 1 or _is_node(words[0], names, num_nodes) or not os.path.isfile(words[0]):
        return [(option, word) for word in words], ":"
    with open_text(words[0], OptionError) as file:
        lines = [(f"{words[0]}, line {number}", line.strip()) for number, line in enumerate(file, 1)]
    found = [(where, line) for where, line in lines if line and not line.startswith("#")]
    if not found:
        raise OptionError(f"{option} {words[0]}: no node is in this file; write one on each line")
    return found, None


@contextmanager
def _or_file(words: list[str]) -> Iterator[None]:
    """Say that it is no file either, if a word alone is no node."""
    try:
        yield
    except OptionError as error:
        alone = len(words) == 1 and not os.path.isfile(words[0])
        raise OptionError(f"{error}{'; nor is there such a file' if alone else ''}") from None


def _is_node(word: str, names: Names | None, num_nodes: int) -> bool:
    """Whether a word as it stands is a node."""
    try:
        gid_of(word, names, num_nodes, "")
    except OptionError:
        return False
    return True


def _weight(where: str, words: list[str]) -> float:
    """The weight that was given, 1 if there is none."""
    try:
        weight = float(words[0]) if words else 1.0
    except ValueError:
        raise OptionError(f"{where}: the weight {shortened(words[0])!r} is not a number") from None
    if not weight >= 0:
        raise OptionError(f"{where}: the weight {weight:g} is below 0")
    return weight


def gid_of(word: str, names: Names | None, num_nodes: int, option: str) -> int:
    """Global id of a node that a user named in an option.

    Raises
    ------
    OptionError
        There is no such node.
    """
    if names is not None:
        return names.gid(word, option)
    try:
        gid, why = int(word), ""
    except ValueError:
        gid, why = -1, ", and they have no names"
    if not 0 <= gid < num_nodes:
        raise OptionError(f"{option} {shortened(word)}: the graph has the nodes 0 to {num_nodes - 1}{why}")
    return gid


def parser_of(app: App) -> argparse.ArgumentParser:
    """The command line of an app: the options of every app, and its own."""
    parser = Parser(
        prog=program(f"cusp.apps.{app.name}"),
        description=f"{app.summary[0].upper()}{app.summary[1:]}. Run it on several ranks with mpirun -n RANKS.",
    )
    default = f"an RMAT graph of scale {DEFAULT_SCALE}, generated at the start"
    files = "graph file, folder of a saved partition, or any file that cusp convert takes"
    parser.add_argument("graph", nargs="?", help=f"{files} (default: {default})")
    cli.add_foreign_options(parser.add_argument_group("files of other formats"))
    cli.add_partition_options(parser)
    run = parser.add_argument_group("run")
    of_source = " per source" if app.needs_source else ""
    if app.needs_source:
        which = run.add_mutually_exclusive_group()
        which.add_argument(
            "--source", type=cli.one_node, metavar="NODE", help="start from this node, by name or number"
        )
        several = "start from K random nodes with out-edges"
        which.add_argument("--sources", type=cli.positive, metavar="K", help=several)
    run.add_argument("--seed", type=cli.integer, default=1, help="seed of all random choices (default: 1)")
    trials = f"timed runs{of_source} (default: 1)"
    run.add_argument("--trials", type=cli.positive, default=1, metavar="N", help=trials)
    run.add_argument("--verify", action="store_true", help=f"check the answer of the first trial{of_source}")
    add_transport_option(run)
    execution = "bulk: rounds that all ranks end together; async: ranks send values as they change, and no rank waits; "
    execution += "auto: bulk, except searches of sparse graphs on CPU ranks that share memory"
    run.add_argument("--execution", choices=EXECUTIONS, default="auto", help=execution + " (default: auto)")
    cli.add_watching(run)
    out = parser.add_argument_group("output")
    out.add_argument(
        "--output", metavar="FILE", help=f"write the last answer: {', '.join(HDF5 if app.listed else (*TABLES, *HDF5))}"
    )
    out.add_argument("--json", metavar="FILE", help="write the figures of the partition and of all trials")
    add_rows_option(out, "trial")
    cli.add_trace(out)
    app.add_options(parser)
    parser.set_defaults(purpose=app.name)
    if "--checkpoint" not in parser._option_string_actions:
        refuse_checkpoints(parser, app.name)
    return parser


def add_checkpoint_options(parser: argparse.ArgumentParser) -> None:
    """The options of an app that writes checkpoints: see :mod:`cusp.apps.run.checkpoint`."""
    text = "save the progress in this file; if it exists, go on from it; it is removed after the run"
    parser.add_argument("--checkpoint", metavar="FILE", help=text)
    text = "time between two checkpoints, such as 30s, 5min or 2h (default: 10min)"
    parser.add_argument("--every", type=num_seconds, metavar="TIME", help=text)


def refuse_checkpoints(parser: argparse.ArgumentParser, name: str) -> None:
    """Say why an app has no such options, instead of not knowing them."""

    def refuse(text: str) -> str:
        raise argparse.ArgumentTypeError(f"{name} writes no checkpoints: its runs are short; use --output")

    parser.add_argument("--checkpoint", type=refuse, help=argparse.SUPPRESS)


def add_transport_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--transport", choices=TRANSPORTS, default="auto", help="transport of messages between ranks")


def add_rows_option(parser: argparse._ActionsContainer, what: str) -> None:
    parser.add_argument("--rows", metavar="FILE", help=f"append a JSON line for each {what}")
