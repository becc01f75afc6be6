"""Files that are none, that have no end, or whose text is made to hurt: one line for each, wherever they are read."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from cusp.apps.maze import read_maze
from cusp.apps.run.checkpoint import _content
from cusp.apps.run.cli import weights_of
from cusp.commands.draw_trace import read_events
from cusp.commands.plot_rows import read_rows
from cusp.errors import GraphFileError, InputError
from cusp.formats import open_edges
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import read_header
from cusp.names.node_map import read_node_map
from cusp.output.manifest import fingerprint, read_manifest
from cusp.output.part_file import _explained
from cusp.output.whole_file import _files_of
from cusp.policies.policy import load_module
from cusp.runtime import files

NO_EDGES = EdgeSlice(2, 0, False, np.array([0, 2]), 0, np.zeros(3, np.int64), np.zeros(0, np.uint32), None)


def _part(path):
    with _explained(Path(path)):
        read_header(str(path))


READERS = {  # what reads a file that a user names, or that another file names
    "graph": lambda path: read_header(str(path)),
    "edges": lambda path: open_edges(path),
    "part": _part,
    "fingerprint": lambda path: fingerprint(str(path)),
    "policy": lambda path: load_module(str(path)),
    "node_map": lambda path: read_node_map(str(path), NO_EDGES),
    "maze": read_maze,
    "personalize": lambda path: weights_of([str(path)], None, 2, "--personalize"),
    "mark": lambda path: _content(str(path)),
    "rows": read_rows,
    "trace": read_events,
}
HOLE = 3 << 30  # bytes that no disk has to hold


@pytest.fixture(params=["fifo", "zeros", "random", "hole", "folder", "nothing", "loop", "long_name"])
def no_file(request, tmp_path):
    """A path at which there is no file that could be read."""
    path = tmp_path / "given"
    if request.param == "fifo":
        os.mkfifo(path)
    elif request.param == "hole":
        path.touch()
        os.truncate(path, HOLE)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "loop":
        path.symlink_to(path)
    return {"zeros": "/dev/zero", "random": "/dev/urandom", "long_name": "a" * 5000}.get(request.param, path)


@pytest.fixture(autouse=True)
def in_time():
    """What waits for a pipe, or reads without end, is interrupted."""
    before = signal.signal(signal.SIGALRM, lambda *arguments: pytest.fail("it waits, or reads without end"))
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused(no_file, reader):
    """Of a hole, few bytes are read, if any: then a graph, a part, a sample of it or a policy has no such content."""
    if os.path.isfile(no_file) and reader == "fingerprint":
        assert READERS[reader](no_file)["bytes"] == HOLE
        return
    began = time.process_time()
    with pytest.raises((InputError, OSError) if reader == "fingerprint" else InputError) as caught:
        READERS[reader](no_file)
    assert "\n" not in str(caught.value) and time.process_time() - began < 5


def test_the_folder_of_a_partition(no_file, tmp_path):
    """Its manifest is none of these and no link, neither when it is read nor when targets are compared with inputs."""
    folder, manifest = tmp_path / "parts", tmp_path / "parts" / "manifest.json"
    folder.mkdir()
    with contextlib.suppress(OSError):  # no name is so long
        manifest.symlink_to(no_file)
    for _ in range(2):
        with pytest.raises(InputError, match=r"manifest\.json"):
            read_manifest(folder)
        assert _files_of(folder) == [manifest]
        if os.path.lexists(tmp_path / "given"):
            manifest.unlink()
            (tmp_path / "given").rename(manifest)


HURTFUL = {
    "deep": "[" * 100_000,
    "deep_objects": '{"a":' * 100_000,
    "nul": json.dumps({"graph": "a\0b", "traceEvents": [{"name": "\0", "pid": 0, "ph": "M"}], "app": "\0"}),
    "surrogate": '{"graph": "\\ud800", "traceEvents": [{"name": "\\ud800"}], "app": "\\udfff", "ranks": 1,'
    '"seconds": 1}',
    "number": '{"traceEvents": 5, "app": "bfs", "ranks": "1", "seconds": "x"}',
    "huge": json.dumps({"app": "bfs", "ranks": 10**400, "seconds": 10**400, "traceEvents": [{"pid": 10**400}]}),
    "infinite": '{"app": "bfs", "ranks": 1, "seconds": 1e999, "traceEvents": [{"ph": "X", "name": "a", "ts": NaN}]}',
    "unhashable": '{"app": {}, "ranks": [], "seconds": 1, "traceEvents": [[], {"name": {}}]}',
    "instant": '{"app": "bfs", "ranks": 1, "seconds": 0, "traceEvents": {"ph": 1}}',
    "unknown_kind": '{"app": "bfs", "ranks": 1, "seconds": -1, "traceEvents": [{"ph": "X", "name": "a", "cat": "b",'
    '"pid": 0, "tid": 0, "ts": 0, "dur": 1}]}',
    "nameless": '{"app": "bfs", "traceEvents": [{"ph": "M", "name": "process_name", "pid": 0}]}',
    "nothing": "",
    "digits": "9" * 10_000,
    "latin": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("text", HURTFUL)
@pytest.mark.parametrize("reader", ["manifest", "rows", "trace"])
def test_texts_that_hurt(tmp_path, reader, text):
    """JSON that no program of ours writes: refused in one line that can be printed."""
    path = tmp_path / "manifest.json"
    content = HURTFUL[text]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read = {"manifest": lambda path: read_manifest(path.parent), "rows": read_rows, "trace": read_events}[reader]
    if (reader, text) == ("rows", "nothing"):
        assert read(path) == []
        return
    with pytest.raises(InputError) as caught:
        read(path)
    str(caught.value).encode()
    assert "\n" not in str(caught.value)


def test_rows_and_timelines_of_ours(tmp_path):
    """Are read as before."""
    path = tmp_path / "rows"
    path.write_text('{"app": "bfs", "ranks": 2, "seconds": 0.5, "graph": "a.h5", "threads": null}\n')
    assert read_rows(path)[0]["seconds"] == 0.5
    span = {"ph": "X", "name": "run", "cat": "phase", "pid": 0, "tid": 0, "ts": 1.5, "dur": 2}
    named = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0"}}
    path.write_text(json.dumps({"traceEvents": [span, named]}))
    assert read_events(path) == [span, named]


def test_lines_have_an_end(tmp_path, monkeypatch):
    """A longer line than any that makes sense is named, and not read to its end."""
    monkeypatch.setattr(files, "LONGEST_LINE", 6)
    (tmp_path / "text").write_text("12345\n1234\n1234567")
    with pytest.raises(InputError, match="line 3: is longer than 6"), files.open_text(tmp_path / "text") as lines:
        assert [next(lines), next(lines)] == ["12345\n", "1234\n"]
        next(lines)


@pytest.mark.parametrize(
    "arrays",
    [
        {"sources": 1, "targets": 2},
        {"sources": [0], "targets": 2},
        {"sources": [0], "targets": [0], "weights": 1.0},
        {"indptr": 1, "indices": 2},
        {"indptr": [0, 1], "indices": 0, "shape": [1, 1]},
        {"sources": [[0]], "targets": [[0]]},
        {"indptr": [0, 1], "indices": [0], "shape": 1},
        {"sources": [0], "targets": [0], "num_nodes": [1, 2]},
    ],
)
def test_numbers_where_arrays_should_be(tmp_path, arrays):
    """In a .npz file."""
    np.savez(tmp_path / "a.npz", **{name: np.asarray(values) for name, values in arrays.items()})
    with pytest.raises(GraphFileError, match=r"a\.npz"):
        list(open_edges(tmp_path / "a.npz").chunks())


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv"])
def test_two_columns_of_one_name(tmp_path, name):
    """It is not known which one counts."""
    import pyarrow
    from pyarrow import csv, ipc, parquet

    columns = [pyarrow.array(values) for values in ([0, 1], [1, 0], [5, 6])]
    table, path = pyarrow.table(columns, names=["source", "target", "target"]), tmp_path / name
    if name == "t.feather":
        with ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    else:
        (parquet.write_table if name == "t.parquet" else csv.write_csv)(table, path)
    with pytest.raises(GraphFileError, match="2 columns are called 'target'"):
        open_edges(path)
