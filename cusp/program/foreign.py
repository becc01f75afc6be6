"""The graph that a command names, whatever its format."""

import argparse
from dataclasses import replace

from cusp.convert.conversion import read_slice, request_of
from cusp.convert.memory_input import header_of
from cusp.errors import check_same, together
from cusp.formats import is_graph_file
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader, read_header
from cusp.program import report
from cusp.program.cli import refuse_foreign_options
from cusp.runtime.mpi import MPI


def open_graph(comm: MPI.Intracomm, options: argparse.Namespace) -> tuple[GraphHeader, EdgeSlice | None]:
    """What is known of a graph file; or, of a file of another format, this rank's slice of it too. Collective.

    Raises
    ------
    GraphFileError, OptionError
        On every rank.
    """
    with together(comm):
        header = read_header(options.graph) if is_graph_file(options.graph) else None
        if header is not None:
            refuse_foreign_options(options)
    check_same(comm, "graphs", header and replace(header, path=""))
    if header is not None:
        return header, None
    graph = read_slice(comm, request_of(options, input=options.graph, seed=1))
    for note in graph.notes:
        report.say(comm.rank, note)
    return header_of(options.graph, graph.edges), graph.edges
