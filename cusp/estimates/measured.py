"""What a run tells of others: from the file that an algorithm wrote with ``--json``, how long its work takes here."""

from statistics import median
from typing import Any, NamedTuple

import numpy as np

from cusp.errors import InputError, shortened
from cusp.estimates.cost import DEMANDS, GPU_CORES, Cluster, Demand, predict
from cusp.estimates.quality import LABEL_BYTES, Quality
from cusp.runtime.files import from_json, is_number, read_input

MOST_RANKS = 1024  # of one host
# The least that a figure may be.
OF_PARTITION: dict[str, float] = {"parts": 2, "replication": 1, "node_balance": 1, "edge_balance": 1, "mb_a_round": 0}
OF_TRIALS: dict[str, float] = {"nodes": 1, "edges": 0, "threads": 1, "seconds": 1e-9, "rounds": 1, "mb_sent": 0}


class Run(NamedTuple):
    """Ranks, rounds, bytes sent for each mirror, if any were, and the seconds of its work over those that are usual."""

    ranks: int
    rounds: float
    label_bytes: float | None
    work: float

    def demand(self, algorithm: str) -> Demand:
        """What such a run costs. An algorithm that usually takes one round looks at all edges in each."""
        usual = DEMANDS[algorithm]
        every = self.rounds if usual.rounds == 1 else 1
        sent = every * usual.label_bytes if self.label_bytes is None else self.label_bytes
        return Demand(self.work * every * usual.edge_ns, self.work * every * usual.proxy_ns, sent, self.rounds)


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
    """Compare the time of a run with that which is predicted for its ranks on one host; what remains is its work."""
    most, parts, gpus = content["mb_a_round"], content["parts"], content["trials"][0]["device"] == "gpu"
    label_bytes = LABEL_BYTES * trial["mb_sent"] / most if most and trial["mb_sent"] else None
    usual = Run(parts, trial["rounds"], label_bytes, 1.0)
    hosts = Cluster(1, parts * (GPU_CORES if gpus else int(trial["threads"])), float("inf"), gpus)
    predicted = predict(_quality(content, trial), algorithm, hosts, usual.demand(algorithm))
    work = max(trial["seconds"] - predicted.exchange, trial["seconds"] / 2)
    return usual._replace(work=work / predicted.work)


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
