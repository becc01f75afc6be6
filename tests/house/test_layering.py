"""The house rules that a program can check: who may import what, and where output and clocks belong."""

import ast
import importlib
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import cusp
from cusp.runtime.devices import module_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cusp", "gluon", "apps", "scripts", "tests", "benchmarks")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

PRODUCT = ("cusp", "gluon", "apps", "scripts")
MODULES = {
    re.sub("^apps/", "cusp/apps/", path.relative_to(ROOT).with_suffix("").as_posix())
    .replace("/", ".")
    .removesuffix(".__init__"): path
    for path in FILES
    if path.relative_to(ROOT).parts[0] in PRODUCT
}

ABOVE = {"cusp": {"gluon", "apps", "scripts"}, "gluon": {"apps", "scripts"}, "apps": {"scripts"}}
# The rooms of cusp, from the lowest up: each needs only those before it. So do the modules beside the rooms.
ROOMS = (
    "errors", "runtime", "language", "kernels", "input", "card", "names", "lid_map", "partition", "policies",
    "neighbors", "prepare_rules", "assign_masters", "assign_edges", "allocate", "construct", "output", "edge_lists",
    "formats", "convert", "growth", "partitioner", "estimates", "launch", "program", "__main__", "commands",
)  # fmt: skip
ENTRANCE = "cusp/__init__.py"  # which looks up the library by name

# A library -> the files that may import it.
LIBRARIES = {
    "h5py": ["cusp/input/*.py", "cusp/output/*.py", "cusp/program/warm_up.py",
             "cusp/formats/hdf5.py", "cusp/commands/info.py", "scripts/*", "tests/*"],
    "cupy": ["*_gpu.py", "gluon/transports/*.py", "cusp/kernels/cuda.py", "scripts/*", "tests/*"],
    "pandas": ["apps/run/result.py", "scripts/*", "tests/*"],
    "scipy": ["scripts/*", "tests/*"],
    "networkx": ["apps/networkx/*", "scripts/*", "tests/*"],
}  # fmt: skip

# A name that is used -> the files that may use it.
NAMES = {
    "COMM_WORLD": ["cusp/launch.py", "cusp/runtime/signals.py", "cusp/runtime/mpi.py", "apps/library.py",
                   "*/__main__.py", "cusp/commands/*", "scripts/*", "tests/*", "benchmarks/*"],
    "print": ["apps/harness.py", "cusp/program/report.py", "cusp/launch.py", "*/__main__.py", "cusp/commands/*",
              "scripts/*", "tests/*", "benchmarks/*"],
    "perf_counter": ["apps/harness.py", "cusp/program/report.py", "cusp/launch.py", "cusp/runtime/timeline.py",
                     "cusp/runtime/watchdog.py", "cusp/runtime/progress.py", "cusp/runtime/exchange.py",
                     "*/__main__.py", "cusp/commands/*", "scripts/*", "tests/*", "benchmarks/*"],
}  # fmt: skip
NAMES |= dict.fromkeys(["time", "monotonic", "process_time", "perf_counter_ns"], NAMES["perf_counter"])

# What opens files to read them by name -> why it need not call ``cusp.runtime.files.open_input``.
OPENERS = {
    "cusp/runtime/files.py": "is where that is",
    "cusp/input/hdf5.py": "HDF5 opens by name what was checked just before",
    "cusp/names/node_map.py": "NumPy maps by name what was checked just before",
    "cusp/formats/tables.py": "Arrow opens by name what was checked just before",
    "cusp/formats/binary.py": "NumPy maps a file that is open",
    "cusp/formats/arrays.py": "opens members of an archive that is open",
    "cusp/formats/text.py": "what Arrow parses is in memory",
    "cusp/names/graph_names.py": "NumPy maps by name what HDF5 has open",
    "cusp/output/saved.py": "a lock of ours, which never waits for a pipe",
    "cusp/output/dataset_writer.py": "what it writes itself",
    "cusp/runtime/leftovers.py": "temporary files of ours, and what the system says of processes",
    "cusp/runtime/compiled_code.py": "the cache, a folder of the user alone",
    "cusp/runtime/storage.py": "what the system says of this process",
    "cusp/runtime/progress.py": "what the system says of a process, and its terminal",
    "cusp/runtime/signals.py": "/dev/null",
    "cusp/launch.py": "/dev/null",
    "cusp/card/hosted_gpu.py": "what the system says of its memory",
    "cusp/kernels/cuda.py": "kernels of ours",
    "cusp/policies/compile_rules.py": "the text of a program that has run",
    "cusp/policies/definitions.py": "the text of a program that has run",
    "gluon/transports/reach.py": "memory that another rank shares",
}
OPENING = ("open", "read_text", "read_bytes", "File", "np.load", "memory_map", "memmap", "input_stream", "fromfile",
           "loadtxt", "genfromtxt", "read_table", "read_csv")  # fmt: skip

MOST_FILES = 12  # of a folder, .py and .cuh, __init__.py apart
# Folders that may have more -> how many, and why.
MORE_FILES = {
    "cusp/kernels": (14, "what all phases and algorithms share, for both devices, and what compiles it"),
    "cusp/runtime": (16, "MPI, devices, files and the cache, and how a process starts, is watched, debugged and ends"),
    "apps": (34, "the programs that users start by name: python -m apps.NAME"),
    "apps/verify": (16, "what must hold of each kind of answer"),
    "cusp/policies": (
        14,
        "rules, what they may ask and change, what compiles and translates them, and what they do wrong",
    ),
}


def name_of(path: Path) -> str:
    """The path inside the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax of a file."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of it, listed once for all that look through it."""
    return (*ast.walk(tree(path)),)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every module that a file imports, anywhere in it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: imports are written in full"
            yield node.lineno, node.module or ""


def used_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of what a file calls, and of the attributes and names that it reads."""
    for node in nodes(path):
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


def test_imports_go_down_the_floors_only():
    for path in FILES:
        above = ABOVE.get(path.relative_to(ROOT).parts[0], set())
        wrong = [(line, name) for line, name in imports(path) if name.removeprefix("cusp.").split(".")[0] in above]
        assert not wrong or name_of(path) == ENTRANCE, f"{name_of(path)} imports from a floor above it: {wrong}"


def test_libraries_stay_in_their_files():
    for path in FILES:
        for line, module in imports(path):
            library = module.split(".")[0]
            assert allowed(path, LIBRARIES.get(library, ["*"])), f"{name_of(path)}:{line} imports {library}"


def test_output_clocks_and_the_world_stay_in_their_files():
    for path in FILES:
        for line, name in used_names(path):
            assert allowed(path, NAMES.get(name, ["*"])), f"{name_of(path)}:{line} uses {name}"


def test_every_module_says_what_it_does():
    for path in FILES:
        assert (ast.get_docstring(tree(path)) or "").strip(), f"{name_of(path)} has no docstring"


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, but those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from executed(child)


@cache
def uses(path: Path) -> set[str]:
    """Modules of ours that a file imports when it is loaded or later; a ``backend`` call imports both of a pair."""
    found, names = set(), {}
    for node in executed(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                place = cusp._PLACE.get(alias.name, "cusp") if node.module == "cusp" else node.module
                whole = names[alias.asname or alias.name] = f"{place}.{alias.name}"
                found.add(whole if whole in MODULES else place)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {name.value for name in node.args if isinstance(name, ast.Constant)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "backend":
            first, *rest = ast.unparse(node.args[0]).split(".")
            module, _, interface = ".".join([names[first], *rest]).rpartition(".")
            pair = module_of(getattr(importlib.import_module(module), interface))
            assert {f"{pair}_cpu", f"{pair}_gpu"} <= MODULES.keys(), f"{name_of(path)}:{node.lineno} asks for {pair}"
            found |= {f"{pair}_cpu", f"{pair}_gpu"}
    return found & MODULES.keys()


def test_no_module_needs_itself():
    """Not when it is loaded, nor later; a backend counts as needed wherever it is asked for."""
    graph = {name: uses(path) - {name} for name, path in MODULES.items()}
    assert "cusp.kernels.build_gpu" in graph["cusp.lid_map"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(reversed(error.args[1]))}")


def test_mpi_and_compiled_code_come_from_one_place():
    """That works without an MPI library, and leaves numba's cache alone."""
    for path in MODULES.values():
        for node in executed(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "mpi4py":
                pytest.fail(f"{name_of(path)}:{node.lineno}: from cusp.runtime.mpi import MPI")
            if isinstance(node, ast.ImportFrom) and node.module == "numba" and "njit" in [n.name for n in node.names]:
                pytest.fail(f"{name_of(path)}:{node.lineno}: from cusp.runtime.compiled_code import njit")


def test_the_machine_needs_no_room_above_it():
    """``cusp/runtime`` knows neither graphs nor kernels."""
    for name, path in MODULES.items():
        if name.startswith("cusp.runtime."):
            above = {other for other in uses(path) if not other.startswith("cusp.runtime") and other != "cusp.errors"}
            assert not above, f"{name_of(path)} imports {above}"


def opens(path: Path) -> Iterator[int]:
    """Lines of calls that open files by name to read them."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            name = name if name == "np.load" else name.rpartition(".")[2]
            modes = [each.value for each in node.args[1:2] if isinstance(each, ast.Constant)]
            if name in OPENING and not (modes and set(str(modes[0])) & set("wax+")):
                yield node.lineno


def test_inputs_are_opened_in_one_way():
    """So no pipe, device or file without end is read, and nothing waits for one."""
    product = [path for path in MODULES.values() if not name_of(path).startswith("scripts/")]
    found = {name_of(path): lines for path in product if (lines := [*opens(path)])}
    wrong = {name: lines for name, lines in found.items() if name not in OPENERS}
    assert not wrong, f"read them with open_input, read_input or open_text of cusp/runtime/files.py: {wrong}"
    assert OPENERS.keys() == found.keys(), "an exception that is not needed any more"


def compiled(path: Path) -> Iterator[ast.FunctionDef]:
    """Functions of a file that numba compiles."""
    for function in nodes(path):
        if isinstance(function, ast.FunctionDef) and any("njit" in ast.dump(one) for one in function.decorator_list):
            yield function


def frozen(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of every constant that compiled code of a file reads."""
    own = path.stem
    owners = {
        alias.asname or alias.name: (node.module.rpartition(".")[2], alias.name)
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for function in compiled(path):
        names = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id.isupper()]
        yield from (owners.get(name, (own, name)) for name in names)


def test_compiled_code_reads_no_constant_that_a_test_changes():
    """It is kept with the value that it was compiled with, for every later process: what may change is an argument."""
    changed = re.compile(r"""setattr\(\s*"?[\w.]*?(\w+)(?:, "|\.)([A-Z_]+)",""")
    patched = {
        found for path in FILES if name_of(path).startswith("tests") for found in changed.findall(path.read_text())
    }
    assert ("threads", "BLOCK") in patched
    constants = {constant for path in MODULES.values() for constant in frozen(path)}
    assert ("kcore_cpu", "BLOCK") in constants
    assert constants & patched == set()


def slow_to_compile(node: ast.AST) -> bool:
    """Sorts (4 s each on one core), and a slice set to an array (2 s: the message of its error is compiled, too)."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in ("sort", "argsort", "unique", "lexsort")
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant):
        return False
    places = [place for place in node.targets if isinstance(place, ast.Subscript)]
    return any(isinstance(one, ast.Slice) for place in places for one in ast.walk(place.slice))


def test_compiled_code_is_compiled_quickly():
    """The first command on a machine waits for it."""
    for path in MODULES.values():
        for node in (node for function in compiled(path) for node in ast.walk(function)):
            assert not slow_to_compile(node), f"{name_of(path)}:{node.lineno}: take a loop, or NumPy outside"


def test_rooms_need_only_lower_rooms():
    """Not when they are loaded, nor later."""
    rooms = {name: name.removeprefix("cusp.").split(".")[0] for name in MODULES if name.startswith("cusp.")}
    rooms = {name: room for name, room in rooms.items() if room != "apps"}
    assert {*rooms.values()} == {*ROOMS}, "a room that is not in the list, or is gone"
    for name, room in rooms.items():
        above = {other for other in uses(MODULES[name]) & rooms.keys() if ROOMS.index(rooms[other]) > ROOMS.index(room)}
        assert not above, f"{name_of(MODULES[name])} imports {above}, which come after {room} in the list of rooms"


def test_folders_stay_small():
    folders: dict[str, int] = {}
    for folder in PRODUCT:
        for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.cuh")]:
            folders.setdefault(name_of(path.parent), 0)
            folders[name_of(path.parent)] += path.name != "__init__.py"
    for folder, files in folders.items():
        most, why = MORE_FILES.get(folder, (MOST_FILES, "none"))
        assert files <= most, f"{folder} has {files} files, more than {most} (reason for an exception: {why})"
    assert all(folders.get(folder, 0) > MOST_FILES for folder in MORE_FILES), "an exception that is not needed any more"
