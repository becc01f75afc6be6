"""Where an app's partition comes from: a graph file, a folder with a saved partition, or a graph in memory."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from cusp.apps.run.cli import DEFAULT_SCALE
from cusp.card.limit import limit_card
from cusp.convert.conversion import read_slice, request_of
from cusp.convert.memory_input import NamedSlice, header_of
from cusp.errors import GraphFileError, OptionError, PolicyError, check_same, forgiven, together
from cusp.formats import is_graph_file, recognise
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader, read_header
from cusp.names.graph_names import read_names
from cusp.output.manifest import Manifest, SavedError, read_manifest
from cusp.output.saved import load_partition
from cusp.partition import Partition
from cusp.partitioner import partition_graph, partition_slice
from cusp.policies import Policy, load_policy
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.policies.policy import is_built_in
from cusp.program import report
from cusp.program.choose import chosen_policy, named_policy
from cusp.program.cli import refuse_foreign_options
from cusp.program.shares import with_shares
from cusp.runtime.devices import Placement
from cusp.runtime.files import check_unchanged
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch

DEFAULT_POLICY = "oec"  # of --policy
STAND_IN = "dbh"  # is rehearsed for a partition whose policy is not built in: it cuts edges in every way
Generate = Callable[[MPI.Intracomm, argparse.Namespace], tuple[str, EdgeSlice]]


@dataclass(frozen=True)
class Input:
    """What will be partitioned, before any of it is read.

    Attributes
    ----------
    header : GraphHeader
    compiled : CompiledPolicy
    build : function (stopwatch, csc) -> Partition
        Collective.
    settled : list of str
        Lines about the policy, if it was chosen, and the shares of ranks, if they are not those that were asked for.
    names : Names or None
        What the nodes are called.
    notes, unused : list of str
        See :class:`cusp.formats.source.EdgeSource`.
    """

    header: GraphHeader
    compiled: CompiledPolicy
    build: Callable[[Stopwatch, bool], Partition]
    settled: list[str] = field(default_factory=list)
    names: Any = None
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    @property
    def policy(self) -> Policy:
        """What is compiled."""
        return self.compiled.policy

    @property
    def name(self) -> str:
        """Of the graph, for tables and rows."""
        return os.path.splitext(os.path.basename(self.header.path))[0]


def open_input(
    comm: MPI.Intracomm, options: argparse.Namespace, weighted: bool, placement: Placement,
    generate: Generate | None = None, insist: bool = True,
) -> Input:  # fmt: skip
    """Check what the command line names, and generate the graph if there is no file. Collective.

    ``insist``: refuse a table without weights, if ``weighted``, whose columns of numbers may be meant as such.

    Raises
    ------
    GraphFileError, SavedError, PolicyError, OptionError
        On every rank.
    """
    is_file = bool(options.graph) and generate is None
    is_folder = is_file and os.path.isdir(options.graph)
    with together(comm):
        foreign = is_file and not is_folder and not is_graph_file(options.graph)
        if not foreign:
            refuse_foreign_options(options)
        if options.memory_limit and (foreign or not is_file):
            raise OptionError("--memory-limit: needs a graph file, from cusp convert; this graph is in memory")
        compiled = None if is_folder else compile_policy(named_policy(options, comm.size), placement.device)
        header = read_header(options.graph) if is_file and not is_folder and not foreign else None
    kind = "a folder" if is_folder else "a file of another format" if foreign else header and replace(header, path="")
    check_same(comm, "graphs", kind)
    if compiled is None:
        return _open_saved(comm, options, weighted, placement)
    if header is not None:
        return _open_file(comm, header, compiled, options, weighted, placement)
    if foreign:
        weights = options.weights if weighted else "none"
        request = request_of(options, input=options.graph, weights=weights, insist=insist)
        source = open_slice(comm, options.graph, read_slice(comm, request), compiled, options, placement)
        faster = f"{options.graph}: {options.format or recognise(Path(options.graph))}, read edge by edge; "
        return replace(source, notes=[faster + "cusp convert makes a graph file, which opens faster", *source.notes])
    if generate is None:
        report.say(comm.rank, f"no graph was named: this is rmat{DEFAULT_SCALE}, a random one, made for this run")
    name, edges = (generate or partial(_small_rmat, weighted))(comm, options)
    return open_slice(comm, name, NamedSlice(edges, None), compiled, options, placement)


def _settled(
    compiled: CompiledPolicy, options: argparse.Namespace, header: GraphHeader, edges: EdgeSlice | None,
    placement: Placement, comm: MPI.Intracomm,
) -> tuple[CompiledPolicy, list[str]]:  # fmt: skip
    """The policy, chosen if it is to be, with the shares of ranks, and lines about both. Collective."""
    policy, why = chosen_policy(compiled.policy, options, header, edges, placement, comm.size, comm)
    policy, shares = with_shares(policy, options.shares, header, placement, comm)
    compiled = compiled if policy is compiled.policy else compile_policy(policy, placement.device)
    return compiled, [line for line in (why, shares) if line]


def open_slice(
    comm: MPI.Intracomm, name: str, graph: NamedSlice, compiled: CompiledPolicy, options: argparse.Namespace,
    placement: Placement,
) -> Input:  # fmt: skip
    """A graph in memory, whose nodes may have names, as if it were in a file. Collective."""
    edges, device = graph.edges, placement.device
    header = header_of(name, edges)
    compiled, lines = _settled(compiled, options, header, edges, placement, comm)

    def build(watch: Stopwatch, csc: bool) -> Partition:
        return partition_slice(edges, compiled, comm, options.order, csc, watch, device, options.split)

    return Input(header, compiled, build, lines, graph.names, graph.notes, graph.unused)


def _open_file(
    comm: MPI.Intracomm, header: GraphHeader, compiled: CompiledPolicy, options: argparse.Namespace, weighted: bool,
    placement: Placement,
) -> Input:  # fmt: skip
    compiled, lines = _settled(compiled, options, header, None, placement, comm)

    def build(watch: Stopwatch, csc: bool) -> Partition:
        limit, device = options.memory_limit, placement.device
        part = partition_graph(
            header.path, compiled, comm, options.split, weighted, options.order, csc, watch, limit, device
        )
        with together(comm):  # what was prepared for is what was read
            check_unchanged(header.path, header.stamp)
        return part

    return Input(header, compiled, build, lines, read_names(header.path, comm, header.num_nodes))


def _open_saved(comm: MPI.Intracomm, options: argparse.Namespace, weighted: bool, placement: Placement) -> Input:
    """A saved partition as it is or, on another number of ranks, made again from its graph."""
    folder, device = options.graph, placement.device
    with together(comm):
        manifest = read_manifest(folder)
        if manifest.ranks != comm.size:
            _refuse_added(folder, manifest)
            manifest.check_regular(folder)
            policy, again = _policy_again(comm, manifest, options)
            header = read_header(manifest.graph)
        else:
            if options.shares:
                raise OptionError(f"--shares: the partition in {folder} is made already; --save one with other shares")
            known = is_built_in(manifest.policy)
            policy = load_policy(manifest.policy if known else STAND_IN, **manifest.policy_parameters())
            policy, header = replace(policy, name=manifest.policy), manifest.header()
        compiled = compile_policy(policy, device)
    check_same(comm, "partitions", manifest)
    if manifest.ranks != comm.size:
        report.warn(
            comm.rank, f"{folder}: was saved for {manifest.ranks} ranks; the graph {manifest.graph} is divided anew "
            f"among {comm.size} by {policy.name}"
        )  # fmt: skip
        return _open_file(comm, header, compiled, again, weighted, placement)

    def load(watch: Stopwatch, csc: bool) -> Partition:
        with watch("read"):
            limit_card(manifest.header(), device, options.memory_limit, comm)
            limit = options.memory_limit if device == "cpu" else None
            part = load_partition(folder, comm, weighted, limit).on(device)
            return part.with_csc() if csc else part

    names = None
    with forgiven(comm, GraphFileError):  # the graph may be gone; loading checks it
        names = read_names(manifest.graph, comm, manifest.num_nodes)
    return Input(header, compiled, load, names=names)


def _refuse_added(folder: str, manifest: Manifest) -> None:
    if manifest.added:
        raise SavedError(
            f"{folder}: was saved for {manifest.ranks} ranks, and has edges that its graph {manifest.graph} lacks, so "
            "that it cannot be divided anew: run it on as many ranks, or add the edges to the graph file too, with "
            "cusp add, and partition that"
        )


def _policy_again(
    comm: MPI.Intracomm, manifest: Manifest, options: argparse.Namespace
) -> tuple[Policy, argparse.Namespace]:
    """The policy for a saved graph on another number of ranks, and the options to partition it with.

    What a manifest names is code or a file of somebody else: only a user may name that.
    """
    if options.policy != DEFAULT_POLICY:
        return named_policy(options, comm.size), options
    if not is_built_in(manifest.policy) or manifest.parameters.get("node_map"):
        more = " --node-map FILE" if manifest.parameters.get("node_map") else ""
        raise PolicyError(
            f"{options.graph}: was made for {manifest.ranks} ranks by a policy that is not built in; on {comm.size} "
            f"ranks it would be made again: if you trust that policy, add --policy {manifest.policy}{more}, or take "
            f"another, or the graph file {manifest.graph}"
        )
    policy = load_policy(manifest.policy, **manifest.policy_parameters() | {"grid": None})
    return policy, argparse.Namespace(**vars(options) | {"split": manifest.split, "order": manifest.order})


def _small_rmat(weighted: bool, comm: MPI.Intracomm, options: argparse.Namespace) -> tuple[str, EdgeSlice]:
    """A small RMAT graph, for a start without a file. Collective."""
    from cusp.edge_lists.generators import generate

    weights = "1:255" if weighted else None
    builder = generate(
        "rmat", comm, scale=DEFAULT_SCALE, seed=options.seed, weights=weights,
        symmetrize=True, drop_loops=True, dedup=True,
    )  # fmt: skip
    return f"rmat{DEFAULT_SCALE}", builder.build()
