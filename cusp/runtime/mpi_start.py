"""MPI starts without Python's lock: a rank that waits in MPI_Init for others hears of signals, and they end it.

mpi4py keeps the lock there, and no thread of Python runs until the last rank has arrived, which may never be.
"""

import ctypes
import importlib
from collections.abc import Callable
from types import ModuleType


def start(mpi: ModuleType, execute: Callable[[ModuleType], object]) -> None:
    """Execute the module ``mpi4py.MPI``, and initialize MPI as its ``rc`` says; MPI ends with Python, as ever."""
    rc = importlib.import_module("mpi4py").rc
    chosen = (rc.initialize, rc.finalize)
    if not rc.initialize:
        execute(mpi)
        return
    rc.initialize, rc.finalize = False, True if rc.finalize is None else rc.finalize
    try:
        execute(mpi)
    finally:
        rc.initialize, rc.finalize = chosen
    if mpi.Is_initialized():  # the environment overrules rc
        return
    level = getattr(mpi, f"THREAD_{rc.thread_level.upper() if rc.threads else 'SINGLE'}")
    library = ctypes.CDLL(mpi.__file__)  # finds what the module is linked to, and calls it without the lock
    if code := library.MPI_Init_thread(None, None, level, ctypes.byref(ctypes.c_int())):
        raise ImportError(f"MPI_Init_thread failed with code {code}")
    if rc.errors == "exception":
        for comm in (mpi.COMM_SELF, mpi.COMM_WORLD):
            comm.Set_errhandler(mpi.ERRORS_RETURN)
