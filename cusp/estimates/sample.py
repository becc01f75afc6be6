"""A small sample of a graph file: blocks of rows from everywhere in it, for estimates before the graph is read."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import GraphFileError
from cusp.input.checksum import as_bits
from cusp.input.graph_file import GraphHeader, read_direct
from cusp.input.hdf5 import explained, open_hdf5
from cusp.input.read_cpu import first_descent
from cusp.input.split import first_node_of

if TYPE_CHECKING:
    import h5py

MOST_BLOCKS, LEAST_BLOCKS, BLOCK_BYTES = 256, 16, 4096
LONGEST = 4  # a block may take this many times its share of the limit


@dataclass(frozen=True)
class SampledRows:
    """Some rows of a CSR: the ends of row i are ``ends[indptr[i] : indptr[i + 1]]``."""

    indptr: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True)
class Block:
    """Consecutive nodes with their edges, drawn from one of many equally long ranges of nodes.

    Attributes
    ----------
    first_node : int
    out : SampledRows
        Out-edges.
    into : SampledRows or None
        In-edges, if the file has them: in its transpose, or because the graph is symmetric.
    nodes, edges : float
        How many nodes of the range each of its nodes represents; the same of edges.
    """

    first_node: int
    out: SampledRows
    into: SampledRows | None
    nodes: float
    edges: float


@dataclass(frozen=True)
class Sample:
    """Blocks, in the order of their nodes.

    Attributes
    ----------
    header : GraphHeader
    blocks : list of Block
    offsets : (N + 1,) int64 or None
        All of ``indptr``, if that takes at most half the limit.
    num_bytes : int
        Bytes read.
    """

    header: GraphHeader
    blocks: list[Block]
    offsets: np.ndarray | None
    num_bytes: int

    @property
    def num_edges(self) -> int:
        """Edges in all blocks."""
        return sum(block.out.ends.size for block in self.blocks)

    def part_bounds(self, num_parts: int, split: str, shares: Sequence[int] = ()) -> np.ndarray:
        """(num_parts + 1,) int64: nodes that each of ``num_parts`` ranks would read. Looks up some 20 offsets each."""
        header = self.header
        with explained(header.path, "/indptr"), open_hdf5(header.path) as file:
            prefix_at = (file["indptr"] if self.offsets is None else self.offsets).__getitem__
            graph = (prefix_at, header.num_nodes, header.num_edges)
            firsts = [first_node_of(*graph, part, num_parts, split, shares) for part in range(num_parts)]
        return np.array([*firsts, header.num_nodes], np.int64)


def read_sample(header: GraphHeader, limit: int, seed: int = 1) -> Sample:
    """Read at most ``limit`` bytes of a graph file (and 2 kB more), the same ones for the same seed.

    A block has as many rows as fill its share on average. One that meets a hub may take a few times its
    share, while anything is left, and ends with a part of the hub's row.

    Raises
    ------
    GraphFileError
        The file cannot be read, or a target is not a node.
    """
    with open_hdf5(header.path) as file:
        return _Reader(file, header, limit).sample(seed)


class _Reader:
    """Reads the file, and keeps count of what is left of the limit."""

    def __init__(self, file: "h5py.File", header: GraphHeader, limit: int) -> None:
        self.file, self.header, self.limit, self.left = file, header, limit, limit

    def sample(self, seed: int) -> Sample:
        header, random = self.header, np.random.default_rng(seed)
        groups = ["", "csc/"] if header.has_transpose and not header.symmetric else [""]
        offsets = None
        if 8 * (header.num_nodes + 1) <= self.limit // 2:
            offsets = self.indptr("", 0, header.num_nodes + 1)
        count = min(header.num_nodes, MOST_BLOCKS, max(LEAST_BLOCKS, self.left // BLOCK_BYTES))
        bounds = header.num_nodes * np.arange(count + 1) // count
        row = len(groups) * (8 + header.index_dtype.itemsize * header.num_edges / header.num_nodes)
        share = self.left / count
        blocks = []
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
            rows = min(last - first, max(1, int(0.8 * share / row)))
            start = int(random.integers(first, last - rows + 1))
            read = [self.rows(group, start, rows, offsets if not group else None, share) for group in groups]
            if any(part is None for part in read):
                continue
            out, into = read[0], (read[0] if header.symmetric else read[-1] if len(read) > 1 else None)
            assert out is not None
            edges = self.prefix(last, offsets) - self.prefix(first, offsets)
            stands_for = (last - first) / (out.indptr.size - 1), edges / max(1, out.ends.size)
            blocks.append(Block(start, out, into, *stands_for))
        return Sample(header, blocks, offsets, self.limit - self.left)

    def rows(self, group: str, start: int, rows: int, offsets: np.ndarray | None, share: float) -> SampledRows | None:
        """The rows that fit, and as much of the next as fits; None if nothing is left of the limit."""
        if offsets is None:
            rows = min(rows, self.left // 16)  # a row takes two offsets at least
            if rows < 1:
                return None
            indptr = self.indptr(group, start, rows + 1)
        else:
            indptr = offsets[start : start + rows + 1]
        width = self.file[f"{group}indices"].dtype.itemsize
        most = int(min(LONGEST * share, self.left)) // width
        begin = int(indptr[0])
        fit = min(bisect.bisect_left(indptr.tolist(), begin + most, 1), rows)  # the last of them may be cut
        end = int(indptr[fit])
        if most <= 0 and end > begin:
            return None
        ends = as_bits(self.read(f"{group}indices", begin, min(end - begin, most)))
        most_id = min(self.header.num_nodes - 1, np.iinfo(self.file[f"{group}indices"].dtype).max)
        if ends.size and int(ends.max()) > most_id:
            raise GraphFileError(
                f"{self.header.path}: /{group}indices has the entry {int(ends.max()):,}, but the graph has the nodes 0 "
                f"to {self.header.num_nodes - 1:,}"
            )
        return SampledRows(np.minimum(indptr[: fit + 1] - begin, ends.size), ends)

    def prefix(self, node: int, offsets: np.ndarray | None) -> int:
        """Edges before a node."""
        if offsets is not None:
            return int(offsets[node])
        entry = np.empty(1, np.int64)
        read_direct(self.file["indptr"], entry, node)
        return int(entry[0])

    def indptr(self, group: str, begin: int, size: int) -> np.ndarray:
        """Offsets, which rise from 0 to the number of edges."""
        offsets = self.read(f"{group}indptr", begin, size).astype(np.int64)
        wrong = first_descent(offsets, self.header.num_edges)
        if wrong >= 0:
            raise GraphFileError(
                f"{self.header.path}: /{group}indptr is {offsets[wrong]:,} at entry {begin + wrong:,}; it must rise "
                f"from 0 to the number of edges, {self.header.num_edges:,}"
            )
        return offsets

    def read(self, name: str, begin: int, size: int) -> np.ndarray:
        """Entries of a dataset; they count towards the limit."""
        dataset = self.file[name]
        self.left -= size * dataset.dtype.itemsize
        values = np.empty(size, dataset.dtype.newbyteorder("="))
        read_direct(dataset, values, begin)
        return values
