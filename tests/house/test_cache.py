"""The cache of compiled code: whose it is, damaged files, a full disk."""

import importlib.util
import json
import os
import resource
import time
from pathlib import Path

import graphs
import numba
import pytest
from spawn import mpirun

from cusp.runtime import compiled_code
from tests.fuzz import caches

SOURCE = "def twice(x):\n    return 2 * x\n"
DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeroed": lambda content: bytes(len(content)),
    "junk": lambda content: b"\x80\x04junk." * (len(content) // 7 + 1),
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("CUSP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    compiled_code.why_not_ours.cache_clear()
    compiled_code._not_kept.clear()
    yield tmp_path / "cache"
    compiled_code.why_not_ours.cache_clear()


@pytest.fixture
def twice(tmp_path, cache):
    """A function in a file, as a new process finds it: call it to compile it or to load it."""
    (tmp_path / "twice.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("twice", tmp_path / "twice.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda: compiled_code.njit(cache=True)(module.twice)


def hits(function) -> int:
    """Call a function; how many signatures it found in the cache."""
    assert function(21) == 42
    return sum(function.stats.cache_hits.values())


def test_damaged_files_of_numba_are_made_anew(tmp_path, twice):
    assert hits(twice()) == 0 and hits(twice()) == 1
    files = list((tmp_path / "numba").rglob("*.nb*"))
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    assert all(path.parent.stat().st_mode & 0o077 == 0 for path in files)
    for path in files:
        whole = path.read_bytes()
        for damage in DAMAGES.values():
            path.write_bytes(damage(whole))
            assert hits(twice()) == 0 and hits(twice()) == 1
        path.unlink()
        assert hits(twice()) == 0 and hits(twice()) == 1


@pytest.mark.slow
@pytest.mark.limit(300)
@pytest.mark.parametrize(("group", "damage"), [("*.nbc", "zeroed")])
def test_a_program_with_a_damaged_cache(tmp_path, group, damage):
    """All entries of a real run at once; ``python -m tests.fuzz.caches`` does more of it."""
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    arguments, answer = caches.programs(tmp_path)["convert"]
    files, failures = caches.attack(tmp_path / "cache", arguments, answer, group, {damage: DAMAGES[damage]})
    assert files > 2 and not failures, failures


def test_machine_code_of_another_signature_is_not_run(tmp_path, twice):
    both = twice()
    assert both(21) == 42 and both(0.5) == 1
    first, second = sorted((tmp_path / "numba").rglob("*.nbc"))
    second.write_bytes(first.read_bytes())
    assert twice()(0.25) == 0.5


def test_an_edit_costs_what_it_touches(tmp_path, monkeypatch):
    """Code is kept for its file and all that this imports, also in functions, and names of packages; not for types."""
    files = {
        "cusp/__init__.py": "", "cusp/room/__init__.py": "", "cusp/room/two.py": "from cusp import three\n",
        "cusp/three.py": "from cusp.room import (\n    two,\n)\n", "gluon/four.py": "", "cusp/five.py": "",
        "cusp/six.py": "",
    }  # fmt: skip
    text = (
        "from typing import TYPE_CHECKING\nfrom cusp.room.two import x\nif TYPE_CHECKING:\n    import cusp.five\n\n"
        "def late():\n    import gluon.four\n"
    )
    monkeypatch.setattr(compiled_code, "ROOT", tmp_path)

    def digest() -> str:
        for known in (compiled_code.digest_of, compiled_code._read_module):
            known.cache_clear()
        return compiled_code.digest_of(text)

    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    before = digest()
    assert digest() == before != compiled_code.digest_of(text + "#")
    matter = []
    for name, content in files.items():
        (tmp_path / name).write_text(content + "# edited\n")
        matter += [name] * (digest() != before)
        (tmp_path / name).write_text(content)
    assert matter == ["cusp/__init__.py", "cusp/room/__init__.py", "cusp/room/two.py", "cusp/three.py", "gluon/four.py"]
    digest()


def test_loops_do_not_depend_on_apps():
    """So an edit in one app does not compile another one's anew."""
    pages = {path.name for path in (compiled_code.ROOT / "cusp" / "apps").glob("*.py")} - {"edge_operator.py"}
    loops = [*(compiled_code.ROOT / "cusp" / "apps" / "operators").rglob("*_cpu.py")]
    found = {path for file in loops for path in compiled_code.imported_by(file.read_text())}
    left = [*found]
    while left:
        more = {*compiled_code.imported_by(Path(left.pop()).read_text())} - found
        found |= more
        left += more
    assert len(loops) > 9 and not {path.name for path in map(Path, found) if path.parent.name == "apps"} & pages


def test_two_processes_keep_what_both_compile_at_once(tmp_path, twice, monkeypatch):
    """The second waits until the first has added its entry to the index that both change."""
    monkeypatch.syspath_prepend(tmp_path)  # what another process has compiled names its module
    save, twice_here = compiled_code.CodeFiles._save_index, twice()
    monkeypatch.setattr(compiled_code.CodeFiles, "_save_index", lambda *entry: (time.sleep(0.5), save(*entry)))
    children = []
    for number in (21, 10.5):
        children.append(os.fork())
        if children[-1] == 0:
            twice_here(number)
            os._exit(0)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    again = twice()
    assert hits(again) == 1 and again(10.5) == 21 and sum(again.stats.cache_hits.values()) == 2


def test_a_full_disk_only_means_that_nothing_is_kept(tmp_path, twice, capfd):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        assert hits(twice()) == 0 and hits(twice()) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*(tmp_path / "numba").rglob("*.tmp")]
    assert capfd.readouterr().err.count("warning: compiled code is not kept: ") == 1
    assert hits(twice()) == 0 and hits(twice()) == 1


def test_a_folder_that_cannot_be_made_only_means_that_nothing_is_kept(tmp_path, twice, capfd):
    (tmp_path / "numba").write_text("a file")
    assert hits(twice()) == 0
    assert "warning: compiled code is not kept: " in capfd.readouterr().err


TEXT = "from cusp.runtime.compiled_code import njit\n@njit(cache=True, nogil=True)\ndef answer():\n    return {}\n"


def test_generated_modules_are_never_run_from_their_file(cache, monkeypatch):
    assert compiled_code.import_text(TEXT.format(42), []).answer() == 42
    (path,) = cache.rglob("cusp_generated_*.py")
    for damage in DAMAGES.values():
        path.write_bytes(damage(path.read_bytes()))
        monkeypatch.delitem(compiled_code.sys.modules, path.stem)
        assert compiled_code.import_text(TEXT.format(42), []).answer() == 42
    assert path.read_text() == TEXT.format(42) and not [*cache.rglob("*.pyc")]


def test_generated_modules_work_on_a_full_disk(cache, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled_code, "replacing", full)
    assert compiled_code.import_text(TEXT.format(43), []).answer() == 43


def test_the_cache_is_for_its_owner(cache, capfd):
    assert compiled_code.cache_folder("rules") == cache / "rules"
    assert cache.stat().st_mode & 0o777 == 0o700 and (cache / "rules").stat().st_mode & 0o777 == 0o700
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("below", ["", "rules"])
@pytest.mark.parametrize(
    "why", ["writable by others", "writable by a group", "of another user", "a link of another user"]
)
def test_a_cache_that_is_not_ours_is_not_used(cache, below, why, monkeypatch, capfd):
    (cache / "rules").mkdir(parents=True, mode=0o700)
    target = cache / below if below else cache
    if why.startswith("writable by"):
        target.chmod({"writable by others": 0o702, "writable by a group": 0o720}[why])
    elif why == "of another user" and os.geteuid() == 0:
        os.chown(target, 4711, 4711)
    else:
        method = "stat" if why == "of another user" else "lstat"
        plain = getattr(Path, method)

        def foreign(path, **options):
            found = plain(path, **options)
            return os.stat_result((*found[:4], 4711, *found[5:])) if path == target else found

        monkeypatch.setattr(Path, method, foreign)
    assert compiled_code.cache_folder("rules") is None
    assert capfd.readouterr().err.count("warning: compiled code is not kept: ") == 1
    assert compiled_code.import_text(TEXT.format(44), []).answer() == 44
    assert not compiled_code.all_kept()


@pytest.mark.slow
@pytest.mark.limit(300)
@pytest.mark.parametrize(("app", "ranks", "loop"), [("bfs", 2, "search"), ("sssp", 1, "relax")])
def test_nothing_is_compiled_in_a_trial(tmp_path, app, ranks, loop):
    """With an empty cache, the warm-up compiles a search; on two ranks, that without rounds in shared memory."""
    graphs.write_here(tmp_path / "g.h5", graphs.HARD["path"]())
    env = {"CUSP_CACHE": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    run = ["-m", f"cusp.apps.{app}", "g.h5", "--source", "0", "--trace", "trace.json"]
    done = mpirun(ranks, *run, launcher=ranks > 1, env=env, cwd=tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr
    events = [event for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if event["ph"] == "X"]
    begin = min(event["ts"] for event in events if event["name"] == "run")
    compiled = [event for event in events if event["cat"] == "compile"]
    assert compiled and any(event["name"].startswith(f"compile {loop}") for event in compiled)
    assert [event["name"] for event in compiled if event["ts"] > begin] == []


def test_constants_are_no_types():
    """A callee is compiled once, for a constant as for a variable; and once more if Python calls it."""
    callee = compiled_code.njit()(lambda value: 2 * value)
    caller = compiled_code.njit()(lambda value: callee(value) + callee(1) + callee(value=2))
    assert caller(3) == 12
    assert len(callee.overloads) == 0 and len(callee.inner().overloads) == 1
    assert callee(4) == 8 and len(callee.overloads) == 1
