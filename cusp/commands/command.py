"""The command ``cusp``: every program by its name, as ``cusp bfs graph.h5`` or ``mpirun -n 4 cusp bfs graph.h5``.

Unlike ``python -m``, it does not take modules of the current folder for ours, such as a folder ``apps`` of the user's.
On one rank, ``cusp --help`` and ``cusp --version`` load neither MPI nor numba.
"""

import argparse
import difflib
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from cusp import __version__
from cusp.runtime import signals


class Command(NamedTuple):
    """A program: ``module:what``, an App or a function ``main(comm, argv)``; the group and what the help says of it."""

    target: str
    group: str
    summary: str


PARTITIONS, GRAPHS, APPS = "Partitions", "Graph files", "Algorithms"
BENCHMARKS, PICTURES, MACHINE = "Benchmarks", "Pictures", "This machine"
COMMANDS = {
    "partition": Command("cusp.__main__:partition", PARTITIONS, "partition a graph; save or export the result"),
    "compare": Command("cusp.program.compare:compare", PARTITIONS, "compare several policies"),
    "plan": Command("cusp.commands.plan:main", PARTITIONS, "predict time, memory and cost on more ranks"),
    "policies": Command("cusp.__main__:policies", PARTITIONS, "list all policies"),
    "new-policy": Command("cusp.__main__:new_policy", PARTITIONS, "a commented policy file and its test"),
    "convert": Command("cusp.commands.convert:main", GRAPHS, "any format to a graph file; or a summary of it"),
    "add": Command("cusp.commands.add:main", GRAPHS, "more edges for a graph file or a saved partition"),
    "generate": Command("cusp.commands.generate:main", GRAPHS, "random graphs, road networks, grids, stars ..."),
    "bfs": Command("cusp.apps.bfs:APP", APPS, "hops from a source"),
    "sssp": Command("cusp.apps.sssp:APP", APPS, "distances from a source"),
    "path": Command("cusp.apps.path:APP", APPS, "shortest paths, node by node"),
    "paths": Command("cusp.apps.paths:APP", APPS, "the k shortest paths between two nodes"),
    "table": Command("cusp.apps.table:APP", APPS, "distances from many nodes to many"),
    "forest": Command("cusp.apps.forest:APP", APPS, "the nearest of many roots"),
    "widest": Command("cusp.apps.widest:APP", APPS, "paths whose least weight is largest"),
    "cc": Command("cusp.apps.cc:APP", APPS, "connected components"),
    "scc": Command("cusp.apps.scc:APP", APPS, "strongly connected components"),
    "pagerank": Command("cusp.apps.pagerank:APP", APPS, "PageRank"),
    "ppr": Command("cusp.apps.ppr:APP", APPS, "PageRank from each of many nodes"),
    "kcore": Command("cusp.apps.kcore:APP", APPS, "core numbers"),
    "triangles": Command("cusp.apps.triangles:APP", APPS, "triangles and clustering coefficients"),
    "betweenness": Command("cusp.apps.betweenness:APP", APPS, "betweenness centrality"),
    "closeness": Command("cusp.apps.closeness:APP", APPS, "closeness, harmonic closeness and eccentricity"),
    "eigenvector": Command("cusp.apps.eigenvector:APP", APPS, "eigenvector centrality"),
    "katz": Command("cusp.apps.katz:APP", APPS, "Katz centrality"),
    "hits": Command("cusp.apps.hits:APP", APPS, "hubs and authorities"),
    "mis": Command("cusp.apps.mis:APP", APPS, "a maximal independent set"),
    "msf": Command("cusp.apps.msf:APP", APPS, "a minimum spanning forest"),
    "similarity": Command("cusp.apps.similarity:APP", APPS, "neighbours that pairs of nodes have in common"),
    "truss": Command("cusp.apps.truss:APP", APPS, "trussness of edges, or one k-truss"),
    "coloring": Command("cusp.apps.coloring:APP", APPS, "colors that differ between neighbours"),
    "sample": Command("cusp.apps.sample:APP", APPS, "samples of neighbours, hop by hop"),
    "walks": Command("cusp.apps.walks:APP", APPS, "random walks"),
    "communities": Command("cusp.apps.communities:APP", APPS, "communities and their modularity"),
    "maze": Command("cusp.apps.maze:APP", APPS, "the shortest path through a maze"),
    "semiring": Command("cusp.apps.semiring:APP", APPS, "algorithms as products of matrices and vectors"),
    "graph500": Command("cusp.apps.graph500.__main__:main", BENCHMARKS, "Graph500: BFS and SSSP, validated"),
    "gap": Command("cusp.apps.gap:main", BENCHMARKS, "the kernels of the GAP benchmark suite"),
    "plot": Command("cusp.commands.plot_rows:main", PICTURES, "plot time and speed-up over ranks, from --rows"),
    "report": Command("cusp.apps.report.__main__:main", PICTURES, "a page about a partition and runs on it"),
    "draw-trace": Command("cusp.commands.draw_trace:main", PICTURES, "draw the timeline of each rank, from --trace"),
    "warm-up": Command("cusp.apps.warm_up:main", MACHINE, "compile all algorithms now, so that no command waits"),
}


def main() -> NoReturn:
    """Run the command that the first argument names, on every rank."""
    signals.start_program()
    if not sys.flags.safe_path:
        sys.path.append("")  # the current folder, last: for --policy package.module:NAME
    name, argv = (sys.argv[1:] or ["--help"])[0], sys.argv[2:]
    if name in COMMANDS:
        run(name, argv)
    code, text = about(name, argv)
    if signals.launched()[0] == 1:
        sys.exit(say(text, code))
    tell(code, text)


def tell(code: int, text: str) -> NoReturn:
    """Say something once, on several ranks, unless they were started with different commands. Collective."""
    from cusp.launch import check_commands, run_main  # loads MPI

    def main(comm: Any, argv: list[str]) -> int:
        check_commands(comm, argv)
        return int(say(text, code)) if comm.rank == 0 else code

    run_main(main)


def run(name: str, argv: list[str]) -> NoReturn:
    """Run a command on every rank. Collective."""
    from cusp.launch import run_main  # loads MPI

    sys.argv = [f"cusp {name}", *argv]
    run_main(load(name)[0])


def load(name: str) -> tuple[Callable[[Any, list[str]], int], argparse.ArgumentParser]:
    """The function ``main(comm, argv)`` of a command, and its command line."""
    path, _, attribute = COMMANDS[name].target.partition(":")
    module = importlib.import_module(path)
    found = getattr(module, attribute)
    if attribute == "APP":
        harness = importlib.import_module("cusp.apps.harness")
        return functools.partial(harness.main, found), harness.parser_of(found)
    return found, module.make_parser(name) if path == "cusp.__main__" else module.make_parser()


def about(name: str, argv: list[str]) -> tuple[int, str]:
    """The exit code, and what to say where the first argument is no command."""
    if name in ("-h", "--help", "help"):
        return 0, usage()
    if name in ("-V", "--version", "version"):
        return 0, f"cusp {__version__}"
    if name == "completion" and argv in (["bash"], ["zsh"]):
        from cusp.commands.completion import script

        return 0, script(argv[0], {command: load(command)[1] for command in COMMANDS})
    if name == "completion":
        return 2, "error: cusp completion bash, or cusp completion zsh"
    if os.path.exists(name):
        return 2, f"error: {name}: name a command first, such as cusp partition {name}; cusp --help lists all commands"
    near = sorted(difflib.get_close_matches(name, COMMANDS), key=lambda other: sorted(other) != sorted(name))
    return 2, f"error: no command {name!r}{f', but {near[0]!r}' if near else ''}; cusp --help lists all commands"


def say(text: str, code: int) -> int:
    """Write to standard output, or to that of errors with a code that is not 0; the code to exit with."""
    try:
        os.write(2 if code else 1, f"{text}\n".encode())
    except BrokenPipeError:  # the reader has left, as in "| head"
        return 1
    except OSError as error:
        sys.stderr.write(f"error: standard output: cannot be written: {error.strerror}\n")
        return 1
    return code


def usage() -> str:
    """What ``cusp --help`` prints."""
    groups = {command.group: "" for command in COMMANDS.values()}
    for name, command in COMMANDS.items():
        groups[command.group] += f"  {name:13}{command.summary}\n"
    lists = "\n".join(f"{group}\n{lines}" for group, lines in groups.items())
    return (
        "usage: cusp COMMAND ...; on several ranks: mpirun -n 4 cusp COMMAND ...\n"
        "Partition a graph across MPI ranks, and run algorithms on it.\n\n"
        f"{lists}\n"
        "cusp COMMAND --help    the options of a command\n"
        "cusp completion bash   a script that completes commands and options in bash; likewise zsh\n"
        "cusp --version"
    )
