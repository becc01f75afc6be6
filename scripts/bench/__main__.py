"""Measure this machine: ``python -m scripts.bench WHAT``; each prints a table and appends rows to benchmarks/.

cpu            partitioning, the apps and the conversion of an edge list, on a Kronecker graph
first-hour     minutes from an empty folder to an answer about own data of seven kinds
quality        replication, balance and seconds of every policy on real graphs and kron20, and of offline partitioners
rounds         cost and benefit of more rounds of state
user-file      a policy in a user's file, compared with the built-in one of the same rules
semiring       BFS, SSSP and PageRank as products of a matrix and vectors, compared with the apps
compare-trees  partitionings and searches of this checkout, compared with those of another one
ladder         every textbook form of breadth-first search on one GPU
gpu            algorithms on one GPU; on several: mpirun -n 4 python -m scripts.bench.gpus, or .gpu_partition GRAPH
               graphs larger than the memory of a card: python -m scripts.bench.limited
               seven algorithms on a folder of graphs: mpirun -n 2 python -m scripts.bench.many FOLDER
"""

import argparse
import sys

from scripts.bench import compare_trees, cpu, first_hour, gpu, quality, rounds, semiring, user_file
from scripts.bench.ladder import bench as ladder

BENCHMARKS = {
    "cpu": cpu,
    "first-hour": first_hour,
    "quality": quality,
    "rounds": rounds,
    "user-file": user_file,
    "semiring": semiring,
    "compare-trees": compare_trees,
    "gpu": gpu,
    "ladder": ladder,
}


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
