"""The transports of each device, and which of them is taken."""

import pkgutil
from typing import Any

from cusp.errors import InputError, Intracomm, together
from cusp.runtime.devices import is_mixed
from cusp.runtime.exchange import kept
from gluon.transports.memory import Transport

# For each device its transports, the best first: name -> module:class.
TRANSPORTS = {
    "cpu": {
        "peer": "gluon.transports.shared:SharedMemory",
        "mpi": "gluon.transports.host:HostMpi",
        "hosts": "gluon.transports.hosts:Hosts",  # only if asked for
    },
    "gpu": {
        "peer": "gluon.transports.peer_gpu:Peer",
        "nccl": "gluon.transports.nccl:Nccl",
        "cuda-mpi": "gluon.transports.staged:CudaAwareMpi",
        "mpi": "gluon.transports.staged:StagedMpi",
        "hosts": "gluon.transports.staged:StagedHosts",  # only if asked for
    },
}
IN_MIXED_JOBS = "mpi"  # what ranks on CPUs and ranks on GPUs have in common
CHOICES = ("auto", *dict.fromkeys(name for names in reversed(TRANSPORTS.values()) for name in names))


class TransportError(InputError):
    """A transport was asked for that cannot be used here."""


def open_transport(wanted: str, comm: Intracomm, device: str) -> Transport:
    """The transport for ranks that compute on ``device``; edges go by it from now on, too, if it can. Collective.

    Parameters
    ----------
    wanted : str
        A name, or ``auto`` for the first in the table that works here.

    Raises
    ------
    TransportError
        On every rank, if the one asked for cannot be used.
    """
    transport = get_transport(wanted, comm, device)
    if device == "gpu":
        from cusp.kernels import exchange_gpu

        exchange_gpu.use(comm, transport if isinstance(transport, exchange_gpu.Carrier) else None)
    return transport


def get_transport(wanted: str, comm: Intracomm, device: str) -> Transport:
    """As :func:`open_transport`, but edges go by what they went by before. Collective."""
    devices = tuple(comm.allgather(device))
    names = TRANSPORTS[device]
    if is_mixed(devices):
        names = {IN_MIXED_JOBS: names[IN_MIXED_JOBS]}
    with together(comm):
        if wanted not in ("auto", *names):
            raise TransportError(f"--transport {wanted} {_not_for(devices)} use {', '.join(names)}")
    opened = kept(comm, "transports", dict)
    for name in names if wanted == "auto" else [wanted]:
        if (devices, name) in opened:
            return opened[devices, name]
        kind: Any = pkgutil.resolve_name(names[name])
        reasons = [why for why in comm.allgather(kind.why_unusable(comm)) if why]
        if not reasons:
            return opened.setdefault((devices, name), kind(comm))
        with together(comm):
            if wanted != "auto":
                raise TransportError(f"--transport {wanted} cannot be used: {reasons[0]}")
    raise AssertionError("one can always be used")


def _not_for(devices: tuple[str, ...]) -> str:
    """For whom a transport is, if it is not for ranks on these devices, and who these are."""
    if is_mixed(devices):
        return "is for jobs on one kind of device; ranks on CPUs and ranks on GPUs"
    other = next(iter(set(TRANSPORTS) - {*devices}))
    return f"is for ranks on {other.upper()}s; those on {devices[0].upper()}s"
