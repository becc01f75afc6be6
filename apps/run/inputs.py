"""Where an app's partition comes from: a graph file, a folder with a saved partition, or a graph made now."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpi4py import MPI

from apps.run.cli import DEFAULT_SCALE
from cusp.edge_lists.csr_builder import CsrSlice
from cusp.errors import OptionError, together
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader, read_header
from cusp.input.memory_input import slice_of_rows
from cusp.output.manifest import read_manifest
from cusp.output.saved import load_partition
from cusp.partition import Partition
from cusp.partitioner import partition_graph, partition_slice
from cusp.policies import Policy, load_policy
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.program.cli import policy_parameters
from cusp.runtime.stopwatch import Stopwatch

Generate = Callable[[MPI.Intracomm, argparse.Namespace], tuple[str, CsrSlice]]


@dataclass(frozen=True)
class Input:
    """What will be partitioned, before any of it is read.

    Attributes
    ----------
    header : GraphHeader
    compiled : CompiledPolicy
    build : function (stopwatch, csc) -> Partition
        Collective.
    """

    header: GraphHeader
    compiled: CompiledPolicy
    build: Callable[[Stopwatch, bool], Partition]

    @property
    def policy(self) -> Policy:
        """What is compiled."""
        return self.compiled.policy

    @property
    def name(self) -> str:
        """Of the graph, for tables and rows."""
        return os.path.splitext(os.path.basename(self.header.path))[0]


def open_input(
    comm: MPI.Intracomm, options: argparse.Namespace, weighted: bool, device: str, generate: Generate | None = None
) -> Input:
    """Check what the command line names, and make the graph where there is no file of it. Collective.

    Raises
    ------
    GraphFileError, SavedError, PolicyError, OptionError
        On every rank.
    """
    if options.graph and not generate and os.path.isdir(options.graph):
        return _saved(comm, options.graph, weighted, options.memory_limit, device)
    limit = options.memory_limit
    with together(comm):
        if limit and (generate or not options.graph):
            raise OptionError("--memory-limit: needs a graph file; a graph that is made now is made in memory")
        compiled = compile_policy(load_policy(options.policy, **policy_parameters(options)), device)
        compiled.policy.grid_for(comm.size)
        header = read_header(options.graph) if options.graph and not generate else None
    if header is None:
        made = generate(comm, options) if generate else _small_rmat(comm, options, weighted)
        header, edges = _in_memory(comm, *made)
        return Input(
            header,
            compiled,
            lambda watch, csc: partition_slice(edges, compiled, comm, options.order, csc, watch, device),
        )
    return _from_file(comm, header, compiled, options.split, options.order, weighted, limit, device)


def _from_file(
    comm: MPI.Intracomm,
    header: GraphHeader,
    compiled: CompiledPolicy,
    split: str,
    order: str,
    weighted: bool,
    memory_limit: int | None,
    device: str,
) -> Input:
    def build(watch: Stopwatch, csc: bool) -> Partition:
        return partition_graph(header.path, compiled, comm, split, weighted, order, csc, watch, memory_limit, device)

    return Input(header, compiled, build)


def _saved(comm: MPI.Intracomm, folder: str, weighted: bool, memory_limit: int | None, device: str) -> Input:
    """A saved partition, as it is or, on another number of ranks, made again from its graph."""
    with together(comm):
        manifest = read_manifest(folder)
        parameters: dict[str, Any] = dict(manifest.parameters)
        same_size = manifest.ranks == comm.size
        if parameters.get("grid"):
            parameters["grid"] = tuple(parameters["grid"]) if same_size else None
        compiled = compile_policy(load_policy(manifest.policy, **parameters), device)
        header = manifest.header() if same_size else read_header(manifest.graph)
    if not same_size:
        return _from_file(comm, header, compiled, manifest.split, manifest.order, weighted, memory_limit, device)

    def load(watch: Stopwatch, csc: bool) -> Partition:
        with watch("read"):
            part = load_partition(folder, comm, weighted, memory_limit).on(device)
            return part.with_csc() if csc else part

    return Input(header, compiled, load)


def _small_rmat(comm: MPI.Intracomm, options: argparse.Namespace, weighted: bool) -> tuple[str, CsrSlice]:
    """A small RMAT graph for those who have not brought one. Collective."""
    from cusp.edge_lists.generators import rmat_slice

    return f"rmat{DEFAULT_SCALE}", rmat_slice(
        comm, DEFAULT_SCALE, seed=options.seed, weights="1:255" if weighted else None
    )


def _in_memory(comm: MPI.Intracomm, name: str, rows: CsrSlice) -> tuple[GraphHeader, EdgeSlice]:
    """A graph that was made now, as if it had been read. Collective."""
    weight_dtype = None if rows.weights is None else rows.weights.dtype
    header = GraphHeader(name, rows.num_nodes, rows.num_edges, rows.symmetric, rows.indices.dtype, weight_dtype, False)
    return header, slice_of_rows(rows, comm)
