"""Temporary files and folders, named after the process that made them: what a killed process left is removed later."""

import contextlib
import functools
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MARK = re.compile(r"cusp-([0-9a-f]{8})-(\d+)-(\d+)-")  # host, process, when it started
OF_MPI = ("mpich_shm_", "vader_segment.", "sm_segment.", "hydra_hwloc_xmlfile_")  # how names of such files begin
UNUSED = 600.0  # seconds in which all ranks of a job have opened what it shares

_unfinished: set[Path] = set()


def mark() -> str:
    """Begin a name with this; it says which process made it."""
    return f"cusp-{_host()}-{os.getpid()}-{started(os.getpid())}-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder in ``$TMPDIR`` for this process alone, removed at the end of the block."""
    folder = tempfile.mkdtemp(prefix=mark())
    with gone_at_end(Path(folder)):
        yield folder


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], sync: bool = True) -> Iterator[Path]:
    """A temporary name beside ``path``: what is written there gets the name ``path`` if the block ends without error.

    Otherwise it is removed, and ``path`` is as it was. ``sync`` waits until the disk has it.
    """
    temporary = temporary_beside(path)
    with gone_at_end(temporary):
        yield temporary
        if sync:
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())  # some file systems say only now that they are full
        os.replace(temporary, path)


def temporary_beside(path: str | os.PathLike[str]) -> Path:
    """A new name in the same folder, from which what killed processes left is removed."""
    path = Path(path)
    sweep(path.parent)
    return path.with_name(f".{path.name[:40]}.{mark()}{secrets.token_hex(4)}.tmp")


@contextlib.contextmanager
def gone_at_end(path: Path) -> Iterator[None]:
    """Remove a file or folder at the end of the block, or when a signal ends the process before."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _remove(path)
        _unfinished.discard(path)


def remove_unfinished() -> None:
    """Remove what blocks that will not end have made; for a process that is about to leave."""
    for path in list(_unfinished):
        _remove(path)


def sweep(folder: str | os.PathLike[str]) -> None:
    """Remove what processes of this user that are gone, on this host, have left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = MARK.search(entry.name) if entry.name[:1] in ".c" else None
            if found and found[1] == _host() and started(int(found[2])) != found[3] and _is_ours(entry):
                _remove(Path(entry.path))


def sweep_of_mpi(*folders: str | os.PathLike[str]) -> None:
    """Remove what MPI libraries and launchers of this user's killed jobs have left: nobody has had it open for minutes.

    MPICH gives its shared memory back only at the end of a job; what is left of killed ones stays in memory.
    """
    now = os.stat(f"/proc/{os.getpid()}").st_mtime
    old: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.startswith(OF_MPI) and _is_ours(entry)]
            old |= {entry.path for entry in found if entry.stat().st_mtime < now - UNUSED}
    for maps in Path("/proc").glob("[0-9]*/maps") if old else ():
        with contextlib.suppress(OSError):  # another user's, who could not open it; or the process has ended
            old -= {"/" + line.partition("/")[2] for line in maps.read_text().splitlines()}
    for path in old:
        _remove(Path(path))


def started(process: int) -> str | None:
    """When a process began, in the system's own unit; None if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _is_ours(entry: os.DirEntry[str]) -> bool:
    return entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@functools.cache
def _host() -> str:
    """The space in which a process number means this process: a boot of a host, and a container on it."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]
