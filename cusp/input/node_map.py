"""A rank for each node, read from a file: any other partitioner can decide where masters are."""

import itertools

import numpy as np

from cusp.errors import PolicyError
from cusp.input.edge_slice import EdgeSlice
from cusp.input.hdf5 import check_regular, explained

MOST = 2**31 - 1


def read_node_map(path: str, edges: EdgeSlice) -> np.ndarray:
    """Ranks, int32, of the nodes of this slice.

    Parameters
    ----------
    path : str
        Text with one number per line (as METIS and KaHIP write it), or a NumPy file of N integers.

    Raises
    ------
    PolicyError
        The file cannot be read, or does not have one rank, a whole number, per node.
    """
    first, last = edges.first_node, edges.first_node + edges.indptr.size - 1
    with explained(f"--node-map {path}", "a rank", PolicyError):
        check_regular(path, PolicyError)
        count, part = (_from_array if path.endswith(".npy") else _from_text)(path, first, last)
    if count != edges.num_nodes:
        raise PolicyError(f"--node-map {path}: has {count:,} ranks, but the graph has {edges.num_nodes:,} nodes")
    return part


def _from_array(path: str, first: int, last: int) -> tuple[int, np.ndarray]:
    """Number of entries, and those from ``first`` to ``last`` (exclusive)."""
    ranks = np.load(path, mmap_mode="r", allow_pickle=False)
    if ranks.ndim != 1 or ranks.dtype.kind not in "iu":
        raise PolicyError(f"--node-map {path}: has {ranks.ndim} dimension(s) of {ranks.dtype}, expected 1 of integers")
    part = np.array(ranks[first:last])
    wrong = np.flatnonzero((part < 0) | (part > MOST))
    if wrong.size:
        raise PolicyError(f"--node-map {path}: entry {first + wrong[0]:,} is {part[wrong[0]]}, which is not a rank")
    return ranks.size, part.astype(np.int32)


def _from_text(path: str, first: int, last: int) -> tuple[int, np.ndarray]:
    """The same from lines with one number each."""
    with open(path) as file:
        lines = enumerate(itertools.islice(file, first, last), first + 1)
        part = np.fromiter((_rank(path, number, line) for number, line in lines), np.int32)
        return first + part.size + sum(1 for _ in file), part


def _rank(path: str, number: int, line: str) -> int:
    word = line.strip()
    if word.isdecimal() and len(word) < 11 and int(word) <= MOST:
        return int(word)
    raise PolicyError(f"--node-map {path}, line {number:,}: expected the rank of a node, found {word[:80]!r}")
