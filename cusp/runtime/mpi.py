"""MPI, from where all our modules take it: ``from cusp.runtime.mpi import MPI``.

A process alone needs no MPI library: where none can be loaded, it gets :mod:`cusp.runtime.one_rank`. Several ranks
start MPI without Python's lock, so that one that waits in MPI_Init for others hears of signals, and they end it.
(mpi4py keeps the lock there, and no thread of Python runs until the last rank has arrived, which may never be.)
"""

import contextlib
import ctypes
import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from cusp.errors import InputError
from cusp.runtime import signals, watchdog
from cusp.runtime.signals import share_cores

# Of UCX, under MPICH: it closes a connection that was silent for 16 s while a link was out, and nobody opens it again:
# ranks would wait for ever. TCP itself goes on.
PATIENT = {"UCX_TCP_KEEPIDLE": "inf"}
YIELDING = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "0", "OMPI_MCA_mpi_yield_when_idle": "1"}  # of MPICH, of Open MPI


class MpiError(InputError):
    """There are to be several ranks, and no MPI library."""


def load() -> ModuleType:
    """The module ``mpi4py.MPI`` with MPI initialized as mpi4py's ``rc`` says, or what stands in for it on one rank.

    Raises
    ------
    MpiError
        A launcher has started several ranks, and there is no MPI library.
    """
    ranks, _ = signals.launched()
    with contextlib.suppress(ImportError):
        # Its trees that reduce Python objects begin with a copy of the communicator, made with Python's lock: if a rank
        # does not come there, no thread of the others runs any more.
        importlib.import_module("mpi4py").rc.fast_reduce = False
    if ranks > 1:
        signals.end_all_on_error()
        watchdog.watch()
    # Ranks that wait must not starve those that work when there are more ranks than cores.
    with _variables(PATIENT | (YIELDING if share_cores() else {})), warnings.catch_warnings():
        # mpi4py's warning about a launcher of another library; cusp.launch has a clearer one.
        warnings.filterwarnings("ignore", message="suspicious MPI execution environment", category=RuntimeWarning)
        try:
            return importlib.import_module("mpi4py.MPI") if ranks == 1 or "mpi4py.MPI" in sys.modules else _start()
        except (ImportError, RuntimeError) as error:
            if ranks == 1:
                return importlib.import_module("cusp.runtime.one_rank")
            raise MpiError(
                f"{ranks} ranks were started, and no MPI library can be loaded ({' '.join(str(error).split())}): "
                "pip install 'cusp-gluon[mpich]' brings one and its mpirun; on a cluster, load the site's MPI"
            ) from None


def _start() -> ModuleType:
    """Load MPI, and initialize it without the lock; it ends with Python, as ever."""
    rc = importlib.import_module("mpi4py").rc
    chosen = (rc.initialize, rc.finalize)
    if not rc.initialize:
        return importlib.import_module("mpi4py.MPI")
    rc.initialize, rc.finalize = False, True if rc.finalize is None else rc.finalize
    try:
        mpi = importlib.import_module("mpi4py.MPI")
    finally:
        rc.initialize, rc.finalize = chosen
    if mpi.Is_initialized():  # the environment overrules rc
        return mpi
    level = getattr(mpi, f"THREAD_{rc.thread_level.upper() if rc.threads else 'SINGLE'}")
    library = ctypes.CDLL(mpi.__file__)  # finds what the module is linked to, and calls it without the lock
    if code := library.MPI_Init_thread(None, None, level, ctypes.byref(ctypes.c_int())):
        raise ImportError(f"MPI_Init_thread failed with code {code}")
    if rc.errors == "exception":
        for comm in (mpi.COMM_SELF, mpi.COMM_WORLD):
            comm.Set_errhandler(mpi.ERRORS_RETURN)
    return mpi


@contextlib.contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """Variables for a library that reads them when it starts; not those that the user has set."""
    new = values.keys() - os.environ.keys()
    os.environ.update({name: values[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


if TYPE_CHECKING:
    from mpi4py import MPI as MPI
else:
    MPI = load()
