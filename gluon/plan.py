"""SyncPlan: which values travel between which ranks, agreed once, so that messages carry no ids."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.errors import PolicyError, together
from cusp.partition import Partition
from cusp.runtime.devices import backend, to_host
from cusp.runtime.exchange import all_to_all
from gluon.interfaces import Exchange
from gluon.transports import open_transport

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

HAS_OUT, HAS_IN = 1, 2
ROLES = {"src": HAS_OUT, "dst": HAS_IN, "any": HAS_OUT | HAS_IN}


@dataclass(frozen=True)
class Lists:
    """Matching lists for one location: entry i of both sides is the same node.

    Attributes
    ----------
    mirrors : list of (n_r,) int32
        Local ids of this rank's mirrors whose master is on rank r.
    masters : list of (m_r,) int32
        Local ids of this rank's masters that have a mirror on rank r.
    """

    mirrors: list[np.ndarray]
    masters: list[np.ndarray]


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
    exchange : Exchange
        What carries labels along the lists, from device to device; it keeps its buffers.
    """

    exchange: Any
    everything: Lists
    mirror_roles: list[np.ndarray]
    master_roles: list[np.ndarray]
    _filtered: dict[str, Lists] = field(default_factory=dict)

    def lists(self, location: str) -> Lists:
        """Lists of the mirrors that play a role: ``src``, ``dst`` or ``any``."""
        if location not in self._filtered:
            role = ROLES[location]
            self._filtered[location] = Lists(
                [lids[(roles & role) != 0] for lids, roles in zip(self.everything.mirrors, self.mirror_roles)],
                [lids[(roles & role) != 0] for lids, roles in zip(self.everything.masters, self.master_roles)],
            )
        return self._filtered[location]

    def partners(self, location: str = "any") -> int:
        """Number of ranks that this one exchanges labels with."""
        lists = self.lists(location)
        return sum(1 for mine, theirs in zip(lists.mirrors, lists.masters) if mine.size or theirs.size)


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
    exchange = backend(Exchange, part.device).Exchange(comm, open_transport(transport, comm, part.device))
    starts = part.mirror_starts
    gids = to_host(part.gids)
    roles = to_host(part.has_out).astype(np.uint8) * np.uint8(HAS_OUT)
    roles += to_host(part.has_in).astype(np.uint8) * np.uint8(HAS_IN)
    own = [slice(starts[rank], starts[rank + 1]) for rank in range(comm.size)]
    places = np.arange(part.num_proxies, dtype=np.int32)
    mirror_roles = [roles[where] for where in own]
    mirrored = all_to_all(comm, [gids[where] for where in own])
    masters = [part.lid_map.lids(gids) for gids in mirrored]
    with together(comm):
        for rank, (lids, asked) in enumerate(zip(masters, mirrored)):
            _check_masters(part, rank, lids, asked)
    master_roles = all_to_all(comm, mirror_roles)
    return SyncPlan(exchange, Lists([places[where] for where in own], masters), mirror_roles, master_roles)


def _check_masters(part: Partition, rank: int, lids: np.ndarray, gids: np.ndarray) -> None:
    """All ranks must agree on who is master of a node: a rule that depends on the asking rank breaks that."""
    wrong = (lids < 0) | (lids >= part.num_masters)
    if wrong.any():
        raise PolicyError(
            f"rank {rank} takes rank {part.rank} for the master of node {gids[int(np.argmax(wrong))]:,}, "
            "but it is not: get_master must give the same answer on every rank"
        )
