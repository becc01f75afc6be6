"""Samples of neighbours, hop by hop, on all ranks: see apps/sample.py."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp import Partition
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.operators.samples.interfaces import Samples
from cusp.apps.shared.graphs.whole_rows import TIME, UNIFORM, WEIGHT, as_marks, edge_numbers, whole_rows
from cusp.apps.shared.splitmix64 import key_of, splitmix64
from cusp.errors import OptionError, shortened, together
from cusp.kernels.arrays import by_rank, joined, offsets_of, take
from cusp.kernels.bits import GOLDEN, mix
from cusp.kernels.interfaces import Build
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI

MOST = 1 << 20  # edges of a node that are drawn


@dataclass(frozen=True)
class Sample:
    """Nodes around the seeds of a batch, and edges between them.

    Its arrays are on the device of the rank; they are parts of those of all batches that were drawn by the same call.

    Attributes
    ----------
    node : (nodes,) int64
        Global ids, each once: the seeds, then what the first hop has found, in the order of its edges, and so on.
    row, col : (edges,) int64
        Places in ``node``: of the end of an edge that was found, and of the end that it was drawn for.
    weight : (edges,) int64 or float64, or None
        Of the edges, if they were drawn by weight or time.
    edge : (edges,) int64, or None
        Their numbers, if these were asked for.
    num_nodes : list of int
        Seeds, and new nodes of each hop.
    num_edges : list of int
        Of each hop.
    """

    node: Any
    row: Any
    col: Any
    weight: Any
    edge: Any
    num_nodes: list[int]
    num_edges: list[int]


class Sampler:
    """Draws edges of nodes, and of their other ends, hop by hop (Hamilton, Ying and Leskovec, NeurIPS 2017).

    What is drawn for a node depends on the seed, the number of the batch and the node alone.

    Parameters
    ----------
    part, comm
        Those of a :class:`PartitionedGraph`.
    fan_out : list of int
        For each hop, how many edges of a node are drawn; -1: all.
    by : {'uniform', 'weight', 'time'}
        What weights of edges are for: nothing; an edge is as likely as it weighs; or they are times.
    replace : bool
        An edge may be drawn several times; else a node that has no more edges than are wanted gives all of them.
    incoming : bool
        Draw in-edges instead of out-edges.
    numbered : bool
        Tell the numbers of edges: see :func:`~cusp.apps.shared.graphs.whole_rows.edge_numbers`.
    seed : int

    Raises
    ------
    InputError
        On every rank: no such fan-out; edges have no weights, or some that cannot be what they are for.

    Examples
    --------
    >>> from cusp import Sampler, partition_graph
    >>> graph = partition_graph(([0, 0, 0, 1, 2], [1, 2, 3, 4, 5]))
    >>> (found,) = Sampler(graph.part, graph.comm, [2, 1], seed=7).sample({0: [0]})
    >>> found.node[found.col], found.node[found.row]
    (array([0, 0, 2]), array([2, 3, 5]))
    """

    def __init__(
        self, part: Partition, comm: MPI.Intracomm, fan_out: Iterable[int], *, by: str = UNIFORM, replace: bool = False,
        incoming: bool = False, numbered: bool = False, seed: int = 1,
    ) -> None:  # fmt: skip
        self.fan_out = [int(each) for each in fan_out]
        with together(comm):
            if not self.fan_out or not all(each == -1 or 1 <= each <= MOST for each in self.fan_out):
                raise OptionError(
                    f"fan_out={self.fan_out}: for each hop, give a number from 1 to {MOST:,}, or -1 for all"
                )
            if by not in (UNIFORM, WEIGHT, TIME):
                raise OptionError(f"by={by!r}: choose one of {UNIFORM}, {WEIGHT}, {TIME}")
        numbers = edge_numbers(part, comm) if numbered else None
        self._whole, self._comm, self._by = whole_rows(part, comm, by, incoming, numbers), comm, by
        self._ops, self._build = backend(Samples, part.device), backend(Build, part.device)
        self._replace, self._key = replace, key_of(seed)

    def sample(self, batches: Mapping[int, Any], until: float | Iterable[float] = math.inf) -> list[Sample]:
        """Draw some batches, of which each rank has others, or none. Collective.

        Parameters
        ----------
        batches : dict of (seeds,) integers
            Global ids of nodes, each once, by the number of the batch.
        until : number, or one for each batch
            By time: only edges up to it count.

        Raises
        ------
        OptionError
            On every rank: there is no such node, or one is twice in a batch; ``until`` is no time.
        """
        whole, count = self._whole, len(batches)
        with together(self._comm):
            given = (nodes if hasattr(nodes, "get") else np.asarray(nodes) for nodes in batches.values())
            seeds = [move(nodes, whole.device).astype(np.int64) for nodes in given]
            limits = self._limits(until, count)
        keys = move(splitmix64(np.array([*batches], np.int64), self._key), whole.device)
        bounds = np.cumsum([0, *(some.size for some in seeds)])
        nodes = whole.addresses(self._joined(seeds), self._comm)
        with together(self._comm):
            self._check_distinct([*batches], nodes, bounds)
        hops, drawn, sizes = [(nodes, bounds)], [], np.diff(bounds)
        for fan_out in self.fan_out:
            nodes, bounds = hops[-1]
            batch = self._rows_of(move(bounds, whole.device))
            offsets, (ends, *more) = self._expand(
                nodes, keys[batch], None if limits is None else limits[batch], fan_out
            )
            bounds = to_host(offsets[move(bounds, whole.device)])
            new, row = self._ops.number(hops, ends, bounds, whole.bits)
            shift = move(sizes - hops[-1][1][1:], whole.device)
            place = self._build.xp.arange(nodes.size) + shift[batch]
            drawn.append(([row, take(place, self._rows_of(offsets)), *more], bounds))
            hops.append(new)
            sizes = sizes + np.diff(new[1])
        node = self._by_batch(hops)
        columns = [self._by_batch([(arrays[k], ends) for arrays, ends in drawn]) for k in range(1 + len(whole.columns))]
        counts = [np.diff([bounds for _, bounds in parts], axis=1).T.tolist() for parts in (hops, drawn)]
        return [
            Sample(whole.gids(nodes), row, col, *self._known(more), num_nodes, num_edges)
            for nodes, row, col, *more, num_nodes, num_edges in zip(node, *columns, *counts)
        ]

    @property
    def nothing(self) -> Sample:
        """A sample without nodes."""
        none, hops = self._joined([]), len(self.fan_out)
        more = [values[:0] for values in self._whole.columns[1:]]
        return Sample(none, none, none, *self._known(more), [0] * (hops + 1), [0] * hops)

    def _check_distinct(self, batches: list[int], seeds: Any, bounds: np.ndarray) -> None:
        """Raise OptionError if a node is twice in a batch."""
        none = seeds[:0], bounds * 0
        (_, distinct), _ = self._ops.number([none], seeds, bounds, self._whole.bits)
        for batch, size, found in zip(batches, np.diff(bounds), np.diff(distinct)):
            if found < size:
                raise OptionError(f"batch {batch}: of its {size:,} nodes only {found:,} are distinct")

    def _limits(self, until: Any, count: int) -> Any:
        """(batches,) int64, on the device: the marks up to which edges count; None if all do."""
        limits = [*until] if isinstance(until, Iterable) else [until] * count
        if len(limits) != count or any(limit != limit for limit in limits):
            raise OptionError(f"until={shortened(until)}: expected a number, or one for each of {count} batches")
        if self._by != TIME:
            if any(limit != math.inf for limit in limits):
                raise OptionError(f"until={shortened(until)}: is for by={TIME!r}")
            return None
        if self._whole.weights.dtype != np.int64:
            return move(as_marks(np.array(limits, np.float64)), self._whole.device)
        lowest, highest = -(2**63), 2**63 - 1
        marks = [math.floor(limit) if lowest <= limit <= highest else highest if limit > 0 else lowest
                 for limit in limits]  # fmt: skip
        return move(np.array(marks, np.int64), self._whole.device)

    def _expand(self, nodes: Any, keys: Any, until: Any, fan_out: int) -> tuple[Any, list[Any]]:
        """Where the edges drawn for each node begin, and what is known of these. Collective."""
        whole, comm, build = self._whole, self._comm, self._build
        order, ends = by_rank(nodes >> whole.bits, comm.size)

        def ask(values: Any) -> list[Any]:
            return build.all_to_all(comm, pieces(values[order], ends))

        gids = whole.gids(nodes)
        asked, lots = ask(gids), self._joined(ask(mix(gids.astype(np.uint64) * GOLDEN + keys)))
        until = None if until is None else self._joined(ask(until))
        lids = whole.lid_map.lids(self._joined(asked))
        sizes, edges, others = self._ops.draw(whole.rows, lids, lots, fan_out, self._replace, until)
        rows = np.cumsum([some.size for some in asked])
        bounds = to_host(offsets_of(sizes)[move(rows, whole.device)])
        answers = [others, *(take(values, edges) for values in whole.columns[1:])]
        sizes = self._joined(build.all_to_all(comm, pieces(sizes, rows)))
        return self._in_order(
            order, sizes, [self._joined(build.all_to_all(comm, pieces(values, bounds))) for values in answers]
        )

    def _in_order(self, order: Any, sizes: Any, arrived: list[Any]) -> tuple[Any, list[Any]]:
        """Offsets of the rows of all nodes that were asked for, and what came for these, in their own order."""
        xp = self._build.xp
        every = xp.empty_like(sizes)
        every[order] = sizes
        offsets, filled, rows = offsets_of(every), xp.flatnonzero(sizes), []
        lids, starts, none = order[filled].astype(np.int32), offsets_of(sizes[filled]), xp.zeros(filled.size, np.int64)
        for values in arrived:
            rows.append(xp.empty_like(values))
            self._build.move_rows(lids, starts, values.view(np.uint64), offsets, rows[-1].view(np.uint64), none)
        return offsets, rows

    def _joined(self, parts: list[Any], dtype: Any = np.int64) -> Any:
        if len(parts) == 1:  # what a rank gives to itself need not be copied
            return parts[0]
        return joined(parts) if parts else xp_of(self._whole.device).empty(0, dtype)

    def _rows_of(self, offsets: Any) -> Any:
        return backend(Undirected, self._whole.device).rows_of_edges(offsets)

    def _by_batch(self, parts: list[tuple[Any, np.ndarray]]) -> list[Any]:
        """For each batch what it has of each part, one after the other; parts come with where batches begin."""
        spans = [[*zip(bounds.tolist(), bounds[1:].tolist())] for _, bounds in parts]
        each = [values[slice(*span)] for turn in zip(*spans) for (values, _), span in zip(parts, turn)]
        ends = np.cumsum(np.sum([np.diff(bounds) for _, bounds in parts], axis=0))
        return pieces(self._joined(each, parts[0][0].dtype), ends)

    def _known(self, values: list[Any]) -> tuple[Any, Any]:
        """Weights and numbers of edges, each None if it is not kept."""
        weight = None if self._whole.weights is None else values.pop(0)
        return weight, None if self._whole.numbers is None else values.pop(0)
