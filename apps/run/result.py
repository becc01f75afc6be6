"""What an algorithm found, for scripts and notebooks: NumPy arrays by global id, data frames and Parquet files."""

import os
from collections.abc import Hashable
from typing import Any

import numpy as np
from mpi4py import MPI

from apps.run.app import Answer
from cusp.errors import together
from cusp.names.names import Names
from cusp.output.gid_order import in_gid_order
from cusp.output.whole_file import OutputError, whole_file
from cusp.partition import Partition
from cusp.runtime.devices import to_host


class Result:
    """What an algorithm found: ``result.hops`` has the hops of all nodes by global id, ``result.modularity`` a figure.

    Tables and dictionaries call nodes by their names, if they have some.

    Attributes
    ----------
    values : dict of (nodes,) arrays
        Every label by global id, on every rank; empty with ``gather=False``.
    local : dict of (masters,) arrays
        The same of the nodes of this rank, whose global ids are ``local["node"]``.
    figures : dict of numbers
        What holds for the whole graph, such as the number of triangles.
    rounds : int
    seconds : float
        Of the slowest rank, without preparation and gathering.

    Examples
    --------
    >>> from apps.library import bfs, partition_graph
    >>> result = bfs(partition_graph(([0, 0, 1, 2], [1, 2, 3, 3])), source=0, parents=True)
    >>> result.hops
    array([0, 1, 1, 2], dtype=int32)
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
        self.figures, self.rounds, self.seconds = answer.figures, int(answer.rounds), seconds
        self._gids = np.arange(part.num_nodes) if gather else self.local["node"]
        self._comm, self._names, self._gathered, self._nodes = comm, names, gather, nodes

    def __getattr__(self, name: str) -> Any:
        known = {**self.__dict__.get("figures", {}), **self.__dict__.get("values", {})}
        if name in known:
            return known[name]
        if name in self.__dict__.get("local", {}):
            raise AttributeError(f"{name} was not gathered (gather=False); this rank's part is local[{name!r}]")
        raise AttributeError(f"no {name!r} in the result, which has {', '.join(known) or 'nothing'}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures, *self.values]

    def __repr__(self) -> str:
        labels = [name for name in self.local if name != "node"]
        figures = [f"{name} {value}" for name, value in self.figures.items()]
        return f"Result({', '.join([*labels, *figures])}; {self.rounds} rounds, {self.seconds * 1e3:.3g} ms)"

    def columns(self) -> dict[str, Any]:
        """``node`` and every label, of all nodes or, with ``gather=False``, of this rank's.

        Where nodes have names, lists of names take the place of their numbers, also in labels such as ``parents`` and
        ``component``, which is the name of its smallest node; None where there is no node.
        """
        labels = self.values if self._gathered else self.local
        columns = {"node": self._gids} | {name: labels[name] for name in labels if name != "node"}
        if self._names is None:
            return columns
        return {name: self._names.of(v) if name in ("node", *self._nodes) else v for name, v in columns.items()}

    def path(self, target: Any) -> list:
        """Nodes from the source to ``target``, both included, by the ``parents`` of a search; empty without a path."""
        parents = self.parents
        node = target if self._names is None else self._names.gid(target)
        path = [node] if parents[node] >= 0 else []
        while path and parents[path[-1]] != path[-1]:
            path.append(int(parents[path[-1]]))
        return path[::-1] if self._names is None else self._names.of(path[::-1])

    def to_dict(self, label: str | None = None) -> dict[Hashable, Any]:
        """Node -> value of a label, as NetworkX returns them; the first label if none is named."""
        columns = self.columns()
        labels = [*columns][1:]
        if not labels or label not in (None, *labels):
            raise AttributeError(
                f"no label {label or ''} in the result, which has {', '.join(labels) or 'figures only'}"
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

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_arrow`: rank 0 one file or, with ``gather=False``, each rank its own. Collective.

        The files of the ranks are ``path`` with ``.0``, ``.1`` ... before the suffix.

        Raises
        ------
        OutputError
            On every rank.
        """
        stem, suffix = os.path.splitext(path)
        file = os.fspath(path) if self._gathered else f"{stem}.{self._comm.rank}{suffix}"
        with together(self._comm):
            try:
                if self._comm.rank == 0 or not self._gathered:
                    write_parquet(file, self.to_arrow())
            except ImportError as error:
                raise OutputError(f"{file}: cannot be written: {error}") from error


def write_parquet(path: str, table: Any) -> None:
    """Write a table of pyarrow to a file."""
    import pyarrow.parquet

    with whole_file(path) as temporary, open(temporary, "wb") as file:
        pyarrow.parquet.write_table(table, file)


def gather_by_gid(part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> np.ndarray:
    """(nodes,) values of all masters by global id, on every rank. Collective."""
    _, local = in_gid_order(part, values, comm)
    whole = np.empty(part.num_nodes, local.dtype)
    comm.Allgatherv(local, [whole, comm.allgather(local.size)])
    return whole
