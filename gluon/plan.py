"""SyncPlan: which values travel between which ranks, agreed once, so that messages carry no ids."""

from dataclasses import dataclass

from cusp.errors import Intracomm, OptionError, together
from cusp.kernels.arrays import total
from cusp.kernels.interfaces import Build
from cusp.lid_map import check_masters
from cusp.partition import Partition
from cusp.runtime.devices import Array, backend, is_mixed
from cusp.runtime.exchange import pieces
from gluon.transports import get_transport

HAS_OUT, HAS_IN = 1, 2
ENDS = ("src", "dst", "any")
MEANT = {"source": "src", "target": "dst", "dest": "dst", "destination": "dst", "both": "any", "all": "any"}


@dataclass(frozen=True, eq=False)
class Lists:
    """Matching lists for one location, on the device: entry i of both sides is the same node.

    Attributes
    ----------
    mirrors : tuple of (n_r,) int32
        Local ids of this rank's mirrors whose master is on rank r.
    masters : tuple of (m_r,) int32
        Local ids of this rank's masters that have a mirror on rank r.
    empty : bool
        No rank has a mirror in its lists: nothing is ever sent along them.
    """

    mirrors: tuple[Array, ...]
    masters: tuple[Array, ...]
    empty: bool

    def ends(self, kind: str) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
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


def make_plan(part: Partition, comm: Intracomm, transport: str = "auto") -> SyncPlan:
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
    build, first, ends = backend(Build, part.device), part.num_masters, part.mirror_starts[1:] - part.num_masters
    offsets = part.offsets[first:]
    roles = (offsets[1:] > offsets[:-1]) * build.xp.uint8(HAS_OUT)
    roles += part.has_in[first:] * build.xp.uint8(HAS_IN)
    asked = build.all_to_all(comm, pieces(part.gids[first:], ends))
    masters = [part.storage.aside(part.lid_map.lids(gids)) for gids in asked]
    with together(comm):
        for rank, (lids, gids) in enumerate(zip(masters, asked)):
            check_masters(part.rank, rank, build.xp.where(lids < first, lids, -1), gids)
    del asked
    mirrors = pieces(part.storage.aside(build.xp.arange(first, part.num_proxies, dtype=build.xp.int32)), ends)
    mirror_roles = pieces(roles, ends)
    master_roles = build.all_to_all(comm, mirror_roles)
    own = sum(role for role in (HAS_OUT, HAS_IN) if total(roles & role))
    devices, roles_of = zip(*comm.allgather((part.device, own)))

    def playing(role: int) -> Lists:
        empty = not any(has & role for has in roles_of)
        return Lists(_chosen(part, mirrors, mirror_roles, role), _chosen(part, masters, master_roles, role), empty)

    return SyncPlan(devices, chosen, playing(HAS_OUT), playing(HAS_IN), playing(HAS_OUT | HAS_IN))


def _chosen(part: Partition, lids: list[Array], roles: list[Array], role: int) -> tuple[Array, ...]:
    """Of each list the entries that play a role; not a copy where all do."""
    plays = [(has & role) != 0 for has in roles]
    return tuple(of if total(chosen) == of.size else part.storage.aside(of[chosen]) for of, chosen in zip(lids, plays))
