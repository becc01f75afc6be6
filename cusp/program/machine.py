"""Machines: what a machine file says of them, or hosts like this one; what numbers of ranks take there, and cost."""

import argparse
import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from cusp.errors import InputError, shortened
from cusp.estimates.cost import GPU_CORES, LINKED, Cluster, Demand, predict
from cusp.estimates.dry_run import least_peak_mb, peak_mb
from cusp.estimates.quality import Quality
from cusp.input.graph_file import GraphHeader
from cusp.launch import num_bytes
from cusp.program.cli import between, num_rate, whole
from cusp.runtime.files import read_input
from cusp.runtime.storage import host_bytes

MOST_BYTES = 1 << 20  # of a machine file
UNITS = {"ns": 1e9, "us": 1e6, "µs": 1e6, "ms": 1e3, "s": 1.0}  # of a second


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
    host_mb = -(-parts // hosts.number) * peak_mb(header, quality)
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
    of_each = least_peak_mb(header)
    divided = row["parts"] * (row["host_mb"] / -(-row["parts"] // row["hosts"]) - of_each)
    left = machine.memory / 1e6 / machine.ranks - of_each
    return math.ceil(divided / left / machine.ranks) if left > 0 else None


def _latency(text: str) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([a-zµ]+)", text)
    if not found or found[2] not in UNITS:
        raise ValueError
    return float(found[1]) / UNITS[found[2]]


class Key(NamedTuple):
    """A line of a machine file: the types that its value may have, and how the text of that is read."""

    types: tuple[type, ...]
    read: Callable[[str], float]
    meaning: str
    example: str


COUNT = whole(1, 1 << 20)
KEYS = {
    "ranks": Key((int,), COUNT, "ranks of a host", "4"),
    "cores": Key((int,), COUNT, "cores of a host", "16"),
    "memory": Key((str,), num_bytes, "bytes of a host or, with gpus, of all its cards", '"64GB"'),
    "link": Key((str,), num_rate, "what a host can send", '"10gbit"'),
    "latency": Key((str,), _latency, "of an exchange with a rank of another host", '"10us"'),
    "gpus": Key((int,), COUNT, "GPUs of a host", "4"),
    "price": Key((int, float), between(1e-9, 1e9), "of a host for an hour", "1.20"),
}
OPTIONAL = ("gpus", "price")


def read_machine(path: str) -> Machine:
    """Read a machine file.

    Raises
    ------
    InputError
        It is not there, is not TOML, has a key that is not known or a wrong value, or lacks one.
    """
    try:
        found = tomllib.loads(read_input(path, InputError, MOST_BYTES).decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not TOML: {shortened(error)}") from None
    for name in [name for name in found if name not in KEYS]:
        near = difflib.get_close_matches(name, KEYS, 1)
        advice = f"did you mean {near[0]}?" if near else f"a machine file has {', '.join(KEYS)}"
        raise InputError(f"{path}: {shortened(name)} is unknown; {advice}")
    values = {}
    for name, key in KEYS.items():
        expected = f"{key.meaning}, such as {name} = {key.example}"
        if name not in found and name not in OPTIONAL:
            raise InputError(f"{path}: {name} is missing: {expected}")
        try:
            if name in found:
                values[name] = key.read(str(found[name]) if type(found[name]) in key.types else "")
        except (ValueError, argparse.ArgumentTypeError):
            raise InputError(f"{path}: {name} = {shortened(repr(found[name]))}: expected {expected}") from None
    return Machine(**values)  # type: ignore[arg-type]


def this_host() -> Machine:
    """Hosts like this one, with one rank each, on links of 10 Gbit/s."""
    return Machine(1, len(os.sched_getaffinity(0)), host_bytes(), num_rate("10gbit"), LINKED)
