"""Turn a stream of edges, spread over the ranks, into CSR, in memory or in a graph file."""

import os
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_buckets import BucketSort, Chunk, Rules
from cusp.edge_lists.csr_plan import MAX_NODES, Plan, cell_shift, make_plan, num_cells
from cusp.edge_lists.csr_rows import Rows, drop_rows, write_rows
from cusp.edge_lists.edge_store import EdgeStore
from cusp.edge_lists.spool import Budget, Spool
from cusp.edge_lists.threads import num_local_ranks, num_threads, ordered_map
from cusp.edge_lists.weight_codes import WEIGHT_TYPES
from cusp.errors import together
from cusp.output.dataset_writer import check_target
from cusp.output.graph_writer import GraphWriter, index_dtype

CHUNK_EDGES = 2**20
CHUNK_BYTES = 128  # at most, for each edge of a chunk that is being scattered and exchanged
RECORD_BYTES = 64  # at most, for each record of a bucket that is being sorted


@dataclass(frozen=True)
class CsrSlice:
    """One rank's rows of a CSR graph; in rank order the slices cover all nodes and edges.

    Attributes
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    first_node, first_edge : int
        Where this slice starts.
    indptr : (n + 1,) int64
        Row ``first_node + i`` is ``indptr[i]`` to ``indptr[i + 1]`` of the arrays below; starts with 0.
    indices : (e,) uint32, or int64 if ``num_nodes > 2**32``
        Targets, ascending in each row.
    weights : (e,) array or None
    symmetric : bool
        Whether each edge has its reverse.
    """

    num_nodes: int
    num_edges: int
    first_node: int
    first_edge: int
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    symmetric: bool


class CsrBuilder:
    """Collects edges on every rank and sorts them into rows by :meth:`build` or :meth:`write`, once.

    The result depends on the edges alone, not on their order, chunks, ranks or the memory limit.

    Parameters
    ----------
    comm : Intracomm
    num_nodes : int or None
        Number of nodes; None: the greatest id of an edge plus one.
    weight_dtype : dtype or None
        Type of the edge weights (int8 to int64, uint8 to uint64, float32, float64); None: no weights.
    symmetrize : bool
        Add the reverse, of the same weight, of every edge that is not a self-loop.
    drop_loops : bool
        Leave self-loops out.
    dedup : bool
        Of parallel edges keep one, of the smallest weight. Otherwise they stay, by ascending weight.
    memory_limit : int or None
        Bytes for all buffers of this rank, beyond which edges go to a scratch file; None: this rank's
        share of half the computer's memory. The result of :meth:`build` comes on top.
    scratch : str or None
        Folder of the scratch files; None: the system's folder for temporary files.
    symmetric : bool
        The edges as given are known to be symmetric: recorded in the result.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        *,
        num_nodes: int | None = None,
        weight_dtype: np.dtype | type | str | None = None,
        symmetrize: bool = False,
        drop_loops: bool = False,
        dedup: bool = False,
        memory_limit: int | None = None,
        scratch: str | None = None,
        symmetric: bool = False,
    ) -> None:
        if num_nodes is not None and not 0 <= num_nodes <= MAX_NODES:
            raise ValueError(f"num_nodes is {num_nodes}, not between 0 and {MAX_NODES}")
        dtype = None if weight_dtype is None else np.dtype(weight_dtype)
        if dtype is not None and dtype not in WEIGHT_TYPES:
            raise ValueError(f"weights of type {dtype} are not supported")
        if memory_limit is None:
            memory_limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // num_local_ranks()
        at_work = memory_limit // 2 // (num_threads() + 2)  # bytes for what one thread works on
        self._comm = comm
        self._num_nodes = num_nodes
        self._rules = Rules(symmetrize, drop_loops, dedup, dtype, max(256, at_work // RECORD_BYTES))
        self._symmetric = symmetric or symmetrize
        self._scratch = scratch
        self._used = False
        self._budget = Budget(memory_limit // 2)
        chunk_edges = min(CHUNK_EDGES, max(64, at_work // CHUNK_BYTES))
        self._edges = EdgeStore(num_nodes, dtype, chunk_edges, Spool(self._budget, scratch))

    def add(self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add edges ``sources[i] -> targets[i]`` on this rank; the arrays are copied.

        Parameters
        ----------
        sources, targets : (n,) arrays of any integer type
        weights : (n,) array, exactly if the builder has a ``weight_dtype``

        Raises
        ------
        GraphFileError
            On this rank only (see :func:`cusp.errors.together`): an id that is negative or too large,
            a weight that is not a number or does not fit, or a full scratch folder.
        ValueError, TypeError
            If the arrays do not fit each other or the builder.
        """
        self._edges.add(sources, targets, weights)

    def build(self) -> CsrSlice:
        """Return this rank's rows. Collective.

        The nodes are divided so that all ranks have about equally many edges.

        Raises
        ------
        GraphFileError
            On every rank, if a scratch file cannot be written or read.
        """
        self._use()
        plan = self._plan()
        spool = Spool(self._budget, self._scratch)
        rows = self._sorted_rows(plan, spool, swap=False)
        first_edge, num_edges = self._edge_range(rows)
        buckets = plan.first_bucket[self._comm.rank : self._comm.rank + 2]
        first_node, last_node = plan.first_node[buckets].tolist()
        count = sum(row.num_edges for row in rows)
        indptr = np.zeros(last_node - first_node + 1, np.int64)
        indices = np.empty(count, index_dtype(plan.num_nodes))
        dtype = self._rules.weight_dtype
        weights = None if dtype is None else np.empty(count, dtype)
        with together(self._comm):
            at = 0
            for row in rows:
                degrees = spool.get(row.degrees)
                indptr[row.first_node - first_node + 1 :][: degrees.size] = degrees
                for part in row.parts:
                    stop = at + part.indices.size
                    indices[at:stop] = spool.get(part.indices)
                    if weights is not None and part.weights is not None:
                        weights[at:stop] = spool.get(part.weights)
                    at = stop
                drop_rows(spool, [row])
        spool.close()
        np.cumsum(indptr, out=indptr)
        return CsrSlice(plan.num_nodes, num_edges, first_node, first_edge, indptr, indices, weights, self._symmetric)

    def write(self, path: str | os.PathLike[str], transpose: bool = False) -> tuple[int, int]:
        """Write the graph into an HDF5 file, with the transpose in the group ``csc`` on request. Collective.

        Returns
        -------
        (num_nodes, num_edges) : (int, int)

        Raises
        ------
        GraphFileError
            On every rank, if the file or a scratch file cannot be written; the file is then as it was before.
        """
        check_target(path, self._comm)
        self._use()
        plan = self._plan()
        swap = transpose and not self._rules.symmetrize  # a symmetrized graph is its own transpose
        spool = Spool(self._budget, self._scratch)
        rows = self._sorted_rows(plan, spool, swap=False, keep_edges=swap)
        first_edge, num_edges = self._edge_range(rows)
        with GraphWriter(
            path, self._comm, num_nodes=plan.num_nodes, num_edges=num_edges,
            weight_dtype=self._rules.weight_dtype, symmetric=self._symmetric, transpose=transpose,
        ) as writer:  # fmt: skip
            self._write_group(writer, "", spool, rows, first_edge)
            if swap:
                drop_rows(spool, rows)
                rows = self._sorted_rows(self._plan(swap=True), spool, swap=True)
                first_edge, _ = self._edge_range(rows)
            if transpose:
                self._write_group(writer, "csc/", spool, rows, first_edge)
            drop_rows(spool, rows)
        spool.close()
        return plan.num_nodes, num_edges

    def _use(self) -> None:
        if self._used:
            raise RuntimeError("the edges of this builder were handed out already: build() or write() only once")
        self._used = True

    def _plan(self, swap: bool = False) -> Plan:
        """Divide the nodes by the records of all ranks. Collective."""
        edges, comm, rules = self._edges, self._comm, self._rules
        highest = comm.allreduce(edges.max_id, MPI.MAX)
        num_nodes = highest + 1 if self._num_nodes is None else self._num_nodes
        records = np.zeros(num_cells(num_nodes), np.int64)
        shift = cell_shift(num_nodes)

        def count(chunk: Chunk) -> np.ndarray:
            cells = np.zeros_like(records)
            ends = chunk.sources, chunk.targets
            csr_kernels.count_cells(*ends, shift, rules.symmetrize, rules.drop_loops, cells)
            return cells

        with together(comm):
            for cells in ordered_map(count, edges.chunks(swap, keep=True)):
                records += cells
        comm.Allreduce(MPI.IN_PLACE, records, MPI.SUM)
        low, high = edges.code_range
        codes = comm.allreduce(low, MPI.MIN), comm.allreduce(high, MPI.MAX)
        return make_plan(num_nodes, records, comm.size, codes if codes[1] >= 0 else None, rules.capacity)

    def _sorted_rows(self, plan: Plan, spool: Spool, *, swap: bool, keep_edges: bool = False) -> list[Rows]:
        """Scatter and sort all edges into ``spool``. Collective."""
        runs = Spool(self._budget, self._scratch)
        sorting = BucketSort(self._comm, plan, self._rules, runs, spool)
        rounds = self._comm.allreduce(self._edges.num_chunks, MPI.MAX)
        sorting.scatter(self._edges.chunks(swap, keep_edges), rounds)
        rows = sorting.sort()
        runs.close()
        return rows

    def _edge_range(self, rows: list[Rows]) -> tuple[int, int]:
        """This rank's first edge, and the number of edges of all ranks. Collective."""
        counts = self._comm.allgather(sum(row.num_edges for row in rows))
        return sum(counts[: self._comm.rank]), sum(counts)

    def _write_group(self, writer: GraphWriter, group: str, spool: Spool, rows: list[Rows], first_edge: int) -> None:
        """Write this rank's rows, and on rank 0 the head of ``indptr``. Collective."""
        with together(self._comm):
            if self._comm.rank == 0:
                writer.write(group + "indptr", 0, np.zeros(1, np.int64))
            write_rows(writer, group, spool, rows, first_edge)
