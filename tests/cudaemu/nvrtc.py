"""The real NVRTC, called through ctypes: compiles CUDA C++ on machines without a GPU or a driver."""

import ctypes
from importlib.util import find_spec
from pathlib import Path


class NvrtcError(Exception):
    """NVRTC's log of a source that it does not accept."""


def folder(part: str) -> Path:
    """Folder of one of NVIDIA's packages from PyPI, as ``cuda_nvrtc``; FileNotFoundError if it is not installed."""
    spec = find_spec("nvidia")
    for place in spec.submodule_search_locations if spec else ():
        if (Path(place) / part).is_dir():
            return Path(place) / part
    raise FileNotFoundError(f"nvidia/{part}")


def headers() -> list[str]:
    """Options that let sources include cooperative groups and libcu++."""
    options = []
    for part in ("cuda_runtime", "cuda_cccl"):
        try:
            options.append(f"-I{folder(part) / 'include'}")
        except FileNotFoundError:
            continue
    return options


def library() -> ctypes.CDLL:
    """NVRTC; FileNotFoundError if it is not installed."""
    (path,) = (folder("cuda_nvrtc") / "lib").glob("libnvrtc.so.*")
    return ctypes.CDLL(str(path))


def compiled(source: str, name: str, options: tuple[str, ...], form: str = "CUBIN") -> bytes:
    """Machine code of a source, or what it is made from, ``PTX``, in half the time.

    Raises
    ------
    NvrtcError
        With the compiler's log.
    """
    nvrtc = library()
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    values = [option.encode() for option in options]
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(values), (ctypes.c_char_p * len(values))(*values))
        if status != 0:
            raise NvrtcError(_fetch(nvrtc, "ProgramLog", program).rstrip(b"\0").decode())
        return _fetch(nvrtc, form, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _fetch(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, text))
    return text.raw


def _check(nvrtc: ctypes.CDLL, status: int) -> None:
    if status != 0:
        raise NvrtcError(nvrtc.nvrtcGetErrorString(status).decode())
