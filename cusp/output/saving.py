"""A folder into which one job at a time saves; what an earlier one left behind is removed."""

import contextlib
import errno
import fcntl
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from cusp.output.manifest import MANIFEST, PART, SavedError, read_manifest
from cusp.output.whole_file import OutputError

LOCK = ".saving"  # the file that the job holds; it says who that is


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder; the system lets it go if the process dies.

    Raises
    ------
    OutputError
        Another job holds it.
    """
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = ascii(os.read(file, 200).decode(errors="replace"))[1:-1] or "another job"
            raise OutputError(
                f"{folder}: {holder} is saving a partition there; wait until it is done, or name another folder"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
                raise
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()} on {platform.node()}".encode())
        yield
    finally:
        os.close(file)


def sweep(folder: Path) -> None:
    """Remove the parts that the manifest does not name, and manifests that were never finished.

    Whoever calls this holds the folder, so no living job is writing them.
    """
    try:
        named = set(read_manifest(folder).parts)
    except SavedError:
        if os.path.lexists(folder / MANIFEST):
            return  # it cannot be read, but what it names may be all that is left
        named = set()
    for file in folder.iterdir():
        old_part = PART.fullmatch(file.name) and file.name not in named
        if old_part or (file.name.startswith(f".{MANIFEST}.") and not file.is_dir()):
            with contextlib.suppress(OSError):
                file.unlink()
