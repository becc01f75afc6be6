"""Options that say how a graph is partitioned, shared by all programs that do."""

import argparse
import os
import re
from typing import Any

from cusp.launch import num_bytes, num_seconds
from cusp.partitioner import ORDERS
from cusp.policies.policy import DEFAULT_ROUNDS, DEFAULT_THRESHOLD, POLICIES
from cusp.runtime.devices import CHOICES as DEVICES


def add_partition_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a graph is partitioned."""
    known = f"{', '.join(POLICIES)}, MASTER+EDGE or a Python file (default: oec)"
    parser.add_argument("--policy", default="oec", help=known)
    order = "local ids of masters: hubs first, in rows too; or by global id; without out-edges last (default: degree)"
    parser.add_argument("--order", choices=ORDERS, default="degree", help=order)
    limit = "bytes that a rank may use for its part of the graph; its edges then stay in files (default: all it needs)"
    parser.add_argument("--memory-limit", type=num_bytes, metavar="4G", help=limit)
    default = os.environ.get("CUSP_DEVICE", "auto")
    device = f"where to compute; auto takes GPUs if every rank can use one (default: $CUSP_DEVICE, now {default})"
    parser.add_argument("--device", choices=DEVICES, default=default, help=device)
    add_policy_options(parser)


def add_timeout(parser: argparse._ActionsContainer) -> None:
    """The option that ends a job which hangs."""
    text = "end the job when a rank gets no further for so long, and say where it is (default: never)"
    parser.add_argument("--timeout", type=num_seconds, metavar="SECONDS", help=text)


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """Add the parameters of policies, and the reading split."""
    add = parser.add_argument_group("policy").add_argument
    add("--grid", type=grid, metavar="RxC", help="grid of ranks for two-dimensional cuts (default: the squarest)")
    hubs = f"out-degree above which a node is a hub, for hvc and Fennel (default: {DEFAULT_THRESHOLD})"
    add("--threshold", type=int, default=DEFAULT_THRESHOLD, metavar="D", help=hubs)
    rounds = f"how many times ranks exchange masters and state, if a rule needs them (default: {DEFAULT_ROUNDS})"
    add("--state-rounds", type=positive, default=DEFAULT_ROUNDS, metavar="R", help=rounds)
    add(
        "--passes",
        type=positive,
        default=1,
        help="times that masters are assigned, each time knowing the last (default: 1)",
    )
    add("--node-map", metavar="FILE", help="rank of each node, for the master rule map: text or .npy")
    add("--strict", action="store_true", help="stop if a rule cannot be compiled, instead of interpreting it")
    add("--split", default="edges", help="reading split: edges, nodes, weighted or NODE:EDGE (default: edges)")


def wanted_device(options: argparse.Namespace) -> str:
    """The requested device; with a limit on the memory of the host, ``auto`` means the CPU."""
    return "cpu" if options.memory_limit and options.device == "auto" else options.device


def policy_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The options that are parameters of a policy, see :func:`cusp.policies.load_policy`."""
    return {
        "grid": options.grid,
        "threshold": options.threshold,
        "rounds": options.state_rounds,
        "passes": options.passes,
        "node_map": options.node_map,
        "strict": options.strict,
    }


def inputs_of(options: argparse.Namespace) -> list[str | None]:
    """The files that a command line names to be read."""
    policies = getattr(options, "policies", None) or options.policy
    files = [policy for policy in policies.split(",") if policy.endswith(".py")]
    return [getattr(options, "graph", None), options.node_map, *files]


def positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def node_list(text: str) -> list[int]:
    """Global ids from ``3,17,4``."""
    try:
        nodes = [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a list of nodes such as 3,17,4") from None
    if min(nodes) < 0:
        raise argparse.ArgumentTypeError(f"{min(nodes)} is not a node; nodes count from 0")
    return nodes


def grid(text: str) -> tuple[int, int]:
    """Rows and columns from ``RxC``."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text} is not of the form ROWSxCOLUMNS such as 2x4")
    return int(match[1]), int(match[2])
