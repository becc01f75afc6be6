"""The programs as a user starts them, called inside a process that has imported them already."""

import importlib
import sys
from pathlib import Path

from cusp.launch import run_main

APPS = ("bfs", "sssp", "cc", "scc", "pagerank", "kcore", "triangles", "betweenness", "communities", "widest", "forest")


def app(name: str, *arguments: object) -> int:
    """``python -m apps.NAME ARGUMENTS``."""
    harness = importlib.import_module("apps.harness")
    program = importlib.import_module(f"apps.{name}").APP
    return _run(lambda comm, argv: harness.main(program, comm, argv), arguments)


def command(module: str, *arguments: object) -> int:
    """``python -m MODULE ARGUMENTS``, for a module with a function ``main(comm, argv)``."""
    found = importlib.import_module(module)
    if hasattr(found, "__path__"):
        found = importlib.import_module(f"{module}.__main__")
    return _run(found.main, arguments)


def _run(main, arguments: tuple[object, ...]) -> int:
    sys.argv = ["program", *map(str, arguments)]
    run_main(main)


def comm():  # type: ignore[no-untyped-def]
    """All ranks: the one that there is."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


def rehearse(folder: Path) -> None:
    """Import and compile what the cases call, in this process: its children inherit it."""
    from mpi4py import MPI

    from apps.harness import main

    generate = importlib.import_module("scripts.generate").main
    for weights in ("1:9", None):
        path = folder / f"rehearsal-{weights}.h5"
        more = ["--weights", weights] if weights else []
        arguments = ["rmat", "--scale", "6", "--symmetrize", "--dedup", *more, "--output", str(path)]
        generate(MPI.COMM_WORLD, arguments)
        for name in ("bfs", "sssp", "cc", "pagerank"):
            main(
                importlib.import_module(f"apps.{name}").APP,
                MPI.COMM_WORLD,
                [str(path), "--verify", "--output", str(folder / "out.h5")],
            )
    more = [["--dry-run", "--ranks", "3"], ["--policy", "cvc"]]
    calls = [(importlib.import_module("cusp.__main__").main, [str(path), *words]) for words in more]
    text = folder / "rehearsal.wel"
    text.write_text("0 1 2\n1 0 2\n")
    table = folder / "rehearsal.csv"
    table.write_text("source,target,weight\n0,1,2\n")
    convert = importlib.import_module("scripts.convert.__main__").main
    importlib.import_module("pyarrow.parquet")
    for source in (path, text, table):
        calls += [(convert, [str(source), "-o", str(folder / "out.h5")]), (convert, [str(source), "--info"])]
    for call, arguments in calls:
        call(MPI.COMM_WORLD, arguments)
