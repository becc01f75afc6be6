"""Messages between GPUs by MPI, through page-locked memory of the host."""

from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import pinned
from cusp.runtime.exchange import post, tell_counts, wait_all
from cusp.runtime.mpi import MPI
from gluon.transports.memory import Buffers, Memory


class StagedMpi(Memory):
    """Device -> page-locked memory -> MPI -> page-locked memory -> device."""

    name, xp = "mpi", cp

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        self._host: dict[str, np.ndarray] = {}

    def exchange(
        self, out: Buffers, out_words: Sequence[int], into: Buffers, in_words: Sequence[int] | None = None
    ) -> Sequence[int]:
        in_words = tell_counts(self.comm, out_words) if in_words is None else in_words
        stream = cp.cuda.get_current_stream()
        leaving, coming = self._staged("out", out_words), self._staged("in", in_words)
        for buffer, staged in zip(out.pieces, leaving):
            if staged.size:
                copy(staged.ctypes.data, buffer.data.ptr, staged.nbytes, stream)
        stream.synchronize()  # also: what arrived in the last exchange has left the memory that is written now
        wait_all(post(self.comm, leaving, coming))
        for buffer, staged in zip(into.pieces, coming):
            if staged.size:
                copy(buffer.data.ptr, staged.ctypes.data, staged.nbytes, stream)
        return in_words

    def _staged(self, direction: str, words: Sequence[int]) -> list[np.ndarray]:
        """Host memory for each rank's message, one after the other."""
        needed = sum(words)
        if direction not in self._host or self._host[direction].size < needed:
            cp.cuda.get_current_stream().synchronize()  # a copy may still be reading what is let go here
            self._host[direction] = pinned(needed, np.uint64)
        return np.split(self._host[direction][:needed], np.cumsum(words)[:-1])


def copy(to: int, source: int, size: int, stream: Any) -> None:
    """Bytes from one address to another, on whatever devices, in the order of a stream."""
    cp.cuda.runtime.memcpyAsync(to, source, size, cp.cuda.runtime.memcpyDefault, stream.ptr)
