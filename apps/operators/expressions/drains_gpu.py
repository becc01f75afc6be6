"""Drains on the GPU, see interfaces.py: all buckets of a rank in one kernel, or of all ranks that are peers.

The near and the far pile of Davidson, Baxter, Garland, Owens (IPDPS 2014), as bits: a bucket begins at the lowest
priority of a pending node, whatever came before. The kernels are in relax.cuh.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.interfaces import Ordered
from cusp.apps.operators.expressions.relax_gpu import highest, kernels_of, key_below, key_of
from cusp.apps.operators.frontier_gpu import Queue, blocks_for, queue_for, threads_for
from cusp.apps.operators.interfaces import bucket_end, is_sparse, kept_with, width_in, width_of_steps
from cusp.kernels.cuda import Struct, struct, sums_of
from cusp.kernels.exchange_gpu import all_to_all
from cusp.partition import Partition
from gluon.device_gpu import no_bits, read
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

ALL = 1 << 62
AT_ONCE, STEPS_AT_ONCE = 1 << 30, 1 << 14  # edges and steps in one kernel: the host has control at least each second
AHEAD = 1 << 21  # edges that a rank relaxes without a sync in graphs with few per node: about two milliseconds
AMONG_OTHERS = 8.0  # times as wide are buckets where an exchange costs what many edges do
GUESSES = (0, 1 << 14)  # after how many edges the width of a bucket is chosen, unless it is given
SAMPLE_SIZE = 1 << 10
STATE_BYTES = 1024  # at least those of struct MailState in gluon/kernels/mail.cuh


class Drain:
    """Pending nodes, and the kernels that relax them.

    Attributes
    ----------
    bits : bits of proxies
        Those that are pending.
    relaxed_at : (proxies,)
        The value at which the edges of a node were last relaxed.
    queue, stamps : Queue, (proxies,) int32
        Memory that all operators of a partition share.
    """

    def __init__(self, part: Partition, ordered: Ordered, delta: float | None) -> None:
        self._part, self._ordered, self._label, self._delta = part, ordered, ordered.label, delta or 1.0
        self._key, self._kernels = key_of(ordered.edges, ordered.priority), kernels_of(ordered.edges, ordered.priority)
        rows = ordered.offsets
        self.queue, self.stamps = kept_with(part, ("drain", rows.data.ptr), lambda: _make_memory(part, rows))
        self.bits, self._relaxed_at = no_bits(part.num_proxies), None
        self._found: tuple[Any, int] | None = None
        self._guesses = 0 if delta is None else len(GUESSES)
        self._done, self.edges, self._buckets = cp.zeros(4, np.int64), 0, 0

    @property
    def relaxed_at(self) -> Any:
        if self._relaxed_at is None:
            self._relaxed_at = self._label.values.copy()
        return self._relaxed_at

    def add(self, bits: Any) -> None:
        if self._relaxed_at is None:
            cp.bitwise_or(self.bits, bits, out=self.bits)
            word, rest = divmod(self._part.num_proxies, 32)
            self.bits[word:] &= cp.uint32((1 << rest) - 1)  # bits behind the last proxy, which mark_all sets, too
            self.bits[word + 1 :] = 0
            self._found = None
        else:
            self._found = self._look(self._marked(), bits)

    def lowest(self) -> Any:
        return self._pending()[0]

    def count(self) -> int:
        return self._pending()[1]

    def run(self, edges: int) -> bool:
        most = self.edges + edges
        while self.edges < most:
            if not self._relax(highest(self._key), most, self._marked()):
                return False
        return self.count() > 0

    def run_below(self, limit: Any) -> None:
        last, most = self._last_below(limit), self.edges + AHEAD
        while last is not None and self._relax(last, ALL, self._marked()):
            pass
        if is_sparse(self._part) and self.edges < most:
            self.run(most - self.edges)

    def run_all(self) -> int:
        while self._relax(highest(self._key), ALL, self._nodes()):
            pass
        return self._buckets

    def run_peers(self, sync: Sync, write: str, read: str) -> int:
        ordered, inboxes = self._ordered, inboxes_of(self._part, sync, self._ordered)
        kernels = kernels_of(ordered.edges, ordered.priority, True)
        kernel = partial(inboxes.run, kernels.resident("relax_peers_of", blocks_for(self._part)), tuple)
        nodes, going = self._nodes(rows=inboxes.rows), True
        while going:
            self._guess(sync)
            going = self._launch(kernel, highest(self._key), self._edges_until_guess(), nodes)
            if going:
                sync.count_peers()
        return self._buckets

    def bucket_end(self, lowest: Any) -> Any:
        self._guess()
        return bucket_end(self._key, lowest, self._delta)

    def _guess(self, sync: Sync | None = None) -> None:
        """Choose a width of buckets, if it is time: by how much higher priorities are behind edges of pending nodes.

        With ``sync`` all ranks choose the same. Collective then.
        """
        if self._guesses == len(GUESSES):
            return
        if (int(sync.highest(self.edges)) if sync else self.edges) >= GUESSES[self._guesses]:
            scale = 1.0 if sync or self._part.num_ranks == 1 else AMONG_OTHERS
            found, count = cp.empty(SAMPLE_SIZE), cp.zeros(1, np.uint64)
            self._kernels.find_steps_of(
                threads_for(self._part.num_proxies), self._nodes(), found, SAMPLE_SIZE, count, *self._ordered.given
            )
            steps = found.get()[: int(count.get()[0])]
            steps = np.concatenate(sync.comm.allgather(steps)) if sync else steps
            self._delta = scale * width_of_steps(steps, self._part, self._ordered.priority.whole)
            self._guesses += 1

    def _edges_until_guess(self) -> int:
        """For one kernel."""
        return min([AT_ONCE, *(edges - self.edges for edges in GUESSES[self._guesses :])])

    def _last_below(self, limit: Any) -> Any:
        """The last key below a limit; the highest one is not left out. None if there is none."""
        if limit >= highest(self._key):
            return highest(self._key)
        if self._key.kind == "f":
            return np.nextafter(limit, -np.inf)
        return math.ceil(limit) - 1 if limit > np.iinfo(self._key).min else None

    def _relax(self, until: Any, most: int, nodes: Struct) -> bool:
        """One kernel, up to a key or about ``most`` edges in all; returns whether that was not the end."""
        self._guess()
        self._found = None
        kernel = self._kernels.resident("relax_drain_of", blocks_for(self._part))
        return self._launch(kernel, until, min(most - self.edges, self._edges_until_guess()), nodes)

    def _launch(self, kernel: Callable[..., None], until: Any, edges: int, nodes: Struct) -> bool:
        """Relax pending nodes up to a key, about so many edges at most; returns whether that was not the end.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        kernel(
            nodes, self.queue.struct, self._key.type(until), width_in(self._key, self._delta), edges, STEPS_AT_ONCE,
            self._done, *self._ordered.given,
        )  # fmt: skip
        self._buckets, self.edges, _, bound = read(self._done).tolist()
        return bool(bound)

    def _nodes(self, updated: Any = None, relaxed_at: Any = None, rows: int | None = None) -> Struct:
        """Struct Nodes of relax.cuh; without marks, nobody has to know what changes."""
        rows, ordered = self._part.num_proxies if rows is None else rows, self._ordered
        values = self._label.values
        return struct(rows, ordered.offsets, ordered.columns, values, self.bits, self.stamps, updated, relaxed_at)

    def _marked(self) -> Struct:
        return self._nodes(self._label.updated, self.relaxed_at)

    def _pending(self) -> tuple[Any, int]:
        if self._found is None:
            self._found = self._look(self._nodes(), np.uint64(0))
        return self._found

    def _look(self, nodes: Struct, bits: Any) -> tuple[Any, int]:
        """The lowest priority of a pending node, and how many there are, after those with a bit were added."""
        sums = sums_of(2)
        self._kernels.add_bits_of(
            threads_for(self._part.num_proxies), nodes, bits, sums.counters, sums.address, *self._ordered.given
        )
        below, count = sums.read()
        return key_below(below, self._key), count


def _make_memory(part: Partition, offsets: Any) -> tuple[Queue, Any]:
    """Memory for two frontiers of rows with edges, and stamps of all proxies; a kernel leaves both for the next."""
    return queue_for(part, offsets), cp.zeros(part.num_proxies, np.int32)


class Inboxes(Link):
    """Memory for values that ranks send each other while they relax, and what a kernel gets for it. Collective.

    Attributes
    ----------
    rows : int
        Proxies from here on have no edges in the rows that are relaxed.
    """

    def __init__(self, part: Partition, sync: Sync, offsets: Any, dtype: np.dtype) -> None:
        ranks, masters = sync.comm.size, part.num_masters
        push = sync.comm.allreduce(int(offsets[-1] > offsets[masters])) > 0  # from a mirror of any rank
        lines = 8 * ranks * (2 * ranks + 1)
        super().__init__(
            part, sync, None, [lines], lambda most: [4 * _room(most), dtype.itemsize * _room(most)],
            sends="both" if push else "mirrors",
        )  # fmt: skip
        most = np.diff(part.mirror_starts) + push * np.array([lids.size for lids in sync.plan.any.masters])
        rooms = ([_room(entries) for entries in each] for each in (most.tolist(), self.entries))
        self._mail = cp.zeros(STATE_BYTES, np.uint8), *(cp.asarray(each, np.int64) for each in rooms), cp.asarray(most)
        at_master = cp.concatenate(all_to_all(sync.comm, [*sync.plan.any.masters]))
        changed = no_bits(3 * (part.num_proxies + 63))
        self._ties = int(push), at_master, changed, -(-part.num_proxies // 32), cp.zeros(3, np.uint64)
        self.rows = part.num_proxies if push else masters

    def _given(self) -> Struct:
        """Struct Given of peers/relax.cuh."""
        assert self._peers is not None
        (nodes_there, nodes_here), (values_there, values_here) = self.box(0), self.box(1)
        ends = nodes_there, values_there, nodes_here, values_here
        return struct(self._peers.struct, self._proxies, self.array(0)[1], *self._mail, *ends, *self._ties)


def _room(most: int) -> int:
    """Entries of an inbox of which so many are sent at once: a power of two."""
    return 1 << max(2 * most - 1, 0).bit_length()


def inboxes_of(part: Partition, sync: Sync, ordered: Ordered) -> Inboxes:
    """Those for the rows and values of an operator, kept as long as the partition. Collective."""
    made, dtype = kept_with(part, ("inboxes", ordered.offsets.data.ptr), dict), ordered.label.values.dtype
    key = sync.peers, dtype.itemsize
    if key not in made:
        made[key] = Inboxes(part, sync, ordered.offsets, dtype)
    return made[key]  # type: ignore[no-any-return]
