"""The time of a round, predicted from the quality of a partition: what its edges, its proxies and its mirrors cost.

A part looks at its edges and its proxies, then sends what changed to the parts that share the nodes, as in the BSP
model (Valiant, 1990): work, plus bytes over the rate of the link, plus a latency for each partner, of whatever has
the most. The constants are those of a round in which every label changes, so they rank policies, and say nothing of
the number of rounds, which hardly depends on the policy.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cusp.estimates.quality import Quality


class Demand(NamedTuple):
    """What a round of an algorithm costs: nanoseconds of one thread for an edge and a proxy; bytes of a label."""

    edge_ns: float
    proxy_ns: float
    label_bytes: int


class Machine(NamedTuple):
    """What an exchange costs: nanoseconds of one thread for each label of a mirror, seconds for each partner."""

    mirror_ns: float
    partner_s: float


# As fitted to runs on CPUs (benchmarks/pays.jsonl, `python -m scripts.bench pays`).
DEMANDS = {
    "bfs": Demand(0.3, 10.0, 4),
    "sssp": Demand(2.5, 15.0, 4),
    "cc": Demand(1.0, 10.0, 4),
    "pagerank": Demand(2.2, 10.0, 8),
}
USUAL = "pagerank"  # stands for algorithms that are not here: every label changes in every round
SHARED = Machine(8.0, 3e-6)  # ranks of one host
LINKED = Machine(8.0, 60e-6)  # over TCP
PEERS = Machine(8.0, 15e-6)  # GPUs of one host
GPU_CORES = 300  # an H200 does as much as so many threads of these CPUs (PageRank of kron24)


@dataclass(frozen=True)
class Hosts:
    """Where the parts are: blocks of consecutive ones on hosts of one kind.

    Attributes
    ----------
    number : int
    cores : int
        Of each host.
    link : float
        Bytes a second that a host can send, and receive at the same time; of no use for one host.
    gpus : bool
        The cores are those of GPUs, ``GPU_CORES`` each.
    """

    number: int
    cores: int
    link: float
    gpus: bool = False


class Round(NamedTuple):
    """Predicted seconds of a round: looking at edges and nodes, exchanging labels in memory, and over the network."""

    work: float
    exchange: float
    network: float

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return sum(self)

    def __str__(self) -> str:
        parts = zip(("work", "exchange", "network"), self)
        shown = ", ".join(f"{1e3 * seconds:.2g} of {what}" for what, seconds in parts if seconds)
        return f"{1e3 * self.seconds:.3g} ms ({shown})"


def predict_round(quality: Quality, algorithm: str, hosts: Hosts) -> Round:
    """How long a round takes of an algorithm on a partition, if all labels change in it.

    Hosts with more parts than cores work for as long as their cores need for all of them.
    """
    demand = DEMANDS.get(algorithm, DEMANDS[USUAL])
    parts = quality.masters.size
    host = np.arange(parts) * hosts.number // parts
    shared = np.bincount(host, minlength=hosts.number)  # parts of each host
    threads = np.maximum(1, hosts.cores // shared)[host]

    def slowest(nanoseconds: np.ndarray) -> float:
        """Seconds of the slowest part, or of all cores of the slowest host."""
        of_cores = np.bincount(host, nanoseconds, hosts.number) / hosts.cores
        return float(max((nanoseconds / threads).max(), of_cores.max())) / 1e9

    work = slowest(quality.edges * demand.edge_ns + quality.proxies * demand.proxy_ns)
    of_mirrors = np.maximum(quality.mirrors.sum(axis=1), 1)
    reduced, broadcast = (  # labels that travel between a mirror's part (row) and its master's (column)
        quality.mirrors * (some / of_mirrors)[:, None] for some in (quality.mirrors_in, quality.mirrors_out)
    )
    labels = reduced + broadcast
    between = LINKED if hosts.number > 1 else PEERS if hosts.gpus else SHARED
    partners = float(quality.partners.max(initial=0))
    exchange = slowest((labels.sum(axis=0) + labels.sum(axis=1)) * between.mirror_ns) + partners * between.partner_s
    network = 0.0
    for traffic in (reduced, broadcast.T) if hosts.number > 1 else ():
        by_host = np.zeros((hosts.number, hosts.number))
        np.add.at(by_host, (host[:, None], host[None, :]), traffic)
        np.fill_diagonal(by_host, 0)
        network += max(by_host.sum(axis=0).max(), by_host.sum(axis=1).max()) * demand.label_bytes / hosts.link
    return Round(work, exchange, network)
