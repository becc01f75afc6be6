"""Settings that numba and the MPI libraries read only once, when they are imported; ranks per host; caches."""

import atexit
import functools
import hashlib
import importlib
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from cusp.runtime import leftovers, mpi_start, signals

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cusp", "gluon", "apps", "scripts")
CACHING, MPI = "numba.core.caching", "mpi4py.MPI"

_not_kept: list[str] = []  # why


def prepare() -> None:
    """Choose numba's cache and let waiting ranks yield; what the user has set is kept."""
    signals.open_standard_files()
    signals.end_quietly_if_ours()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder(source_digest())))
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]  # type: ignore[attr-defined]
    # Ranks that wait must not starve those that work when there are more ranks than cores.
    if local_ranks() > len(os.sched_getaffinity(0)):
        os.environ.setdefault("MPIR_CVAR_POLLS_BEFORE_YIELD", "0")
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    # A warning of mpi4py about a launcher of another library; cusp.launch has a clearer one.
    warnings.filterwarnings("ignore", message="suspicious MPI execution environment", category=RuntimeWarning)
    # numba's, about code that it made itself out of ours.
    warnings.filterwarnings("ignore", message="variable '.*' is not in scope")
    os.environ.setdefault("HDF5_USE_FILE_LOCKING", "BEST_EFFORT")
    if CACHING in sys.modules:
        _take_over_cache()
    else:
        sys.meta_path.insert(0, _Instead(CACHING, _load_caching))  # numba takes too long to be imported for --help
    if signals.launched()[0] > 1 and MPI not in sys.modules:
        sys.meta_path.insert(0, _Instead(MPI, mpi_start.start))


class _Instead(MetaPathFinder):
    """Calls ``run(module, execute)`` where Python would only execute a module as it is imported."""

    def __init__(self, name: str, run: Callable[[ModuleType, Callable[[ModuleType], object]], None]) -> None:
        self.name, self.run = name, run

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module
        spec.loader.exec_module = lambda module: self.run(module, execute)  # type: ignore[method-assign]
        return spec


def _load_caching(module: ModuleType, execute: Callable[[ModuleType], object]) -> None:
    execute(module)
    _take_over_cache()


def _take_over_cache() -> None:
    importlib.import_module("cusp.runtime.compiled_code").keep_only_whole_files(not_kept)


def local_ranks() -> int:
    """Number of ranks on this host, according to MPICH or Open MPI."""
    return int(os.environ.get("MPI_LOCALNRANKS") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or 1)


def cache_folder(*below: str) -> Path:
    """Folder for compiled code: ``$CUSP_CACHE``, else ``$XDG_CACHE_HOME/cusp`` or ``~/.cache/cusp``; or one below it.

    What is in it will be run, so only this user may write there. If that is not so, or nothing can be written, it is a
    folder of this process alone, which does not outlive it.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(os.environ.get("CUSP_CACHE") or os.path.join(home, "cusp"))
    why = why_not_ours(folder)
    for name in below:
        folder /= name
        why = why or why_not_ours(folder)
    return private_folder(why).joinpath(*below) if why else folder


@functools.cache
def why_not_ours(folder: Path) -> str | None:
    """Make a folder that only this user may write to; or why what is there is not one."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid() or folder.lstat().st_uid not in (0, os.geteuid()):
            return f"{folder}: belongs to another user; set CUSP_CACHE to a folder of your own"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"{folder}: others may write into it; chmod -R go-w {folder}"
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"{folder}: cannot be written: {error.strerror or error}; set CUSP_CACHE to another folder"


@functools.cache
def private_folder(why: str) -> Path:
    """A new folder of this process, removed with it."""
    folder = Path(tempfile.mkdtemp(prefix=leftovers.mark()))
    leftovers.remove_on_signal(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    not_kept(why)
    return folder


def not_kept(why: str) -> None:
    """Say, but only once, that the next run will have to compile again."""
    if not _not_kept and signals.launched()[1] == 0:
        sys.stderr.write(f"warning: compiled code is not kept: {why}\n")
    _not_kept.append(why)


@functools.cache
def source_digest() -> str:
    """Hash of all our Python files: numba does not notice edits in the files of *callees*."""
    digest = hashlib.sha256(sys.version.encode())
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(str(path).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
