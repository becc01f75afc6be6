"""Drains on the CPU, see interfaces.py: runs of the loops of drain_text_cpu.py over the pending nodes of a rank."""

from typing import Any

import numpy as np

from cusp.apps.operators.expressions.drain_text_cpu import drain_text, order_text, parameters_of_key
from cusp.apps.operators.expressions.interfaces import Ordered
from cusp.apps.operators.expressions.peers.search_cpu import PeerSearch
from cusp.apps.operators.interfaces import bucket_end, is_sparse, width_in, width_of_steps
from cusp.apps.operators.pending_cpu import BUCKETS, EDGES, PILED, begin, make_pending, mark_pending
from cusp.apps.operators.traversal.sssp_cpu import NARROW
from cusp.kernels.bits import unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import import_text
from cusp.runtime.teams.together import helped
from cusp.runtime.threads import few, many, num_threads
from gluon.device_cpu import count_bits
from gluon.reduction import MAX, MIN
from gluon.sync import Sync

ALL = 1 << 62
AT_ONCE = 1 << 15  # edges that a rank relaxes without a sync, at least, if it has them: about as long as a sync takes
SYNCS = 32  # in graphs with many edges per node, a rank that runs ahead relaxes at most this part of its edges
GUESSES = (0, 1 << 10)  # after how many edges the width of a bucket is chosen, unless it is given
SAMPLE_SIZE = 1 << 10  # edges


class Drain:
    """Pending nodes, and the loops that relax them: the whole run on one rank or over peers, or a part of it."""

    def __init__(self, part: Partition, ordered: Ordered, delta: float | None) -> None:
        self._part, self._ordered, self._label = part, ordered, ordered.label
        self._rows = int(np.searchsorted(ordered.offsets, ordered.offsets[-1]))  # the last ones may have no edges
        self._graph = (self._rows, *unsigned(ordered.offsets, ordered.columns), self._label.values)
        self._pending, self._relaxed_at = make_pending(part, ordered.key), self._label.values[:0]
        self._guesses, delta = (0, 1.0) if delta is None else (len(GUESSES), delta)
        self._delta = width_in(ordered.key, delta)
        self._order, self._modules = import_text(order_text(ordered), []), dict[str, Any]()
        self.edges = self.buckets = 0

    def add(self, bits: np.ndarray) -> None:
        mark_pending(bits, self._rows, self._label.values, self._relaxed_at, self._pending.later)

    def count(self) -> int:
        return int(count_bits(self._bits(), self._part.num_proxies))

    def lowest(self) -> Any:
        ordered = self._ordered
        given = {name: value for (name, _), value in zip(ordered.edges.parameters, ordered.given, strict=True)}
        priority = [given[name] for name in parameters_of_key(ordered)]
        return self._order.lowest(self._bits(), self._label.values, *priority)

    def bucket_end(self, lowest: Any) -> Any:
        return bucket_end(self._ordered.key, lowest, self._delta)

    def run(self, edges: int = ALL) -> bool:
        most = self.edges + edges
        while self.edges < most and self._bits().any():
            self._run("marked", None, most - self.edges, most - self.edges, most - self.edges)
        return bool(self._bits().any())

    def run_below(self, limit: Any) -> None:
        key = self._ordered.key
        last = limit if key.kind == "f" or limit == MIN.identity(key) else limit - 1
        ahead = AT_ONCE if is_sparse(self._part) else max(AT_ONCE, self._part.num_local_edges // SYNCS)
        self._run("marked", last, ALL, AT_ONCE, ahead)

    def run_all(self) -> int:
        while self._bits().any():
            self._run("alone", None, ALL, ALL, ALL)
        return self.buckets

    def run_peers(self, sync: Sync, write: str, read: str) -> int:
        search = PeerSearch(self._loops("peers").search, self._part, sync, write, read, self._label, self._pending)
        rest = (*self._graph, *self._ordered.given)
        if self._guesses < len(GUESSES):
            while self._guesses < len(GUESSES) and self._bits().any():
                self._guess()
                self.edges += search.alone(GUESSES[-1], self._delta, *rest)
            self._delta = self._ordered.key.type(sync.highest(self._delta))
        return search.together(self._delta, *rest)

    def _run(self, way: str, limit: Any, most: int, at_once: int, ahead: int) -> None:
        """Buckets, the first one up to ``limit`` if that is given; fewer where their width is not known yet."""
        pending, label, key = self._pending, self._label, self._ordered.key
        begin(pending)
        if pending.places[PILED] == 0:
            return
        if self._guesses < len(GUESSES):
            self._guess()
            if self._guesses < len(GUESSES):
                most = min(most, max(GUESSES[self._guesses] - self.edges, 1))
        marks: tuple[np.ndarray, ...] = ()
        if way == "marked":
            if self._relaxed_at.size == 0:
                self._relaxed_at = label.values.copy()
            marks = label.updated, self._relaxed_at
        wide = way == "alone" or not is_sparse(self._part)
        crowd = many() if most == ALL and wide and num_threads() > 1 else 0
        limit = key.type(MAX.identity(key) if limit is None else limit)
        rest, loops = (*self._graph, *marks, *self._ordered.given), self._loops(way)
        if loops.drain(pending, limit, self._delta, most, at_once, ahead, crowd, *rest):
            arguments = (pending, self._delta, at_once, ahead, few(), *rest)
            with helped(loops.drain_together, *arguments) as team:
                loops.drain_together(team, 0, *arguments)
        self.edges += int(pending.places[EDGES])
        self.buckets += int(pending.places[BUCKETS])

    def _guess(self) -> None:
        """Choose a width of buckets, if it is time: by how much higher priorities are behind edges of pending nodes."""
        if self.edges < GUESSES[self._guesses]:
            return
        ordered, found = self._ordered, np.empty(SAMPLE_SIZE)
        size = self._loops("alone").steps(self._bits(), *self._graph[1:], found, *ordered.given)
        scale = 1.0 if is_sparse(self._part) or self._part.num_ranks == 1 else NARROW
        width = width_of_steps(found[:size], self._part, ordered.priority.whole)
        self._delta = width_in(ordered.key, scale * width)
        self._guesses += 1

    def _bits(self) -> np.ndarray:
        """Who is pending."""
        bits: np.ndarray = self._pending.near | self._pending.later
        return bits

    def _loops(self, way: str) -> Any:
        """The module of loops that are generated for this, and for one way to go."""
        if way not in self._modules:
            self._modules[way] = import_text(drain_text(self._ordered, way, self._order.__name__), [])
        return self._modules[way]
