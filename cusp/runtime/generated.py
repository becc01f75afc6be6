"""Generated modules, kept in files: numba keeps the machine code only of functions that come from a file."""

import hashlib
import importlib.util
import os
import sys
import tempfile
from types import ModuleType

import numba

from cusp.runtime.environment import cache_folder, source_digest


def import_text(text: str, depends_on: list[bytes]) -> ModuleType:
    """Import a module from its text, through a file in the cache folder.

    The file is named by a hash of all that its machine code depends on, so a change makes a new file.

    Parameters
    ----------
    text : str
    depends_on : list of bytes
        What the compiled code depends on besides the text, this package and the version of numba.
    """
    digest = hashlib.sha256(f"{text}{source_digest()}{numba.__version__}".encode())
    for part in depends_on:
        digest.update(part)
    name = f"cusp_generated_{digest.hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_folder() / "rules"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
