"""Output for people: the table of a partition, comparisons, progress. Only rank 0 prints."""

from cusp.card.limit import edge_bytes, resident_bytes
from cusp.estimates.dry_run import DryRun
from cusp.estimates.quality import Quality
from cusp.input.graph_file import GraphHeader
from cusp.output.whole_file import OutputError
from cusp.output.whole_file import write_json as write_json
from cusp.partition import Partition
from cusp.runtime import progress as show_progress
from cusp.runtime.devices import Placement
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import memory_of

LINK = 50e9  # bytes per second that a GPU reads over PCIe 5


def say(rank: int, *lines: str) -> None:
    """Print lines of the result."""
    if rank == 0:
        try:
            for line in lines:
                print(line, flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"standard output: cannot be written: {error.strerror}") from None


def progress(rank: int, text: str) -> None:
    """Say what is being done, to those who watch (:mod:`cusp.runtime.progress`); nothing before a result is printed."""
    if rank == 0:
        show_progress.begin(text)


def hint(rank: int, texts: list[str]) -> None:
    """Show those who watch what they might do otherwise (:mod:`cusp.program.hints`)."""
    if rank == 0:
        for text in texts:
            show_progress.hint(text)


def warn(rank: int, text: str) -> None:
    """Point out what the user may not have meant."""
    if rank == 0:
        show_progress.error(f"warning: {text}")


def shown_seconds(seconds: float) -> str:
    """A time to read.

    >>> shown_seconds(0.21), shown_seconds(5000)
    ('0.2 s', '1.4 h')
    """
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def describe_graph(name: str, header: GraphHeader, named: bool = False) -> str:
    """One line on the graph."""
    nodes = f"{header.num_nodes:,} nodes{' with names' if named else ''}"
    kinds = "symmetric" if header.symmetric else "directed"
    kinds += "" if header.weight_dtype is None else f", {header.weight_dtype} weights"
    return f"graph {name}: {nodes}, {header.num_edges:,} edges, {kinds}"


def describe_placement(placement: Placement, rules: str, comm: MPI.Intracomm) -> str:
    """Where the ranks compute, and where the rules of the policy ran, on GPUs if there are any. Collective."""
    if placement.name == "cpu":
        least, most = min(placement.threads), max(placement.threads)
        number = f"{most} thread{'s' * (most > 1)}" if least == most else f"{least} to {most} threads"
        return f"device: cpu, {number}{' per rank' * (len(placement.places) > 1)}"
    rules = comm.bcast(rules, placement.devices.index("gpu"))
    ranks = ", ".join(f"rank {rank}: {place}" for rank, place in enumerate(placement.places))
    return f"device: {placement.name} ({ranks}); rules: {rules}"


def describe_card(device: str, comm: MPI.Intracomm) -> list[str]:
    """A line on where the edges are, if some GPU has a limit. Collective."""
    everyone = comm.allgather(memory_of(device).usage())
    usages = [usage._asdict() for usage in everyone if usage]
    if not usages:
        return []
    resident, hosted, limit = (sum(usage[field] for usage in usages) / 1e6 for field in ("resident", "hosted", "limit"))
    rate = min(usage["rate"] for usage in usages) / 1e9
    return [
        f"memory: {resident:,.1f} MB of edges on GPUs, of which {limit:,.1f} MB may be used, and {hosted:,.1f} MB in "
        f"page-locked memory of the host, read at {rate:,.1f} GB/s"
    ]


def partition_table(quality: Quality, policy: str, seconds: float, phases: dict[str, float]) -> str:
    """The partition as a table: one line per rank (if there are many, those that stand out), then a summary."""
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


def waiting(waited: list[float], seconds: float) -> str:
    """One line: which share of so many seconds each rank waited; if there are many, those that stand out."""
    shares = [100 * each / seconds if seconds else 0.0 for each in waited]
    ranks = range(len(shares))
    extremes = sorted({min(ranks, key=shares.__getitem__), max(ranks, key=shares.__getitem__)})
    shown = ranks if len(ranks) <= 16 else extremes
    parts = ", ".join(f"rank {rank} {shares[rank]:.0f} %" for rank in shown)
    mean = f", {sum(shares) / len(shares):.0f} % on average," if len(ranks) > len(shown) else ""
    return f"waiting: {parts}{mean} of {seconds:.3g} s"


def warn_of_idle_ranks(part: Partition, ranks: int, rank: int) -> None:
    """More ranks than nodes are allowed, but hardly meant."""
    if ranks > part.num_nodes:
        warn(rank, f"{ranks} ranks for {part.num_nodes} nodes: some ranks are not the master of any")


def dry_run(result: DryRun, policy: str, limit: int | None = None) -> str:
    """What a partition will need, and bounds; on GPUs of which ``limit`` may be used."""
    lines = [f"policy {policy} on {result.parts} rank{'s' * (result.parts > 1)}, from all edges{result.note}"]
    lines.append(f"{'':<31}{'estimate':>12}{'at most':>12}")
    titles = {
        "replication": "replication factor", "edge_balance": "balance of edges",
        "memory_mb": "graph on the largest rank, MB", "peak_mb": "  while it is built, MB",
        "mb_a_round": "sent per round by all ranks, MB",
    }  # fmt: skip
    for name, title in titles.items():
        lines.append(f"{title:<31}{result.figures[name]:>12,.2f}{result.bounds[name]:>12,.2f}")
    lines.append("at most: for any policy; memory: for any that balances the edges, without --memory-limit")
    if result.rank_0:
        threshold, num_bytes, edges = result.rank_0
        lines.append(
            f"before, rank 0 collects {edges:,} edges with --threshold {threshold}, which take at most "
            f"{num_bytes / 1e6:,.1f} MB"
        )
    if limit is not None:
        resident, edges = resident_bytes(result.header, result.parts, limit), edge_bytes(result.header, result.parts)
        lines.append(
            f"on a GPU with --memory-limit {limit / 1e6:,.1f}M, of a rank's {edges / 1e6:,.1f} MB of edges at least "
            f"{resident / 1e6:,.1f} MB stay on the card; the rest takes {(edges - resident) / LINK * 1e3:,.3g} ms each "
            f"time that all are read, at {LINK / 1e9:g} GB/s"
        )
    return "\n".join(lines)
