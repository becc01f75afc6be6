"""Machine files: what the hosts are that a graph is planned for, in TOML; without one, hosts like this one."""

import argparse
import difflib
import os
import re
import tomllib
from collections.abc import Callable
from typing import NamedTuple

from cusp.errors import InputError, shortened
from cusp.estimates.cost import LINKED
from cusp.estimates.scale import Machine
from cusp.launch import num_bytes
from cusp.program.cli import between, num_rate, whole
from cusp.runtime.files import read_input
from cusp.runtime.storage import host_bytes

MOST_BYTES = 1 << 20  # of a machine file
UNITS = {"ns": 1e9, "us": 1e6, "µs": 1e6, "ms": 1e3, "s": 1.0}  # of a second


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
    return Machine(1, len(os.sched_getaffinity(0)), host_bytes(), num_rate("10gbit"), LINKED.partner_s)
