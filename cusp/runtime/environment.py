"""Ranks per host, and the folder for compiled code."""

import atexit
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from cusp.runtime import leftovers, signals

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cusp", "cusp/apps", "gluon")

_not_kept: list[str] = []  # why


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
