"""Whole rows at the masters of nodes, in an order that no partition changes: for random choices, numbers of edges."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp import Partition
from cusp.apps.operators.interfaces import kept_with
from cusp.apps.operators.samples.interfaces import Rows
from cusp.apps.operators.samples.rows_cpu import add_shares, find_places, order_rows
from cusp.apps.operators.undirected_cpu import gather_rows
from cusp.apps.shared.graphs.undirected import exchange_rows, nodes_of, nodes_of_rank
from cusp.errors import GraphFileError, OptionError, together
from cusp.kernels.arrays import offsets_of, total
from cusp.kernels.interfaces import Build
from cusp.lid_map import LidMap
from cusp.output.gid_order import at_gids, in_gid_order
from cusp.partition import Csc, transpose
from cusp.runtime.devices import backend, device_of, move
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI

UNIFORM, WEIGHT, TIME = "uniform", "weight", "time"  # what decides about an edge: nothing, its weight as share or time
ALL_BITS = 62  # of ends that are global ids only


@dataclass(frozen=True)
class WholeRows:
    """The out-edges, or in-edges, of this rank's masters, whichever ranks own them.

    A row is sorted by the global ids of the other ends, and those of parallel edges by weight; or by time, then by
    global id; at last by number. So a place in a row means the same edge for any policy on any ranks.

    Attributes
    ----------
    rows : Rows
        On the device of the rank.
    weights : (edges,) int64 or float64, or None
        Of the edges, if they decide.
    numbers : (edges,) int64, or None
        Of the edges, if they are known.
    num_nodes, num_masters, rank : int
    bits : int
        An *address* is a global id in so many bits and, above them, the rank of its master.
    lid_map : LidMap
    """

    rows: Rows
    weights: Any
    numbers: Any
    num_nodes: int
    num_masters: int
    rank: int
    bits: int
    lid_map: LidMap

    @property
    def device(self) -> str:
        """That of this rank."""
        return device_of(self.rows.ends)

    @property
    def columns(self) -> list[Any]:
        """What is known of edges: addresses of the other ends, perhaps weights and numbers."""
        return [values for values in (self.rows.ends, self.weights, self.numbers) if values is not None]

    def gids(self, addresses: Any) -> Any:
        """Global ids."""
        return addresses & ((1 << self.bits) - 1)

    def addresses(self, gids: Any, comm: MPI.Intracomm) -> Any:
        """(n,) int64: the addresses of nodes; each rank asks for those it needs. Collective.

        Parameters
        ----------
        gids : (n,) int64, on the device

        Raises
        ------
        OptionError
            On every rank: there is no such node.
        """
        with together(comm):
            wrong = (gids < 0) | (gids >= self.num_nodes)
            if total(wrong):
                gid = int(gids[int(wrong.argmax())])
                raise OptionError(f"node {gid}: the graph has the nodes 0 to {self.num_nodes - 1}")
        build, addresses = backend(Build, self.device), gids.copy()
        asked = [self.lid_map.lids(some) for some in build.all_to_all(comm, [gids] * comm.size)]
        known = build.all_to_all(comm, [(lids >= 0) & (lids < self.num_masters) for lids in asked])
        for rank, here in enumerate(known):
            addresses[here] |= rank << self.bits
        return addresses


def whole_rows(
    part: Partition, comm: MPI.Intracomm, by: str = UNIFORM, incoming: bool = False, numbers: np.ndarray | None = None
) -> WholeRows:
    """The whole rows of this rank's masters; they are kept with the partition. Collective.

    They are made on the host. Each edge takes 8 bytes, and up to 24 if weights decide; 8 more with numbers.

    Parameters
    ----------
    by : {'uniform', 'weight', 'time'}
        What the weights of edges are for; edges of weight 0 are left out of those by weight.
    incoming : bool
        In-edges instead of out-edges.
    numbers : (edges,) int64, optional
        What :func:`~cusp.apps.shared.graphs.whole_rows.edge_numbers` returned.

    Raises
    ------
    OptionError
        On every rank: edges have no weights, and they are to decide.
    GraphFileError
        On every rank: a weight that decides is negative, infinite or no number; or a time is no number.
    """
    name = "whole rows", by, incoming, numbers is not None
    return kept_with(part, name, lambda: _gather(part, comm, by, incoming, numbers))


def _gather(part: Partition, comm: MPI.Intracomm, by: str, incoming: bool, numbers: np.ndarray | None) -> WholeRows:
    host, bits, marks = part.on("cpu"), max(part.num_nodes - 1, 1).bit_length(), None
    csc = Csc(host.offsets, host.targets, host.weights)
    if incoming and numbers is None:
        csc = host.csc or transpose(host)
    elif incoming:  # both alike, also where parallel edges come in another order in a CSC from a GPU
        csc, numbers = transpose(host), transpose(replace(host, weights=numbers)).weights
    offsets, others = csc.offsets, csc.sources
    if by != UNIFORM:
        with together(comm):
            marks = as_marks(_checked(csc.weights, by))
    if marks is not None and by == WEIGHT:
        kept = marks > 0
        offsets, others, marks = offsets_of(kept)[offsets], others[kept], marks[kept]
        numbers = None if numbers is None else numbers[kept]

    def gather(values: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        arrived = exchange_rows(host, nodes_of(host), offsets, others, values, comm)
        for pieces in arrived:
            pieces.nodes[:] = pieces.nodes // part.num_nodes << bits | pieces.nodes % part.num_nodes
        return gather_rows(arrived, part.num_masters, np.int64, np.int64, values is not None)

    *_, known = gather(numbers) if numbers is not None else (np.empty(0, np.int64),)
    offsets, ends, marks = gather(marks)
    order_rows(offsets, ends, marks, known, bits, by == TIME)
    weights = None
    if csc.weights is not None and by != UNIFORM:
        weights = marks if kind_of(csc.weights.dtype) == np.int64 else _turned(marks).view(np.float64)
    if weights is not None and by == WEIGHT:
        marks = np.empty_like(marks)
        add_shares(offsets, weights, marks)
    rows = Rows(*(move(array, part.device) for array in (offsets, ends, marks)))
    rest = part.num_nodes, part.num_masters, part.rank, bits, part.lid_map
    weights, numbers = (move(values, part.device) for values in (weights, None if numbers is None else known))
    return WholeRows(rows, weights, numbers, *rest)


def _checked(weights: np.ndarray | None, by: str) -> np.ndarray:
    """Weights as int64 or float64.

    Raises
    ------
    OptionError
        There are none.
    GraphFileError
        They cannot be what they are for.
    """
    if weights is None:
        raise OptionError(f"edges have no weights, but are to be drawn by {by}")
    values = weights.astype(kind_of(weights.dtype))
    wrong = np.isnan(values) if by == TIME else ~((values >= 0) & (values < np.inf))
    if wrong.any():
        what = "a time is a number" if by == TIME else "edges are drawn by weights from 0 on that are finite"
        raise GraphFileError(f"an edge weighs {values[wrong.argmax()]:g}: {what}")
    return values


def kind_of(dtype: np.dtype) -> np.dtype:
    """int64 or, of floats and uint64, float64: in which weights are kept."""
    return np.result_type(dtype, np.int64)


def as_marks(values: np.ndarray) -> np.ndarray:
    """(n,) int64 in the same order as some numbers (n,) of that type or float64: the bits of floats, turned below 0."""
    return values if values.dtype == np.int64 else _turned((values + 0.0).view(np.int64))  # without -0


def _turned(bits: np.ndarray) -> np.ndarray:
    return bits ^ (bits >> 63 & np.int64(2**63 - 1))


def edge_numbers(part: Partition, comm: MPI.Intracomm) -> np.ndarray:
    """(edges,) int64, on the host: the numbers of this rank's edges; they are kept with the partition. Collective.

    The number of an edge is its place among all edges, sorted by source, target and weight: in graph files with such
    rows, as ours have, that in ``indices``. Parallel edges of the same weight, or without weights, have their places in
    any order. The master of a node has its whole row sorted, and tells each owner of an edge where that is: while it
    does, an edge takes up to 40 bytes there.
    """
    return kept_with(part, "edge numbers", lambda: _numbers(part.on("cpu"), comm))


def _numbers(host: Partition, comm: MPI.Intracomm) -> np.ndarray:
    weights = host.weights
    marks = None if weights is None else as_marks(weights.astype(kind_of(weights.dtype)))
    arrived = exchange_rows(host, nodes_of(host), host.offsets, host.targets, marks, comm)
    for rows in arrived:
        rows.nodes[:] %= host.num_nodes
    whole = gather_rows([*arrived], host.num_masters, np.int64, np.int64, marks is not None)
    order_rows(*whole, np.empty(0, np.int64), ALL_BITS, by_marks=False)
    _, degrees = in_gid_order(host, host.degrees, comm)
    before = np.cumsum(degrees) - degrees + sum(comm.allgather(int(degrees.sum()))[: comm.rank])
    firsts = at_gids(before, host.gids[: host.num_masters], host.num_nodes, comm)  # how many edges others have first
    numbers = np.empty(host.num_local_edges, np.int64)
    for rank, found in enumerate(all_to_all(comm, find_places(arrived, *whole, firsts))):
        first, last = nodes_of_rank(host, rank)
        numbers[host.offsets[first] : host.offsets[last]] = found
    return numbers
