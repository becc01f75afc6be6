"""Drains on the GPU, see interfaces.py: all buckets of a rank in one kernel, or of all ranks that are peers."""

from typing import Any

import cupy as cp

from cusp.apps.operators.expressions.interfaces import Ordered
from cusp.apps.operators.expressions.relaxer_gpu import AT_ONCE, Relaxer, highest, width_in
from cusp.apps.operators.interfaces import bucket_end, width_of_steps
from cusp.kernels.cuda import Struct
from cusp.partition import Partition
from gluon.device_gpu import no_bits
from gluon.reduction import MIN
from gluon.sync import Sync

ALL = 1 << 62
AMONG_OTHERS = 8.0  # times as wide are buckets where an exchange costs what many edges do
GUESSES = (0, 1 << 14)  # after how many edges the width of a bucket is chosen, unless it is given


class Drain:
    """Pending nodes, and the kernels that relax them.

    Attributes
    ----------
    relaxer : Relaxer
    bits : bits of proxies
        Those that are pending.
    relaxed_at : (proxies,)
        The value at which the edges of a node were last relaxed.
    """

    def __init__(self, part: Partition, ordered: Ordered, delta: float | None) -> None:
        self._part, self._ordered, self._label, self._delta = part, ordered, ordered.label, delta or 1.0
        self.relaxer, self._whole = Relaxer(part, ordered), ordered.priority.whole
        self.bits, self._relaxed_at = no_bits(part.num_proxies), None
        self._found: tuple[Any, int] | None = None
        self._guesses = 0 if delta is None else len(GUESSES)
        self.edges = 0

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
            self._found = self.relaxer.look(self._marked(), bits)

    def lowest(self) -> Any:
        return self._look()[0]

    def count(self) -> int:
        return self._look()[1]

    def run(self, edges: int) -> bool:
        most, until = self.edges + edges, highest(self.relaxer.key)
        while self.edges < most:
            if not self._relax(until, most, self._marked()):
                return False
        return self.count() > 0

    def run_below(self, limit: Any) -> None:
        last = self.relaxer.last_below(limit)
        while last is not None and self._relax(last, ALL, self._marked()):
            pass

    def run_all(self) -> int:
        while self._relax(highest(self.relaxer.key), ALL, self._nodes()):
            pass
        return self.relaxer.buckets

    def run_peers(self, sync: Sync, write: str, read: str) -> int:
        if self._guesses < len(GUESSES):
            self._guess(1.0)
            self._delta = float(sync.highest(self._delta))
        relaxer = Relaxer(self._part, self._ordered, sync)
        nodes = relaxer.nodes(self._label.values, self.bits)
        while relaxer.run(nodes, highest(relaxer.key), self._delta):
            sync.count_peers()
        return relaxer.buckets

    def bucket_end(self, lowest: Any) -> Any:
        key = self.relaxer.key
        self._guess()
        return bucket_end(key.type(lowest), width_in(key, self._delta), MIN.identity(key))

    def _guess(self, scale: float = AMONG_OTHERS) -> None:
        """Choose a width of buckets, if it is time: by how much higher priorities are behind edges of pending nodes."""
        if self._guesses < len(GUESSES) and self.edges >= GUESSES[self._guesses]:
            scale = 1.0 if self._part.num_ranks == 1 else scale
            steps = self.relaxer.steps(self._nodes())
            self._delta = scale * width_of_steps(steps, self._part, self._whole)
            self._guesses += 1

    def _relax(self, until: Any, most: int, nodes: Struct) -> bool:
        """One kernel, up to a key or about ``most`` edges in all; returns whether that was not the end."""
        self._guess()
        self._found = None
        upto = min([most, *GUESSES[self._guesses :]])
        bound = self.relaxer.run(nodes, until, self._delta, min(upto - self.edges, AT_ONCE))
        self.edges = self.relaxer.edges
        return bound

    def _nodes(self, *marked: Any) -> Struct:
        """Struct Nodes of relax.cuh; without marks, nobody has to know what changes."""
        return self.relaxer.nodes(self._label.values, self.bits, *marked)

    def _marked(self) -> Struct:
        return self._nodes(self._label.updated, self.relaxed_at)

    def _look(self) -> tuple[Any, int]:
        if self._found is None:
            self._found = self.relaxer.look(self._nodes())
        return self._found
