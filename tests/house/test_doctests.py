"""The examples in docstrings print what they say, and each function of the library has one."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from cusp.apps import library
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.run.result import Result

ROOT = Path(__file__).resolve().parents[2]
WITH_EXAMPLES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for folder in ("cusp", "gluon", "cusp/apps")
    for path in (ROOT / folder).rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(), re.MULTILINE)
)
WANTED = [(name, getattr(library, name)) for name in library.APPS]
WANTED += [(thing.__name__, thing) for thing in (library.partition_graph, EdgeOperator, Result)]


@pytest.mark.limit(300)  # the first may compile the partitioner
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name, monkeypatch, tmp_path):
    """They run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for test in doctest.DocTestFinder().find(importlib.import_module(name), name):
        runner.run(test, out=report.append)
    assert runner.tries > 0 and runner.failures == 0, "".join(report)


@pytest.mark.parametrize(("name", "thing"), WANTED, ids=[name for name, _ in WANTED])
def test_public_functions_have_examples(name, thing):
    """``help`` shows a call of each of them, and what it gives."""
    calls = [example for example in doctest.DocTestParser().get_examples(thing.__doc__) if example.want]
    assert calls, f"help({name}) shows no example"
    text = "".join(example.source for example in doctest.DocTestParser().get_examples(thing.__doc__))
    assert f"{name}(" in text or isinstance(thing, type)
