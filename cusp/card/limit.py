"""How much of its card a rank may use for a graph."""

import importlib
import socket

from cusp.errors import Intracomm, together
from cusp.input.graph_file import GraphHeader

NODE_BYTES = 64  # for each proxy: ids, offsets, degrees, and what a traversal keeps; at most all nodes are on a rank


def limit_card(header: GraphHeader, device: str, limit: int | None, comm: Intracomm) -> None:
    """Prepare the GPU of this rank, if it has one, for a graph; ``limit`` as ``--memory-limit`` says. Collective.

    Raises
    ------
    CardError
        On every rank: the limit is more than the card has.
    """
    card = None if device == "cpu" else importlib.import_module("cusp.card.card_gpu")
    place = (socket.gethostname(), card and card.bus())
    places = comm.allgather(place)
    with together(comm):
        if card:
            card.set_limit(limit, bytes_needed(header, comm.size), places.count(place))


def edge_bytes(header: GraphHeader, ranks: int) -> int:
    """Bytes of the edges of a rank, once they are partitioned."""
    return header.num_edges * (4 + header.weight_bytes) // ranks


def resident_bytes(header: GraphHeader, ranks: int, limit: int) -> int:
    """How many of them stay on the card under a limit, at least."""
    return min(max(limit - header.num_nodes * NODE_BYTES, 0), edge_bytes(header, ranks))


def bytes_needed(header: GraphHeader, ranks: int) -> int:
    """Bytes of the card that a rank needs while a graph is partitioned: what it reads, receives and makes."""
    read = header.num_edges * (header.index_dtype.itemsize + header.weight_bytes) // ranks
    return read * (1 + (ranks > 1)) + edge_bytes(header, ranks) + header.num_nodes * NODE_BYTES
