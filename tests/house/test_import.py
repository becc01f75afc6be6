"""What ``import cusp`` does to a process, and one process without an MPI library (cusp/__init__.py, runtime/mpi.py)."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import graphs
import pytest
import spawn

import cusp
from scripts.mpirun import environment

NO_LIBRARY = {"MPI4PY_LIBMPI": "/nonexistent/libmpi.so"}

STATE = """
import os, signal, sys, warnings
def state():
    handlers = [signal.getsignal(number) for number in range(1, 32)]
    return dict(os.environ), sys.excepthook, handlers, [*warnings.filters], [*sys.meta_path], threading.active_count()
import threading
"""


def python(text: str, *arguments: str, ranks: int = 1, env: dict[str, str] | None = None, cwd: Path | None = None):
    """Run a script; under mpirun if it is for several ranks."""
    return spawn.mpirun(ranks, *arguments, "-c", text, launcher=ranks > 1, env=env, cwd=cwd, timeout=500)


def test_import_changes_nothing():
    done = python(STATE + "before = state(); import cusp, gluon; assert state() == before; print(*sorted(sys.modules))")
    assert done.returncode == 0, done.stderr
    assert not {"numba", "numpy", "mpi4py"} & set(done.stdout.split())


def test_use_changes_nothing_of_others():
    """Once numba and h5py are there, the library adds nothing: no variables, filters, signals, hooks."""
    text = (
        STATE
        + "import h5py, numba, mpi4py.MPI; before, kept = state(), numba.core.caching.CacheImpl._locator_classes[:]"
    )
    text += "\nimport cusp; graph = cusp.partition_graph(([0, 1], [1, 0]), device='cpu'); cusp.bfs(graph, 0)"
    text += "\nassert state() == before and numba.core.caching.CacheImpl._locator_classes == kept"
    text += "\nassert numba.config.CACHE_DIR == ''"
    done = python(text, "-W", "error", env={"NUMBA_CACHE_DIR": ""})
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_error_of_a_script_keeps_its_line(ranks, used, tmp_path):
    """One rank may fail alone, also before it has used the library: the other ones, which wait for it, end too."""
    script, use = tmp_path / "script.py", "graph = cusp.partition_graph(([0, 1], [1, 0]))\n"
    script.write_text(
        f"import cusp; from cusp.runtime.signals import launched\n{use if used else chr(10)}"
        f"if launched()[1] == {ranks - 1}:\n    [][7]\n"
        f"{use}graph.comm.Barrier()\n"
    )
    done = spawn.mpirun(ranks, script, launcher=ranks > 1, timeout=60)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1
    assert f'File "{script}", line 4, in <module>\n    [][7]' in done.stderr and "IndexError" in done.stderr


def test_scipy_is_imported_when_a_loop_calls_it():
    """numba would import it at once, to see whether it is there."""
    pytest.importorskip("scipy")
    text = (
        "import sys, numba.np.linalg, numpy as np; kept = numba.np.linalg.ensure_blas; import cusp\n"
        "from cusp.runtime.compiled_code import njit\n"
        "graph = cusp.partition_graph(([0, 1], [1, 0]), device='cpu'); cusp.bfs(graph, 0)\n"
        "assert 'scipy.linalg' not in sys.modules and numba.np.linalg.ensure_blas is kept\n"
        "assert njit()(lambda a, b: np.dot(a, b))(np.ones((3, 3)), np.ones((3, 3)))[0, 0] == 3\n"
    )
    done = python(text)
    assert (done.returncode, done.stderr) == (0, "")


def test_names():
    """All that the package offers is there, once; editors and type checkers know the same names."""
    done = python("from cusp import *; print(*sorted(name for name in globals() if name[0] != '_'))")
    assert done.stdout.split() == sorted(cusp.__all__) and sorted([*cusp.__all__, "__version__"]) == dir(cusp)
    tree = ast.parse(Path(cusp.__file__).read_text())
    (typed,) = (node.body for node in tree.body if isinstance(node, ast.If) and "TYPE" in ast.unparse(node.test))
    names = {alias.name for node in typed if isinstance(node, ast.ImportFrom) for alias in node.names} - {"*"}
    from cusp.apps.library import APPS

    assert names | set(APPS) == set(cusp.__all__)
    with pytest.raises(AttributeError, match="'cusp' has no attribute 'dfs'"):
        cusp.dfs  # noqa: B018


ALONE = """
import json, cusp, scipy.sparse
from cusp.runtime.mpi import MPI
graph, options = cusp.partition_graph("g.h5", "cvc"), {"verify": True}
matrix = cusp.partition_graph(scipy.sparse.eye_array(5, k=1), symmetrize=True)
for found in (
    cusp.bfs(graph, 3, parents=True, **options), cusp.bfs(matrix, 2, trace="t.json"), cusp.pagerank(graph, **options),
    cusp.cc(graph, **options), cusp.sssp(graph, 3, **options), cusp.sssp(graph, 3, execution="async"),
    cusp.kcore(graph, **options), cusp.scc(graph, **options), cusp.communities(graph, **options),
    cusp.triangles(graph, **options), cusp.betweenness(graph, **options), cusp.widest(graph, 3, **options),
):
    print(json.dumps([found.figures, {name: values.tolist() for name, values in found.values.items()}]))
print(MPI.__name__)
"""


@pytest.mark.limit(600)  # compiles all algorithms
def test_one_rank_without_an_mpi_library(tmp_path):
    """Every algorithm gives what it gives with MPI; so does the command."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed(60, 300, seed=5))
    outputs = []
    for env, module in (({}, "mpi4py.MPI"), (NO_LIBRARY, "cusp.runtime.one_rank")):
        done = python(ALONE, env=env, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        *answers, name = done.stdout.splitlines()
        outputs.append(answers)
        assert name == module
        command = "from cusp.commands.command import main; main()"
        line = [sys.executable, "-c", command, "bfs", "g.h5", "--source", "3", "--verify", "--output", f"{module}.h5"]
        variables = environment({"PYTHONPATH": str(spawn.ROOT)} | env)
        said = subprocess.run(line, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert (said.returncode, said.stderr) == (0, "") and "bfs from 3: " in said.stdout
    assert outputs[0] == outputs[1] and len(answers) == 12


@pytest.mark.parametrize("how", [("-m", "cusp.apps.bfs"), ("-c", "from cusp import bfs")])
def test_several_ranks_without_an_mpi_library(how):
    """One line says what to do."""
    done = spawn.mpirun(2, *how, env=NO_LIBRARY, timeout=60)
    assert done.returncode != 0
    first = r"\[rank [01] of 2\] error: 2 ranks were started, and no MPI library can be loaded \("  # in any order
    assert re.match(first, done.stderr)
    assert "pip install 'cusp-gluon[mpich]'" in done.stderr and done.stderr.count("\n") == 1
