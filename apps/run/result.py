"""What an algorithm found, for scripts and notebooks: NumPy arrays by global id, data frames and Parquet files."""

import os
from collections.abc import Hashable
from typing import Any

import numpy as np
from mpi4py import MPI

from apps.run.app import Answer
from cusp.errors import together
from cusp.output.dataset_writer import OutputError
from cusp.output.gid_order import in_gid_order
from cusp.partition import Partition
from cusp.runtime.devices import to_host


class Result:
    """What an algorithm found. Its labels are attributes: ``result.hops`` holds those of all nodes by global id.

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
    >>> result.to_dataframe()["hops"].max()
    np.int32(2)
    """

    def __init__(
        self, answer: Answer, part: Partition, names: list[Hashable] | None, comm: MPI.Intracomm, seconds: float,
        gather: bool = True,
    ) -> None:  # fmt: skip
        self.local = {"node": to_host(part.gids[: part.num_masters])} | answer.labels
        self.values = (
            {name: gather_by_gid(part, label, comm) for name, label in answer.labels.items()} if gather else {}
        )
        self.figures, self.rounds, self.seconds = answer.figures, int(answer.rounds), seconds
        self._nodes = np.arange(part.num_nodes) if gather else self.local["node"]
        self._comm, self._names, self._gathered = comm, names, gather

    def __getattr__(self, name: str) -> np.ndarray:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        if name in self.__dict__.get("local", {}):
            raise AttributeError(f"{name} was not gathered (gather=False); this rank's part is local[{name!r}]")
        raise AttributeError(f"no {name!r} in the result, which has {', '.join(values) or 'figures only'}")

    def __repr__(self) -> str:
        labels = [name for name in self.local if name != "node"]
        figures = [f"{name} {value}" for name, value in self.figures.items()]
        return f"Result({', '.join([*labels, *figures])}; {self.rounds} rounds, {self.seconds * 1e3:.3g} ms)"

    def columns(self) -> dict[str, Any]:
        """``node``, which is a name where nodes have names, and every label: of all nodes, or of this rank's."""
        nodes = self._nodes if self._names is None else [self._names[gid] for gid in self._nodes]
        labels = self.values if self._gathered else self.local
        return {"node": nodes} | {name: labels[name] for name in labels if name != "node"}

    def path(self, target: Any) -> list:
        """Nodes from the source to ``target``, both included, by the ``parents`` of a search; empty without a path."""
        parents = self.parents
        node = target if self._names is None else self._names.index(target)
        path = [node] if parents[node] >= 0 else []
        while path and parents[path[-1]] != path[-1]:
            path.append(int(parents[path[-1]]))
        return [gid if self._names is None else self._names[gid] for gid in reversed(path)]

    def to_dataframe(self) -> Any:
        """The same as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`columns` with pyarrow: rank 0 one file or, with ``gather=False``, each rank its own. Collective.

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
                    import pyarrow.parquet

                    pyarrow.parquet.write_table(pyarrow.table(self.columns()), file)
            except (OSError, ImportError) as error:
                raise OutputError(f"{file}: cannot be written: {error}") from error


def gather_by_gid(part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> np.ndarray:
    """(nodes,) values of all masters by global id, on every rank. Collective."""
    _, local = in_gid_order(part, values, comm)
    whole = np.empty(part.num_nodes, local.dtype)
    comm.Allgatherv(local, [whole, comm.allgather(local.size)])
    return whole
