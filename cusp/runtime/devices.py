"""CPU or GPU: chosen here, once, by loading modules.

What a pair of modules ``*_cpu`` and ``*_gpu`` offers is stated by a Protocol in the ``interfaces.py`` beside them.
"""

import importlib
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cusp.errors import InputError, together
from cusp.runtime import timeline
from cusp.runtime.environment import cache_folder
from cusp.runtime.files import has_space
from cusp.runtime.threads import use_threads

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

KERNELS_BYTES = 1 << 22  # of compiled kernels, for a run
CHOICES = ("auto", "cpu", "gpu")
Array = Any  # of NumPy or CuPy
Interface = TypeVar("Interface")


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
    threads : tuple of int
        Of each rank, for what runs on its host.
    shared : bool
        Several ranks use one GPU.
    """

    device: str
    places: tuple[str, ...]
    threads: tuple[int, ...]
    shared: bool = False


def backend(interface: Callable[..., Interface], device: str) -> Interface:
    """The module that offers, on a device, what a Protocol of an ``interfaces.py`` says.

    ``EdgeRules`` in ``apps/graph500/interfaces.py`` describes ``edge_rules_cpu`` and ``edge_rules_gpu`` beside it. A
    Protocol derived from another is about the same modules: it adds what only one device offers.

    Parameters
    ----------
    interface : type
        The Protocol. (mypy takes one as a type only if it can be instantiated, as a callable always.)
    device : {'cpu', 'gpu'}
    """
    name = f"{module_of(interface)}_{device}"
    return importlib.import_module(name) if timeline.running() is None else _watched(name, device)  # type: ignore[return-value]


@cache
def _watched(name: str, device: str) -> Any:
    """The module of a pair, with a span for each call of one of its functions."""
    return timeline.Watched(importlib.import_module(name), timeline.OPERATOR, finisher(device))


def finisher(device: str) -> Callable[[], object] | None:
    """What waits until a device has done all that it was asked for; None if a call returns when that is so."""
    return None if device == "cpu" else lambda: xp_of(device).cuda.get_current_stream().synchronize()


@cache
def module_of(interface: Any) -> str:
    """Full name of the modules that a Protocol describes, without their ending."""
    first = [above for above in interface.__mro__ if Protocol in above.__bases__][-1]
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", first.__name__).lower()
    return f"{first.__module__.rpartition('.')[0]}.{name}"


def xp_of(device: str) -> Any:
    """The library of a device's arrays: NumPy or CuPy."""
    return importlib.import_module("numpy" if device == "cpu" else "cupy")


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
    return xp_of(device).asarray(array)


def choose_device(wanted: str, comm: "Intracomm", threads: int | None = None) -> Placement:
    """Give every rank its device and its threads; a rank takes the GPU that its number on its host says. Collective.

    ``auto`` takes GPUs if every rank can use one, ``gpu`` insists. ``threads`` holds for this process from now on.

    Raises
    ------
    DeviceError, OptionError
        On every rank: a GPU was asked for and some rank has none; ``$CUSP_THREADS`` is no number of threads.
    """
    host = socket.gethostname()
    with together(comm):
        number_of_threads = use_threads(threads)
    all_threads = tuple(comm.allgather(number_of_threads))
    if wanted == "cpu":
        return Placement("cpu", ("cpu",) * comm.size, all_threads)
    number = comm.allgather(host)[: comm.rank].count(host)
    found, why = _use_gpu(number)
    everywhere = comm.allgather((found, why, host))
    if all(place for place, _, _ in everywhere):
        places = tuple(place for place, _, _ in everywhere)
        physical = {(place.split(" ", 1)[0], name) for place, _, name in everywhere}
        return Placement("gpu", places, all_threads, len(physical) < comm.size)
    if wanted == "auto":
        return Placement("cpu", ("cpu",) * comm.size, all_threads)
    with together(comm):
        if why:
            raise DeviceError(f"--device gpu: rank {comm.rank} on {host} cannot use a GPU: {why}; try --device cpu")
    raise AssertionError("some rank has raised")


def _use_gpu(number: int) -> tuple[str, str | None]:
    """Make the GPU ``number`` modulo their number this process's; a description, or why there is none."""
    folder = os.environ.setdefault("CUPY_CACHE_DIR", str(cache_folder("kernels")))
    if not has_space(folder, KERNELS_BYTES):
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    try:
        cuda = importlib.import_module("cusp.kernels.cuda")
    except ImportError as error:
        return "", f"CuPy cannot be imported ({error}): pip install 'cusp-gluon[gpu-cuda12]' or [gpu-cuda13]"
    why = cuda.why_unusable()
    return ("", why) if why else (cuda.use(number), None)
