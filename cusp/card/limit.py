"""How much of its card a rank may use for a graph."""

from typing import TYPE_CHECKING

from cusp.card.interfaces import Card
from cusp.errors import together
from cusp.input.graph_file import GraphHeader
from cusp.runtime.devices import backend

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

NODE_BYTES = 64  # for each proxy: ids, offsets, degrees, and what a traversal keeps; at most all nodes are on a rank


def limit_card(header: GraphHeader, device: str, limit: int | None, comm: "Intracomm") -> None:
    """Prepare the GPU of this rank, if it has one, for a graph; ``limit`` as ``--memory-limit`` says. Collective.

    Raises
    ------
    CardError
        On every rank: the limit is more than the card has.
    """
    card = backend(Card, device) if device == "gpu" else None
    places = comm.allgather(card and card.place())
    with together(comm):
        if card:
            card.set_limit(limit, bytes_needed(header, comm.size), places.count(card.place()))


def bytes_needed(header: GraphHeader, ranks: int) -> int:
    """Bytes of the card that a rank needs while a graph is partitioned: what it reads, receives and makes."""
    weight = header.weight_dtype.itemsize if header.weight_dtype else 0
    for_edge = (header.index_dtype.itemsize + weight) * (1 + (ranks > 1)) + 4 + weight
    return header.num_edges * for_edge // ranks + header.num_nodes * NODE_BYTES
