"""What an app is, and what its answer is: all that the harness and the library know of an algorithm."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cusp.errors import OptionError
from cusp.input.edge_slice import EdgeSlice
from cusp.partition import Partition
from cusp.runtime.devices import move, to_host
from cusp.runtime.mpi import MPI
from gluon.sync import Sync


@dataclass(frozen=True)
class Answer:
    """What an algorithm computed, for the masters of this rank.

    Attributes
    ----------
    labels : dict of (masters,) arrays
        What ``--output`` writes.
    unreached : number, optional
        What the first of the labels is where no edges were traversed; if left out, all nodes have an answer.
    rounds : int, optional
    figures : dict of numbers
        What holds for the whole graph, the same on every rank: the number of triangles, the modularity ...
    edges : dict of (edges,) arrays
        The same as labels of this rank's edges, in their order in the partition; or, with ``source`` and ``target``,
        global ids, among them, of other pairs of nodes.
    table : dict of arrays
        Columns of a table that has no row for each node, the same on every rank. They have one shape, or broadcast to
        it: the origins of a matrix of distances are a column, (n, 1), its destinations a row, (1, m).
    arrays : dict of arrays
        What has a length of its own, such as a list of samples: of each rank some of the first dimension, those of rank
        0 first. All ranks name the same.
    """

    labels: dict[str, Any]
    unreached: Any = None
    rounds: Any = 0
    figures: dict[str, Any] = field(default_factory=dict)
    edges: dict[str, Any] = field(default_factory=dict)
    table: dict[str, np.ndarray] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        both = (self.labels.keys() | self.table.keys()) & self.figures.keys()
        assert not both, f"both a label and a figure are called {both}: a result has one attribute of each name"

    def rows(self, part: slice = slice(None)) -> dict[str, np.ndarray]:
        """The columns of some rows of the table."""
        return {name: each.flat[part] for name, each in zip(self.table, np.broadcast_arrays(*self.table.values()))}

    @property
    def reached(self) -> Any:
        """(masters,) bool, or None for all: nodes whose out-edges were traversed, for the rate of traversed edges."""
        return None if self.unreached is None else next(iter(self.labels.values())) != self.unreached

    def on(self, device: str) -> "Answer":
        """The same with its arrays in the memory of a device."""
        labels, edges, arrays = (
            {name: move(values, device) for name, values in each.items()}
            for each in (self.labels, self.edges, self.arrays)
        )
        return replace(self, labels=labels, edges=edges, arrays=arrays)

    def in_numbers(self) -> "Answer":
        """The same with rounds and figures as numbers of Python; the labels stay where they are."""
        figures = {name: to_host(value) for name, value in self.figures.items()}
        figures = {name: value.item() if isinstance(value, np.generic) else value for name, value in figures.items()}
        return replace(self, rounds=int(self.rounds), figures=figures)

    def on_host(self) -> "Answer":
        """The same in the memory of the host, with numbers of Python."""
        return self.in_numbers().on("cpu")


@dataclass(frozen=True)
class App:
    """An algorithm as the harness sees it.

    Attributes
    ----------
    name, summary : str
    run : function (part, sync, source, prepared, options) -> Answer
    verify : function (part, sync, source, answer, prepared, options)
        Raises VerificationError. The arrays of the answer are on the device of the partition, and ``prepared`` is what
        the run had. Without one, ``--verify`` is refused.
    nodes : tuple of str
        Labels whose values are nodes, or -1.
    listed : bool
        Its answer has arrays, which only HDF5 holds.
    show : function (part, sync, source, answer, options, name_of) -> list of str, or None
        Lines to print below the trials of a source, the same on every rank, from an answer in the memory of the host.
        ``name_of(gid)`` is what a node is called. Collective.
    needs_rounds : function (options) -> str
        Why it cannot run asynchronously; empty if it can.
    generate : function (comm, options) -> (name, EdgeSlice), or None
        Makes the graph instead of the harness. Collective.
    needs_source : bool
        It starts from one node; else ``source`` is None, and there are no options that choose sources.
    prepare : function (part, sync, options) -> anything
        Work that is done once for all sources; its seconds count as partitioning.
    add_options : function (parser)
    needs_csc : function (options, symmetric) -> bool
    weighted : bool, or function (options) -> bool
        Edge weights are read, unless an option ``unweighted`` says otherwise, or an option ``weighted`` is not given.
    seeded : bool
        Its answer depends on ``--seed``, which is a keyword of the function then.
    rehearsed : dict of options
        Values for the warm-up in place of those that may not fit its tiny graph, such as nodes by number; or functions
        of the value that was given.
    """

    name: str
    summary: str
    run: Callable[[Partition, Sync, Any, Any, argparse.Namespace], Answer]
    verify: Callable[[Partition, Sync, Any, Answer, Any, argparse.Namespace], None] | None = None
    prepare: Callable[[Partition, Sync, argparse.Namespace], Any] = lambda part, sync, options: None
    add_options: Callable[[argparse.ArgumentParser], object] = lambda parser: None
    needs_csc: Callable[[argparse.Namespace, bool], bool] = lambda options, symmetric: False
    weighted: bool | Callable[[argparse.Namespace], bool] = False
    needs_source: bool = True
    seeded: bool = False
    rehearsed: dict[str, Any] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    listed: bool = False
    show: Callable[[Partition, Sync, Any, Answer, argparse.Namespace, Callable[[int], str]], list[str]] | None = None
    needs_rounds: Callable[[argparse.Namespace], str] = lambda options: "each of its rounds needs all of the one before"
    generate: Callable[[MPI.Intracomm, argparse.Namespace], tuple[str, EdgeSlice]] | None = None

    def reads_weights(self, options: argparse.Namespace) -> bool:
        """Whether edge weights are read."""
        if callable(self.weighted):
            return self.weighted(options)
        return self.weighted and not getattr(options, "unweighted", not getattr(options, "weighted", True))

    def check_options(self, options: argparse.Namespace) -> None:
        """Raise OptionError if the app cannot run as ``execution`` and ``checkpoint`` say, or not ``verify``."""
        if options.verify and self.verify is None:
            raise OptionError(
                f"--verify: {self.name} has no verifier; leave it out, or give its App a function verify(part, sync, "
                "source, answer, prepared, options) that raises VerificationError"
            )
        why = self.needs_rounds(options) if options.execution == "async" else ""
        if why:
            raise OptionError(
                f"--execution async: {self.name} cannot do without rounds: {why}; use --execution bulk or auto"
            )
        if getattr(options, "start", None) and (getattr(options, "sources", None) or 1) > 1:
            raise OptionError("--from: is an answer from one source; leave out --sources, and name it with --source")
        self._check_checkpoint(options)

    def _check_checkpoint(self, options: argparse.Namespace) -> None:
        if not getattr(options, "checkpoint", None):
            if getattr(options, "every", None) is not None:
                raise OptionError("--every: says how often a checkpoint is written; name its file with --checkpoint")
            return
        sources = options.sources if self.needs_source else None
        if max(getattr(options, "trials", 1), sources or 1) > 1:
            raise OptionError("--checkpoint: is for one run; leave out --trials and --sources")
        if options.execution == "async":
            raise OptionError("--checkpoint: is written at the end of a round; use --execution bulk or auto")

    def check_answer(self, part: Partition, answer: Any) -> None:
        """Raise OptionError unless an answer has one value for each master."""
        if not isinstance(answer, Answer):
            raise OptionError(
                f"{self.name}: run returned {type(answer).__name__}; it returns an "
                "Answer({{name: label.masters()}})"
            )
        for name, values in answer.labels.items():
            shape = np.shape(values)
            if shape != (part.num_masters,):
                raise OptionError(
                    f"{self.name}: {name} in the answer has the shape {shape}, and this rank has {part.num_masters:,} "
                    f"masters of {part.num_proxies:,} proxies; give it label.masters()"
                )

    def check(
        self, part: Partition, sync: Sync, source: Any, answer: Answer, prepared: Any, options: argparse.Namespace
    ) -> None:
        """Verify an answer that may be on another device. Collective.

        Raises
        ------
        VerificationError
            On every rank.
        """
        assert self.verify is not None  # see check_options
        self.verify(part, sync, source, answer.on(part.device), prepared, options)
