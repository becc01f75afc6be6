"""The nodes from which searches start."""

import argparse
from collections.abc import Callable

import numpy as np

from cusp.apps.shared.splitmix64 import splitmix64
from cusp.errors import OptionError
from cusp.kernels.arrays import total
from cusp.partition import Partition
from cusp.program import report
from cusp.program.cli import one_node, positive
from cusp.runtime.devices import backend, to_host
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch
from gluon.interfaces import Device
from gluon.sync import Sync

MANY = 256  # sources: as a sample, enough to tell the first nodes from the others
LONG = 30.0  # seconds that are worth a word


def add_source_options(
    parser: argparse.ArgumentParser, named: str, drawn: str = "estimate it from K random nodes with out-edges",
    every: str = "all, the default: exact",
) -> None:  # fmt: skip
    """Options of an app that starts from each of many sources; the texts say what some, K and all of them are for."""
    parser.add_argument("--sources", type=_number_or_all, default="all", metavar="K", help=f"{drawn}; or {every}")
    parser.add_argument("--source", type=one_node, nargs="+", metavar="NODE", help=named)


def _number_or_all(text: str) -> int | str:
    return text if text == "all" else positive(text)


def choose_sources(part: Partition, sync: Sync, options: argparse.Namespace) -> tuple[list[int], float]:
    """The sources that these options ask for, and for how many nodes with out-edges each stands. Collective.

    Raises
    ------
    OptionError
        On every rank: a source is not a node.
    """
    for source in options.source or []:
        part.check_node(source, "--source")
    sends = part.degrees > 0
    (senders,) = sync.total(total(sends))
    if options.source:
        return sorted(set(options.source)), 1.0
    if options.sources == "all" or options.sources >= senders:
        local = to_host(part.gids[: part.num_masters][sends])
        return np.sort(np.concatenate(sync.comm.allgather(local))).tolist(), 1.0
    drawn = draw_sources(part, sync.comm, options.sources, options.seed)
    return drawn, senders / len(drawn)


def tell_duration(
    part: Partition, sync: Sync, options: argparse.Namespace, sources: list[int], run: Callable[[list[int]], object],
    together: int = 1,
) -> None:  # fmt: skip
    """Where all sources were asked for, and would take long: say how long, and how to sample them. Collective.

    ``run`` takes some sources, of which it searches from so many ``together``; it tries a few.
    """
    if options.source or options.sources != "all" or len(sources) <= MANY:
        return
    watch, tried = Stopwatch(), sources[:: -(-len(sources) // (2 * sync.comm.size * together))]
    with watch("try"):
        run(tried)
        backend(Device, part.device).wait()
    seconds = sync.highest(watch.seconds["try"] / len(tried))
    if len(sources) * seconds > LONG:
        whole, sample = (report.shown_seconds(number * seconds) for number in (len(sources), MANY))
        report.warn(
            sync.comm.rank,
            f"the exact answer, from {len(sources):,} nodes, will take about {whole}; an estimate from {MANY} of them, "
            f"about {sample}: --sources {MANY}, or sources={MANY} in Python",
        )


def draw_sources(part: Partition, comm: MPI.Intracomm, wanted: int, seed: int) -> list[int]:
    """Nodes with out-edges, drawn by a seed: the same for any policy and number of ranks. Collective.

    Raises
    ------
    OptionError
        On every rank: no node has an out-edge.
    """
    candidates = part.gids[: part.num_masters][part.degrees > 0]
    lots = splitmix64(candidates, seed)  # all different
    if wanted < lots.size:
        best = (lots.argsort() if part.device == "gpu" else np.argpartition(lots, wanted))[:wanted]
        lots, candidates = lots[best], candidates[best]
    local = list(zip(to_host(lots).tolist(), to_host(candidates).tolist()))
    drawn = sorted(pair for pairs in comm.allgather(local) for pair in pairs)
    if not drawn:
        raise OptionError("no node has an out-edge, so none can be chosen as a source; name one with --source")
    if len(drawn) < wanted:
        report.warn(comm.rank, f"--sources {wanted}: only {len(drawn)} nodes have out-edges")
    return [gid for _, gid in drawn[:wanted]]
