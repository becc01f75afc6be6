"""Relaxing by priority on the GPU: all buckets of a rank in one kernel, near before far.

The near and the far pile of Davidson, Baxter, Garland, Owens (IPDPS 2014), as bits: a bucket begins at the lowest
priority of a pending node, whatever came before. The kernels are in relax.cuh, around the operator of edges_gpu.py.
"""

import functools
import math
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.edges_gpu import defines_of, kept, kernel_text, lines_of, operator_text
from cusp.apps.operators.expressions.interfaces import Ordered, Pass, Priority
from cusp.apps.operators.frontier_gpu import Queue, blocks_for, queue_for, threads_for
from cusp.kernels.cuda import Kernels, Struct, c_type, load, struct, sums_of
from cusp.kernels.exchange_gpu import all_to_all
from cusp.kernels.total import total
from cusp.language.terms import FLOAT, SATURATE, converted, loaded, negative, number
from cusp.partition import Partition
from gluon.device_gpu import no_bits, read
from gluon.peers.link_gpu import Link
from gluon.reduction import MAX, MIN
from gluon.sync import Sync

RELAX, RELAX_PEERS = (f"cusp/apps/operators/expressions/{name}.cuh" for name in ("relax", "peers/relax"))
AT_ONCE, STEPS_AT_ONCE = 1 << 30, 1 << 14  # edges and steps in one kernel: the host has control at least each second
SIGN = 1 << 63
INFINITE = SIGN + (0x7FF << 52)  # code_of(infinity()) in relax.cuh
SAMPLE_SIZE = 1 << 10
STATE_BYTES = 1024  # at least those of struct MailState in gluon/kernels/mail.cuh
MORE = """
  static const bool FALLS = {falls};  // of a node: its priority never rises when its value changes
  __device__ Key priority(i64 node, Value value) const {{
{loads}
    return {priority};
  }}
  __device__ void prefetch_edge(i64 edge) const {{ {ahead} }}
"""
DRAIN = "Nodes nodes, Queues queues, Key until, Key delta, i64 edges, i64 steps, i64* done"
KERNELS = {  # what each is given
    "relax_drain": DRAIN,
    "add_bits": "Nodes nodes, const unsigned* bits, u64* sums, u64* host",
    "find_steps": "Nodes nodes, Float* found, i64 most, u64* count",
}


class Relaxer:
    """The kernels of an operator on one partition, and the memory that they need while they run.

    Collective with ``sync``: then they run on the GPUs of all ranks at once, and values that change are sent between
    them; for any partition.

    Attributes
    ----------
    key : numpy type
        Of priorities.
    queue, stamps : Queue, (proxies,) int32
        Memory that all operators of a partition share.
    buckets, edges : int
        Relaxed so far.
    """

    def __init__(self, part: Partition, ordered: Ordered, sync: Sync | None = None) -> None:
        self._rows = part.num_proxies, ordered.offsets, ordered.columns
        self._given = [None if each is ordered.label.values else each for each in ordered.given]
        self.key = key_of(ordered.edges, ordered.priority)
        self._threads, self._blocks = threads_for(part.num_proxies), blocks_for(part)
        self.queue, self.stamps = kept(part, ordered.offsets, _make_memory)
        self._done, self.buckets, self.edges = cp.zeros(4, np.int64), 0, 0
        self._kernels = kernels_of(ordered.edges, ordered.priority, sync is not None)
        self._inboxes = inboxes_of(part, sync, ordered) if sync else None
        if self._inboxes:
            self._rows = self._inboxes.rows, *self._rows[1:]

    def nodes(self, values: Any, pending: Any, updated: Any = None, relaxed_at: Any = None) -> Struct:
        """Struct Nodes of relax.cuh."""
        return struct(*self._rows, values, pending, self.stamps, updated, relaxed_at)

    def given(self, values: Any) -> list[Any]:
        """The parameters of the operator, where the label that is written has these values."""
        return [values if each is None else each for each in self._given]

    def run(self, nodes: Struct, until: Any, delta: float, edges: int = AT_ONCE) -> bool:
        """Relax pending nodes up to a key, about so many edges at most; returns whether that was not the end.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        arguments = (
            nodes, self.queue.struct, self.key.type(until), width_in(self.key, delta), edges, STEPS_AT_ONCE, self._done,
            *self.given(nodes.members[3]),
        )  # fmt: skip
        if self._inboxes:
            self._inboxes.run(self._kernels.resident("relax_peers_of", self._blocks), *arguments)
        else:
            self._kernels.resident("relax_drain_of", self._blocks)(*arguments)
        self.buckets, self.edges, _, bound = read(self._done).tolist()
        return bool(bound)

    def look(self, nodes: Struct, bits: Any = None) -> tuple[Any, int]:
        """The lowest priority of a pending node, and how many there are, after those with a bit were added."""
        sums, added = sums_of(2), np.uint64(0) if bits is None else bits
        self._kernels.add_bits_of(
            self._threads, nodes, added, sums.counters, sums.address, *self.given(nodes.members[3])
        )
        below, count = sums.read()
        return key_below(below, self.key), count

    def steps(self, nodes: Struct) -> Any:
        """How much higher priorities are behind edges of pending nodes."""
        found, count = cp.empty(SAMPLE_SIZE), cp.zeros(1, np.uint64)
        self._kernels.find_steps_of(self._threads, nodes, found, SAMPLE_SIZE, count, *self.given(nodes.members[3]))
        return found.get()[: int(count.get()[0])]

    def last_below(self, limit: Any) -> Any:
        """The last key below a limit; the highest one is not left out. None if there is none."""
        if limit >= highest(self.key):
            return highest(self.key)
        if self.key.kind == "f":
            return np.nextafter(limit, -np.inf)
        return math.ceil(limit) - 1 if limit > np.iinfo(self.key).min else None


class Inboxes:
    """Memory for values that ranks send each other while they relax. Collective.

    Attributes
    ----------
    rows : int
        Proxies from here on have no edges in the rows that are relaxed.
    """

    def __init__(self, part: Partition, sync: Sync, offsets: Any, dtype: np.dtype) -> None:
        ranks, masters = sync.comm.size, part.num_masters
        push = sync.comm.allreduce(int(offsets[-1] > offsets[masters])) > 0  # from a mirror of any rank
        lines = 8 * ranks * (2 * ranks + 1)
        self._link = link = Link(
            part, sync, None, [lines], lambda most: [4 * _room(most), dtype.itemsize * _room(most)],
            sends="both" if push else "mirrors",
        )  # fmt: skip
        most = np.diff(part.mirror_starts) + push * np.array([lids.size for lids in sync.plan.any.masters])
        rooms = ([_room(entries) for entries in each] for each in (most.tolist(), link.entries))
        self._mail = cp.zeros(STATE_BYTES, np.uint8), *(cp.asarray(each, np.int64) for each in rooms), cp.asarray(most)
        at_master = cp.concatenate(all_to_all(sync.comm, [*sync.plan.any.masters]))
        changed = no_bits(3 * (part.num_proxies + 63))
        self._ties = int(push), at_master, changed, -(-part.num_proxies // 32), cp.zeros(3, np.uint64)
        self.rows = part.num_proxies if push else masters

    def run(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel with them: struct Given and struct Inboxes of peers/relax.cuh come first. Collective."""
        find = lambda: (struct(self._link.array(0)[1], *self._mail, *self._ties),)  # noqa: E731
        self._link.run(kernel, find, *arguments)


def _room(most: int) -> int:
    """Entries of an inbox of which so many are sent at once: a power of two."""
    return 1 << max(2 * most - 1, 0).bit_length()


def inboxes_of(part: Partition, sync: Sync, ordered: Ordered) -> Inboxes:
    """Those for the rows and values of an operator, kept as long as the partition. Collective."""
    made, dtype = kept(part, ordered.offsets, _no_inboxes), ordered.label.values.dtype
    key = sync.peers, dtype.itemsize
    if key not in made:
        made[key] = Inboxes(part, sync, ordered.offsets, dtype)
    return made[key]  # type: ignore[no-any-return]


def _no_inboxes(part: Partition, offsets: Any) -> dict[Any, Inboxes]:
    return {}


def _make_memory(part: Partition, offsets: Any) -> tuple[Queue, Any]:
    """Memory for two frontiers of rows with edges, and stamps of all proxies; a kernel leaves both for the next."""
    rows = total(offsets[1:] > offsets[:-1])
    return queue_for(rows, part.num_local_edges, 2), cp.zeros(part.num_proxies, np.int32)


def key_of(edges: Pass, priority: Priority) -> np.dtype:
    """The type of priorities on a GPU: that of the label, if they are its values; a float32 as a float64."""
    return edges.dtype if priority.kind == "Value" and edges.dtype != np.float32 else np.dtype(np.float64)


def highest(key: np.dtype) -> Any:
    return MIN.identity(key).item()


def width_in(key: np.dtype, delta: float) -> Any:
    """The width of a bucket as a key; of whole numbers at least 1."""
    width = min(delta, highest(key))
    return key.type(width if key.kind == "f" else max(round(width), 1))


def key_below(below: int, key: np.dtype) -> Any:
    """The key that is so far below the highest one: twin of key_below in relax.cuh."""
    if key.kind != "f":
        return highest(key) - below
    code = INFINITE - below
    bits = code - SIGN if code >= SIGN else ~code & (2 * SIGN - 1)
    return np.array([bits], np.uint64).view(np.float64)[0].item()


@functools.cache
def kernels_of(edges: Pass, priority: Priority, among_peers: bool = False) -> Kernels:
    """The kernels of an operator and its priority."""
    return load(*relax_source(edges, priority, among_peers), **relax_defines(edges, priority))


def relax_defines(edges: Pass, priority: Priority) -> dict[str, str]:
    """Macros of relax.cuh."""
    return {"KEY": c_type(key_of(edges, priority)), **defines_of(edges)}


def relax_source(edges: Pass, priority: Priority, among_peers: bool = False) -> tuple[str, str]:
    """The file of kernels, and what follows it in the source."""
    memory = {"relax_peers": f"Together::Given given, Inboxes inboxes, {DRAIN}"} if among_peers else KERNELS
    kernels = (
        kernel_text(edges, f"{name}_of", name, memory, "512, RESIDENT" if name.startswith("relax") else "256, 4")
        for name, memory in memory.items()
    )
    return RELAX_PEERS if among_peers else RELAX, ordered_text(edges, priority) + "".join(kernels)


def ordered_text(edges: Pass, priority: Priority) -> str:
    """The operator that relax.cuh needs, and the highest key."""
    key = key_of(edges, priority)
    top = "infinity()" if key.kind == "f" else number(highest(key)).text
    value = loaded("value", edges.dtype)
    rising = converted(negative(value, SATURATE), FLOAT).text
    falls = {MIN: ("value", converted(value, FLOAT).text), MAX: (rising,)}.get(edges.reduction, ())
    weighs = any(name == "all_weight" for name, _ in edges.parameters)
    more = MORE.format(
        falls=str(priority.text in falls).lower(), loads=lines_of(priority.loads), priority=priority.text,
        ahead="prefetch(&all_weight[edge]);" if weighs else "",
    )  # fmt: skip
    return f"__device__ inline Key highest() {{ return {top}; }}\n{operator_text(edges, more)}"
