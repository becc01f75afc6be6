"""SyncPlan: which values travel between which ranks, agreed once, so that messages carry no ids."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import OptionError, together
from cusp.lid_map import check_masters
from cusp.partition import Partition
from cusp.runtime.devices import is_mixed, to_host
from cusp.runtime.exchange import all_to_all
from gluon.transports import get_transport

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

HAS_OUT, HAS_IN = 1, 2
ENDS = ("src", "dst", "any")
MEANT = {"source": "src", "target": "dst", "dest": "dst", "destination": "dst", "both": "any", "all": "any"}


@dataclass(frozen=True, eq=False)
class Lists:
    """Matching lists for one location: entry i of both sides is the same node.

    Attributes
    ----------
    mirrors : tuple of (n_r,) int32
        Local ids of this rank's mirrors whose master is on rank r.
    masters : tuple of (m_r,) int32
        Local ids of this rank's masters that have a mirror on rank r.
    empty : bool
        No rank has a mirror in its lists: nothing is ever sent along them.
    """

    mirrors: tuple[np.ndarray, ...]
    masters: tuple[np.ndarray, ...]
    empty: bool

    def ends(self, kind: str) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """The lists from which a ``reduce`` or ``broadcast`` sends, and those into which it receives."""
        return (self.mirrors, self.masters) if kind == "reduce" else (self.masters, self.mirrors)


@dataclass(frozen=True)
class SyncPlan:
    """The one idea that removes most of the traffic (Gluon, PLDI 2018, section 3).

    A mirror without in-edges here can never be written at a destination; one without out-edges is
    never read at a source. So the lists hold only mirrors that play the role. That an outgoing
    edge-cut needs no broadcast, an incoming one no reduce, and a Cartesian cut only the partners of
    its row and column follows from the data, for any policy. The price: a mirror that is left out
    is stale by design; only masters hold the answer.

    Attributes
    ----------
    devices : tuple of {'cpu', 'gpu'}
        Where the partition of each rank is.
    transport : str
        Name of what carries messages along the lists.
    src, dst, any : Lists
        For labels that are read or written at this end of edges, or at either.
    """

    devices: tuple[str, ...]
    transport: str
    src: Lists
    dst: Lists
    any: Lists

    @property
    def mixed(self) -> bool:
        """Whether some ranks compute on CPUs and others on GPUs: then all have to go the same way."""
        return is_mixed(self.devices)

    @property
    def apart(self) -> bool:
        """Whether no rank shares a node with another: there is nothing to sync."""
        return self.any.empty

    def lists(self, location: str) -> Lists:
        """Lists of the mirrors that play a role: ``src``, ``dst`` or ``any``.

        Raises
        ------
        OptionError
            Something else.
        """
        if location not in ENDS:
            meant = MEANT.get(location)
            advice = f"; did you mean {meant!r}?" if meant else ""
            raise OptionError(f"{location!r} is no end of an edge; choose one of {', '.join(ENDS)}{advice}")
        found: Lists = getattr(self, location)
        return found

    def partners(self, location: str = "any") -> int:
        """Number of ranks with which this one exchanges labels."""
        lists = self.lists(location)
        return sum(1 for mirrors, masters in zip(lists.mirrors, lists.masters) if mirrors.size or masters.size)


def make_plan(part: Partition, comm: "Intracomm", transport: str = "auto") -> SyncPlan:
    """Tell every master where its mirrors are and what roles they play. Collective.

    Parameters
    ----------
    transport : str
        See :func:`gluon.transports.open_transport`.

    Raises
    ------
    PolicyError, TransportError
        On every rank.
    """
    chosen = get_transport(transport, comm, part.device).name
    gids, roles = _mirrors(part)
    mirrored = all_to_all(comm, _by_rank(gids, part))
    masters = [part.lid_map.lids(gids) for gids in mirrored]
    with together(comm):
        for rank, (lids, requested) in enumerate(zip(masters, mirrored)):
            check_masters(part.rank, rank, np.where(lids < part.num_masters, lids, -1), requested)
    mirrors = _by_rank(np.arange(part.num_masters, part.num_proxies, dtype=np.int32), part)
    mirror_roles = _by_rank(roles, part)
    master_roles = all_to_all(comm, mirror_roles)

    devices, roles_of = zip(*comm.allgather((part.device, int(np.bitwise_or.reduce(roles, initial=0)))))

    def playing(role: int) -> Lists:
        empty = not any(has & role for has in roles_of)
        return Lists(_chosen(mirrors, mirror_roles, role), _chosen(masters, master_roles, role), empty)

    return SyncPlan(devices, chosen, playing(HAS_OUT), playing(HAS_IN), playing(HAS_OUT | HAS_IN))


def _mirrors(part: Partition) -> tuple[np.ndarray, np.ndarray]:
    """Global ids and roles (uint8) of the mirrors, on the host; nothing of the masters is copied."""
    first = part.num_masters
    offsets = to_host(part.offsets[first:])
    roles = (offsets[1:] > offsets[:-1]) * np.uint8(HAS_OUT)
    roles += to_host(part.has_in[first:]) * np.uint8(HAS_IN)
    return to_host(part.gids[first:]), roles


def _by_rank(values: np.ndarray, part: Partition) -> list[np.ndarray]:
    """Split values of the mirrors by the rank of their masters."""
    return np.split(values, part.mirror_starts[1:-1] - part.num_masters)


def _chosen(lids: list[np.ndarray], roles: list[np.ndarray], role: int) -> tuple[np.ndarray, ...]:
    """Of each list the entries that play a role; not a copy where all do."""
    plays = [(has & role) != 0 for has in roles]
    return tuple(of if chosen.all() else of[chosen] for of, chosen in zip(lids, plays))
