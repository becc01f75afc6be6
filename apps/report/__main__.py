"""Write a page (HTML) about a partition: load, partners, replication, phases; and about runs of algorithms on it.

::

    mpirun -n 4 cusp report graph.h5 --policy cvc -o report.html
    mpirun -n 4 cusp report graph.h5 --policy mine.py --apps bfs,pagerank,cc --source 17 -o report.html

The page is one self-contained file; its charts need matplotlib. The graph is partitioned across the ranks of the job:
use ``cusp compare`` for other numbers of parts.
"""

import argparse

from cusp.apps.library import APPS, partition_graph, partition_keywords
from cusp.apps.report.figures import collect
from cusp.apps.report.page import page
from cusp.apps.run.cli import add_transport_option
from cusp.errors import OptionError, together
from cusp.estimates.plot import pyplot_for
from cusp.launch import parse_together, parser_for, run_main
from cusp.output.whole_file import OutputError, check_targets, whole_file
from cusp.program import report
from cusp.program.cli import add_partition_options, add_watching, inputs_of, one_node
from cusp.runtime.mpi import MPI


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = parser_for("cusp.apps.report", __doc__)
    parser.add_argument("graph", help="graph file, folder of a saved partition, or any file that cusp convert takes")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.html", help="the page")
    parser.add_argument(
        "--apps", default="bfs,pagerank", metavar="A,B,...", help="apps to run, or none (default: %(default)s)"
    )
    parser.add_argument("--source", type=one_node, metavar="NODE", help="their source (default: most out-edges)")
    parser.add_argument("--columns", metavar="S,T[,W]", help="columns of a table")
    parser.add_argument("--symmetrize", action="store_true", help="add the reverse of every edge of a table")
    add_partition_options(parser)
    add_transport_option(parser)
    add_watching(parser)
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Partition, run and write the page. Collective."""
    options = parse_together(comm, make_parser(), argv)
    check_targets(comm, {"-o": options.output}, inputs_of(options))
    with together(comm):
        apps = [] if options.apps == "none" else options.apps.split(",")
        unknown = [name for name in apps if name not in APPS]
        if unknown:
            raise OptionError(
                f"--apps {options.apps}: there is no {unknown[0]!r}; choose one of {', '.join(APPS)}, or none"
            )
        pyplot_for("-o", options.output)
        if not options.output.endswith((".html", ".htm")):
            raise OutputError(f"-o {options.output}: the page is HTML, so its name must end with .html")
    how = {action.dest: getattr(options, action.dest) for action in partition_keywords().actions}
    report.progress(comm.rank, "partitioning")
    graph = partition_graph(options.graph, comm=comm, columns=options.columns, symmetrize=options.symmetrize, **how)
    figures = collect(graph, options.graph, apps, options.source)
    report.progress(comm.rank, "")
    with together(comm):
        if comm.rank == 0:
            with whole_file(options.output) as temporary:
                temporary.write_text(page(figures), encoding="utf-8")
    report.say(comm.rank, f"wrote {options.output}: {graph!r}, {len(apps)} runs")
    return 0


if __name__ == "__main__":
    run_main(main)
