"""The memory of a host: see interfaces.py. What limits it is in ``cusp/runtime/storage.py``."""

import socket
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from cusp.card.interfaces import Usage
from cusp.runtime.devices import Array


def place() -> str:
    return socket.gethostname()


def set_limit(limit: int | None, needed: int, sharing: int) -> None:
    """Nothing: a slice of the graph has a limit of its own."""


def empty(size: int, dtype: DTypeLike) -> Array:
    return np.empty(size, dtype)


aside = empty


def put_aside(array: Array) -> Array:
    return array


def prefer(arrays: Sequence[Array], headroom: int = 0) -> None:
    """Nothing: all are there."""


def settle(share: float = 1.0) -> None:
    """Nothing."""


def at_once(most: int, entry_bytes: int) -> int:
    return most


def usage() -> Usage | None:
    return None
