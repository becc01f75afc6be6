"""Compiles translated kernels and the runtime with g++, once: the results are kept in cusp's cache folder.

Loads and stores are checked unless ``CUDAEMU_CHECK=0``; then still those of kernels that read through ``volatile``,
which may wait in a loop and have to be interrupted. With ``CUDAEMU_SANITIZE=1`` g++'s address and undefined-behaviour
sanitizers check instead; they need their library in the process from its start, see scripts/sanitize.py.
"""

import ctypes
import fcntl
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cupy._translate import SourceError, translate
from cusp.runtime.compiled_code import cache_folder

HERE = Path(__file__).resolve().parents[2]
ROOT = HERE.parents[1]  # kernels say their files relative to it
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"
COMPILER = os.environ.get("CXX", "g++")
FLAGS = "-O2 -shared -fPIC -fno-gnu-unique -fno-strict-aliasing -w -Wl,-Bsymbolic -fmax-errors=20".split()

COMPILES = re.compile(r"-(O|f|w)")  # options that are not for the linker

# A call of the runtime before each load and store, in place of the thread sanitizer's own library.
CHECKED = ["-gdwarf-4", "-fsanitize=thread", "-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc"]

# These exclude the ones above: no thread is interrupted.
SANITIZED = """-gdwarf-4 -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow
-fno-sanitize-recover=all -fno-sanitize=vptr""".split()

# Options of NVRTC that change nothing here.
IGNORED = re.compile(
    r"--?(arch|gpu-architecture)=|--?(lineinfo|generate-line-info|use_fast_math|default-device|dlto|restrict|w)$"
    r"|--(disable-warnings|device-debug|ftz=|fmad=|prec-div=|prec-sqrt=|extra-device-vectorization|diag-|maxrregcount=)"
    r"|-(G|maxrregcount=|ftz=|fmad=|diag-suppress)|--(minimal|split-compile=|extensible-whole-program|pch)"
)


class CompileException(Exception):  # noqa: N818
    """g++ does not accept a source. Prints like CuPy's exception of this name."""

    def __init__(self, msg: str, source: str, name: str, options: Sequence[str], backend: str = "nvrtc") -> None:
        super().__init__(msg)
        self._msg, self.source, self.name, self.options, self.backend = msg, source, name, tuple(options), backend

    def __str__(self) -> str:
        return self._msg

    def get_message(self) -> str:
        """What the compiler said."""
        return self._msg

    def dump(self, file) -> None:
        """Write the source, with line numbers, and the options."""
        for number, line in enumerate(self.source.splitlines(), 1):
            file.write(f"{number:4} {line}\n")
        file.write(f"options: {' '.join(self.options)}\n")


def compile_module(source: str, options: Sequence[str], name_expressions: Sequence[str] = ()) -> ctypes.CDLL:
    """The library with the kernels of a source."""
    runtime()
    try:
        flags = compiler_flags(options)
        text = translate(source, name_expressions)
    except SourceError as error:
        raise CompileException(str(error), source, "kernel", options) from None
    if os.environ.get("CUDAEMU_SANITIZE") == "1":
        flags += SANITIZED
    elif os.environ.get("CUDAEMU_CHECK") != "0" or "volatile" in source:
        flags += CHECKED
    flags += ["-I", str(INCLUDE), "-include", str(header(*flags).with_suffix(""))]
    try:
        path = build("kernel", flags, text, depends=headers())
    except subprocess.CalledProcessError as error:
        raise CompileException(error.stderr, source, "kernel", options) from None
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)


@functools.cache
def runtime() -> ctypes.CDLL:
    """The library that runs kernels; the libraries of the kernels refer to it."""
    sources = sorted(RUNTIME.glob("*.cpp"))
    text = "".join(f'#include "{path}"\n' for path in sources)
    depends = headers() + "".join(path.read_text() for path in [*sources, *sorted(RUNTIME.glob("*.h"))])
    return ctypes.CDLL(str(build("runtime", ["-std=c++17"], text, depends)), mode=ctypes.RTLD_GLOBAL)


@functools.cache
def driver() -> ctypes.CDLL:
    """What loads as ``libcuda.so.1`` from now on."""
    text = (HERE / "driver" / "libcuda.cpp").read_text()
    path = build("libcuda", ["-std=c++17", "-Wl,-soname,libcuda.so.1"], text, "")
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def header(*flags: str) -> Path:
    """What is included before each kernel, compiled already, which is half of the work; how depends on few flags."""
    alike = [flag for flag in flags if re.match(r"-(std|f|g)", flag)]
    return build("header", [*alike, "-x", "c++-header"], f'#include "{INCLUDE}/cudaemu.h"', headers(), ".h.gch")


@functools.cache
def headers() -> str:
    """The text of all our headers: part of every key."""
    return "".join(path.read_text() for path in sorted(INCLUDE.rglob("*")) if path.is_file())


def build(kind: str, flags: Sequence[str], text: str, depends: str, form: str = ".so") -> Path:
    """The shared library, or another form, made of a text, from the cache if it is there. Safe with several ranks."""
    flags = [*(FLAGS if form == ".so" else filter(COMPILES.match, FLAGS)), *flags]
    key = hashlib.sha256("\0".join([COMPILER, *flags, text, depends]).encode()).hexdigest()[:24]
    folder = (cache_folder() or Path(tempfile.mkdtemp())) / "cudaemu"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{kind}-{key}{form}"
    if library.exists():
        return library
    with open(library.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            source, made = library.with_suffix("" if form == ".h.gch" else ".cpp"), library.with_suffix(".tmp")
            source.write_text(f'#line 1 "{kind}"\n{text}')
            command = [COMPILER, *flags, "-o", str(made), str(source)]
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=not_sanitized())
            made.rename(library)
            if form == ".so":
                source.unlink()
    return library


def not_sanitized() -> dict[str, str]:
    """The environment of a program that is none of ours: without the sanitizers' library."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def compiler_flags(options: Sequence[str]) -> list[str]:
    """Flags of g++ for options of NVRTC; unknown ones are refused, as NVRTC does."""
    flags, standard, rest = [], "-std=c++17", iter(options)
    for option in rest:
        long = re.match(r"--(define-macro|include-path|undefine-macro|pre-include)=(.*)", option, re.DOTALL)
        if long:
            short = {"define-macro": "-D", "include-path": "-I", "undefine-macro": "-U", "pre-include": "-include"}
            flags.append(short[long[1]] + long[2])
        elif option in ("-D", "-I", "-U"):
            flags.append(option + next(rest))
        elif option[:2] in ("-D", "-I", "-U"):
            flags.append(option)
        elif re.match(r"--?std=", option):
            standard = "-" + option.lstrip("-")
        elif not IGNORED.match(option):
            raise SourceError(f"nvrtc: error: invalid value for an option: {option}")
    return [standard, *flags]


def with_line(message: str) -> str:
    """An error of the runtime, with file and line where it has an address as ``[library+0x12]``."""
    match = re.search(r"\[(\S+)\+(0x[0-9a-f]+)\]$", message)
    if match is None:
        return message
    try:
        command = ["addr2line", "-i", "-e", match[1], match[2]]
        frames = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    except OSError:
        return message
    places = [frame.split(" ")[0] for frame in frames if not frame.startswith(str(INCLUDE))]
    return message[: match.start()] + "at " + (places[0] if places else "an unknown line")
