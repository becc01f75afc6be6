"""Names that ranks have read become numbers of nodes, the same on any number of ranks: those of the sorted names.

Sorted, because then the numbers depend on the names alone, ranks can divide the names among them and each merge a
range, and a name is found in the graph file by bisecting, without a table in memory.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from cusp.names.names import SortedNames
from cusp.names.packed import OFFSETS, TEXT, Packed, sort_names
from cusp.runtime.exchange import all_to_all, pieces
from cusp.runtime.mpi import MPI

if TYPE_CHECKING:
    from cusp.edge_lists.csr_builder import CsrBuilder
    from cusp.output.dataset_writer import DatasetWriter

SAMPLES = 64  # names that each rank contributes, for each rank, to the choice of the ranges


@dataclass(frozen=True)
class NameSlab:
    """The names of consecutive nodes; in rank order the slabs are the names of all nodes.

    Attributes
    ----------
    rank : int
        Of the slab.
    first_node, first_byte : int
        Nodes, and bytes of names, on the ranks before.
    num_nodes, num_bytes : int
        Of all ranks.
    names : Packed
    whole : bool
        Names are whole numbers, and given as such.
    note : str
        Why ids were taken as names, in a line; empty if there is nothing to say.
    """

    rank: int
    first_node: int
    first_byte: int
    num_nodes: int
    num_bytes: int
    names: Packed
    whole: bool = False
    note: str = ""

    def shapes(self) -> dict[str, tuple[int, np.dtype]]:
        """The datasets that hold the names of all nodes in a file."""
        return {OFFSETS: (self.num_nodes + 1, np.dtype(np.int64)), TEXT: (self.num_bytes, np.dtype(np.uint8))}

    def write(self, writer: "DatasetWriter") -> None:
        """Write the names of this slab into those datasets."""
        first = min(self.rank, 1)  # the 0 before all names is for rank 0 to write
        writer.write(OFFSETS, self.first_node + first, self.first_byte + self.names.offsets[first:])
        writer.write(TEXT, self.first_byte, self.names.text)


def slab_of(names: Packed, comm: MPI.Intracomm) -> NameSlab:
    """The slab of a rank that has these names. Collective."""
    sizes = comm.allgather((len(names), names.text.size))
    nodes, text = ([0, *accumulate(column)] for column in zip(*sizes))
    return NameSlab(comm.rank, nodes[comm.rank], text[comm.rank], nodes[-1], text[-1], names)


def number_names(known: Packed, comm: MPI.Intracomm) -> tuple[np.ndarray, NameSlab]:
    """Number the names of all ranks in the order of their bytes. Collective.

    Every rank sorts its own, gives each range to the rank that merges it, and gets back the numbers: a sample sort
    (Frazer and McKellar, JACM 1970).

    Parameters
    ----------
    known : Packed
        Names of this rank, all different; other ranks may have the same.

    Returns
    -------
    numbers : (known,) int64
    slab : NameSlab
        The names that this rank has merged.
    """
    order, _ = sort_names(known)
    mine = known.take(order)
    ends = _range_ends(mine, comm)
    lengths = all_to_all(comm, pieces(np.diff(mine.offsets), ends))
    texts = all_to_all(comm, pieces(mine.text, mine.offsets[ends]))
    merged = Packed.of_parts(lengths, texts)
    merged_order, first = sort_names(merged)
    slab = slab_of(merged.take(merged_order[first]), comm)
    answers = np.empty(len(merged), np.int64)
    answers[merged_order] = slab.first_node + np.cumsum(first) - 1
    back = all_to_all(comm, pieces(answers, np.cumsum([part.size for part in lengths])))
    numbers = np.empty(len(known), np.int64)
    numbers[order] = np.concatenate(back)
    return numbers, slab


def _range_ends(mine: Packed, comm: MPI.Intracomm) -> np.ndarray:
    """(ranks,) int64: where, in the sorted names of this rank, the range of each rank ends. Collective."""
    places = np.linspace(0, len(mine), min(len(mine), SAMPLES * comm.size), endpoint=False).astype(np.int64)
    samples = sorted(name for names in comm.allgather([mine[place] for place in places]) for name in names)
    cuts = [samples[len(samples) * rank // comm.size] for rank in range(1, comm.size)] if samples else []
    ends = [bisect_left(range(len(mine)), cut, key=mine.__getitem__) for cut in cuts]
    return np.array([*ends, *[len(mine)] * (comm.size - len(ends))], np.int64)


def name_ids(builder: "CsrBuilder", comm: MPI.Intracomm, ids: str) -> NameSlab | None:
    """Take the ids in a builder as names, if that is right; what the nodes are then called. Collective.

    Parameters
    ----------
    ids : str
        ``names``: in any case. ``auto``: if one is negative, or fewer than half of the ids 0, 1 ... up to the largest
        occur. ``numbers``: never.
    """
    lowest, highest = builder.id_range()
    mine = None if ids == "numbers" else builder.distinct_ids(always=ids == "names")
    if mine is None:
        return None
    import pyarrow

    numbers, slab = number_names(Packed.of_arrow(pyarrow.array(mine).cast(pyarrow.large_string())), comm)
    builder.renumber(numbers, slab.num_nodes, mine)
    occur = "some are negative" if lowest < 0 else f"{slab.num_nodes:,} of {highest + 1:,} occur"
    note = f"ids {lowest} ... {highest}: {occur}, so they are taken as names; --ids numbers keeps them as numbers"
    return replace(slab, whole=True, note=note if ids == "auto" else "")


def names_of(slab: NameSlab, comm: MPI.Intracomm) -> SortedNames:
    """The names of all nodes on every rank. Collective."""
    lengths = all_to_all(comm, [np.diff(slab.names.offsets)] * comm.size)
    return SortedNames(Packed.of_parts(lengths, all_to_all(comm, [slab.names.text] * comm.size)), slab.whole)
