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

import numba
from numba.core import caching
from numba.core.dispatcher import Dispatcher

from cusp.runtime.environment import cache_folder, not_kept, source_digest
from cusp.runtime.leftovers import replacing

DIGEST = hashlib.sha256().digest_size


def njit(cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """As numba's, but what is cached is in our files: numba's own, and its settings, are left to others."""

    def declared(function: Callable) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and isinstance(dispatcher, Dispatcher):  # not with NUMBA_DISABLE_JIT
            dispatcher._cache = Cache(function)
        return dispatcher

    return declared


class Locator(caching.CacheImpl._locator_classes[0]):  # its name differs between versions of numba
    """The folder for the code of one source file; when it cannot be made, nothing is kept."""

    def __init__(self, function: Callable, file: str) -> None:
        super().__init__(function, file)
        folder = numba.config.CACHE_DIR or cache_folder(source_digest())
        self._cache_path = os.path.join(folder, self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: Callable, file: str) -> "Locator":
        """The locator of any function."""
        found = cls(function, file)
        found.ensure_cache_path()
        return found

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        path = self.get_cache_path()
        try:
            os.makedirs(path, 0o700, exist_ok=True)
        except OSError as error:
            not_kept(f"{path}: {error.strerror or error}")


class Entries(caching.CompileResultCacheImpl):
    """What is kept of a function, and where."""

    _locator_classes = [Locator]


class Cache(caching.FunctionCache):
    """What is compiled of one function."""

    _impl_class = Entries

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        entries = self._impl
        self._cache_file = CodeFiles(self._cache_path, entries.filename_base, entries.locator.get_source_stamp())


class CodeFiles(caching.IndexDataCacheFile):
    """The index and the entries of one function."""

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
            not_kept(f"{self._cache_path}: {error.strerror or error}")

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
