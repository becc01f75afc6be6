"""What Graph500 does with its edge list in the memory of GPUs, chunk by chunk: see interfaces.py."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.edge_lists.csr_plan import cell_shift, num_cells
from cusp.input.checksum import as_bits
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels import build_gpu as build
from cusp.kernels.cuda import bincount
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import memory_of

SENT = 1 << 25  # edges that are reversed, grouped by rank and sent at a time
CHECKED = 1 << 26  # edges checked at a time; temporary arrays take about 4 GB


def undirected_slice(sources: Any, targets: Any, weights: Any, num_nodes: int, comm: MPI.Intracomm) -> EdgeSlice:
    """All parallel edges are kept: finding the shortest would take a second sort."""
    bounds = _share(sources, targets, num_nodes, comm)
    first, last = int(bounds[comm.rank]), int(bounds[comm.rank + 1])
    arrays = [as_bits(sources), as_bits(targets), *([] if weights is None else [as_bits(weights)])]
    arrived: list[list[Any]] = [[] for _ in arrays]
    for chunk in range(comm.allreduce(-(-sources.size // SENT), MPI.MAX)):
        part = slice(chunk * SENT, (chunk + 1) * SENT)
        for chunks, new in zip(arrived, _exchange([array[part] for array in arrays], bounds, comm)):
            chunks.append(new)
    rows = _joined(arrived[0], arrays[0].dtype)
    rows -= rows.dtype.type(first)
    rows, order = build.sort(rows.astype(cp.uint32, copy=False), (last - first).bit_length())
    indptr = cp.searchsorted(rows, cp.arange(last - first + 1, dtype=cp.uint32)).astype(np.int64)
    del rows
    columns = [_joined(chunks, array.dtype)[order] for chunks, array in zip(arrived[1:], arrays[1:])]
    num_edges = comm.allreduce(order.size)
    values = None if weights is None else columns[1].view(weights.dtype)
    return EdgeSlice(num_nodes, num_edges, True, bounds, first, indptr, columns[0], values, None, memory_of("gpu"))


def _share(sources: Any, targets: Any, num_nodes: int, comm: MPI.Intracomm) -> np.ndarray:
    """(ranks + 1,) int64: ranges of nodes with about equally many edges, to within a cell of nodes. Collective."""
    shift = cell_shift(num_nodes)
    counts = cp.zeros(num_cells(num_nodes), np.int64)
    for begin in range(0, sources.size, SENT):
        for ends in (sources, targets):
            counts += bincount(ends[begin : begin + SENT] >> shift, counts.size)
    before = np.zeros(counts.size + 1, np.int64)
    np.cumsum(comm.allreduce(cp.asnumpy(counts)), out=before[1:])
    starts = [int(before[-1]) * rank // comm.size for rank in range(1, comm.size)]
    cells = np.searchsorted(before, starts)
    return np.array([0, *np.minimum(cells << shift, num_nodes), num_nodes], np.int64)


def _exchange(arrays: list[Any], bounds: np.ndarray, comm: MPI.Intracomm) -> list[Any]:
    """Edges of all ranks, in both directions, whose sources this rank reads: each array of them. Collective."""
    sources, targets, *weights = arrays
    kept = sources != targets
    sources, targets = sources[kept], targets[kept]
    values = [cp.concatenate([sources, targets]), cp.concatenate([targets, sources])]
    values += [cp.concatenate([array[kept]] * 2) for array in weights]
    begins = cp.asarray(bounds[:-1].astype(sources.dtype))
    owners = cp.searchsorted(begins, values[0], side="right") - 1
    owners = owners.astype(np.uint8 if comm.size <= 256 else np.uint16)
    counts = build.count_owners(owners, comm.size)
    received = []
    for array in values:
        grouped = cp.empty_like(array)
        build.group_by_owner(array, owners, counts, grouped)
        received.append(cp.concatenate(build.all_to_all(comm, pieces(grouped, np.cumsum(counts)))))
    return received


def _joined(chunks: list[Any], dtype: np.dtype) -> Any:
    """The chunks as one array; the list is emptied."""
    whole = cp.concatenate(chunks) if chunks else cp.empty(0, dtype)
    chunks.clear()
    return whole


def check_edges(
    sources: Any, targets: Any, lengths: Any, parent: Any, depth: Any, far: Any, joined: Any
) -> tuple[int, int]:
    traversed = 0
    for begin in range(0, sources.size, CHECKED):
        part = slice(begin, begin + CHECKED)
        left, right = sources[part], targets[part]
        length = 1 if lengths is None else lengths[part].astype(np.float64)
        at_left, at_right = depth[left], depth[right]
        wrong = (at_left > at_right + length) | (at_right > at_left + length)
        if bool(wrong.any()):
            return begin + int(wrong.argmax()), traversed
        traversed += int(cp.count_nonzero(at_left != far))
        joined[right[(parent[right] == left) & (at_left + length == at_right)]] = True
        joined[left[(parent[left] == right) & (at_right + length == at_left)]] = True
    return -1, traversed
