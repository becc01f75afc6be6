"""Open files that others made, tell them apart; read and write arrays at byte offsets; scratch files without a name."""

import hashlib
import io
import json
import mmap
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import IO, Any, TextIO, TypeGuard

import numpy as np

from cusp.errors import GraphFileError, InputError

Name = str | os.PathLike[str]
MOST_BYTES = 1 << 30  # of a file that is read as a whole
LONGEST_LINE = 1 << 20  # letters
MAX_CALL = 2**30  # bytes that a single read or write call is given; Linux cuts off at just under 2**31

BLOCKS, BLOCK = 64, 1 << 12  # bytes: how much of a file is sampled, from its beginning to its end

Stamp = tuple[int, int, int, int]


class ScratchError(InputError):
    """A scratch file that cannot be made, written or read."""


def check_regular(path: Name, kind: type[InputError] = GraphFileError) -> None:
    """Raise an error unless there is a file of this name, and not a folder, pipe or device."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise kind(f"{path}: no such file (looked in {os.getcwd()})") from None
    except (OSError, ValueError) as error:
        raise _unopened(path, error, kind) from None
    if stat.S_ISDIR(mode):
        raise kind(f"{path}: is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise kind(f"{path}: is a pipe or device; save its content into a file first")


def _unopened(path: Name, error: Exception, kind: type[InputError]) -> InputError:
    return kind(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}")


def open_input(path: Name, kind: type[InputError] = GraphFileError) -> io.FileIO:
    """Open a file for reading: the one way to open what a user named, or a file names. It never waits for a pipe.

    Raises
    ------
    InputError
        Of this kind: there is no such file, or no plain one; or it must not be read.
    """
    check_regular(path, kind)
    try:
        file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        raise _unopened(path, error, kind) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise kind(f"{path}: is a pipe or device; save its content into a file first")
    return file


def read_input(path: Name, kind: type[InputError] = GraphFileError, most: int = MOST_BYTES) -> bytes:
    """The content of such a file, if it has no more bytes than ``most``."""
    with open_input(path, kind) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise kind(f"{path}: has {size:,} bytes; such a file has {most:,} at most")
        try:
            return file.read(most)
        except OSError as error:
            raise kind(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def open_text(path: Name, kind: type[InputError] = GraphFileError) -> Iterator[Iterator[str]]:
    """The lines of such a file in UTF-8, one after the other, none longer than ``LONGEST_LINE``."""
    with io.TextIOWrapper(io.BufferedReader(open_input(path, kind)), "utf-8") as file:
        try:
            yield _lines(path, file, kind)
        except OSError as error:
            raise kind(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise kind(f"{path}: is not text in UTF-8 ({error})") from None


def _lines(path: Name, file: TextIO, kind: type[InputError]) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise kind(f"{path}, line {number:,}: is longer than {LONGEST_LINE:,} letters")
        yield line


def from_json(text: str | bytes, what: str, kind: type[InputError]) -> Any:
    """What a text says in JSON; ``what`` begins the message if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise kind(f"{what} is not JSON: {reason}") from None


def is_word(value: Any) -> TypeGuard[str]:
    """Whether this is a text that can be shown."""
    return isinstance(value, str) and value.isprintable()


def is_number(value: Any, least: float = 0) -> bool:
    """Whether this is a number that is not below ``least``, finite and not absurdly large."""
    return type(value) in (int, float) and least <= value <= 2**62


def write_at(file: int, offset: int, values: np.ndarray) -> None:
    """Write a contiguous array at a byte offset of an open file, however short the single writes are."""
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done : done + MAX_CALL], offset + done)


def read_at(file: int, offset: int, values: np.ndarray) -> None:
    """Fill a contiguous array from a byte offset of an open file.

    Raises
    ------
    OSError
        The file cannot be read, or ends too early.
    """
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        count = os.preadv(file, [data[done : done + MAX_CALL]], offset + done)
        if count == 0:
            raise OSError(f"the file ends at byte {offset + done:,}, {len(data) - done:,} bytes too early")
        done += count


def has_space(folder: str, num_bytes: int) -> bool:
    """Whether files of this size can be written into a folder now."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)
    except OSError:
        return False
    return True


class ScratchFile:
    """A file without a name, made on first use, that vanishes with the process; safe between threads.

    Parameters
    ----------
    folder : str, optional
        Default: ``$TMPDIR``, else ``/tmp``.

    Raises
    ------
    ScratchError
        From every method: there is no such folder, no space, or the file cannot be read.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or tempfile.gettempdir()
        self._advice = "set TMPDIR to a folder" if folder is None else "name a scratch folder"
        self._file: IO[bytes] | None = None
        self._end = 0
        self._lock = Lock()

    def append(self, values: np.ndarray) -> int:
        """Write an array behind those before it; returns the byte offset at which it begins."""
        with self._explained(f"cannot write {values.nbytes:,} bytes to a scratch file"):
            with self._lock:
                file = self._open()
                offset, self._end = self._end, self._end + values.nbytes
            write_at(file, offset, values)
        return offset

    def read(self, offset: int, values: np.ndarray) -> None:
        """Fill an array from a byte offset."""
        with self._explained("cannot read a scratch file"):
            read_at(self._open(), offset, values)

    def map(self, num_bytes: int) -> mmap.mmap:
        """The first bytes of the file as memory, which keeps the file; its disk space is reserved now."""
        with self._explained(f"no space for a scratch file of {num_bytes:,} bytes"):
            os.posix_fallocate(self._open(), 0, num_bytes)
            return mmap.mmap(self._open(), num_bytes)

    def close(self) -> None:
        """Forget the contents, unless they are mapped."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> int:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)
        return self._file.fileno()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ScratchError(
                f"{self._folder}: {what}: {error.strerror or error}; {self._advice} on a larger disk"
            ) from error


def sample(path: str | os.PathLike[str]) -> int:
    """A hash of the size of a file and of some of its bytes: the same for copies, on whatever host."""
    size = os.stat(path).st_size
    digest = hashlib.blake2b(digest_size=8)
    with open_input(path) as file:
        for block in range(BLOCKS):
            digest.update(os.pread(file.fileno(), BLOCK, max(size - BLOCK, 0) * block // (BLOCKS - 1)))
    return int.from_bytes(digest.digest(), "little")


def described(path: str | os.PathLike[str]) -> str:
    """A file in words that differ from those of other files, but not from those of copies."""
    check_regular(path)
    return f"{os.stat(path).st_size:,} bytes, sample {sample(path):016x}"


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """What changes when a file is written to or another takes its name; only on one host."""
    check_regular(path)
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def check_unchanged(path: str | os.PathLike[str], before: Stamp | None) -> None:
    """Raise GraphFileError if a file is not the one that it was before something was read of it."""
    try:
        now = stamp(path)
    except GraphFileError as error:
        raise GraphFileError(f"{path}: cannot be found any more ({error})") from None
    if now != before:
        raise GraphFileError(f"{path}: was written to, or replaced, while it was read; try again once nobody does that")
