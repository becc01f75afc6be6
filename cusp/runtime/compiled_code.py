"""Numba's cache of compiled code in a folder of ours, safe for ranks that write at once; generated modules.

Numba alone would keep code in its own folders, run it after an edit in the file of a *callee*, lose one of two entries
that are added at once or take one for the other, and end with a traceback where a file is damaged. Here the code of a
file is kept for what it says and for all our files that it imports: an edit costs what it touches.
"""

import fcntl
import functools
import gc
import hashlib
import importlib.util
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core import caching, types
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.typing import templates

from cusp.errors import ROOT
from cusp.runtime import signals
from cusp.runtime.leftovers import replacing

IMPORT = re.compile(r"^\s*(?:from|import) ((?:cusp|gluon)\b[\w.]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE)
FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)+", re.MULTILINE)
OUTER = {"no_cfunc_wrapper": True}  # nobody calls compiled code from C
INNER = OUTER | {"no_cpython_wrapper": True}

_not_kept: list[str] = []  # why


@functools.cache
def _load_arrays() -> None:
    """Load numba's loops over arrays, for which it imports all of SciPy's linear algebra, only to see that it is there.

    That takes a tenth of a second and more. numba imports it when a loop calls it, anyway.
    """

    linalg: Any = importlib.import_module("numba.np.linalg")

    def only_look() -> None:
        if importlib.util.find_spec("scipy") is None:
            raise ImportError("no SciPy")

    kept, linalg.ensure_blas = linalg.ensure_blas, only_look
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = kept


def njit(cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """As numba's, but what is cached is in our files: numba's own, and its settings, are left to others.

    No function gets the wrapper that C needs, and compiled code calls a form without that for Python, each of which
    holds all of its code once more: so the loops of a drain take 3.1 instead of 4.5 s to compile.
    """

    def declared(function: Callable) -> Any:
        kept_of = function if cache else None
        dispatcher = _dispatcher(function, kept_of, "", options | OUTER)
        if not isinstance(dispatcher, Dispatcher):  # with NUMBA_DISABLE_JIT
            return dispatcher

        @functools.cache
        def inner() -> Any:
            return _dispatcher(function, kept_of, ".inner", options | INNER)

        dispatcher.inner = inner
        dispatcher.get_call_template = lambda arguments, named: _call_template(inner(), arguments, named)
        dispatcher.get_overload = lambda signature: inner().get_overload(signature)
        return dispatcher

    return declared


def _dispatcher(function: Callable, kept_of: Callable | None, form: str, options: dict[str, Any]) -> Any:
    """A function in a form that is kept among those of ``kept_of``, each in files of its own; None: it is not kept."""
    dispatcher = numba.njit(**options)(function)
    if isinstance(dispatcher, Dispatcher):
        dispatcher.compile = functools.partial(_compile, dispatcher)
        if kept_of:
            try:
                dispatcher._cache = Cache(kept_of, form)
            except OSError as error:
                not_kept(str(error))
    return dispatcher


def form_of(kernel: Dispatcher, function: Callable, form: str) -> Any:
    """``function`` compiled for Python, and kept beside the forms of a kernel that is, in whose file it might stand."""
    kept_of = kernel.py_func if isinstance(kernel._cache, Cache) else None
    return _dispatcher(function, kept_of, form, {"nogil": True} | OUTER)


def _call_template(dispatcher: Dispatcher, arguments: Any, named: Any) -> Any:
    """A constant argument counts by its type: numba would compile the callee anew for each, and once for all others."""
    plain = {name: types.unliteral(value) for name, value in named.items()}
    return type(dispatcher).get_call_template(dispatcher, [types.unliteral(value) for value in arguments], plain)


def _compile(dispatcher: Dispatcher, types_of_arguments: Any) -> Any:
    """Compile or load, without looking for garbage until the end, which took a twentieth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return type(dispatcher).compile(dispatcher, types_of_arguments)
    finally:
        if collects:
            gc.enable()


def instruction(function: Callable) -> Callable[[Callable], Callable]:
    """In compiled code, a call of ``function`` is what is decorated, written as for :func:`numba.extending.intrinsic`.

    With an overload that calls an intrinsic, numba would analyse and inline a function at each call.
    """

    def declared(definition: Callable) -> Callable:
        template = templates.make_intrinsic_template(function, definition, function.__name__)
        templates.infer_global(function, types.Function(template))
        return definition

    return declared


class Locator(caching.CacheImpl._locator_classes[0]):  # its name differs between versions of numba
    """The folder for the code of one source file."""

    def __init__(self, function: Callable, file: str) -> None:
        super().__init__(function, file)
        folder = numba.config.CACHE_DIR or cache_folder("code")
        if folder is None:
            raise OSError("there is no folder for it")
        self._cache_path = os.path.join(folder, self.get_suitable_cache_subpath(file))

    def get_source_stamp(self) -> str:
        """What the code in the file depends on: entries with another stamp are made anew."""
        return digest_of(Path(self._py_file).read_text())

    @classmethod
    def from_function(cls, function: Callable, file: str) -> "Locator":
        """The locator of any function."""
        found = cls(function, file)
        os.makedirs(found.get_cache_path(), 0o700, exist_ok=True)
        return found

    def ensure_cache_path(self) -> None:
        """It was made when the function was declared."""


class Entries(caching.CompileResultCacheImpl):
    """What is kept of a function, and where."""

    _locator_classes = [Locator]


class Cache(caching.FunctionCache):
    """What is compiled of one function."""

    _impl_class = Entries

    def __init__(self, function: Callable, form: str) -> None:
        super().__init__(function)
        numbas: Any = vars(self)["_cache_file"]
        self._cache_file = CodeFiles(self._cache_path, self._impl.filename_base + form, numbas._source_stamp)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """As numba's, which would first learn all that it can compile, a sixth of the time of a short program."""
        rtsys.initialize(context)
        found = self._load_overload(signature, context)
        if found is None:
            _load_arrays()
        return found


class CodeFiles(caching.IndexDataCacheFile):
    """The index and the entries of one function. An entry names its signature: it is run for no other."""

    compiled = 0  # functions, for given types, since the start of this process

    def load(self, key: Any) -> Any:
        """The entry of a signature; None if there is none that can be read."""
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
            return dict(super()._load_index())
        except Exception:
            return {}


def import_text(text: str, depends_on: list[bytes]) -> ModuleType:
    """A module of this text, which numba finds in a file of the cache folder; what is in the file is not run.

    Numba keeps machine code only of functions that come from a file. It is named by a hash of all that its machine code
    depends on, so a change makes a new file.

    Parameters
    ----------
    depends_on : list of bytes
        What the compiled code depends on besides the text, what it imports and the version of numba.
    """
    digest = hashlib.sha256(f"{digest_of(text)}{numba.__version__}".encode())
    for part in depends_on:
        digest.update(part)
    name = f"cusp_generated_{digest.hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    path = (cache_folder("rules") or Path("no folder")) / f"{name}.py"
    try:
        if path.parent.exists() and (not path.exists() or path.read_bytes() != text.encode()):
            with replacing(path, sync=False) as temporary:
                temporary.write_text(text)
    except OSError as error:
        not_kept(f"{path}: {error.strerror or error}")
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


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


def all_kept() -> bool:
    """Whether the next run finds what this process has compiled."""
    return not _not_kept


@functools.cache
def digest_of(text: str) -> str:
    """Hash of a source text and of all our files that it imports, directly or not.

    Numba does not notice edits in the files of *callees*.
    """
    found: dict[str, bytes] = {}
    left = [*imported_by(text)]
    while left:
        path = left.pop()
        if path not in found:
            found[path], more = _read_module(path)
            left += more
    digest = hashlib.sha256(f"{sys.version}{text}".encode())
    for path in sorted(found):
        digest.update(found[path])
    return digest.hexdigest()[:16]


def imported_by(text: str) -> Iterator[str]:
    """Paths of our files that a source text imports where it runs, anywhere in it: plain texts, every program asks."""
    for match in IMPORT.finditer(FOR_TYPES.sub("", text)):
        place = f"{ROOT}/{match[1].replace('.', '/')}"
        names = re.findall(r"\w+", match[2] or "") if os.path.isdir(place) else []
        for path in (f"{place}.py", f"{place}/__init__.py", *(f"{place}/{name}.py" for name in names)):
            if os.path.exists(path):
                yield path


@functools.cache
def _read_module(path: str) -> tuple[bytes, tuple[str, ...]]:
    """The content of a file of ours and its name, as a hash; the files that it imports."""
    content = Path(path).read_text()
    return hashlib.sha256(f"{path}{content}".encode()).digest(), tuple(imported_by(content))
