"""Numba's cache of compiled code: damaged files are compiled anew, and a full disk only means that nothing is kept.

Each file begins with a digest of the rest, and an entry names what it was compiled for, so that machine code is run
only if it is what was written. Files that another user may have written are not read.
"""

import fcntl
import hashlib
import os
import pickle
import stat
from collections.abc import Callable
from typing import Any

from numba.core import caching

from cusp.runtime.leftovers import replacing

DIGEST = hashlib.sha256().digest_size


def keep_only_whole_files(tell: Callable[[str], object]) -> None:
    """Let numba use what follows for functions declared from now on; ``tell`` is told why code cannot be kept."""
    CodeFiles.tell = Locator.tell = staticmethod(tell)
    caching.IndexDataCacheFile = CodeFiles
    caching.CacheImpl._locator_classes = [Locator, *caching.CacheImpl._locator_classes[1:]]


class Locator(caching.UserProvidedCacheLocator):
    """The folder for the code of one source file; when it cannot be made, nothing is kept."""

    tell: Callable[[str], object]

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        path = self.get_cache_path()
        try:
            os.makedirs(path, 0o700, exist_ok=True)
        except OSError as error:
            self.tell(f"{path}: {error.strerror or error}")


class CodeFiles(caching.IndexDataCacheFile):
    """The index and the entries of one function."""

    tell: Callable[[str], object]
    compiled = 0  # functions, for given types, since the start of this process

    def load(self, key: Any) -> Any:
        """The entry of a signature; None if there is none that is whole."""
        try:
            found, data = super().load(key) or (None, None)
        except Exception:  # pickles of something else raise anything
            return None
        return data if found == key else None

    def save(self, key: Any, data: Any) -> None:
        """Add an entry; one process at a time, as what two add at once, one of them loses."""
        CodeFiles.compiled += 1
        try:
            with open(os.path.join(self._cache_path, "lock"), "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                super().save(key, (key, data))
        except OSError as error:
            self.tell(f"{self._cache_path}: {error.strerror or error}")

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, entries = pickle.loads(_read(self._index_path))
        except Exception:
            return {}
        return entries if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        _write(self._index_path, self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_read(self._data_path(name)))

    def _save_data(self, name: str, data: Any) -> None:
        _write(self._data_path(name), self._dump(data))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"{path}: others may have written it")
        content = file.read()
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        raise OSError(f"{path}: damaged")
    return content[DIGEST:]


def _write(path: str, content: bytes) -> None:
    with replacing(path, sync=False) as temporary, open(temporary, "wb", opener=_only_for_us) as file:
        file.write(hashlib.sha256(content).digest() + content)


def _only_for_us(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
