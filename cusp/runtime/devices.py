"""CPU or GPU: chosen here, once, by loading modules. ``*_cpu`` and ``*_gpu`` export the same names."""

import importlib
import os
import socket
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cusp.errors import InputError, together
from cusp.runtime.environment import cache_folder

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

CHOICES = ("auto", "cpu", "gpu")


class DeviceError(InputError):
    """A rank was asked to use a GPU and cannot."""


@dataclass(frozen=True)
class Placement:
    """Which devices the ranks compute on, the same answer on every rank.

    Attributes
    ----------
    device : {'cpu', 'gpu'}
    places : tuple of str
        Where each rank computes, for people.
    shared : bool
        Several ranks use one GPU.
    """

    device: str
    places: tuple[str, ...]
    shared: bool = False


def backend(name: str, device: str) -> ModuleType:
    """The module ``name`` for a device: ``backend('gluon.device', 'gpu')`` is ``gluon.device_gpu``."""
    return importlib.import_module(f"{name}_{device}")


def to_host(array: Any) -> Any:
    """The same array in the host's memory: NumPy arrays as they are, CuPy's are copied."""
    return array.get() if hasattr(array, "get") else array


def device_of(array: Any) -> str:
    """Where an array is: cpu or gpu."""
    return "gpu" if hasattr(array, "get") else "cpu"


def move(array: Any, device: str) -> Any:
    """The same array in the memory of a device; None stays None."""
    if array is None or device == "cpu":
        return to_host(array)
    return importlib.import_module("cupy").asarray(array)


def choose_device(wanted: str, comm: "Intracomm") -> Placement:
    """Give every rank its device; a rank takes the GPU that its number on its host says. Collective.

    ``auto`` takes GPUs if every rank can use one, ``gpu`` insists.

    Raises
    ------
    DeviceError
        On every rank: a GPU was asked for and some rank has none.
    """
    host = socket.gethostname()
    if wanted == "cpu":
        return Placement("cpu", ("cpu",) * comm.size)
    number = comm.allgather(host)[: comm.rank].count(host)
    found, why = _use_gpu(number)
    everywhere = comm.allgather((found, why, host))
    if all(place for place, _, _ in everywhere):
        places = tuple(place for place, _, _ in everywhere)
        physical = {(place.split(" ", 1)[0], name) for place, _, name in everywhere}
        return Placement("gpu", places, len(physical) < comm.size)
    if wanted == "auto":
        return Placement("cpu", ("cpu",) * comm.size)
    with together(comm):
        if why:
            raise DeviceError(f"--device gpu: rank {comm.rank} on {host} cannot use a GPU: {why}; try --device cpu")
    raise AssertionError("some rank has raised")


def _use_gpu(number: int) -> tuple[str, str | None]:
    """Make the GPU ``number`` modulo their number this process's; a description, or why there is none."""
    os.environ.setdefault("CUPY_CACHE_DIR", str(cache_folder() / "kernels"))
    try:
        cuda = importlib.import_module("cusp.kernels.cuda")
    except ImportError as error:
        return "", f"CuPy cannot be imported ({error}): pip install 'cusp-gluon[gpu-cuda12]' or [gpu-cuda13]"
    why = cuda.why_unusable()
    return ("", why) if why else (cuda.use(number), None)
