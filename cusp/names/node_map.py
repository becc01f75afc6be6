"""A rank for each node, read from a file: any other partitioner can decide where masters are."""

import itertools
import re

import numpy as np

from cusp.errors import PolicyError
from cusp.input.edge_slice import EdgeSlice
from cusp.input.hdf5 import explained
from cusp.names.graph_names import has_names, mapped_names
from cusp.names.names import Names
from cusp.runtime.files import check_regular, open_text

MOST = 2**31 - 1
NAME_AND_RANK = re.compile(r"(.*[^\s,])[\s,]+(\d{1,10})")


def read_node_map(path: str, edges: EdgeSlice) -> np.ndarray:
    """Ranks, int32, of the nodes of this slice.

    Parameters
    ----------
    path : str
        Text with one number per line (as METIS and KaHIP write it), or a NumPy file of N integers; if nodes have names,
        also text with a name and a rank per line, in any order.

    Raises
    ------
    PolicyError
        The file cannot be read, or does not have one rank, a whole number, per node.
    OptionError
        It has a name that no node has.
    """
    first, last = edges.first_node, edges.first_node + edges.indptr.size - 1
    with explained(f"--node-map {path}", "a rank", PolicyError):
        check_regular(path, PolicyError)
        if not path.endswith(".npy") and _has_two_words(path):
            names = edges.names
            if isinstance(names, str):
                names = mapped_names(names, edges.num_nodes) if has_names(names) else None
            if names is not None:
                return _by_name(path, names)[first:last]
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
    with open_text(path, PolicyError) as file:
        lines = enumerate(itertools.islice(file, first, last), first + 1)
        part = np.fromiter((_rank(path, number, line) for number, line in lines), np.int32)
        return first + part.size + sum(1 for _ in file), part


def _has_two_words(path: str) -> bool:
    """Whether the first line is more than a number."""
    with open_text(path, PolicyError) as file:
        return NAME_AND_RANK.fullmatch(next(file, "").strip()) is not None


def _by_name(path: str, names: Names) -> np.ndarray:
    """(nodes,) int32, from lines with a name and a rank."""
    ranks = np.full(len(names), -1, np.int32)
    with open_text(path, PolicyError) as file:
        for number, line in enumerate(file, 1):
            place, found = f"--node-map {path}, line {number:,}", NAME_AND_RANK.fullmatch(line.strip())
            if found is None or int(found[2]) > MOST:
                raise PolicyError(f"{place}: expected the name of a node and its rank, found {line.strip()[:80]!r}")
            gid = names.gid(found[1], f"{place}:")
            if ranks[gid] >= 0:
                raise PolicyError(f"{place}: {found[1]} has a rank already, {ranks[gid]}")
            ranks[gid] = int(found[2])
    missing = np.flatnonzero(ranks < 0)
    if missing.size:
        raise PolicyError(f"--node-map {path}: no rank for {names[int(missing[0])]}, and {missing.size - 1:,} others")
    return ranks


def _rank(path: str, number: int, line: str) -> int:
    word = line.strip()
    if word.isdecimal() and len(word) < 11 and int(word) <= MOST:
        return int(word)
    raise PolicyError(f"--node-map {path}, line {number:,}: expected the rank of a node, found {word[:80]!r}")
