"""Options of partitioning, shared by all programs that partition."""

import argparse
import csv
import os
import re
from collections.abc import Callable
from typing import Any

from cusp.errors import OptionError, shortened
from cusp.formats import FORMATS
from cusp.formats.source import IDS
from cusp.launch import num_bytes, num_seconds
from cusp.partitioner import ORDERS
from cusp.policies.policy import DEFAULT_ROUNDS, DEFAULT_SLACK, DEFAULT_THRESHOLD, POLICIES
from cusp.runtime.devices import CHOICES as DEVICES
from cusp.runtime.threads import MOST as MOST_THREADS

LARGEST = 2**63 - 1
MOST_ROUNDS = 10**6


def add_partition_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a graph is partitioned."""
    known = f"{', '.join(POLICIES)}, MASTER+EDGE, a Python file, or auto, which compares some (default: oec)"
    parser.add_argument("--policy", default="oec", help=known)
    order = "local ids of masters, and rows: hubs first, or by global id; without out-edges last (default: degree)"
    parser.add_argument("--order", choices=ORDERS, default="degree", help=order)
    limit = (
        "bytes that a rank may use for its partition, on a GPU those of the card; edges beyond it stay in files, or in "
        "host memory (default: no limit)"
    )
    parser.add_argument("--memory-limit", type=num_bytes, metavar="4G", help=limit)
    default = os.environ.get("CUSP_DEVICE") or "auto"
    device = (
        "cpu, gpu, or auto (GPUs if every rank can use one); or a list such as gpu,gpu,cpu for the ranks of each host, "
        f"repeated if there are more ranks (default: $CUSP_DEVICE, now {default})"
    )
    parser.add_argument("--device", type=_device, metavar="DEVICE", default=default, help=device)
    threads = "threads of a rank on CPUs (default: $CUSP_THREADS, else cores / ranks of the host)"
    parser.add_argument("--threads", type=whole(1, MOST_THREADS), metavar="N", help=threads)
    add_policy_options(parser)


def add_foreign_options(parser: argparse._ActionsContainer) -> None:
    """The options that say how a file that is not a graph file is read."""
    add = parser.add_argument
    add("--format", choices=list(FORMATS), metavar="FORMAT", help="format of the file (default: recognised)")
    text = "columns of a table or edge list: names, or numbers from 1 (default: those with the usual headings)"
    add("--columns", metavar="S,T[,W]", help=text)
    text = "take whole numbers as numbers of nodes, or as names; auto: as names if one is negative or most are missing"
    add("--ids", choices=IDS, default="auto", help=f"{text} (default: auto)")
    text = "those of the file (keep), none, a COLUMN, or LOW:HIGH for random ones, the same in both directions: 1:255 "
    add("--weights", default="keep", metavar="W", help=text + "integers, 0.0:1.0 floats (default: keep)")
    add("--symmetrize", action="store_true", help="add the reverse of every edge")


def refuse_foreign_options(options: argparse.Namespace) -> None:
    """Raise OptionError if one of them says how to read a file that is read as it is."""
    given = [name for name in ("format", "columns", "symmetrize") if getattr(options, name)]
    given += [name for name, usual in (("ids", "auto"), ("weights", "keep")) if getattr(options, name) != usual]
    if given:
        raise OptionError(
            f"{', '.join(f'--{name}' for name in given)}: for files of other formats; cusp convert has them too"
        )


def add_watching(parser: argparse._ActionsContainer) -> None:
    """The options of those who watch a job: what it does, and the end of one that hangs."""
    text = "write timestamped progress to standard error; a terminal shows progress without it"
    parser.add_argument("--log", action="store_true", help=text)
    text = "end the job if a rank makes no progress for this long, such as 5min, and report where (default: never)"
    parser.add_argument("--timeout", type=num_seconds, metavar="TIME", help=text)


def add_trace(parser: argparse._ActionsContainer) -> None:
    """The option that writes what each rank did when."""
    text = "write a timeline of each rank as JSON, for ui.perfetto.dev or chrome://tracing; slower"
    parser.add_argument("--trace", metavar="FILE", help=text)


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """Add the parameters of policies, and the reading split."""
    add = parser.add_argument_group("policy").add_argument
    add("--grid", type=grid, metavar="RxC", help="grid of ranks for two-dimensional cuts (default: the squarest)")
    hubs = (
        f"out-degree above which a node is a hub, for hvc and Fennel (default: {DEFAULT_THRESHOLD}); degree, for hep "
        "(default: 100 times the mean, or less for --memory-limit)"
    )
    add("--threshold", type=whole(0), metavar="D", help=hubs)
    slack = (
        "percent of its share of the edges by which a part may be ahead of the others while edges are dealt out, for "
        f"2ps; the less, the better are nodes balanced, and the more of them are mirrors (default: {DEFAULT_SLACK})"
    )
    add("--slack", type=whole(0, 100), default=DEFAULT_SLACK, metavar="PERCENT", help=slack)
    rounds = f"how many times ranks exchange masters and state, if a rule needs them (default: {DEFAULT_ROUNDS})"
    add("--state-rounds", type=whole(1, MOST_ROUNDS), default=DEFAULT_ROUNDS, metavar="R", help=rounds)
    add(
        "--passes",
        type=whole(1, MOST_ROUNDS),
        default=1,
        help="how many times masters are assigned; each pass sees the result of the last (default: 1)",
    )
    add("--node-map", metavar="FILE", help="rank of each node, for the master rule map: text, also with names, or .npy")
    debug = "run rules as Python; report calls that only some ranks make, and labels read without a sync; slow"
    add("--debug", action="store_true", help=debug)
    add("--strict", action="store_true", help="stop if a rule cannot be compiled, instead of interpreting it")
    shares = (
        "share of each rank in proportion to the others: integers such as 8,8,1, or auto, measured at each start, "
        "so partitions differ from run to run (default: equal)"
    )
    add("--shares", type=_shares, metavar="A,B,...", help=shares)
    add("--split", default="edges", help="balance of reading: edges, nodes, weighted or NODE:EDGE (default: edges)")


def policy_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The options that are parameters of a policy, see :func:`cusp.policies.load_policy`."""
    names = ("grid", "threshold", "slack", "rounds", "passes", "node_map", "strict")
    return {name: getattr(options, "state_rounds" if name == "rounds" else name) for name in names}


def inputs_of(options: argparse.Namespace) -> list[str | None]:
    """The files that a command line names to be read, those of nodes among them."""
    policies = getattr(options, "policies", None) or options.policy
    files = [policy for policy in policies.split(",") if policy.endswith(".py")]
    alone = [value[0] for value in vars(options).values() if isinstance(value, list) and len(value) == 1]
    files += [word for word in alone if isinstance(word, str) and os.path.isfile(word)]
    return [getattr(options, "graph", None), options.node_map, *files]


def whole(least: int = -LARGEST - 1, most: int = LARGEST) -> Callable[[str], int]:
    """Type of an option: a whole number from ``least`` to ``most``."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{shortened(text)}: expected a whole number from {least} to {most}")
        return value

    number.__name__ = "whole number"  # what argparse calls it in its message
    return number


integer, positive = whole(), whole(1)
num_parts = whole(1, 2**15 - 1)  # a rank fits into 16 bits
scale = whole(1, 40)  # of a generated graph of 2**SCALE nodes


def num_rate(text: str) -> float:
    """Type of an option: the rate of a network in bytes a second, such as ``10gbit`` or ``100mbit``."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?([kmgt])bit", text.lower())
    rate = float(found[1]) * 1000 ** ("kmgt".index(found[2]) + 1) / 8 if found else 0.0
    if not rate:
        raise argparse.ArgumentTypeError(f"{shortened(text)}: expected the rate of a network, such as 1gbit or 100mbit")
    return rate


def between(lowest: float, highest: float) -> Callable[[str], float]:
    """Type of an option: a number from ``lowest`` to below ``highest``."""

    def number(text: str) -> float:
        value = float(text)
        if not lowest <= value < highest:
            raise argparse.ArgumentTypeError(
                f"{shortened(text)}: expected a number from {lowest:g} to below {highest:g}"
            )
        return value

    return number


def _device(text: str) -> str:
    """Any of DEVICES, or a list of devices."""
    if text not in DEVICES and not {*text.split(",")} <= {"cpu", "gpu"}:
        what = f"choose one of {', '.join(DEVICES)}, or a list such as gpu,gpu,cpu; the default is that of $CUSP_DEVICE"
        raise argparse.ArgumentTypeError(f"{shortened(text)!r}: {what}")
    return text


def _shares(text: str) -> str | tuple[int, ...]:
    """``auto``, or the shares of all ranks."""
    if text == "auto":
        return text
    words = text.split(",")
    if not all(word.isdecimal() and len(word) < 10 for word in words) or not any(map(int, words)):
        raise argparse.ArgumentTypeError(f"{shortened(text)}: expected auto, or whole numbers such as 8,8,1, not all 0")
    return tuple(map(int, words))


def one_node(text: str) -> str:
    """Type of an option: a node, by its name or number, which is looked up when the graph is known."""
    return text


def node_list(text: str) -> list[str]:
    """Nodes from ``3,17,4`` or ``Anna,"Doe, Jane"``."""
    nodes = [word for words in csv.reader([text], skipinitialspace=True) for word in words]
    if not nodes or "" in nodes:
        raise argparse.ArgumentTypeError(f"{shortened(text)!r} is not a list of nodes such as 3,17,4")
    return nodes


def weighted_node(text: str) -> str:
    """A node, and maybe a weight, as in ``17:0.5``; or the name of a file of them. As it is typed."""
    return text


def grid(text: str) -> tuple[int, int]:
    """Rows and columns from ``RxC``."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{shortened(text)} is not of the form ROWSxCOLUMNS such as 2x4")
    return int(match[1]), int(match[2])
