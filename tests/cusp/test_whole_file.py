"""Files that we write are complete or not there, and never an input or each other (cusp/output/whole_file.py)."""

import json
import os
import resource
from contextlib import contextmanager

import graphs
import numpy as np
import pytest

from cusp.__main__ import main
from cusp.apps.run.output import append_rows
from cusp.errors import InputError
from cusp.output.export import EXPORTS, export
from cusp.output.whole_file import OutputError, append_lines, check_targets, whole_file
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.program.report import write_json


@contextmanager
def full_disk(size: int):
    """No file can grow beyond this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def part(tmp_path, comm):
    path = graphs.write(tmp_path / "g.h5", graphs.random_directed())
    return partition_graph(path, load_policy("oec"), comm)


@pytest.mark.parametrize("form", EXPORTS)
def test_exports_are_whole_or_not_there(tmp_path, comm, part, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    folder = tmp_path / "out"
    folder.mkdir()
    name = export(form, str(folder / "masters"), part, comm)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert os.path.basename(name) in before
    with full_disk(50), pytest.raises(OutputError, match="File too large; free some space"):
        export(form, str(folder / "masters"), part, comm)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_distdgl_maps_every_node(tmp_path, comm, part):
    export("distdgl", str(tmp_path / "masters"), part, comm)
    assert np.load(tmp_path / "masters.npy").tolist() == [0] * part.num_nodes
    book = json.loads((tmp_path / "masters.json").read_text())
    assert book["graph_name"] == "masters" and book["node_map"] == "masters.npy"


def test_figures_are_whole_or_not_there(tmp_path, comm):
    with full_disk(50), pytest.raises(OutputError, match="File too large"):
        write_json(str(tmp_path / "figures.json"), list(range(100)), comm)
    assert not [*tmp_path.iterdir()]


def test_rows_are_appended_whole(tmp_path, comm):
    path = tmp_path / "rows.jsonl"
    append_rows(str(path), [{"trial": 0}], comm)
    with full_disk(100), pytest.raises(OutputError, match="File too large; free some space"):
        append_rows(str(path), [{"trial": 1}, {"trial": 2, "text": "x" * 200}], comm)
    assert path.read_text() == '{"trial": 0}\n'
    append_rows(str(path), [{"trial": 3}], comm)
    assert [json.loads(line)["trial"] for line in path.read_text().splitlines()] == [0, 3]


def test_rows_may_go_to_a_device():
    append_lines("/dev/null", ["one"])
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device"):
        append_lines("/dev/full", ["one"])


def test_an_error_leaves_the_old_file(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "file") as temporary:
        temporary.write_text("new")
        1 / 0  # noqa: B018
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}


def test_long_names(tmp_path):
    """The temporary name may not be longer than the file system allows."""
    name = "ä" * 120 + ".json"
    with whole_file(tmp_path / name) as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """A folder with a graph, a link to it, and a saved partition of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.h5").write_text("graph")
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("g.h5")
    os.link("g.h5", "hard")
    (tmp_path / "dangling").symlink_to("new")
    (tmp_path / "here").symlink_to(".")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-0-of-1.1234.h5").write_text("part")
    (tmp_path / "parts" / "manifest.json").write_text(json.dumps({"graph": str(tmp_path / "g.h5")}))


SAME = [
    ({"--output": "g.h5"}, "g.h5"),
    ({"--output": "./g.h5"}, "g.h5"),
    ({"--output": "here/g.h5"}, "g.h5"),
    ({"--rows": "link"}, "g.h5"),
    ({"--json": "hard"}, "g.h5"),
    ({"--output": "g.h5"}, "parts"),
    ({"--output": "parts/manifest.json"}, "parts"),
    ({"--rows": "parts/part-0-of-1.1234.h5"}, "parts"),
    ({"--output": "new", "--rows": "new"}, "g.h5"),
    ({"--output": "new", "--rows": "here/new"}, "g.h5"),
    ({"--output": "new", "--rows": "dangling"}, "g.h5"),
    ({"--json": "old", "--plot": "here/old"}, "g.h5"),
    ({"--save": "new", "--json": "new"}, "g.h5"),
]


@pytest.mark.parametrize(("targets", "read"), SAME, ids=str)
def test_a_file_has_one_use(outputs, comm, targets, read):
    with pytest.raises(OutputError, match="is the file of .*; choose another name"):
        check_targets(comm, targets, [read, None])


GOOD = {"--output": "new", "--rows": "old", "--json": None, "--save": "parts", "--plot": "parts/picture.png"}


def test_files_of_their_own_are_fine(outputs, comm):
    check_targets(comm, GOOD, ["g.h5", "parts"])
    check_targets(comm, {"--rows": "/dev/null", "--more": None}, ["/dev/null"])


def test_an_empty_name_is_no_file(outputs, comm):
    with pytest.raises(OutputError, match="--trace: the name of the file is empty"):
        check_targets(comm, {"--json": None, "--trace": ""}, [])


@pytest.mark.parametrize("path", ["g.h5", "g.h5/below"])
def test_a_folder_to_save_in_is_no_file(outputs, comm, path):
    with pytest.raises(OutputError, match="is not a folder"):
        check_targets(comm, {"--save": path}, [])


@pytest.mark.parametrize(
    "options",
    [["--json", "g.h5"], ["--export", "metis", "--export-to", "masters", "--json", "masters.part.1"]],
    ids=str,
)
def test_the_command_refuses_before_it_reads(outputs, comm, options):
    """The file is no graph, which would be said next."""
    with pytest.raises(InputError, match="choose another name"):
        main(comm, ["g.h5", *options])
