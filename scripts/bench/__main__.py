"""Measure this machine: ``python -m scripts.bench WHAT``; each prints a table and appends rows to benchmarks/.

cpu            partitioning, the apps and the conversion of an edge list, on a Kronecker graph
first-hour     minutes from an empty folder to an answer about own data of seven kinds
quality        replication, balance and seconds of every policy on real graphs and kron20, and of METIS
cores          algorithms by the threads of one rank, beside the GAP benchmark suite and the speed of memory
pays           algorithms by policy and number of ranks, on one host or on hosts with limited links
hosts          algorithms by transport, on hosts with limited links that have several ranks each
plans          what cusp plan predicts from runs on one host, beside what runs on several took
samples        samples of neighbours and random walks, beside pyg-lib
start          whole commands, the first time and again, by their parts; beside other programs
compare-trees  partitionings and algorithms of this checkout, of others and of the GAP benchmark suite
ladder         every textbook form of breadth-first search on one GPU
gpu            algorithms on one GPU
               on several ranks and graphs, or with a memory limit: mpirun -n 4 python -m scripts.bench.algorithms
               with --verify, seconds of checks beside those of runs, too
"""

import argparse
import sys

from scripts.bench import compare_trees, cores, cpu, first_hour, gpu, quality, samples, start
from scripts.bench.clusters import hosts, pays, plans
from scripts.bench.ladder import bench as ladder

MODULES = (cpu, first_hour, cores, quality, pays, hosts, plans, samples, start, compare_trees, gpu)
BENCHMARKS = {module.__name__.rpartition(".")[2].replace("_", "-"): module for module in MODULES} | {"ladder": ladder}


def main() -> int:
    """Run the requested benchmark; the exit code is 0 if all of it ran, whatever the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    for name, module in BENCHMARKS.items():
        command = commands.add_parser(
            name, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_options(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args()
    options.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
