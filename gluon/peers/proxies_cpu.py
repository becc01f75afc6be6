"""Which ranks get the value of a proxy that changes, and where it is in their lists: for compiled loops."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gluon.device_cpu import no_bits

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.sync import Sync

TO_MASTER, TO_MIRROR = 0, 1


class PeerProxies(NamedTuple):
    """The lists of a plan, by proxy.

    Attributes
    ----------
    begins : (proxies + 1,) int32 or int64
    partners : (entries,) int64
        Those who have proxy p, too, are ``partners[begins[p] : begins[p + 1]]``: rank << 48 | place << 1 | direction.
        A place is one in the list that both ranks have; a direction is TO_MASTER or TO_MIRROR.
    shared : bits of proxies
        Those with partners.
    starts : (2 * ranks,) int64
    lids : int32
        The proxy of place i that rank r names in direction d is ``lids[starts[2 * r + d] + i]``.
    """

    begins: np.ndarray
    partners: np.ndarray
    shared: np.ndarray
    starts: np.ndarray
    lids: np.ndarray


def proxies_of(part: "Partition", sync: "Sync", write: str, read: str) -> PeerProxies:
    """The proxies of a partition, for labels that are written and read at these ends of edges."""
    written, known = sync.plan.lists(write), sync.plan.lists(read)
    sent, names, came = [], [], []
    for rank in range(sync.comm.size):
        for direction, lids in ((TO_MASTER, written.mirrors[rank]), (TO_MIRROR, known.masters[rank])):
            sent.append(lids)
            names.append(rank << 48 | np.arange(lids.size) << 1 | direction)
        came += [written.masters[rank], known.mirrors[rank]]
    partners_of, all_names = np.concatenate(sent), np.concatenate(names)
    counts = np.bincount(partners_of, minlength=part.num_proxies)
    begins = np.zeros(part.num_proxies + 1, np.int32 if partners_of.size < 2**31 else np.int64)
    np.cumsum(counts, out=begins[1:])
    shared = no_bits(part.num_proxies)
    packed = np.packbits(counts > 0, bitorder="little")
    shared.view(np.uint8)[: packed.size] = packed
    starts = np.cumsum([0, *[lids.size for lids in came[:-1]]])
    partners = all_names[np.argsort(partners_of, kind="stable")]
    return PeerProxies(begins, partners, shared, starts, np.concatenate(came).astype(np.int32))
