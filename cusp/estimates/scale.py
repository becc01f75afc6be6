"""What numbers of ranks take on hosts of one kind: predicted time, memory, cost; the fastest and the cheapest."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from cusp.estimates.cost import GPU_CORES, Cluster, Demand, predict
from cusp.estimates.dry_run import peak
from cusp.estimates.quality import Quality
from cusp.input.graph_file import GraphHeader


@dataclass(frozen=True)
class Machine:
    """As many hosts as are needed, all of one kind.

    Attributes
    ----------
    ranks, cores : int
        Of each host.
    memory : int
        Bytes of each host or, with GPUs, of all its cards.
    link : float
        Bytes a second that a host can send, and receive at the same time.
    latency : float
        Seconds for each partner and exchange between hosts.
    gpus : int
        Of each host; 0: ranks compute on the cores.
    price : float
        Of a host for an hour; 0: unknown.
    """

    ranks: int
    cores: int
    memory: int
    link: float
    latency: float
    gpus: int = 0
    price: float = 0.0

    def cluster(self, parts: int) -> Cluster:
        """The hosts for so many parts."""
        number = -(-parts // self.ranks)
        used = min(self.gpus, -(-parts // number))
        return Cluster(number, GPU_CORES * used or self.cores, self.link, used > 0, self.latency)


def figures_of(
    quality: Quality, header: GraphHeader, machine: Machine, algorithm: str, demand: Demand | None
) -> dict[str, Any]:
    """The figures of a partition on a machine, by their names in rows: ``host_mb`` is memory while parts are built."""
    parts = quality.masters.size
    hosts = machine.cluster(parts)
    predicted = predict(quality, algorithm, hosts, demand)
    memory = quality.memory_mb(header.weight_bytes)
    host_mb = -(-parts // hosts.number) * peak(header, parts, memory)
    cost = hosts.number * predicted.seconds
    return {
        "parts": parts, "hosts": hosts.number, "replication": quality.replication,
        "mb_a_round": quality.mb_a_round, **predicted.figures(),
        "memory_mb": memory, "host_mb": host_mb, "fits": host_mb * 1e6 <= machine.memory,
        "host_seconds": cost, "price": cost * machine.price / 3600,
    }  # fmt: skip


def best_by_parts(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each number of parts, by ascending, the row of the policy with the least time, of those that fit if any do.

    Speed-up and efficiency are against the first; the fastest row and the cheapest are marked, unless none fits.
    """
    best: dict[int, dict[str, Any]] = {}
    order = itemgetter("predicted_ms", "mb_a_round", "replication")  # as in comparisons
    for row in sorted(rows, key=lambda row: (row["parts"], not row["fits"], order(row))):
        best.setdefault(row["parts"], row)
    chosen = [*best.values()]
    first, fitting = chosen[0], [row for row in chosen if row["fits"]]
    for row in chosen:
        row["speed_up"] = first["predicted_ms"] / row["predicted_ms"]
        row["efficiency"] = row["speed_up"] * first["parts"] / row["parts"]
        for name, key in (("fastest", "predicted_ms"), ("cheapest", "host_seconds")):
            row[name] = row["fits"] and row is min(fitting, key=itemgetter(key))
    return chosen


def hosts_needed(row: dict[str, Any], header: GraphHeader, machine: Machine) -> int | None:
    """At least so many hosts have memory for the graph, if more parts than in a row have no more mirrors in all.

    None if no number has: every rank needs the program, and bits for all nodes.
    """
    of_each = peak(header, math.inf, (header.num_nodes // 4) / 1e6)
    divided = row["parts"] * (peak(header, row["parts"], row["memory_mb"]) - of_each)
    left = machine.memory / 1e6 / machine.ranks - of_each
    return math.ceil(divided / left / machine.ranks) if left > 0 else None
