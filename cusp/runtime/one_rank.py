"""What we use of ``mpi4py.MPI``, for one process without an MPI library: objects stay, buffers are copied."""
# ruff: noqa: N802 - MPI's names

import socket
from typing import Any

import numpy as np

SUM = MAX = MIN = LAND = BOR = "of one rank, any reduction is its own value"
COMM_TYPE_SHARED = ANY_SOURCE = ANY_TAG = 0
UNDEFINED = -1
IN_PLACE = UINT64_T = None


class Request:
    """Of a call that has finished."""

    def Test(self) -> bool:
        return True

    @staticmethod
    def Testall(requests: list, statuses: list | None = None) -> bool:
        return True


class Status:
    """Of a message; there are none."""


class Comm:
    """A communicator of the only rank, with what is kept on it."""

    rank, size = 0, 1

    def __init__(self, same: "Comm | None" = None) -> None:
        self._kept: dict[int, Any] = {} if same is None else same._kept

    @staticmethod
    def Create_keyval() -> int:
        return 0

    def Get_attr(self, key: int) -> Any:
        return self._kept.get(key)

    def Set_attr(self, key: int, value: Any) -> None:
        self._kept[key] = value

    def Dup(self) -> "Comm":
        return Comm()

    def Split(self, color: int = 0, key: int = 0) -> "Comm":
        return COMM_NULL if color == UNDEFINED else Comm()

    Split_type = Split

    def Free(self) -> None:
        self._kept.clear()

    def Barrier(self) -> None:
        pass

    barrier = Barrier

    def Ibarrier(self) -> Request:
        return Request()

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value

    def allreduce(self, value: Any, op: object = SUM) -> Any:
        return value

    def exscan(self, value: Any, op: object = SUM) -> None:
        return None

    def allgather(self, value: Any) -> list:
        return [value]

    def Allreduce(self, sent: Any, received: Any, op: object = SUM) -> None:
        self.Alltoallv(received if sent is IN_PLACE else sent, received)

    def Iallreduce(self, sent: Any, received: Any, op: object = SUM) -> Request:
        self.Allreduce(sent, received, op)
        return Request()

    def Alltoallv(self, sent: Any, received: Any) -> None:
        """A buffer is an array, or ``[array, counts]``, or ``[array, (counts, starts)]``."""
        part(received)[...] = part(sent)

    Allgather = Allgatherv = Alltoall = Alltoallv

    def Improbe(self, *arguments: object, **named: object) -> None:
        """Nobody else sends anything."""

    recv = Improbe


def part(buffer: Any) -> np.ndarray:
    """The entries that a buffer names."""
    if not isinstance(buffer, list | tuple):
        return np.asarray(buffer).reshape(-1)
    array, where = buffer
    counts, starts = where if isinstance(where, tuple) else (where, [0])
    return np.asarray(array).reshape(-1)[int(starts[0]) :][: int(np.ravel(counts)[0])]


def Get_processor_name() -> str:
    return socket.gethostname()


def Get_library_version() -> str:
    return "none, one rank"


Intracomm = Comm
COMM_WORLD, COMM_SELF, COMM_NULL = Comm(), Comm(), Comm()
