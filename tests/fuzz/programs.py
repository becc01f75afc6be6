"""The programs as a user starts them, called inside a process that has imported them already."""

import contextlib
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from unittest import mock

from cusp.errors import InputError
from cusp.launch import run_main


def app(name: str, *arguments: object) -> int:
    """``python -m apps.NAME ARGUMENTS``."""
    harness = importlib.import_module("cusp.apps.harness")
    program = importlib.import_module(f"cusp.apps.{name}").APP
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
    from cusp.runtime.mpi import MPI

    return MPI.COMM_WORLD


def rehearse(call: Callable[[], int]) -> None:
    """Call a program in this process, which goes on: what it imports and compiles, the children inherit."""
    go_on = mock.patch(f"{__name__}.run_main", lambda main: main(comm(), sys.argv[1:]))
    with go_on, open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(InputError):  # a file that is refused
            call()
    gc.collect()
    gc.freeze()  # or the collector of each child would copy the pages of all these objects
