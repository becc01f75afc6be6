"""What editors see of the functions of ``cusp.apps.library`` is what these functions take."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from cusp.apps import library
from scripts import signatures

ROOT = Path(library.__file__).resolve().parents[1]


def test_file_is_fresh():
    """The options of no app have changed since the file was written."""
    assert signatures.TARGET.read_text() == signatures.text(), "python -m scripts.signatures writes it anew"


def test_types_at_run_time():
    """The same in a notebook."""
    parameters = inspect.signature(library.bfs).parameters
    assert parameters["parents"].annotation is bool and parameters["direction"].default == "auto"
    assert inspect.signature(library.forest).parameters["roots"].default is inspect.Parameter.empty


def test_a_type_checker_sees_them(tmp_path):
    """Results have their type, and a keyword that does not exist is an error; mypy's cache is that of make check."""
    pytest.importorskip("mypy")
    code = tmp_path / "user.py"
    code.write_text(
        "from cusp import bfs, forest, partition_graph\n"
        "part = partition_graph('graph.h5')\n"
        "reveal_type(bfs(part, 3, parents=True, direction='push'))\n"
        "bfs(part, 3, derection='push')\n"
        "forest(part)\n"
    )
    done = subprocess.run([sys.executable, "-m", "mypy", code], cwd=ROOT, capture_output=True, text=True)
    wanted = ['note: Revealed type is "cusp.apps.run.result.Result"', '"derection"', 'Missing named argument "roots"']
    assert done.stdout.count(": error: ") == 2 and all(text in done.stdout for text in wanted), done.stdout
