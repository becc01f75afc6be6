"""What is shown of a job that takes long (cusp/runtime/progress.py)."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import graphs
import pytest
import spawn

from cusp.apps.library import betweenness, partition_graph
from cusp.apps.shared.graphs import whole_graph
from cusp.program import report
from cusp.runtime import progress
from cusp.runtime.progress import error as say
from scripts import mpirun


class Terminal:
    """Standard error that is a terminal, or is not."""

    def __init__(self, is_terminal: bool) -> None:
        self.text, self.is_terminal = "", is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.is_terminal


def shown(monkeypatch, is_terminal: bool, log: bool) -> str:
    """What is written while something takes long, and something else does not."""
    terminal = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "LAUNCHERS", ())  # of these tests
    monkeypatch.setattr(progress, "AFTER", 0.2)
    monkeypatch.setattr(progress, "EVERY", 0.02)
    monkeypatch.setattr(progress._Now, "running", False)
    monkeypatch.setattr(progress._Now, "log", False)
    progress.start(log)
    progress.begin("quick")
    progress.begin("walk")
    progress.update(frontier=12345, change=0.25)
    time.sleep(0.5)
    progress.update(1, 4, "source")
    time.sleep(0.1)
    progress.begin("")
    text = terminal.text
    time.sleep(0.1)
    assert terminal.text == text
    progress._Now.running = False  # ends the thread
    time.sleep(0.05)
    return text


def test_a_line_on_a_terminal(monkeypatch):
    """The same line again and again, erased at the end; nothing about what is quick."""
    text = shown(monkeypatch, True, False)
    lines = text.split(progress.ERASE)
    assert lines[0] == lines[-1] == "" and "\n" not in text and "quick" not in text
    assert lines[1] == "walk: 0 s, 1 round, frontier 12,345, change 0.25"
    assert re.fullmatch(r"walk: [01] s, source 1 of 4, about [123] s left", lines[-2])


def test_lines_with_the_time(monkeypatch):
    """One when it has taken long, and one at the end."""
    first, last, rest = shown(monkeypatch, False, True).split("\n")
    assert rest == "" and re.fullmatch(r"\d\d:\d\d:\d\d walk: 0 s, 1 round, frontier 12,345, change 0.25", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d walk: [01] s, source 1 of 4, about [123] s left, done", last)


def test_nothing_in_pipes(monkeypatch):
    """Unless asked for."""
    assert shown(monkeypatch, False, False) == ""


def test_an_error_has_a_line_of_its_own(monkeypatch):
    """The line of progress goes before a warning, and comes back; after the end it does not."""
    terminal = Terminal(True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.02)
    monkeypatch.setattr(progress._Now, "running", False)
    progress.start(False)
    progress.begin("walk")
    time.sleep(0.2)
    report.warn(0, "beware")
    time.sleep(0.2)
    progress.stop()
    say("error: the end")
    time.sleep(0.1)
    assert f"{progress.ERASE}warning: beware\n{progress.ERASE}walk: " in terminal.text
    assert terminal.text.endswith(f"walk: 0 s{progress.ERASE}error: the end\n")


def test_time_left_after_a_checkpoint(monkeypatch):
    """What was done before this run took none of its time; rounds of a source do not count."""
    progress.begin("walk")
    monkeypatch.setattr(progress._Now, "began", time.monotonic() - 10)
    progress.update(300, 400, "source", 300)
    assert progress._line() == "walk: 10 s, source 300 of 400"
    progress.update(320, 400, "source", 300)
    progress.update(frontier=7)
    assert progress._line() == "walk: 10 s, source 320 of 400, about 40 s left, frontier 7"
    progress.begin("")


@pytest.mark.mpi
def test_betweenness_says_which_source(comm, monkeypatch):
    """Those that are done, of all."""
    told, real = [], progress.update
    monkeypatch.setattr(progress, "update", lambda *words, **facts: (told.append(words), real(*words, **facts)))
    monkeypatch.setattr(whole_graph, "AT_ONCE", 1)
    graph = partition_graph(([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]), comm=comm)
    betweenness(graph, sources=6)
    assert [words for words in told if words][-1] == (6, 6, "source", 0)
    assert comm.size > 1 or (1, 6, "source", 0) in told


SLOW = (
    "import runpy, sys, time; from cusp.runtime import progress; progress.AFTER = 0.0; progress.EVERY = 0.02; "
    "sys.argv = ['bfs', 'g.h5', '--source', '0']; runpy.run_module('cusp.apps.bfs', run_name='__main__')"
)


def read_all(terminal: int) -> str:
    """What was written to a terminal whose other end is closed; a read gives 4 KiB at most."""
    text = b""
    with contextlib.suppress(OSError):
        while True:
            text += os.read(terminal, 1 << 16)
    return text.decode()


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_program_on_a_terminal(tmp_path, ranks):
    """Starting takes a while; a launcher's terminal will do. Results are on standard output, whole."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    ours, theirs = pty.openpty()
    words = [*(mpirun.command(ranks) if ranks > 1 else []), sys.executable, "-c", SLOW]
    env = mpirun.environment({"PYTHONPATH": str(spawn.ROOT)})
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_all, ours)  # who writes to a terminal that nobody reads may have to wait
        try:
            done = subprocess.run(
                words, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env=env, text=True, timeout=100
            )
        finally:
            os.close(theirs)
    text = reading.result()
    os.close(ours)
    assert done.returncode == 0 and "nodes reached" in done.stdout
    assert re.search(r"(opening|loading compiled code|partitioning)\b.*: \d+ s", text), text
    hint = "few for 2 ranks"
    assert text.endswith(progress.ERASE) if ranks == 1 else hint in text, text
