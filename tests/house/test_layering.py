"""The house rules that a program can check: who may import what, and where output and clocks belong."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cusp", "gluon", "apps", "scripts", "tests", "benchmarks")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

ABOVE = {"cusp": {"gluon", "apps", "scripts"}, "gluon": {"apps", "scripts"}, "apps": {"scripts"}}

# A library -> the files that may import it.
LIBRARIES = {
    "h5py": ["cusp/input/*.py", "cusp/output/*.py", "cusp/estimates/sample.py", "cusp/program/warm_up.py", "scripts/*",
             "tests/*"],
    "cupy": ["*_gpu.py", "gluon/transports/*.py", "cusp/kernels/cuda.py", "scripts/*", "tests/*"],
    **dict.fromkeys(["scipy", "pandas", "networkx"], ["apps/run/result.py", "scripts/*", "tests/*"]),
}  # fmt: skip

# A name that is used -> the files that may use it.
NAMES = {
    "COMM_WORLD": ["cusp/launch.py", "apps/library.py", "*/__main__.py", "scripts/*", "tests/*", "benchmarks/*"],
    "print": ["apps/harness.py", "cusp/program/report.py", "cusp/launch.py", "*/__main__.py", "scripts/*", "tests/*",
              "benchmarks/*"],
    "perf_counter": ["apps/harness.py", "cusp/program/report.py", "cusp/launch.py", "cusp/runtime/stopwatch.py",
                     "*/__main__.py", "scripts/*", "tests/*", "benchmarks/*"],
}  # fmt: skip
NAMES |= dict.fromkeys(["time", "monotonic", "process_time", "perf_counter_ns"], NAMES["perf_counter"])


def name_of(path: Path) -> str:
    """The path inside the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax of a file."""
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every module that a file imports, anywhere in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: imports are written in full"
            yield node.lineno, node.module or ""


def used_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of what a file calls, and of the attributes and names that it reads."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno, "print"
        elif isinstance(node, ast.Attribute):
            clock = isinstance(node.value, ast.Name) and node.value.id == "time"
            if node.attr == "COMM_WORLD" or clock:
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "mpi4py.MPI"):
            yield from ((node.lineno, alias.name) for alias in node.names)


def allowed(path: Path, patterns: list[str]) -> bool:
    """Whether the file is one of those in the list."""
    return any(fnmatch(name_of(path), pattern) for pattern in patterns)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_down_the_floors_only(path):
    above = ABOVE.get(path.relative_to(ROOT).parts[0], set())
    wrong = [(line, module) for line, module in imports(path) if module.split(".")[0] in above]
    assert not wrong, f"{name_of(path)} imports from a floor above it: {wrong}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_libraries_stay_in_their_files(path):
    for line, module in imports(path):
        library = module.split(".")[0]
        assert allowed(path, LIBRARIES.get(library, ["*"])), f"{name_of(path)}:{line} imports {library}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_output_clocks_and_the_world_stay_in_their_files(path):
    for line, name in used_names(path):
        assert allowed(path, NAMES.get(name, ["*"])), f"{name_of(path)}:{line} uses {name}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_module_says_what_it_does(path):
    first = (ast.get_docstring(tree(path)) or "").strip()
    assert first, f"{name_of(path)} has no docstring"
