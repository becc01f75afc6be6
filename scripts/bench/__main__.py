"""Measure this machine: ``python -m scripts.bench WHAT``; each prints a table and appends rows to benchmarks/.

gpu        BFS and SSSP on one GPU
cpu        partitioning, BFS and SSSP of a Kronecker graph, and its conversion from an edge list
quality    replication, balance and seconds of every policy on real graphs and kron20, beside offline partitioners
rounds     what the number of rounds of state costs and gains
semiring   BFS, SSSP and PageRank as products of a matrix and vectors, beside the apps
user-file  a policy in a user's file beside the built-in one of the same rules
"""

import argparse
import sys

from scripts.bench import cpu, gpu, quality, rounds, semiring, user_file

BENCHMARKS = {
    "cpu": cpu,
    "gpu": gpu,
    "quality": quality,
    "rounds": rounds,
    "semiring": semiring,
    "user-file": user_file,
}


def main() -> int:
    """Run the benchmark asked for; the exit code is 0 if all of it ran, whatever the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    for name, module in BENCHMARKS.items():
        assert module.__doc__ is not None
        command = commands.add_parser(
            name, help=argparse.SUPPRESS, description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        module.add_options(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args()
    options.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
