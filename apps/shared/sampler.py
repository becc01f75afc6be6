"""Samples of neighbours, hop by hop, on all ranks: see apps/sample.py."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp import Partition
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.operators.samples.interfaces import Samples
from cusp.apps.shared.graphs.edge_numbers import edge_numbers
from cusp.apps.shared.graphs.whole_rows import TIME, UNIFORM, WEIGHT, as_marks, whole_rows
from cusp.apps.shared.splitmix64 import key_of, splitmix64
from cusp.errors import OptionError, shortened, together
from cusp.kernels.arrays import by_rank, joined, offsets_of, take
from cusp.kernels.interfaces import Build
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI

MOST = 1 << 20  # edges of a node that are drawn


@dataclass(frozen=True)
class Sample:
    """Nodes around the seeds of a batch, and edges between them. Its arrays are on the device of the rank.

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
        Tell the numbers of edges: see :func:`~cusp.apps.shared.graphs.edge_numbers.edge_numbers`.
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
        with together(self._comm):
            seeds = [self._seeds(number, nodes) for number, nodes in batches.items()]
            limits = self._limits(until, len(seeds))
        keys = splitmix64(np.array([*batches], np.int64), self._key)
        addresses = self._whole.addresses(self._joined(seeds), self._comm)
        known = fresh = pieces(addresses, np.cumsum([nodes.size for nodes in seeds]))
        found: list[list[Any]] = [[] for _ in seeds]
        for fan_out in self.fan_out:
            edges = self._expand(fresh, keys, limits, fan_out)
            grown = self._ops.number(known, [others for others, _, _ in edges])
            for old, new, (nodes, rows), (_, origins, more), hops in zip(known, fresh, grown, edges, found):
                hops.append((nodes.size - old.size, rows, origins + (old.size - new.size), *more))
            fresh = [nodes[old.size :] for old, (nodes, _) in zip(known, grown)]
            known = [nodes for nodes, _ in grown]
        return [self._sample_of(*one) for one in zip(seeds, known, found)]

    @property
    def nothing(self) -> Sample:
        """A sample without nodes."""
        none, hops = self._joined([]), len(self.fan_out)
        weight, edge = self._known([values[:0] for values in self._whole.columns[1:]])
        return Sample(none, none, none, weight, edge, [0] * (hops + 1), [0] * hops)

    def _seeds(self, number: int, nodes: Any) -> Any:
        """The seeds of a batch on the device.

        Raises
        ------
        OptionError
            A node is in it twice.
        """
        seeds = move(nodes if hasattr(nodes, "get") else np.asarray(nodes), self._whole.device).astype(np.int64)
        ((distinct, _),) = self._ops.number([seeds[:0]], [seeds])
        if distinct.size < seeds.size:
            raise OptionError(f"batch {number}: of its {seeds.size:,} nodes only {distinct.size:,} are distinct")
        return seeds

    def _limits(self, until: Any, count: int) -> np.ndarray | None:
        """(batches,) int64: the marks up to which edges count."""
        limits = [*until] if isinstance(until, Iterable) else [until] * count
        if len(limits) != count or any(limit != limit for limit in limits):
            raise OptionError(f"until={shortened(until)}: expected a number, or one for each of {count} batches")
        if self._by != TIME:
            if any(limit != math.inf for limit in limits):
                raise OptionError(f"until={shortened(until)}: is for by={TIME!r}")
            return None
        if self._whole.weights.dtype != np.int64:
            return as_marks(np.array(limits, np.float64))
        lowest, highest = -(2**63), 2**63 - 1
        return np.array([math.floor(limit) if lowest <= limit <= highest else highest if limit > 0 else lowest
                         for limit in limits], np.int64)  # fmt: skip

    def _expand(self, fresh: list[Any], keys: np.ndarray, limits: np.ndarray | None, fan_out: int) -> list[Any]:
        """For each batch the other ends of edges, the places of their nodes in ``fresh``, and weights. Collective."""
        whole, comm, build = self._whole, self._comm, self._build
        nodes = self._joined(fresh)
        order, ends = by_rank(nodes >> whole.bits, comm.size)

        def ask(values: list[Any], dtype: Any) -> list[Any]:
            return build.all_to_all(comm, pieces(self._joined(values, dtype)[order], ends))

        gids = [whole.gids(some) for some in fresh]
        asked = ask(gids, np.int64)
        lots = joined(ask([splitmix64(some, int(key)) for some, key in zip(gids, keys)], np.uint64))
        until = None
        if limits is not None:
            until = joined(ask([build.xp.full(some.size, limit) for some, limit in zip(gids, limits)], np.int64))
        sizes, edges = self._ops.draw(
            whole.rows, whole.lid_map.lids(joined(asked)), lots, fan_out, self._replace, until
        )
        rows = np.cumsum([some.size for some in asked])
        bounds = to_host(offsets_of(sizes)[move(rows, whole.device)])
        answers = [take(values, edges) for values in whole.columns]
        sizes = joined(build.all_to_all(comm, pieces(sizes, rows)))
        answers = [joined(build.all_to_all(comm, pieces(values, bounds))) for values in answers]
        offsets, answers = self._in_order(order, sizes, answers)
        origins = backend(Undirected, whole.device).rows_of_edges(offsets).astype(np.int64)
        first = np.cumsum([0] + [some.size for some in fresh])
        bounds = to_host(offsets[move(first, whole.device)]).tolist()
        spans = [slice(*span) for span in zip(bounds, bounds[1:])]
        return [
            (answers[0][span], origins[span] - int(begin), [values[span] for values in answers[1:]])
            for span, begin in zip(spans, first)
        ]

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
        return joined(parts) if parts else xp_of(self._whole.device).empty(0, dtype)

    def _sample_of(self, seeds: Any, nodes: Any, hops: list[Any]) -> Sample:
        sizes, rows, cols, *more = map(list, zip(*hops))
        weight, edge = self._known([joined(values) for values in more])
        return Sample(
            self._whole.gids(nodes), joined(rows), joined(cols), weight, edge, [seeds.size, *sizes],
            [some.size for some in rows],
        )  # fmt: skip

    def _known(self, values: list[Any]) -> list[Any]:
        """Weights and numbers of edges, each None if it is not kept."""
        return [None if kept is None else values.pop(0) for kept in (self._whole.weights, self._whole.numbers)]
