"""cusp add GRAPH EDGES: add edges, and the nodes that they name, to a graph file or to a saved partition.

    cusp add graph.h5 new.csv --output grown.h5
    mpirun -n 4 cusp add parts/ new.csv

A graph file takes any number of ranks, a saved partition as many as it has parts. What is there stays as it is until
the new file or parts are complete.
"""

import argparse
import os
import time
from dataclasses import replace

from cusp.convert.conversion import request_of
from cusp.errors import OptionError, PolicyError, check_same, together
from cusp.growth.edges import AddedEdges, grow_file, read_added
from cusp.growth.parts import renumbered
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import GraphHeader, read_header
from cusp.launch import Parser, num_bytes, parse_together, program, run_main
from cusp.names.graph_names import read_names
from cusp.output.manifest import Manifest, SavedError, read_manifest
from cusp.output.saved import load_partition, save_partition
from cusp.output.tables import HDF5, check_suffix
from cusp.output.whole_file import check_targets
from cusp.partitioner import partition_graph, partition_slice
from cusp.policies import Policy, load_policy
from cusp.policies.policy import is_built_in
from cusp.program import report
from cusp.program.cli import add_foreign_options
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime.mpi import MPI


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(
        prog=program("cusp.commands.add"),
        description="Add edges, and the nodes that they name, to a graph file or to a saved partition.",
    )
    add = parser.add_argument
    add("graph", metavar="GRAPH", help="graph file, or folder of a saved partition: on as many ranks as it has parts")
    add("edges", metavar="EDGES", help="file of any format that cusp convert takes")
    add("-o", "--output", metavar="PATH", help="graph file or folder to write (default: in place of GRAPH)")
    add_foreign_options(parser.add_argument_group("the file with edges"))
    add("--seed", type=int, default=1, help="seed of random weights (default: 1)")
    add("--memory-limit", type=num_bytes, metavar="4G", help="buffers of one rank; the rest goes to scratch files")
    add("--scratch", metavar="FOLDER", help="folder for scratch files (default: the system's)")
    parts = parser.add_argument_group("saved partition").add_argument
    text = "graph file to which the same edges were added, for names of new nodes and other numbers of ranks"
    parts("--graph", dest="grown", metavar="GROWN.h5", help=text)
    parts("--policy", help="its policy, if that is not built in: a Python file, or package.module:NAME")
    parts("--node-map", metavar="FILE", help="rank of each node, for the master rule map, also of the new nodes")
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Parse the command line and do what it says. Collective."""
    options = parse_together(comm, make_parser(), argv)
    began = time.perf_counter()
    is_folder = os.path.isdir(options.graph)
    check_same(comm, "graphs", "a folder" if is_folder else "a file")
    output = options.output or options.graph
    inputs = [options.edges, options.grown, *([] if output == options.graph else [options.graph])]
    check_targets(comm, {"--save" if is_folder else "--output": output}, inputs)
    before, now, notes = (_add_to_parts if is_folder else _add_to_file)(comm, options, output)
    if before.symmetric and not now.symmetric:
        notes.append(
            f"{output}: is no longer symmetric: not every edge of {options.edges} is there in both directions; "
            "--symmetrize adds the others"
        )
    report.say(comm.rank, *notes)
    nodes, edges = now.num_nodes - before.num_nodes, now.num_edges - before.num_edges
    sizes = f"{now.num_nodes:,} nodes ({nodes:,} new), {now.num_edges:,} edges ({edges:,} new)"
    report.say(comm.rank, f"{output}: {sizes} in {time.perf_counter() - began:.2f} s")
    return 0


def _add_to_file(
    comm: MPI.Intracomm, options: argparse.Namespace, output: str
) -> tuple[GraphHeader, GraphHeader, list[str]]:
    """What the graph was and is, and what there is to say of the edges. Collective."""
    with together(comm):
        given = [f"--{name}" for name in ("graph", "policy", "node-map")
                 if getattr(options, {"graph": "grown"}.get(name, name.replace("-", "_")))]  # fmt: skip
        if given:
            raise OptionError(f"{', '.join(given)}: for saved partitions; {options.graph} is a graph file")
        header = read_header(options.graph)
        check_suffix(output, HDF5, "--output")
    names = read_names(header.path, comm, header.num_nodes)
    added = read_added(comm, request_of(options, input=options.edges), header, names)
    grow_file(comm, header, added, output, options.memory_limit, options.scratch)
    with together(comm):
        return header, read_header(output), added.notes


def _add_to_parts(
    comm: MPI.Intracomm, options: argparse.Namespace, output: str
) -> tuple[GraphHeader, GraphHeader, list[str]]:
    """The same of a saved partition. Collective."""
    folder = options.graph
    with together(comm):
        manifest = read_manifest(folder)
        policy = _policy_of(manifest, options)
    check_same(comm, "partitions", manifest)
    part, before = load_partition(folder, comm), manifest.header()
    names = read_names(manifest.graph, comm, manifest.in_file("nodes"))
    added = read_added(comm, request_of(options, input=options.edges), before, names)
    more = {"nodes": added.edges.num_nodes - part.num_nodes, "edges": added.edges.num_edges}
    graph, missing = manifest.graph, {name: number + manifest.added.get(name, 0) for name, number in more.items()}
    symmetric = part.symmetric and added.edges.symmetric
    if options.grown:
        now = replace(before, num_nodes=part.num_nodes + more["nodes"], num_edges=part.num_edges + more["edges"])
        _check_grown(comm, options.grown, now, added)
        graph, missing = options.grown, {}
    elif added.numbers is not None:
        raise OptionError(
            f"{options.edges}: has names of new nodes, which are kept in a graph file: cusp add {manifest.graph} "
            f"{options.edges} --output GROWN.h5 first, then this command with --graph GROWN.h5"
        )
    edges = replace(added.edges, num_edges=part.num_edges + more["edges"], symmetric=symmetric)
    warm_up(comm, before, lambda few, path: _rehearse(few, path, policy))
    part = renumbered(part, added.numbers, edges.num_nodes)
    part = partition_slice(edges, policy, comm, manifest.order, onto=part)
    with together(comm):
        if comm.rank == 0 and read_manifest(folder) != manifest:
            raise SavedError(f"{folder}: another job has saved a partition there meanwhile; try again")
    save_partition(
        output, part, comm, graph=graph, policy=manifest.policy, parameters=manifest.parameters, order=manifest.order,
        split=manifest.split, added=missing,
    )  # fmt: skip
    return before, replace(before, num_nodes=part.num_nodes, num_edges=part.num_edges, symmetric=symmetric), added.notes


def _policy_of(manifest: Manifest, options: argparse.Namespace) -> Policy:
    """The policy of a saved partition; what a manifest names is code, or a file, that only a user may name."""
    parameters = manifest.policy_parameters() | {"node_map": options.node_map}
    if options.policy is None and not is_built_in(manifest.policy):
        raise PolicyError(
            f"{options.graph}: was made by a policy that is not built in: if you trust it, add --policy "
            f"{manifest.policy}"
        )
    if manifest.parameters.get("node_map") and not options.node_map:
        raise PolicyError(
            f"{options.graph}: was made with a node map: add --node-map FILE, with a rank for each node, old or new"
        )
    policy = load_policy(options.policy or manifest.policy, **parameters)
    policy.grid_for(manifest.ranks)
    return policy


def _check_grown(comm: MPI.Intracomm, path: str, expected: GraphHeader, added: AddedEdges) -> None:
    """Raise unless a file has the nodes and the number of edges of the grown graph. Collective."""
    with together(comm):
        header = read_header(path)
        for what in ("nodes", "edges"):
            found, wanted = (getattr(each, f"num_{what}") for each in (header, expected))
            if found != wanted:
                raise OptionError(f"--graph {path}: has {found:,} {what}, and the grown partition {wanted:,}")
    names = read_names(path, comm, header.num_nodes)
    with together(comm):
        same = (names is None) == (added.names is None) and (
            names is None or added.names is None or names.packed().arrow().equals(added.names.packed().arrow())
        )
        if not same:
            raise OptionError(f"--graph {path}: has other names of nodes than the grown partition")


def _rehearse(comm: MPI.Intracomm, path: str, policy: Policy) -> None:
    """Add the edges of a tiny graph, read by other ranks, to a partition of it. Collective."""
    policy = tiny_policy(policy, path)
    part, edges = partition_graph(path, policy, comm, split="nodes"), read_slice(path, comm)
    partition_slice(replace(edges, num_edges=2 * edges.num_edges), policy, comm, onto=part)


if __name__ == "__main__":
    run_main(main)
