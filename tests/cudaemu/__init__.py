"""What runs our GPU code without a GPU: a stand-in for CuPy, and the real NVRTC. See README.md in this folder."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in"


@contextmanager
def imported() -> Iterator[ModuleType]:
    """The stand-in as the module ``cupy``, for as long as the context lasts; a real CuPy is put aside."""
    if Path(getattr(sys.modules.get("cupy"), "__file__", None) or "/").is_relative_to(STAND_IN):
        yield sys.modules["cupy"]
        return
    aside = {name: sys.modules.pop(name) for name in list(sys.modules) if is_cupy(name)}
    sys.path.insert(0, str(STAND_IN))
    try:
        yield importlib.import_module("cupy")
    finally:
        sys.path.remove(str(STAND_IN))
        for name in filter(is_cupy, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(aside)


def is_cupy(name: str) -> bool:
    """Whether a module is part of CuPy."""
    return name.split(".")[0] in ("cupy", "cupyx")


def environment() -> dict[str, str]:
    """Variables for a process that finds the stand-in as ``cupy``."""
    path = os.pathsep.join(filter(None, [str(STAND_IN), str(HERE.parent.parent), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
