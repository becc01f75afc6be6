"""The command ``cusp``: every program by its name, as ``cusp bfs graph.h5`` or ``mpirun -n 4 cusp bfs graph.h5``.

Unlike ``python -m``, it does not take modules of the current folder for ours, such as a folder ``apps`` of the user's.
``cusp --help`` and ``cusp --version`` load neither MPI nor numba.
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
BENCHMARKS, PICTURES = "Benchmarks", "Pictures"
COMMANDS = {
    "partition": Command("cusp.__main__:partition", PARTITIONS, "partition a graph; save or export the result"),
    "compare": Command("cusp.program.compare:compare", PARTITIONS, "the figures of several policies side by side"),
    "policies": Command("cusp.__main__:policies", PARTITIONS, "all that --policy knows"),
    "new-policy": Command("cusp.__main__:new_policy", PARTITIONS, "a commented policy file and its test"),
    "convert": Command("scripts.convert.__main__:main", GRAPHS, "any known format to a graph file; or what is in it"),
    "generate": Command("scripts.generate:main", GRAPHS, "random graphs, road networks, grids, stars ..."),
    "bfs": Command("apps.bfs:APP", APPS, "hops from a source"),
    "sssp": Command("apps.sssp:APP", APPS, "distances from a source"),
    "path": Command("apps.path:APP", APPS, "shortest paths, node by node"),
    "forest": Command("apps.forest:APP", APPS, "the nearest of many roots"),
    "widest": Command("apps.widest:APP", APPS, "paths whose least weight is largest"),
    "cc": Command("apps.cc:APP", APPS, "connected components"),
    "scc": Command("apps.scc:APP", APPS, "strongly connected components"),
    "pagerank": Command("apps.pagerank:APP", APPS, "PageRank"),
    "kcore": Command("apps.kcore:APP", APPS, "core numbers"),
    "triangles": Command("apps.triangles:APP", APPS, "triangles and clustering coefficients"),
    "betweenness": Command("apps.betweenness:APP", APPS, "betweenness centrality"),
    "communities": Command("apps.communities:APP", APPS, "communities and their modularity"),
    "maze": Command("apps.maze:APP", APPS, "the way through a maze"),
    "semiring": Command("apps.semiring:APP", APPS, "some of these as products of matrices and vectors"),
    "graph500": Command("apps.graph500.__main__:main", BENCHMARKS, "Graph500: BFS and SSSP, validated"),
    "gap": Command("apps.gap:main", BENCHMARKS, "the kernels of the GAP benchmark suite"),
    "plot": Command("scripts.plot_rows:main", PICTURES, "time and speed-up over ranks, of what --rows wrote"),
    "report": Command("scripts.report.__main__:main", PICTURES, "a page about a partition and runs on it"),
    "draw-trace": Command("scripts.draw_trace:main", PICTURES, "what each rank did when, of what --trace wrote"),
}


def main() -> NoReturn:
    """Run the command that the first argument names, on every rank."""
    signals.end_on_signals()
    if not sys.flags.safe_path:
        sys.path.append("")  # the current folder, last: for --policy package.module:NAME
    name, argv = (sys.argv[1:] or ["--help"])[0], sys.argv[2:]
    if name in COMMANDS:
        run(name, argv)
    code, text = about(name, argv)
    sys.exit(say(text, code) if signals.launched()[1] == 0 else code)


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
        harness = importlib.import_module("apps.harness")
        return functools.partial(harness.main, found), harness.parser_of(found)
    return found, module.make_parser(name) if path == "cusp.__main__" else module.make_parser()


def about(name: str, argv: list[str]) -> tuple[int, str]:
    """The exit code, and what to say where the first argument is no command."""
    if name in ("-h", "--help", "help"):
        return 0, usage()
    if name in ("-V", "--version", "version"):
        return 0, f"cusp {__version__}"
    if name == "completion" and argv in (["bash"], ["zsh"]):
        from scripts.completion import script

        return 0, script(argv[0], {command: load(command)[1] for command in COMMANDS})
    if name == "completion":
        return 2, "error: cusp completion bash, or cusp completion zsh"
    if os.path.exists(name):
        return 2, f"error: {name}: what to do with it? cusp partition {name} divides it; cusp --help lists all commands"
    near = difflib.get_close_matches(name, COMMANDS, 1)
    return 2, f"error: no command {name!r}{f', but {near[0]!r}' if near else ''}; cusp --help lists all commands"


def say(text: str, code: int) -> int | str:
    """Write to standard output, or to that of errors with a code that is not 0; what ``sys.exit`` gets then."""
    try:
        os.write(2 if code else 1, f"{text}\n".encode())
    except BrokenPipeError:  # the reader has left, as in "| head"
        return 1
    except OSError as error:
        return f"error: standard output: cannot be written: {error.strerror}"
    return code


def usage() -> str:
    """What ``cusp --help`` prints."""
    groups = {command.group: "" for command in COMMANDS.values()}
    for name, command in COMMANDS.items():
        groups[command.group] += f"  {name:13}{command.summary}\n"
    lists = "\n".join(f"{group}\n{lines}" for group, lines in groups.items())
    return (
        "usage: cusp COMMAND ...; on several ranks: mpirun -n 4 cusp COMMAND ...\n"
        "Divide a graph among MPI ranks, and run algorithms on it.\n\n"
        f"{lists}\n"
        "cusp COMMAND --help    the options of a command\n"
        "cusp completion bash   a script that completes commands and options in bash; likewise zsh\n"
        "cusp --version"
    )
