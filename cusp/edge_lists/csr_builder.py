"""Turn a stream of edges, spread over the ranks, into CSR, in memory or in a graph file."""

import os

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_plan import Plan, SortOptions, cell_shift, check_num_nodes, make_plan, num_cells
from cusp.edge_lists.csr_sort import RecordStore, SortedBucket, scatter, sort_buckets, write_buckets
from cusp.edge_lists.edge_store import Chunk, EdgeStore
from cusp.edge_lists.spool import Budget, Spool
from cusp.errors import GraphFileError, together
from cusp.input.checksum import as_bits, combine
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import index_dtype
from cusp.input.hdf5 import NUMBERS
from cusp.input.read_cpu import asymmetry
from cusp.kernels.arrays import occurring
from cusp.names.names import Names
from cusp.names.numbering import NameSlab
from cusp.output.dataset_writer import DatasetWriter, writing_graph
from cusp.runtime.mpi import MPI
from cusp.runtime.signals import local_ranks
from cusp.runtime.storage import host_bytes
from cusp.runtime.threads import num_threads, ordered_map

CHUNK_EDGES = 2**20
CHUNK_BYTES = 128  # at most, for each edge of a chunk that is being scattered and exchanged
RECORD_BYTES = 64  # at most, for each record of a bucket that is being sorted


def memory_for_one() -> int:
    """Bytes: this rank's share of half the memory of its host."""
    return host_bytes() // 2 // local_ranks()


class CsrBuilder:
    """Collects edges on every rank and sorts them into rows by :meth:`build` or :meth:`write`, once.

    The result depends on the edges alone, not on their order, chunks, ranks or the memory limit.

    >>> builder = CsrBuilder(MPI.COMM_SELF, symmetrize=True)
    >>> builder.add([0, 0], [2, 1])
    >>> rows = builder.build()
    >>> rows.indptr, rows.targets
    (array([0, 2, 3, 4]), array([1, 2, 0, 0], dtype=uint32))

    Parameters
    ----------
    num_nodes : int or None
        Number of nodes; None: the largest id of an edge plus one.
    weight_dtype : dtype or None
        Type of the edge weights (int8 to int64, uint8 to uint64, float32, float64); None: no weights.
    symmetrize : bool
        Add the reverse, with the same weight, of every edge that is not a loop.
    drop_loops : bool
        Leave out loops.
    dedup : bool
        Keep one of parallel edges, that of the smallest weight. Otherwise all stay, by ascending weight.
    memory_limit : int or None
        Bytes for all buffers of this rank, beyond which edges go to scratch files; None: this rank's share
        of half the memory of its host. The result of :meth:`build` comes on top.
    scratch : str or None
        Folder of the scratch files; None: ``$TMPDIR``, else ``/tmp``.
    symmetric : bool
        The edges as given are known to be symmetric: this is recorded in the result.
    any_ids : bool
        Ids may be any of int64: :meth:`distinct_ids` says whether to :meth:`renumber` them.

    Raises
    ------
    ValueError
        If an argument is out of range.
    GraphFileError
        If there are more nodes than this computer has memory for, also later.
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
        any_ids: bool = False,
    ) -> None:
        if num_nodes is not None and num_nodes < 0:
            raise ValueError(f"num_nodes is {num_nodes}")
        check_num_nodes(num_nodes or 0, "the graph")
        dtype = None if weight_dtype is None else np.dtype(weight_dtype)
        if dtype is not None and dtype not in NUMBERS:
            raise ValueError(f"weights of type {dtype} are not supported")
        if memory_limit is None:
            memory_limit = memory_for_one()
        at_work = memory_limit // 2 // (num_threads() + 2)  # bytes for one thread to work in
        self._comm = comm
        self._num_nodes = num_nodes
        self._options = SortOptions(symmetrize, drop_loops, dedup, dtype, max(256, at_work // RECORD_BYTES))
        self._symmetric = symmetric or symmetrize
        self._scratch = scratch
        self._used = False
        self._budget = Budget(memory_limit // 2)
        chunk_edges = min(CHUNK_EDGES, max(64, at_work // CHUNK_BYTES))
        self._edges = EdgeStore(num_nodes, dtype, chunk_edges, Spool(self._budget, scratch), any_ids)

    def add(self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add edges ``sources[i] -> targets[i]`` on this rank; the arrays are copied.

        Parameters
        ----------
        sources, targets : (n,) arrays of any integer type
        weights : (n,) array, exactly if the builder has a ``weight_dtype``

        Raises
        ------
        GraphFileError
            On this rank only (see :func:`cusp.errors.together`): an id that is negative or too large, or a weight
            that is not a number or does not fit.
        ScratchError
            On this rank only: a scratch file cannot be written.
        ValueError, TypeError
            If the arrays do not match each other or the builder.
        """
        self._edges.add(sources, targets, weights)

    def renumber(self, numbers: np.ndarray, num_nodes: int, ids: np.ndarray | None = None) -> None:
        """What this rank has added as node ``i`` is node ``numbers[i]`` of a graph with this many nodes.

        For nodes whose numbers are known only once all ranks have read their edges. Every rank calls it, after its
        last edge. With ``ids``, which ascend, it is what was added as ``ids[i]``.
        """
        self._num_nodes = num_nodes
        self._edges.renumber(numbers.astype(index_dtype(num_nodes)), ids)

    def id_range(self) -> tuple[int, int]:
        """The smallest and the largest id of all ranks; 0 and -1 without edges. Collective."""
        ranges = self._comm.allgather((self._edges.min_id, self._edges.max_id, self._edges.num_edges))
        known = [(low, high) for low, high, edges in ranges if edges] or [(0, -1)]
        return min(low for low, _ in known), max(high for _, high in known)

    def distinct_ids(self, always: bool = False) -> np.ndarray | None:
        """The ids that this rank has added, ascending; None if half of those from 0 to the largest occur. Collective.

        Then they are numbers of nodes as they are, unless they are asked for ``always``.
        """
        (lowest, highest), edges = self.id_range(), self._comm.allreduce(self._edges.num_edges)
        if not always and lowest >= 0 and highest < 4 * edges and self._half_occur(highest + 1):
            return None
        return None if edges == 0 else self._distinct()

    def _half_occur(self, num_ids: int) -> bool:
        """Whether half of the ids below a number do. Collective."""
        seen, enough, looks = np.zeros(num_ids, np.uint8), False, 1
        with together(self._comm):
            for place, chunk in enumerate(self._edges.chunks(swap=False, keep=True), 1):
                seen[chunk.sources] = seen[chunk.targets] = 1
                if place == looks:
                    enough, looks = bool(2 * np.count_nonzero(seen) >= num_ids), 2 * looks
                if enough:
                    break
        if self._comm.allreduce(int(enough)):
            return True
        for first in range(0, num_ids, 1 << 30):  # of MPI's count
            self._comm.Allreduce(MPI.IN_PLACE, seen[first : first + (1 << 30)], MPI.MAX)
        return bool(2 * np.count_nonzero(seen) >= num_ids)

    def _distinct(self) -> np.ndarray:
        """Collective."""
        ids, more, limit = np.empty(0, np.int64), [], self._budget.limit
        with together(self._comm):
            for chunk in self._edges.chunks(swap=False, keep=True):
                more.append(occurring(np.concatenate([chunk.sources, chunk.targets]).astype(np.int64)))
                if sum(map(len, more)) > ids.size:
                    ids, more = occurring(np.concatenate([ids, *more])), []
                if ids.nbytes > limit:
                    raise GraphFileError(
                        f"more than {ids.size:,} ids take {ids.nbytes / 1e6:,.0f} MB of one rank; its limit leaves "
                        f"{limit / 1e6:,.0f} MB for them; raise --memory-limit, or take more ranks"
                    )
        return occurring(np.concatenate([ids, *more]))

    def build(self, names: Names | None = None) -> EdgeSlice:
        """Return this rank's rows, their targets ascending, of a graph whose nodes have these names. Collective.

        The nodes are divided so that all ranks have about the same number of edges. Whether the graph is symmetric is
        found out.

        Raises
        ------
        ScratchError
            On every rank, if a scratch file cannot be written or read.
        """
        self._use()
        plan, comm = self._plan(), self._comm
        spool = Spool(self._budget, self._scratch)
        buckets = self._sorted_buckets(plan, spool, swap=False)
        _, num_edges = self._edge_range(buckets)
        bounds = plan.first_node[plan.first_bucket]
        first_node, last_node = bounds[comm.rank : comm.rank + 2].tolist()
        count, dtype = sum(bucket.num_edges for bucket in buckets), self._options.weight_dtype
        rows = {
            "indptr": np.zeros(last_node - first_node + 1, np.int64),
            "indices": np.empty(count, index_dtype(plan.num_nodes)),
        } | ({} if dtype is None else {"data": np.empty(count, dtype)})

        def keep(name: str, first: int, values: np.ndarray) -> None:
            rows[name][first : first + values.size] = values

        with together(comm):
            write_buckets(keep, [""], spool, buckets, first_node, 0)
        spool.close()
        indptr, targets = rows["indptr"], as_bits(rows["indices"])
        unpaired = 0 if self._symmetric else int(asymmetry(first_node, indptr, targets))
        graph = (plan.num_nodes, num_edges, combine(comm.allgather(unpaired)) == 0)
        return EdgeSlice(*graph, bounds, first_node, indptr, targets, rows.get("data"), names=names)

    def write(
        self, path: str | os.PathLike[str], transpose: bool = False, names: NameSlab | None = None
    ) -> tuple[int, int]:
        """Write the graph into a graph file, with the transpose in the group ``csc`` on request. Collective.

        Returns the numbers of nodes and edges.

        Parameters
        ----------
        names : NameSlab, optional
            What the nodes are called.

        Raises
        ------
        OutputError, ScratchError
            On every rank, if the file or a scratch file cannot be written; the file is then as it was before.
        """
        self._use()
        plan = self._plan()
        swap = transpose and not self._options.symmetrize  # a symmetrized graph is its own transpose
        spool = Spool(self._budget, self._scratch)
        buckets = self._sorted_buckets(plan, spool, swap=False, keep_edges=swap)
        first_edge, num_edges = self._edge_range(buckets)
        with writing_graph(
            path, self._comm, num_nodes=plan.num_nodes, num_edges=num_edges,
            weight_dtype=self._options.weight_dtype, symmetric=self._symmetric, transpose=transpose,
            names=names,
        ) as writer:  # fmt: skip
            if names is not None:
                names.write(writer)
            self._write_rows(writer, ["", "csc/"] if transpose and not swap else [""], spool, buckets, first_edge)
            if swap:
                buckets = self._sorted_buckets(self._plan(swap=True), spool, swap=True)
                self._write_rows(writer, ["csc/"], spool, buckets, self._edge_range(buckets)[0])
        spool.close()
        return plan.num_nodes, num_edges

    def _use(self) -> None:
        if self._used:
            raise RuntimeError("the edges of this builder are used up: call build() or write() only once")
        self._used = True

    def _plan(self, swap: bool = False) -> Plan:
        """Divide the nodes by the records of all ranks. Collective."""
        edges, comm, options = self._edges, self._comm, self._options
        highest = comm.allreduce(edges.max_id, MPI.MAX)
        num_nodes = highest + 1 if self._num_nodes is None else self._num_nodes
        with together(comm):
            check_num_nodes(num_nodes, "the graph")
        records = np.zeros(num_cells(num_nodes), np.int64)
        shift = cell_shift(num_nodes)

        def count(chunk: Chunk) -> np.ndarray:
            cells = np.zeros_like(records)
            ends = chunk.sources, chunk.targets
            csr_kernels.count_cells(*ends, shift, options.symmetrize, options.drop_loops, cells)
            return cells

        with together(comm):
            for cells in ordered_map(count, edges.chunks(swap, keep=True)):
                records += cells
        comm.Allreduce(MPI.IN_PLACE, records, MPI.SUM)
        low, high = edges.code_range
        codes = comm.allreduce(low, MPI.MIN), comm.allreduce(high, MPI.MAX)
        return make_plan(options, num_nodes, records, comm.size, codes if codes[1] >= 0 else None)

    def _sorted_buckets(self, plan: Plan, spool: Spool, *, swap: bool, keep_edges: bool = False) -> list[SortedBucket]:
        """Scatter and sort all edges into ``spool``. Collective."""
        record_spool = Spool(self._budget, self._scratch)
        records = RecordStore(record_spool)
        rounds = self._comm.allreduce(self._edges.num_chunks, MPI.MAX)
        scatter(self._comm, plan, self._edges.chunks(swap, keep_edges), rounds, records)
        buckets = sort_buckets(plan, records, spool, self._comm)
        record_spool.close()
        return buckets

    def _edge_range(self, buckets: list[SortedBucket]) -> tuple[int, int]:
        """This rank's first edge, and the number of edges of all ranks. Collective."""
        counts = self._comm.allgather(sum(bucket.num_edges for bucket in buckets))
        return sum(counts[: self._comm.rank]), sum(counts)

    def _write_rows(
        self, writer: DatasetWriter, groups: list[str], spool: Spool, buckets: list[SortedBucket], first_edge: int
    ) -> None:
        """Write this rank's rows, and on rank 0 the head of ``indptr``. Collective."""
        with together(self._comm):
            for group in groups if self._comm.rank == 0 else ():
                writer.write(group + "indptr", 0, np.zeros(1, np.int64))
            write_buckets(writer.write, groups, spool, buckets, 0, first_edge)
