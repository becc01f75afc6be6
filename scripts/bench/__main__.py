"""Measure this machine: ``python -m scripts.bench WHAT``; each prints a table and appends rows to benchmarks/.

On several ranks and graphs, or with a memory limit: mpirun -n 4 python -m scripts.bench.algorithms; with --verify,
seconds of checks beside those of runs, too.
"""

import argparse
import sys

from cusp.errors import InputError
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
        text = module.__doc__ or ""
        command = commands.add_parser(
            name, help=text.splitlines()[0], description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_options(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args()
    try:
        options.run(options)
    except InputError as error:
        sys.exit(f"error: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
