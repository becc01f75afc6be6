"""A partitioned graph as scripts and notebooks hold it, with what algorithms have prepared for it."""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np

from cusp.apps.harness import App, rehearse, wait
from cusp.apps.run.cli import gids_of, weights_of
from cusp.apps.run.result import gather_by_gid
from cusp.convert.memory_input import header_of
from cusp.estimates.quality import Quality, measure_quality
from cusp.names.names import Names, gid_of_node
from cusp.partition import Partition
from cusp.policies import Policy
from cusp.program.warm_up import warm_up
from cusp.runtime.devices import name_of, to_host
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch
from gluon.plan import SyncPlan, make_plan
from gluon.sync import Sync


class PartitionedGraph:
    """A graph that is partitioned across the ranks, and what algorithms have prepared for it.

    >>> from cusp import partition_graph
    >>> graph = partition_graph(([0, 0, 1, 2], [1, 2, 3, 3]))
    >>> graph.num_nodes, graph.num_edges, graph.degrees, graph.neighbors(0)
    (4, 4, array([2, 1, 1, 0]), [1, 2])

    Attributes
    ----------
    part : Partition
        What this rank has of it.
    names : Names or None
        What the nodes 0, 1, 2 ... are called, if they have names.
    unused : list of str
        For each column of numbers that might be weights, but was not named: ``columns`` with it.
    quality : Quality
    seconds : dict of float
        By phase, how long this rank took to make it.
    preparation_seconds : dict of float
        By name of an app, how long it prepared for its runs, on the slowest rank.
    """

    def __init__(
        self, part: Partition, comm: MPI.Intracomm, policy: Policy, names: Names | None, transport: str,
        watch: Stopwatch, unused: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.unused = unused
        self.part, self.comm, self.policy, self.names = part, comm, policy, names
        with watch("plan"):
            self.plan: SyncPlan = make_plan(part, comm, transport)
        self.seconds = watch.seconds
        self.quality: Quality = measure_quality(part, comm)
        self.preparation_seconds: dict[str, float] = {}
        self._ready: dict[str, tuple[argparse.Namespace, Any]] = {}

    def __repr__(self) -> str:
        part = self.part
        return (
            f"PartitionedGraph({part.num_nodes:,} nodes, {part.num_edges:,} edges; {self.policy.name} on "
            f"{part.num_ranks} rank(s), {name_of(self.plan.devices)}, replication {self.quality.replication:.2f})"
        )

    def gid(self, node: Any) -> int:
        """Global id of a node, which is given by its name if nodes have names.

        Raises
        ------
        OptionError
            There is no such node.
        """
        return gid_of_node(node, self.names, self.part.num_nodes)

    @property
    def num_nodes(self) -> int:
        """Nodes of the whole graph."""
        return self.part.num_nodes

    @property
    def num_edges(self) -> int:
        """Edges of the whole graph; in one that is symmetric, each counts in both directions."""
        return self.part.num_edges

    @cached_property
    def degrees(self) -> np.ndarray:
        """(nodes,) int64: the out-degree of every node by global id, on every rank. Collective when first asked for."""
        return gather_by_gid(self.part, to_host(self.part.degrees), self.comm)

    def out_degree(self, node: Any) -> int:
        """Out-edges of a node, which is given by its name if nodes have names. Collective."""
        lid = self.part.lid(self.gid(node))
        own = int(self.part.degrees[lid]) if 0 <= lid < self.part.num_masters else 0
        return int(self.comm.allreduce(own))

    def neighbors(self, node: Any) -> list:
        """The targets of a node's out-edges, each once, by name if nodes have names; on every rank. Collective."""
        lid, part = self.part.lid(self.gid(node)), self.part
        first, last = part.offsets[lid : lid + 2].tolist() if lid >= 0 else (0, 0)
        own = to_host(part.gids[part.targets[first:last]])
        gids = np.unique(np.concatenate(self.comm.allgather(own)))
        return gids.tolist() if self.names is None else self.names.of(gids)

    def gids(self, nodes: Any) -> Any:
        """The same of each node in a list, array or series, or in a file; None, or one node, is taken too.

        Those of a set by number: ranks may go through a set of texts in different orders.
        """
        if isinstance(nodes, (str, os.PathLike)) and not self._is_node(nodes) and os.path.isfile(nodes):
            return gids_of([os.fspath(nodes)], self.names, self.part.num_nodes, "nodes")
        several = isinstance(nodes, Iterable) and not isinstance(nodes, (str, bytes))
        if nodes is None or not several or self._is_node(nodes):
            return None if nodes is None else self.gid(nodes)
        found = [self.gid(node) for node in (np.asarray(nodes).tolist() if hasattr(nodes, "__array__") else nodes)]
        return sorted(found) if isinstance(nodes, Set) else found

    def weights_of(self, nodes: Any, option: str) -> list[str] | None:
        """Nodes with weights, from a dictionary, nodes that weigh the same, or a file, as a command line has them."""
        if nodes is None:
            return None
        if isinstance(nodes, os.PathLike) or (isinstance(nodes, str) and not self._is_node(nodes)):
            weights = weights_of([os.fspath(nodes)], self.names, self.part.num_nodes, option)
        elif isinstance(nodes, Mapping):
            weights = {self.gid(node): float(weight) for node, weight in nodes.items()}
        else:
            gids = self.gids(nodes)
            weights = dict.fromkeys(gids if isinstance(gids, list) else [gids], 1.0)
        return [f"{gid}:{weight}" for gid, weight in sorted(weights.items())]

    def _is_node(self, node: Any) -> bool:
        return self.names is not None and self.names.find(node) is not None

    def prepared(self, app: App, options: argparse.Namespace) -> Any:
        """What an app prepares for all its runs; kept until its options change. Collective."""
        known = self._ready.get(app.name)
        if known is None:
            self._rehearse(app, options)
        if known is None or known[0] != options:
            known = self._ready[app.name] = (options, self._prepare(app, options))
        return known[1]

    def _rehearse(self, app: App, options: argparse.Namespace) -> None:
        """Load the code of an app, compiled by few ranks for all. Collective."""
        header, how = header_of(app.name, self.part), (self.part.device, self.plan.transport)
        rules = self.policy.master, self.policy.edge
        warm_up(
            self.comm, header, lambda few, path: rehearse(app, few, self.policy, options, path, *how),
            (app.name, app.run, rules, how, repr(sorted(vars(options).items()))),
        )  # fmt: skip

    def _prepare(self, app: App, options: argparse.Namespace) -> Any:
        if app.needs_csc(options, self.part.symmetric) and self.part.csc is None:
            self.part = self.part.with_csc()
            self._ready.clear()
        watch = Stopwatch()
        with watch("prepare"):
            state = app.prepare(self.part, Sync(self.plan, self.comm, execution=options.execution), options)
            self.part.storage.settle()
            wait(self.part)
        self.preparation_seconds[app.name] = self.comm.allreduce(watch.seconds["prepare"], MPI.MAX)
        return state
