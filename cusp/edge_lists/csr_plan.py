"""How the nodes are divided into buckets and the buckets among ranks, and how records are packed."""

from dataclasses import dataclass

import numpy as np

from cusp.errors import GraphFileError
from cusp.runtime.storage import host_bytes

KEY_BITS = 64
CELL_BITS = 16  # edges are counted per cell: 2**16 equal ranges of sources
MAX_NODES = 2**40  # at this size the sources of a cell and a target still fit into one key
BUCKET_LOAD = 2**16  # records and nodes of a bucket: its sort stays in the L2 cache
MAX_BUCKETS = 1024  # a scatter into more has too many open cache lines


def check_num_nodes(num_nodes: int, where: str) -> None:
    """Refuse so many nodes that their offsets alone would fill the memory of this computer."""
    memory = host_bytes()
    if 8 * num_nodes > min(memory, 8 * MAX_NODES):
        raise GraphFileError(
            f"{where}: {num_nodes:,} nodes (ids to {num_nodes - 1:,}) need offsets of {8 * num_nodes / 1e9:,.0f} GB, "
            f"more than the {memory / 1e9:,.0f} GB of this computer; number the nodes from 0 without gaps"
        )


@dataclass(frozen=True)
class SortOptions:
    """What becomes of the edges, see :class:`cusp.edge_lists.csr_builder.CsrBuilder`, and in how much memory.

    ``capacity`` is the number of records that one thread may sort at once.
    """

    symmetrize: bool
    drop_loops: bool
    dedup: bool
    weight_dtype: np.dtype | None
    capacity: int


@dataclass(frozen=True)
class Plan:
    """Division of nodes ``[0, num_nodes)`` into B buckets; bucket b begins at node ``first_node[b]``.

    Attributes
    ----------
    options : SortOptions
    num_nodes : int
    cell_shift : int
        A source's cell is ``source >> cell_shift``.
    bucket_of_cell : (cells,) uint16
    first_node : (B + 1,) int64
        Ends with ``num_nodes``.
    first_bucket : (ranks + 1,) int64
        Rank r sorts buckets ``first_bucket[r]`` to ``first_bucket[r + 1]``.
    target_bits, weight_bits, key_bits : int
        Layout of a key, see :mod:`cusp.edge_lists.csr_kernels`, and the bits that it uses.
    code_min, code_bits : int
        What is subtracted from the code of every weight, and the bits that are left.
    separate : bool
        Whether the codes need a separate array.
    """

    options: SortOptions
    num_nodes: int
    cell_shift: int
    bucket_of_cell: np.ndarray
    first_node: np.ndarray
    first_bucket: np.ndarray
    target_bits: int
    weight_bits: int
    key_bits: int
    code_min: int
    code_bits: int
    separate: bool

    @property
    def bits(self) -> tuple[np.uint64, np.uint64]:
        """(target_bits, weight_bits) as the kernels take them."""
        return np.uint64(self.target_bits), np.uint64(self.weight_bits)

    @property
    def num_buckets(self) -> int:
        """Buckets of all ranks."""
        return self.first_node.size - 1


def cell_shift(num_nodes: int) -> int:
    """Shift that maps the nodes to at most ``2**CELL_BITS`` cells."""
    return max(0, max(0, num_nodes - 1).bit_length() - CELL_BITS)


def num_cells(num_nodes: int) -> int:
    """Cells of a graph with this many nodes."""
    return -(-num_nodes >> cell_shift(num_nodes))


def make_plan(
    options: SortOptions, num_nodes: int, records: np.ndarray, num_ranks: int, codes: tuple[int, int] | None
) -> Plan:
    """Divide the nodes so that all ranks, and all buckets, get about the same number of records and nodes.

    Parameters
    ----------
    records : (cells,) int64
        Number of records of each cell, over all ranks.
    codes : (int, int) or None
        Smallest and largest code of a weight; None without weights.
    """
    shift = cell_shift(num_nodes)
    cell_node = np.arange(records.size, dtype=np.int64) << shift
    load = records + np.diff(np.append(cell_node, num_nodes))
    before = np.cumsum(load) - load
    total = int(load.sum())
    target_bits = max(1, max(0, num_nodes - 1).bit_length())
    rank = (before + load // 2) * num_ranks // max(1, total)
    share = max(total // MAX_BUCKETS, min(BUCKET_LOAD, options.capacity), 1)
    block = before // share
    span = cell_node >> (KEY_BITS - target_bits)
    starts = np.ones(records.size, bool)
    starts[1:] = (np.diff(rank) != 0) | (np.diff(block) != 0) | (np.diff(span) != 0)
    first_node = np.append(cell_node[starts], num_nodes)
    source_bits = int(np.diff(first_node).max(initial=1) - 1).bit_length()
    code_min, code_max = codes or (0, 0)
    code_bits = (code_max - code_min).bit_length()
    separate = source_bits + target_bits + code_bits > KEY_BITS
    weight_bits = 0 if separate else code_bits
    return Plan(
        options, num_nodes, shift,
        bucket_of_cell=(np.cumsum(starts) - 1).astype(np.uint16),
        first_node=first_node,
        first_bucket=np.searchsorted(rank[starts], np.arange(num_ranks + 1)),
        target_bits=target_bits, weight_bits=weight_bits, key_bits=source_bits + target_bits + weight_bits,
        code_min=code_min, code_bits=code_bits, separate=separate,
    )  # fmt: skip
