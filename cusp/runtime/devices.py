"""CPU or GPU: chosen here, once, by loading modules.

A Protocol in an ``interfaces.py`` states what the modules ``*_cpu`` and ``*_gpu`` beside it have in common.
"""

import importlib
import math
import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

from cusp.errors import InputError, Intracomm, OptionError, together
from cusp.runtime import timeline
from cusp.runtime.compiled_code import cache_folder
from cusp.runtime.files import has_space
from cusp.runtime.threads import use_threads

KERNELS_BYTES = 1 << 22  # of compiled kernels, for a run
CHOICES = ("auto", "cpu", "gpu")
Array = Any  # of NumPy or CuPy
Interface = TypeVar("Interface")


class DeviceError(InputError):
    """A rank was asked to use a GPU and cannot."""


@dataclass(frozen=True)
class Placement:
    """Which devices the ranks compute on.

    Attributes
    ----------
    device : {'cpu', 'gpu'}
        That of this rank.
    places : tuple of str
        Where each rank computes, for people: ``cpu``, or the bus and name of a GPU.
    threads : tuple of int
        Of each rank, for what runs on its host.
    shared : bool
        Several ranks use one GPU.
    """

    device: str
    places: tuple[str, ...]
    threads: tuple[int, ...]
    shared: bool = False

    @property
    def devices(self) -> tuple[str, ...]:
        """That of each rank."""
        return tuple("cpu" if place == "cpu" else "gpu" for place in self.places)

    @property
    def name(self) -> str:
        """Of the devices, for people and rows: see :func:`name_of`."""
        return name_of(self.devices)


def name_of(devices: tuple[str, ...]) -> str:
    """``cpu``, ``gpu`` or, if these differ, a list of those of all ranks."""
    return ",".join(devices) if is_mixed(devices) else devices[0]


def is_mixed(devices: Iterable[str]) -> bool:
    """Whether a job is mixed: some ranks compute on CPUs and others on GPUs."""
    return len({*devices}) > 1


def backend(interface: Callable[..., Interface], device: str) -> Interface:
    """The module that implements a Protocol of an ``interfaces.py`` on a device.

    ``EdgeList`` in ``apps/graph500/interfaces.py`` describes ``edge_list_cpu`` and ``edge_list_gpu`` beside it. A
    Protocol derived from another is about the same modules: it adds what only one device has.

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


def urgent(device: str) -> AbstractContextManager[None]:
    """What a GPU is asked for in this block goes before kernels that run beside it; a CPU does one after the other."""
    return nullcontext() if device == "cpu" else importlib.import_module("cusp.runtime.device_gpu").urgent()


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


def free_bytes(placement: Placement, rank: int) -> float:
    """Memory that this rank can have of its GPU; infinite on a CPU. Ranks that share a GPU get parts of it."""
    if placement.device == "cpu":
        return math.inf
    ranks = placement.places.count(placement.places[rank]) if placement.shared else 1
    return float(xp_of("gpu").cuda.runtime.memGetInfo()[0]) / ranks


def device_of(array: Any) -> str:
    """Where an array is: cpu or gpu."""
    return "gpu" if hasattr(array, "get") else "cpu"


def move(array: Any, device: str) -> Any:
    """The same array in the memory of a device; None stays None."""
    if array is None or device == "cpu":
        return to_host(array)
    return xp_of(device).asarray(array)


def choose_device(wanted: str, comm: Intracomm, threads: int | None = None) -> Placement:
    """Give every rank its device and its threads; the ranks of a host take its GPUs in turn. Collective.

    ``auto`` takes GPUs if every rank can use one, ``gpu`` insists; a list such as ``gpu,gpu,cpu`` names the devices of
    the ranks of a host, one after the other, and begins again where there are more ranks. ``threads`` holds for this
    process from now on.

    Raises
    ------
    DeviceError, OptionError
        On every rank: a GPU was asked for and some rank has none; no host has as many ranks as a list has devices;
        ``$CUSP_THREADS`` is no number of threads.
    """
    host = socket.gethostname()
    with together(comm):
        number_of_threads = use_threads(threads)
    everywhere = comm.allgather((host, number_of_threads))
    hosts, all_threads = [name for name, _ in everywhere], tuple(number for _, number in everywhere)
    with together(comm):
        devices = _devices_of(wanted, hosts)
    found, why = "cpu", None
    if devices[comm.rank] == "gpu":
        found, why = _use_gpu([*zip(hosts, devices)][: comm.rank].count((host, "gpu")))
    places = tuple(comm.allgather(found))
    if all(places):
        gpus = [(place.split(" ", 1)[0], name) for place, name in zip(places, hosts) if place != "cpu"]
        return Placement(devices[comm.rank], places, all_threads, len({*gpus}) < len(gpus))
    if wanted == "auto":
        return Placement("cpu", ("cpu",) * comm.size, all_threads)
    with together(comm):
        if why:
            raise DeviceError(
                f"--device {wanted}: rank {comm.rank} on {host} cannot use a GPU: {why}; try --device cpu"
            )
    raise AssertionError("some rank has raised")


def _devices_of(wanted: str, hosts: list[str]) -> list[str]:
    """The device of each rank, given its host; for ``auto`` GPUs, which are to be tried."""
    listed = ["gpu"] if wanted == "auto" else wanted.split(",")
    ranks, host = max((number, name) for name, number in Counter(hosts).items())
    if len(listed) > ranks:
        raise OptionError(
            f"--device {wanted}: {len(listed)} devices, but no host has more than {ranks} rank{'s' * (ranks > 1)} "
            f"({host}); name one for each rank of a host"
        )
    return [listed[hosts[:rank].count(name) % len(listed)] for rank, name in enumerate(hosts)]


@cache
def _gpu_module() -> Any:
    """The module that uses CuPy, loaded once in a process; or a text that says why it cannot be."""
    folder = os.environ.get("CUPY_CACHE_DIR") or cache_folder("kernels")
    if folder and has_space(str(folder), KERNELS_BYTES):
        os.environ["CUPY_CACHE_DIR"] = str(folder)
    else:
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    try:
        return importlib.import_module("cusp.runtime.device_gpu")
    except ImportError as error:
        return f"CuPy cannot be imported ({error}): pip install 'cusp-gluon[gpu-cuda12]' or [gpu-cuda13]"


def _use_gpu(number: int) -> tuple[str, str | None]:
    """Make the GPU ``number`` modulo their number this process's; a description, or why there is none."""
    gpu = _gpu_module()
    why = gpu if isinstance(gpu, str) else gpu.why_unusable()
    return ("", why) if why else (gpu.use(number), None)
