"""The time of an algorithm, predicted from the quality of a partition: what edges, proxies and mirrors cost.

A part looks at its edges and its proxies, then sends what changed to the parts that share the nodes, as in the BSP
model (Valiant, 1990): work, plus bytes over the rate of the link, plus a latency for each partner, of whatever has
the most, plus what a round takes on ranks that have hardly anything to do. It is the time in which every label changes
once: in PageRank an iteration, in others a run, as on graphs of few rounds. So it ranks policies; how often labels
change hardly depends on the policy. A run that was measured tells of others by its rounds and bytes, and by what its
work and rounds take beside the usual.
"""

from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from cusp.errors import InputError, shortened
from cusp.estimates.quality import LABEL_BYTES, Quality
from cusp.runtime.files import from_json, is_number, read_input


class Demand(NamedTuple):
    """What an algorithm costs until every label has changed once.

    Nanoseconds of one thread for an edge and a proxy; those of a round whatever a part has; bytes that a mirror's label
    is sent with; rounds that it takes.
    """

    edge_ns: float
    proxy_ns: float
    round_ns: float
    label_bytes: float
    rounds: float


# As fitted to runs of RMAT graphs, a road map and a lattice on 2 to 8 ranks of one thread, on hosts and on one
# (benchmarks/hosts.jsonl, 11434961 and later; sssp by pays.jsonl, too). Searches and components skip most edges of an
# RMAT graph, and send few labels: most mirrors change alone. In each round, ranks go on by themselves for some time.
DEMANDS = {
    "bfs": Demand(0.05, 7.0, 650e3, 0.4, 8),
    "sssp": Demand(2.5, 15.0, 400e3, 8.0, 4),
    "cc": Demand(0.05, 28.0, 1150e3, 2.0, 2),
    "pagerank": Demand(1.7, 1.7, 340e3, 8.0, 1),
}
USUAL = "pagerank"  # stands for algorithms that are not here
BYTE_NS = 1.3  # nanoseconds of one thread for each byte of a mirror
GPU_ROUND = 15  # times as short is a round of a GPU with hardly anything to do
SHARED, LINKED, PEERS = 2e-6, 10e-6, 15e-6  # seconds for each partner: ranks of one host; over TCP; GPUs of one host
THREADS = 0.6  # a rank with so many threads does as much as threads ** THREADS ranks of one; not on a GPU
GPU_CORES = 300  # an H200 does as much as so many threads of these CPUs (PageRank of kron24)
MOST_RANKS = 1024  # of one host
# The least that a figure may be.
OF_PARTITION: dict[str, float] = {"parts": 2, "replication": 1, "node_balance": 1, "edge_balance": 1, "mb_a_round": 0}
OF_TRIALS: dict[str, float] = {"nodes": 1, "edges": 0, "threads": 1, "seconds": 1e-9, "rounds": 1, "mb_sent": 0}


@dataclass(frozen=True)
class Cluster:
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
    latency : float
        Seconds for each partner and exchange between hosts.
    """

    number: int
    cores: int
    link: float
    gpus: bool = False
    latency: float = LINKED


class Prediction(NamedTuple):
    """Predicted seconds: looking at edges and nodes, rounds, exchanging labels in memory, and over the network."""

    work: float
    rounds: float
    exchange: float
    network: float

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return sum(self)

    def figures(self) -> dict[str, float]:
        """In milliseconds, by their names in rows."""
        return {"predicted_ms": 1e3 * self.seconds} | {f"{part}_ms": 1e3 * of for part, of in self._asdict().items()}

    def __str__(self) -> str:
        shown = ", ".join(f"{1e3 * of:.2g} of {part}" for part, of in self._asdict().items() if of)
        return f"{1e3 * self.seconds:.3g} ms ({shown})"


def predict(quality: Quality, algorithm: str, hosts: Cluster, demand: Demand | None = None) -> Prediction:
    """How long an algorithm takes on a partition until all labels have changed once; or a run with its own demand.

    Hosts with more parts than cores work for as long as their cores need for all of them. One part has no rounds.
    Labels of mirrors with in-edges travel to the master, then the master's to mirrors with out-edges: two exchanges.
    """
    demand = demand or DEMANDS.get(algorithm, DEMANDS[USUAL])
    partner_s = hosts.latency if hosts.number > 1 else PEERS if hosts.gpus else SHARED
    parts = quality.masters.size
    host = np.arange(parts) * hosts.number // parts
    threads = np.maximum(1, hosts.cores // np.bincount(host, minlength=hosts.number))[host]
    speed = threads ** (1.0 if hosts.gpus else THREADS)

    def slowest(nanoseconds: np.ndarray) -> float:
        """Seconds of the slowest part, or of all cores of the slowest host."""
        of_cores = np.bincount(host, nanoseconds, hosts.number) / hosts.cores
        return float(max((nanoseconds / speed).max(), of_cores.max())) / 1e9

    work = slowest(quality.edges * demand.edge_ns + quality.proxies * demand.proxy_ns)
    rounds = (parts > 1) * demand.rounds * demand.round_ns / 1e9 / (GPU_ROUND if hosts.gpus else 1)
    exchange = network = 0.0
    of_mirrors = np.maximum(quality.mirrors.sum(axis=1), 1)
    for sent in (quality.mirrors_in, quality.mirrors_out):
        labels = quality.mirrors * (sent / of_mirrors)[:, None]  # of mirrors on a part (row) by the master's (column)
        if not labels.any():
            continue
        exchange += slowest((labels.sum(axis=0) + labels.sum(axis=1)) * demand.label_bytes * BYTE_NS)
        exchange += demand.rounds * float(quality.partners.max()) * partner_s
        between_hosts = np.zeros((hosts.number, hosts.number))
        np.add.at(between_hosts, (host[:, None], host[None, :]), labels)
        np.fill_diagonal(between_hosts, 0)
        busiest = max(between_hosts.sum(axis=0).max(), between_hosts.sum(axis=1).max())
        network += float(busiest) * demand.label_bytes / hosts.link
    return Prediction(work, rounds, exchange, network)


class Run(NamedTuple):
    """Ranks, rounds, bytes sent for each mirror, if any were; seconds of work and rounds over those that are usual."""

    ranks: int
    rounds: float
    label_bytes: float | None
    work: float

    def demand(self, algorithm: str) -> Demand:
        """What such a run costs. An algorithm that usually takes one round looks at all edges in each."""
        usual = DEMANDS[algorithm]
        every = self.rounds if usual.rounds == 1 else 1
        sent = every * usual.label_bytes if self.label_bytes is None else self.label_bytes
        edge_ns, proxy_ns = self.work * every * usual.edge_ns, self.work * every * usual.proxy_ns
        return Demand(edge_ns, proxy_ns, self.work * usual.round_ns, sent, self.rounds)


def read_run(path: str, algorithm: str, device: str) -> Run:
    """What the medians over the trials of a run tell, on the ranks of one host, all with such a device.

    One rank tells nothing: it has no mirrors, and searches in another way.

    Raises
    ------
    InputError
        It is not what an app writes with ``--json``, or of another app or device; it was not a whole run in rounds.
    """
    content = from_json(read_input(path, InputError), f"{path}:", InputError)
    trials = content.get("trials") if isinstance(content, dict) else None
    if not isinstance(trials, list) or not trials or not all(isinstance(trial, dict) for trial in trials):
        raise InputError(f"{path}: has no trials; expected what cusp {algorithm} graph.h5 --json FILE writes")
    if content.get("app") != algorithm:
        raise InputError(f"{path}: is of {shortened(content.get('app'))}; --for asks for {algorithm}")
    _check(path, content, OF_PARTITION)
    for place, trial in enumerate(trials):
        where = f"{path}: trial {place}"
        _check(where, trial, OF_TRIALS)
        if trial.get("execution") == "async":
            raise InputError(f"{where}: ran without rounds; run {algorithm} with --execution bulk")
        if trial.get("rounds_before"):
            raise InputError(f"{where}: continued from a checkpoint; run {algorithm} from the beginning")
        if trial.get("device") != device:
            raise InputError(f"{where}: device is {shortened(trial.get('device'))}, but the plan is for {device}")
    if type(content["parts"]) is not int or content["parts"] > MOST_RANKS:
        raise InputError(f"{path}: parts is {content['parts']}; expected 2 to {MOST_RANKS} ranks of one host")
    return _told(algorithm, content, {name: median(trial[name] for trial in trials) for name in OF_TRIALS})


def _check(where: str, found: dict[str, Any], numbers: dict[str, float]) -> None:
    for name, least in numbers.items():
        if not is_number(found.get(name), least):
            advice = ": run it on two ranks or more" if name in ("parts", "rounds") else ""
            said = shortened(found[name]) if name in found else "missing"
            raise InputError(f"{where}: {name} is {said}; expected a number, at least {least:g}{advice}")


def _told(algorithm: str, content: dict[str, Any], trial: dict[str, float]) -> Run:
    """Compare the time of a run with that which is predicted for its ranks on one host.

    What its exchanges leave is of work and rounds.
    """
    most, parts, gpus = content["mb_a_round"], content["parts"], content["trials"][0]["device"] == "gpu"
    label_bytes = LABEL_BYTES * trial["mb_sent"] / most if most and trial["mb_sent"] else None
    usual = Run(parts, trial["rounds"], label_bytes, 1.0)
    hosts = Cluster(1, parts * (GPU_CORES if gpus else int(trial["threads"])), float("inf"), gpus)
    predicted = predict(_quality(content, trial), algorithm, hosts, usual.demand(algorithm))
    work = max(trial["seconds"] - predicted.exchange, trial["seconds"] / 2)
    return usual._replace(work=work / (predicted.work + predicted.rounds))


def _quality(content: dict[str, Any], trial: dict[str, float]) -> Quality:
    """That of a partition of which the sums are known: all parts as large as the largest, and partners of all."""
    parts, nodes = content["parts"], trial["nodes"]
    each = np.ones(parts) / parts
    mirrors = nodes * (content["replication"] - 1) / (parts * (parts - 1)) * (1 - np.eye(parts))
    sent = each * content["mb_a_round"] * 1e6 / LABEL_BYTES / 2
    proxies = each * nodes * content["replication"] * content["node_balance"]
    return Quality(
        each * nodes, proxies, each * trial["edges"] * content["edge_balance"], mirrors, sent, sent, int(nodes)
    )
