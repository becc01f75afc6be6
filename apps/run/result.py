"""What an algorithm found, for scripts and notebooks: NumPy arrays by global id, values by node, data frames, files."""

import os
from collections.abc import Hashable
from contextlib import nullcontext
from typing import Any

import numpy as np

from cusp.apps.run.app import Answer
from cusp.errors import OptionError, together
from cusp.names.names import Names, gid_of_node
from cusp.output.gid_order import in_gid_order
from cusp.output.tables import AT_ONCE, HDF5, TABLES, named_columns, suffix_of, write_table
from cusp.output.whole_file import Name, OutputError
from cusp.partition import Partition
from cusp.runtime.devices import to_host
from cusp.runtime.mpi import MPI


class Result:
    """What an algorithm found: ``result.hops`` has the hops of all nodes by global id, ``result.modularity`` a figure.

    Brackets are for nodes, dots for labels: ``result["Bern"]`` is the value of the first label at one node. Tables and
    dictionaries call nodes by their names, if they have some.

    Attributes
    ----------
    values : dict of (nodes,) arrays
        Every label by global id, on every rank; empty with ``gather=False``.
    local : dict of (masters,) arrays
        The same of the nodes of this rank, whose global ids are ``local["node"]``.
    edges : dict of arrays or lists
        ``source``, ``target`` and what was found for the edge between them, of all edges, if edges have values; with
        ``gather=False``, of those of this rank.
    table : dict of arrays
        What was found for pairs of nodes, or for paths, on every rank: see :class:`~cusp.apps.run.app.Answer`.
    arrays : dict of arrays
        What has a length of its own, such as a list of samples; with ``gather=False``, what this rank has of it.
    figures : dict of numbers
        What holds for the whole graph, such as the number of triangles.
    names : Names or None
        What nodes are called, if they have names.
    rounds : int
    seconds : float
        Of the slowest rank, without preparation and gathering.

    Examples
    --------
    >>> from cusp import bfs, partition_graph
    >>> result = bfs(partition_graph(([0, 0, 1, 2], [1, 2, 3, 3])), source=0, parents=True)
    >>> result.hops
    array([0, 1, 1, 2], dtype=int32)
    >>> result[3]
    2
    >>> result.path(2)
    [0, 2]
    >>> result.to_dict()
    {0: 0, 1: 1, 2: 1, 3: 2}
    >>> result.to_pandas()["hops"].max()
    np.int32(2)
    """

    def __init__(
        self, answer: Answer, part: Partition, names: Names | None, comm: MPI.Intracomm, seconds: float,
        gather: bool = True, nodes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.local = {"node": to_host(part.gids[: part.num_masters])} | answer.labels
        self.values = (
            {name: gather_by_gid(part, label, comm) for name, label in answer.labels.items()} if gather else {}
        )
        self.arrays = {name: joined_rows(values, comm) if gather else values for name, values in answer.arrays.items()}
        self.figures, self.rounds, self.seconds = answer.figures, int(answer.rounds), seconds
        self._num_nodes = part.num_nodes
        self.table, self._rows = answer.table, answer.rows
        self._comm, self.names, self._gathered, self._nodes = comm, names, gather or bool(self.table), nodes
        edges = gather_edges(part, answer.edges, comm if gather else MPI.COMM_SELF) if answer.edges else {}
        named = {} if names is None or not edges else {end: names.of(edges[end]) for end in ("source", "target")}
        self.edges: dict[str, Any] = edges | named

    def __getattr__(self, name: str) -> Any:
        known: dict[str, Any] = {}
        for what in ("figures", "values", "table", "arrays"):
            known |= self.__dict__.get(what, {})
        if name in known:
            return known[name]
        if name in self.__dict__.get("local", {}):
            raise AttributeError(f"{name} was not gathered (gather=False); this rank's part is local[{name!r}]")
        raise AttributeError(f"no {name!r} in the result, which has {', '.join(known) or 'nothing'}")

    def __getitem__(self, node: Any) -> Any:
        """The value of the first label at a node, which is given by its name if nodes have names, as in `to_dict`.

        Raises
        ------
        OptionError
            There is no such node; or another rank has it (``gather=False``).
        """
        labels = [name for name in self.local if name != "node"]
        if not labels:
            raise OptionError(
                f"[{node!r}]: the result has {self._others()}: {', '.join({**self.table, **self.figures})}"
            )
        try:
            gid = gid_of_node(node, self.names, self._num_nodes)
        except OptionError as error:
            advice = f"; all values of the label {node} are result.{node}" if node in labels else ""
            raise OptionError(f"{error}{advice}") from None
        values = self.values if self._gathered else self.local
        places = [gid] if self._gathered else np.flatnonzero(self.local["node"] == gid)
        if len(places) == 0:
            raise OptionError(f"[{node!r}]: another rank has this node (gather=False)")
        value = values[labels[0]][places[0]].item()
        return value if self.names is None or labels[0] not in self._nodes else self.names.of([value])[0]

    __iter__ = None  # or Python would try the nodes 0, 1, 2 ...
    __contains__ = None

    def _others(self) -> str:
        return "a table, see to_pandas()" if self.table else "figures only"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures, *self.values, *self.table, *self.arrays]

    def __repr__(self) -> str:
        labels = [name for name in self.local if name != "node"]
        figures = [f"{name} {value}" for name, value in self.figures.items()]
        return (
            f"Result({', '.join([*labels, *self.table, *self.arrays, *figures])}; {self.rounds} rounds, "
            f"{self.seconds * 1e3:.3g} ms)"
        )

    def columns(self) -> dict[str, Any]:
        """``node`` and every label, of all nodes or, with ``gather=False``, of this rank's; or the rows of the table.

        Where nodes have names, lists of names take the place of their numbers, also in labels such as ``parents`` and
        ``component``, which is the name of its smallest node; None where there is no node.
        """
        if self.table:
            return named_columns(self._rows(), self.names, self._nodes)
        labels = self.values if self._gathered else self.local
        nodes = np.arange(self._num_nodes) if self._gathered else self.local["node"]
        columns = {"node": nodes} | {name: labels[name] for name in labels if name != "node"}
        return named_columns(columns, self.names, ("node", *self._nodes))

    def path(self, target: Any) -> list:
        """Nodes from the source to ``target``, both included, by the ``parents`` of a search; empty without a path."""
        parents, node = self.parents, gid_of_node(target, self.names, self._num_nodes)
        path = [node] if parents[node] >= 0 else []
        while path and parents[path[-1]] != path[-1]:
            path.append(int(parents[path[-1]]))
        return path[::-1] if self.names is None else self.names.of(path[::-1])

    def to_dict(self, label: str | None = None) -> dict[Hashable, Any]:
        """Node -> value of a label, as NetworkX returns them; the first label if none is named."""
        columns = self.columns()
        labels = [] if self.table else [*columns][1:]
        if not labels or label not in (None, *labels):
            raise AttributeError(
                f"no label {label or ''} in the result, which has {', '.join(labels) or self._others()}"
            )
        plain = (columns[name] for name in ("node", label or labels[0]))
        return dict(zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in plain)))

    def to_pandas(self) -> Any:
        """:meth:`columns` as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """:meth:`columns` as a table of pyarrow; names of several types become strings."""
        import pyarrow

        columns = self.columns()
        for name in (name for name, column in columns.items() if isinstance(column, list)):
            try:
                columns[name] = pyarrow.array(columns[name])
            except (pyarrow.ArrowException, TypeError):
                columns[name] = pyarrow.array([None if each is None else str(each) for each in columns[name]])
        return pyarrow.table(columns)

    def to_parquet(self, path: Name) -> None:
        """Write :meth:`to_arrow` to a file, which rank 0 does or, with ``gather=False``, each rank its own. Collective.

        The files of the ranks are ``path`` with ``.0``, ``.1`` ... before the suffix.

        Raises
        ------
        OutputError
            On every rank.
        """
        self._write(path, ".parquet")

    def to_csv(self, path: Name) -> None:
        """The same as CSV, or separated by tabs if the name ends with ``.tsv``. Collective."""
        self._write(path, ".tsv" if suffix_of(path) == ".tsv" else ".csv")

    def to_json(self, path: Name) -> None:
        """The same as a list with an object for each node; null for infinity. Collective."""
        self._write(path, ".json")

    def _write(self, path: Name, suffix: str) -> None:
        with together(self._comm):
            if suffix_of(path) in {*TABLES, *HDF5} - {suffix}:
                raise OutputError(f"{path}: would be written as {suffix[1:].upper()}; end the name with {suffix}")
            table = self.to_arrow() if self._comm.rank == 0 or not self._gathered else None
        stem, end = os.path.splitext(path)
        file, comm = (path, self._comm) if self._gathered else (f"{stem}.{self._comm.rank}{end}", MPI.COMM_SELF)
        schema, batches = (None, []) if table is None else (table.schema, table.to_batches(AT_ONCE))
        with nullcontext() if self._gathered else together(self._comm):
            write_table(file, schema, batches, comm, suffix)


def gather_by_gid(part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> np.ndarray:
    """(nodes,) values of all masters by global id, on every rank. Collective."""
    _, local = in_gid_order(part, values, comm)
    if comm.size == 1:
        return local
    whole = np.empty(part.num_nodes, local.dtype)
    comm.Allgatherv(local, [whole, comm.allgather(local.size)])
    return whole


def joined_rows(values: np.ndarray, comm: MPI.Intracomm) -> np.ndarray:
    """The rows of all ranks, in the order of these. Collective."""
    return values if comm.size == 1 else np.concatenate(comm.allgather(values))


def gather_edges(part: Partition, values: dict[str, np.ndarray], comm: MPI.Intracomm) -> dict[str, np.ndarray]:
    """``source`` and ``target``, and values of edges or pairs of some ranks, in the order of all these. Collective."""
    local = values if "source" in values else ends_of(part) | values
    columns = {name: joined_rows(column, comm) for name, column in local.items()}
    order = _order_of(part.num_nodes, [*columns.values()])
    return {name: column[order] for name, column in columns.items()}


def _order_of(num_nodes: int, columns: list[np.ndarray]) -> np.ndarray:
    """The order of edges by the first column, which is the source, then by the second, the target, and by the others.

    Edges come in runs that ascend, which a stable sort of one number makes use of.
    """
    if num_nodes < 2**31:
        pairs = columns[0] * num_nodes + columns[1]
        order = np.argsort(pairs, kind="stable")
        if np.all(np.diff(pairs[order])):
            return order
    return np.lexsort(columns[::-1])


def ends_of(part: Partition) -> dict[str, np.ndarray]:
    """``source`` and ``target``, (edges,) int64: the global ids of the ends of this rank's edges, on the host."""
    gids, degrees = to_host(part.gids), np.diff(to_host(part.offsets))
    return {"source": np.repeat(gids, degrees), "target": gids[to_host(part.targets)]}
