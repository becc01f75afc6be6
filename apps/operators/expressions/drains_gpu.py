"""Drains on the GPU, see interfaces.py: all buckets of a rank in one kernel, or of all ranks that are peers."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.interfaces import Ordered
from cusp.apps.operators.expressions.relaxer_gpu import AT_ONCE, Relaxer, highest, width_in
from cusp.apps.operators.interfaces import width_of_steps
from cusp.apps.operators.traversal.peers.relax_gpu import PeerRelaxing
from cusp.apps.shared.lengths import bucket_end
from cusp.kernels.cuda import Struct
from cusp.partition import Partition
from gluon.device_gpu import no_bits
from gluon.reduction import MIN
from gluon.sync import Sync

ALL = 1 << 62
AMONG_OTHERS = 8.0  # times as wide are buckets where an exchange costs what many edges do
GUESSES = (0, 1 << 14)  # after how many edges the width of a bucket is chosen, unless it is given


class Drain:
    def __init__(self, part: Partition, ordered: Ordered, delta: float | None) -> None:
        self._part, self._ordered, self._label, self._delta = part, ordered, ordered.label, delta or 1.0
        self._relaxer, self._whole = Relaxer(part, ordered), ordered.priority.whole
        self._pending, self._relaxed_at = no_bits(part.num_proxies), None
        self._found: tuple[Any, int] | None = None
        self._guesses = 0 if delta is None else len(GUESSES)
        self.edges = 0

    def add(self, bits: Any) -> None:
        self._found = self._relaxer.look(self._nodes(), bits)

    def lowest(self) -> Any:
        return self._look()[0]

    def count(self) -> int:
        return self._look()[1]

    def run(self, edges: int) -> bool:
        return self._run(highest(self._relaxer.key), edges) and self.count() > 0

    def run_below(self, limit: Any) -> None:
        last = self._relaxer.last_below(limit)
        if last is not None:
            self._run(last, ALL)

    def run_all(self, sync: Sync, write: str, read: str) -> int:
        if sync.peers is not None:
            return self._run_among_peers(sync)
        self._run(highest(self._relaxer.key), ALL)
        return int(self._relaxer.done[0])

    def bucket_end(self, lowest: Any) -> Any:
        key = self._relaxer.key
        self._guess()
        return bucket_end(key.type(lowest), width_in(key, self._delta), MIN.identity(key))

    def _run_among_peers(self, sync: Sync) -> int:
        """One kernel on each rank. Collective."""
        self._guess()
        rounds = cp.zeros(1, np.int64)
        delta = float(sync.highest(float(self._delta)))
        PeerRelaxing(self._part, sync, self._ordered).run(self._label.values, self._pending, delta, rounds)
        return int(sync.highest(int(rounds[0])))

    def _guess(self) -> None:
        """Choose a width of buckets, if it is time: by how much higher priorities are behind edges of pending nodes."""
        if self._guesses < len(GUESSES) and self.edges >= GUESSES[self._guesses]:
            scale = 1.0 if self._part.num_ranks == 1 else AMONG_OTHERS
            steps = self._relaxer.steps(self._nodes())
            self._delta = scale * width_of_steps(steps, self._part, self._whole)
            self._guesses += 1

    def _run(self, until: Any, edges: int) -> bool:
        """Relax up to a key, or about so many edges; returns whether that was not the end."""
        most, self._found = self.edges + edges, None
        if self._relaxed_at is None and (self._part.num_ranks > 1 or edges < ALL):
            self._relaxed_at = self._label.values.copy()
        while self.edges < most:
            self._guess()
            upto = min([most, *GUESSES[self._guesses :]])
            bound = self._relaxer.run(self._nodes(), until, self._delta, min(upto - self.edges, AT_ONCE))
            self.edges = int(self._relaxer.done[1])
            if not bound:
                return False
        return True

    def _nodes(self) -> Struct:
        """Struct Nodes of relax.cuh. Alone, nobody has to know what changes."""
        told = () if self._relaxed_at is None else (self._label.updated, self._relaxed_at)
        return self._relaxer.nodes(self._label.values, self._pending, *told)

    def _look(self) -> tuple[Any, int]:
        if self._found is None:
            self._found = self._relaxer.look(self._nodes())
        return self._found
