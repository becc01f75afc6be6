"""Arrays from every rank to every rank out of the memory of one GPU into that of another; see cusp/runtime/exchange.py.

They go through page-locked memory of the host and MPI, or by what :func:`use` was given for the communicator.
"""

from typing import Any, Protocol, runtime_checkable

import cupy as cp
import numpy as np

from cusp.kernels.cuda import pinned
from cusp.runtime import exchange, timeline
from cusp.runtime.devices import Array, finisher
from cusp.runtime.mpi import MPI


@runtime_checkable
class Carrier(Protocol):
    """What carries arrays between the GPUs of a communicator directly."""

    def all_to_all(self, send: list[Array], receive: list[Array]) -> None:
        """Send ``send[r]`` to each rank r, fill ``receive[r]`` with what it sent; sizes are agreed. Collective.

        Work on the current stream; the arrays may be used on it at once.
        """


def use(comm: MPI.Intracomm, carrier: Carrier | None) -> None:
    """From now on, send arrays between the GPUs of a communicator by a carrier; None: through the host again."""
    _chosen(comm)["carrier"] = carrier


def _chosen(comm: MPI.Intracomm) -> dict[str, Carrier | None]:
    return exchange.kept(comm, "edges go by", dict)


def all_to_all(comm: MPI.Intracomm, arrays: list[Array]) -> list[Array]:
    """Give ``arrays[r]`` to rank r and return what each rank gave to this one. Collective."""
    exchange.given(comm).add(comm.rank, arrays)
    counts = exchange.exchange_counts(comm, np.array([array.size for array in arrays], np.int64))
    received = [cp.empty(int(count), arrays[0].dtype) for count in counts]
    received[comm.rank] = arrays[comm.rank]
    wait_all(post(comm, arrays, received))
    return received


def post(comm: MPI.Intracomm, send: list[Array], receive: list[Array]) -> list[Any]:
    """Start sending ``send[r]`` to each other rank r and receiving into ``receive[r]``, sizes being agreed."""
    send, receive = (
        [array if rank != comm.rank else array[:0] for rank, array in enumerate(arrays)] for arrays in (send, receive)
    )
    carrier = _chosen(comm).get("carrier")
    if carrier is not None:
        timeline.call("exchange", timeline.WAIT, finisher("gpu"), carrier.all_to_all, send, receive)
        return []
    leaving, landing = ([pinned(array.size, array.dtype) for array in arrays] for arrays in (send, receive))
    for array, staged in zip(send, leaving):
        _copy(staged.ctypes.data, array.data.ptr, staged.nbytes, cp.cuda.runtime.memcpyDeviceToHost)
    cp.cuda.get_current_stream().synchronize()
    requests = exchange.post(comm, leaving, landing)
    return [requests, list(zip(receive, landing)), leaving]


def wait_all(posted: list[Any]) -> None:
    """Wait until all that was posted has been sent and received."""
    if not posted:
        return
    requests, arriving, _ = posted
    exchange.wait_all(requests)
    for array, staged in arriving:
        _copy(array.data.ptr, staged.ctypes.data, staged.nbytes, cp.cuda.runtime.memcpyHostToDevice)
    cp.cuda.get_current_stream().synchronize()  # before the page-locked memory is used again


def _copy(target: int, source: int, size: int, kind: int) -> None:
    if size:
        cp.cuda.runtime.memcpyAsync(target, source, size, kind, cp.cuda.get_current_stream().ptr)
