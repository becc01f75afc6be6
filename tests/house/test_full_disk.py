"""A disk that is full, a real one: outputs, compiled code, scratch files. Needs the right to mount a tmpfs."""

import os
import subprocess
from pathlib import Path

import graphs
import pytest
from spawn import mpirun

from cusp.__main__ import main as partition
from cusp.apps import bfs, pagerank
from cusp.apps.harness import main as run_app
from cusp.output.whole_file import OutputError

NODES = 200_000  # an answer takes more than the disk has
DISK = 256 << 10


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A file on another disk."""
    path = tmp_path_factory.mktemp("graph") / "g.h5"
    graphs.write_here(path, graphs.make(NODES, [(v, v + 1) for v in range(100)]), weight=None)
    return str(path)


@pytest.fixture
def disk(tmp_path):
    """A folder on a disk of a quarter of a megabyte; the test is skipped where it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", folder], capture_output=True)
    if done.returncode:
        pytest.skip("no right to mount a tmpfs here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> None:
    """Use the disk up, to the last byte."""
    with open(folder / "filler", "wb", buffering=0) as file:
        size = 1 << 16
        while size:
            try:
                size = size if file.write(bytes(size)) == size else size // 2
            except OSError:
                size //= 2


OUTPUTS = {
    "--checkpoint": (
        lambda graph, to: (run_app, (pagerank.APP,), [graph, "--checkpoint", to, "--every", "1e-9", "--device", "cpu"])
    ),
    "--output": (lambda graph, to: (run_app, (bfs.APP,), [graph, "--source", "0", "--output", f"{to}.h5"])),
    "--rows": (lambda graph, to: (run_app, (bfs.APP,), [graph, "--source", "0", "--rows", to])),
    "--json": (lambda graph, to: (partition, (), [graph, "--json", to])),
    "--save": (lambda graph, to: (partition, (), [graph, "--save", to])),
    "--export metis": (lambda graph, to: (partition, (), [graph, "--export", "metis", "--export-to", to])),
    "--export distdgl": (lambda graph, to: (partition, (), [graph, "--export", "distdgl", "--export-to", to])),
}


@pytest.mark.parametrize("state", ["full", "with some space"])
@pytest.mark.parametrize("option", OUTPUTS)
def test_an_output_is_whole_or_not_there(disk, graph, comm, option, state):
    """One error, and nothing under a final or a temporary name; small outputs fit if there is some space.

    What rows are appended to is made before, and stays empty; ``.saving`` is the lock of a folder.
    """
    if state == "full":
        fill(disk)
    before = set(disk.rglob("*"))
    run, app, arguments = OUTPUTS[option](graph, str(disk / "made"))
    if state != "full" and option in ("--rows", "--json"):
        run(*app, comm, arguments)
        assert (disk / "made").stat().st_size > 0
        return
    with pytest.raises(OutputError, match=r"made.*cannot be written: No space left on device; free some space"):
        run(*app, comm, arguments)
    left = {path for path in set(disk.rglob("*")) - before if path.is_file() and path.name != ".saving"}
    assert not left or (option == "--rows" and left == {disk / "made"} and not (disk / "made").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("state", ["full", "with some space"])
def test_compiled_code_is_not_kept(disk, tmp_path, graph, state):
    """One warning, the right answer, and no half entry; with space again, it is kept."""
    if state == "full":
        fill(disk)
    cache = {"CUSP_CACHE": str(disk / "cache"), "NUMBA_CACHE_DIR": str(disk / "cache" / "numba"), "CUSP_DEVICE": "cpu"}
    lines = tmp_path / "edges.txt"
    lines.write_text("0 1\n1 2\n")
    done = mpirun(1, "-m", "cusp.commands.convert", lines, "--output", tmp_path / "o.h5", env=cache, launcher=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: compiled code is not kept: ") == 1 and "No space left" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not [*disk.rglob("*.tmp")]


def test_scratch_files(disk, graph):
    """No SIGBUS in the middle: space is reserved before it is used."""
    fill(disk)
    arguments = ["-m", "cusp.apps.bfs", graph, "--source", "0", "--memory-limit", "1M"]
    done = mpirun(1, *arguments, env={"TMPDIR": str(disk)}, launcher=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert [line.startswith("error: ") for line in done.stderr.splitlines()].count(True) == 1, done.stderr
    assert os.listdir(disk) == ["filler"]
