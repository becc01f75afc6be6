"""What a person reads: the table of a partition, progress, the summary of a run. Rank 0 only."""

import sys

from cusp.graph_file import GraphHeader
from cusp.partition import Partition
from cusp.quality import Quality


def say(rank: int, text: str) -> None:
    """Print a line of the result."""
    if rank == 0:
        print(text, flush=True)


def progress(rank: int, text: str) -> None:
    """Tell what is being done, on a terminal only; the next line overwrites it."""
    if rank == 0 and sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\r" if not text else " ...", file=sys.stderr, flush=True)


def warn(rank: int, text: str) -> None:
    """Tell what the user may not have meant."""
    if rank == 0:
        print(f"warning: {text}", file=sys.stderr, flush=True)


def describe_graph(name: str, header: GraphHeader) -> str:
    """One line on the graph."""
    kinds = "symmetric" if header.symmetric else "directed"
    kinds += "" if header.weight_dtype is None else f", {header.weight_dtype} weights"
    return f"graph {name}: {header.num_nodes:,} nodes, {header.num_edges:,} edges, {kinds}"


def partition_table(quality: Quality, policy: str, seconds: float, phases: dict[str, float]) -> str:
    """The partition as a table: a line a rank (of many: those that stand out), then what sums them up."""
    lines = [f"{'rank':>6} {'masters':>14} {'mirrors':>14} {'edges':>16} {'partners':>9}"]
    ranks = range(quality.edges.size)
    outstanding = {*ranks[:4], int(quality.edges.argmax()), int(quality.proxies.argmax())}
    shown = ranks if len(ranks) <= 16 else sorted(outstanding)
    for rank in shown:
        mirrors = quality.proxies[rank] - quality.masters[rank]
        counts = f"{quality.masters[rank]:>14,} {mirrors:>14,} {quality.edges[rank]:>16,}"
        lines.append(f"{rank:>6} {counts} {quality.partners[rank]:>9}")
    if len(ranks) > len(shown):
        lines.append(f"   ... and {len(ranks) - len(shown)} more ranks")
    lines.append(
        f"policy {policy}: replication factor {quality.replication:.3f}, balance {quality.node_balance:.3f} of nodes "
        f"and {quality.edge_balance:.3f} of edges"
    )
    parts = ", ".join(f"{name} {value:.3f}" for name, value in phases.items())
    lines.append(f"partitioned in {seconds:.3f} s: {parts}")
    return "\n".join(lines)


def trial_line(row: dict) -> str:
    """One trial in a line."""
    rate = row["traversed_edges"] / row["seconds"] / 1e6
    verified = {True: ", verified", False: ", WRONG", None: ""}[row["verified"]]
    return (
        f"{row['app']} from {row['source']}: {row['seconds'] * 1e3:.2f} ms, {row['rounds']} rounds, "
        f"{row['messages']} messages, {row['mb_sent']:.3f} MB sent, {row['reached']:,} nodes reached, "
        f"{rate:,.1f} M edges/s{verified}"
    )


def warn_of_idle_ranks(part: Partition, ranks: int, rank: int) -> None:
    """More ranks than nodes is allowed, but hardly meant."""
    if ranks > part.num_nodes:
        warn(rank, f"{ranks} ranks for {part.num_nodes} nodes: some ranks are master of none")


