"""Graphs made on the GPU where they are measured: Kronecker, uniform, and like a road map."""

from collections.abc import Iterator
from typing import Any

import cupy as cp
import numpy as np

from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.bits import mix
from cusp.partition import Partition
from cusp.partitioner import partition_slice
from cusp.policies import load_policy
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import memory_of

WEIGHTS = 255  # edges weigh 1 to this, the same in both directions
BATCH = 1 << 26  # edges made at a time
MOST_SORTED = 1 << 30  # keys sorted at a time: CuPy takes fewer than 2^31


def keys_of(name: str) -> tuple[Any, int]:
    """Keys source << 32 | target of a graph, ascending, and its number of nodes.

    Its name is ``kronSCALE``, ``randSCALE``, ``roadSIDE`` or ``ringNODES``. It has every edge in both directions, once,
    and no loops.
    """
    pieces, num_nodes = pieces_of(name)
    return cp.concatenate(list(both_ways(pieces, num_nodes))), num_nodes


def pieces_of(name: str) -> tuple[list[Any], int]:
    """Keys of a graph in one direction, in any order, and its number of nodes."""
    size = int(name[4:])
    if name.startswith("kron"):
        return kronecker(size), 1 << size
    if name.startswith("rand"):
        return uniform(size), 1 << size
    if name.startswith("road"):
        return lattice(size), size * size
    return ring(size), size


def kronecker(scale: int) -> list[Any]:
    """An RMAT graph (0.57, 0.19, 0.19; 16 edges per node) with scrambled node numbers."""
    random = cp.random.default_rng(1)
    names = cp.argsort(random.random(1 << scale))
    pieces = []
    for first in range(0, 16 << scale, BATCH):
        size = min(BATCH, (16 << scale) - first)
        ends = cp.zeros((2, size), cp.int64)
        for _ in range(scale):
            lot = random.random(size, dtype=cp.float32)
            ends *= 2
            ends[0] += lot >= 0.76
            ends[1] += ((lot >= 0.57) & (lot < 0.76)) | (lot >= 0.95)
        sources, targets = names[ends[0]].astype(cp.int64), names[ends[1]].astype(cp.int64)
        pieces.append((sources << 32 | targets)[sources != targets])
        del ends, sources, targets
    return pieces


def uniform(scale: int) -> list[Any]:
    """A uniform random graph, 16 edges per node: both ends of an edge are hashes of its number."""
    pieces = []
    for first in range(0, 16 << scale, BATCH):
        number = cp.arange(first, min(first + BATCH, 16 << scale), dtype=cp.uint64) + np.uint64(1 << 40)
        ends = mix(number) >> np.uint64(64 - 2 * scale)
        sources, targets = (ends >> np.uint64(scale)).astype(cp.int64), ends.astype(cp.int64) & ((1 << scale) - 1)
        pieces.append((sources << 32 | targets)[sources != targets])
    return pieces


def lattice(side: int, share: float = 0.6) -> list[Any]:
    """A square lattice that has each of its edges with probability ``share``: as deep as a road network."""
    random = cp.random.default_rng(1)
    node = cp.arange(side * side, dtype=cp.int64)
    right = node[(node % side < side - 1) & (random.random(node.size) < share)]
    down = node[(node < side * (side - 1)) & (random.random(node.size) < share)]
    return [right << 32 | (right + 1), down << 32 | (down + side)]


def ring(nodes: int) -> list[Any]:
    """A ring whose neighbours have numbers far apart."""
    step = int(nodes * 0.618) | 1
    while np.gcd(step, nodes) > 1:
        step += 2
    place = cp.arange(nodes, dtype=cp.int64) * step % nodes
    return [place << 32 | (place + step) % nodes]


def both_ways(pieces: list[Any], num_nodes: int) -> Iterator[Any]:
    """Every edge in both directions, once, ascending: one range of sources after the other."""
    ranges = 1 + 2 * sum(keys.size for keys in pieces) // MOST_SORTED
    step = -(-num_nodes // ranges) << 32
    for begin in range(0, num_nodes << 32, step):
        within = [ways[(ways >= begin) & (ways < begin + step)] for keys in pieces for ways in (keys, reverse(keys))]
        keys = cp.concatenate(within)
        del within
        keys.sort()
        first = cp.ones(keys.size, cp.bool_)
        first[1:] = keys[1:] != keys[:-1]
        yield keys[first]


def reverse(keys: Any) -> Any:
    """The same edges in the other direction."""
    return (keys & 0xFFFFFFFF) << 32 | keys >> 32


def weights_of(keys: Any) -> Any:
    """(edges,) uint8 from 1 to WEIGHTS, a hash of both ends."""
    sources, targets = keys >> 32, keys & 0xFFFFFFFF
    pairs = (cp.minimum(sources, targets) << 32 | cp.maximum(sources, targets)).astype(cp.uint64)
    return (mix(pairs) % np.uint64(WEIGHTS) + np.uint64(1)).astype(np.uint8)


def partition_of(keys: Any, num_nodes: int) -> Partition:
    """The whole graph as the partition of one rank."""
    indptr = cp.zeros(num_nodes + 1, cp.int64)
    cp.cumsum(cp.bincount(keys >> 32, minlength=num_nodes), out=indptr[1:])
    targets, bounds = (keys & 0xFFFFFFFF).astype(np.uint32), np.array([0, num_nodes])
    edges = EdgeSlice(
        num_nodes, keys.size, True, bounds, 0, indptr, targets, weights_of(keys), storage=memory_of("gpu")
    )
    return partition_slice(edges, load_policy("oec"), MPI.COMM_SELF, device="gpu")


def write_graph(path: str, name: str) -> None:
    """Write a graph as a graph file, with weights. Its edges are sorted twice, as they are counted first."""
    import h5py

    pieces, num_nodes = pieces_of(name)
    indptr = cp.zeros(num_nodes + 1, cp.int64)
    for keys in both_ways(pieces, num_nodes):
        for first in range(0, keys.size, BATCH):
            indptr[1:] += cp.bincount(keys[first : first + BATCH] >> 32, minlength=num_nodes)
    cp.cumsum(indptr, out=indptr)
    with h5py.File(path, "w") as file:
        file["indptr"] = indptr.get()
        indices, data = (
            file.create_dataset(name, int(indptr[-1]), to) for name, to in (("indices", "u4"), ("data", "u1"))
        )
        written = 0
        for keys in both_ways(pieces, num_nodes):
            for first in range(0, keys.size, BATCH):
                piece = keys[first : first + BATCH]
                indices[written : written + piece.size] = (piece & 0xFFFFFFFF).astype(cp.uint32).get()
                data[written : written + piece.size] = weights_of(piece).get()
                written += piece.size
        file.attrs["symmetric"] = True
