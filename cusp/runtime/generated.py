"""Generated modules, kept in files: numba keeps the machine code only of functions that come from a file."""

import hashlib
import sys
from types import ModuleType

import numba

from cusp.runtime.environment import cache_folder, not_kept, source_digest
from cusp.runtime.leftovers import replacing


def import_text(text: str, depends_on: list[bytes]) -> ModuleType:
    """A module of this text, which numba finds in a file of the cache folder; what is in the file is not run.

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
    path = cache_folder("rules") / f"{name}.py"
    try:
        if not path.exists() or path.read_bytes() != text.encode():
            with replacing(path, sync=False) as temporary:
                temporary.write_text(text)
    except OSError as error:
        not_kept(f"{path}: {error.strerror or error}")
        text = text.replace("cache=True, ", "")
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module
