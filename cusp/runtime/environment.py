"""Ranks per host, and the folder for compiled code."""

import functools
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from cusp.runtime import signals

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cusp", "cusp/apps", "gluon")

_not_kept: list[str] = []  # why


def local_ranks() -> int:
    """Number of ranks on this host, according to MPICH or Open MPI."""
    return int(os.environ.get("MPI_LOCALNRANKS") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or 1)


def cache_folder(*below: str) -> Path | None:
    """Folder for compiled code: ``$CUSP_CACHE``, else ``$XDG_CACHE_HOME/cusp`` or ``~/.cache/cusp``; or one below it.

    What is in it will be run, so only this user may write there. If that is not so, or nothing can be written, there is
    none.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(os.environ.get("CUSP_CACHE") or os.path.join(home, "cusp"))
    for place in (folder, *(folder.joinpath(*below[: depth + 1]) for depth in range(len(below)))):
        if why := why_not_ours(place):
            not_kept(why)
            return None
    return folder.joinpath(*below)


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
