"""``--from``: the answer of a run on the graph before nodes and edges were added to it, from which a run goes on."""

import argparse
from typing import Any

import numpy as np

from cusp.apps.run.result import Result
from cusp.errors import GraphFileError, InputError, check_same, shortened, together
from cusp.input.slab import read_slab
from cusp.names.graph_names import has_names, mapped_names
from cusp.names.names import Names, SortedNames
from cusp.names.packed import unite
from cusp.output.gid_order import at_gids
from cusp.partition import Partition
from cusp.runtime.devices import move, to_host
from cusp.runtime.files import described
from cusp.runtime.mpi import MPI


class FormerError(InputError):
    """A former answer that is damaged, or not one on this graph before it grew."""


class Former:
    """What a run wrote by ``--output`` as HDF5, or returned, of the nodes that there were.

    Parameters
    ----------
    path : str
        On a file system that all ranks share; empty in a rehearsal, for whose graph no node has an answer.
    names : Names or None
        What nodes are called now. If they have names, they are found by these, else by their global ids.
    result : Result, optional
        In place of the file, which is not there then.
    """

    def __init__(self, path: str, names: Names | None, result: Result | None = None) -> None:
        self.path, self._names, self._result = path, names, result

    def label(
        self, part: Partition, comm: MPI.Intracomm, name: str, kinds: str, missing: Any, nodes: bool = False
    ) -> Any:
        """(masters,) a label of the former answer, on the device. Collective.

        Parameters
        ----------
        kinds : str
            Of the NumPy types that it may have: ``i`` or ``f``.
        missing : number or (masters,) numbers
            What nodes have that were not there.
        nodes : bool
            Its values are nodes, which may have other numbers now.

        Raises
        ------
        FormerError, GraphFileError
            On every rank: the file is damaged, has no such label, or is about nodes that the graph has not.
        """
        if not self.path:
            return move(np.full(part.num_masters, to_host(missing), np.dtype(f"{kinds[0]}8")), part.device)
        slab, size = self._read(name, comm)
        with together(comm):
            if slab.dtype.kind not in kinds:
                raise FormerError(f"{self.path}: /{name} has {slab.dtype}: it was written with weights of another kind")
            if size > part.num_nodes:
                raise FormerError(f"{self.path}: has {size:,} nodes, and the graph has only {part.num_nodes:,}")
            if nodes and slab.size and not 0 <= slab.min() <= slab.max() < size:
                raise FormerError(f"{self.path}: /{name} has values that are no nodes")
            numbers = self._numbers(size)
        gids = to_host(part.gids[: part.num_masters])
        if numbers is not None:
            former = np.full(part.num_nodes, size)
            former[numbers] = np.arange(size)
            gids, slab = former[gids], numbers[slab] if nodes else slab
        known = gids < size
        values = np.empty(gids.size, slab.dtype)
        values[...] = to_host(missing)
        values[known] = at_gids(slab, gids[known], size, comm)
        return move(values, part.device)

    def _read(self, name: str, comm: MPI.Intracomm) -> tuple[np.ndarray, int]:
        """This rank's even share of a label, and how many nodes have one. Collective."""
        if self._result is None:
            try:
                return read_slab(self.path, name, comm)
            except GraphFileError as error:  # on every rank
                text = str(error).partition(";")[0]
                raise FormerError(f"{text}; name what --output wrote as HDF5 for the same algorithm") from None
        with together(comm):
            if name not in self._result.values:
                raise FormerError(f"{self.path}: has no {name} of all nodes; give what the same function returned")
        values, size = self._result.values[name], self._result.values[name].size
        return values[size * comm.rank // comm.size : size * (comm.rank + 1) // comm.size], size

    def _numbers(self, size: int) -> np.ndarray | None:
        """(size,) int64: which nodes the former ones are now; None if their numbers are the same."""
        now, then = self._names, self._result.names if self._result else None
        if self._result is None and has_names(self.path):
            then = mapped_names(self.path, size)
        if now is None and then is None:
            return None
        if now is None or then is None:
            has, lacks = ("the answer", "the graph") if now is None else ("the graph", "the answer")
            raise FormerError(f"{self.path}: the nodes of {has} have names, and those of {lacks} have none")
        if isinstance(now, SortedNames) and isinstance(then, SortedNames):
            united, known, numbers = unite(now.packed(), then.packed())
            gids = np.full(len(united), -1)
            gids[known] = np.arange(len(now))
            numbers = gids[numbers]
        else:
            numbers = np.array([-1 if (gid := now.find(name)) is None else gid for name in then], np.int64)
        if (numbers < 0).any():
            raise FormerError(f"{self.path}: the graph has no node {shortened(repr(then[int(numbers.argmin())]))}")
        return numbers


REHEARSED = {"start": lambda given: Former("", None) if given else None}  # of an App with the option


def add_from_option(parser: argparse.ArgumentParser) -> None:
    """The option of an app whose answer can be improved when edges are added."""
    text = "go on from this answer on the graph before nodes and edges were added: what --output wrote as HDF5"
    parser.add_argument("--from", dest="start", type=_answer, metavar="FILE.h5", help=text)


def _answer(text: str) -> Any:
    """Type of the option: the name of a file; as a keyword, also what a function returned."""
    return text


def open_former(
    comm: MPI.Intracomm, options: argparse.Namespace, names: Names | None, result: Result | None = None
) -> Former | None:
    """The former answer that the options name, or None. Collective.

    Raises
    ------
    GraphFileError, OptionError
        On every rank: there is no such file, or not the same on all.
    """
    path = getattr(options, "start", None)
    if path is None:
        return None
    if result is None:
        with together(comm):
            given = described(path)
        check_same(comm, "answers", given)
    return Former(path, names, result)
