"""README.md and docs/: their commands exist and run, their Python prints what they say, their links lead somewhere."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environments
import nbformat
import pytest
from nbclient import NotebookClient
from spawn import ONCE

from cusp.commands import command
from scripts import draw_speed
from scripts.bench.ladder import bench as ladder
from scripts.bench.shared.rows import ROWS, kept

ROOT = Path(command.__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Left out by make check: README.md has most of their commands, and other tests run their code.
SELDOM = ("users.md", "algorithms.md", "own-policy.ipynb")
PROGRAM = re.compile(r"(?:(?:mpirun|srun)(?: -\S+ \S+)* )?(cusp|python -m scripts\.[\w.]+)( .*)?")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:)([^)#]*)#?([^)]*)\)|!\[[^\]]*\]\(([^)]*)\)")


def name_of(path: Path) -> str:
    """The path inside the repository."""
    return path.relative_to(ROOT).as_posix()


def from_top_to_bottom(*paths: Path) -> Any:
    """Pages for a test that runs all of each, which may compile a policy."""
    limit, slow = pytest.mark.limit(600), pytest.mark.slow
    marks = {path: [limit, slow] if path.name in SELDOM else [limit] for path in paths}
    cases = [pytest.param(path, marks=marks[path], id=name_of(path)) for path in paths]
    return pytest.mark.parametrize("path", cases)


def indented(text: str) -> list[str]:
    """The lines of code outside fences, without comments behind them."""
    lines = FENCE.sub("", text).splitlines()
    return [re.sub(r"\s{2,}#.*", "", line).strip() for line in lines if line.startswith("    ")]


def commands(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Program and arguments of every command in a page, in code of its own or in a sentence."""
    text = path.read_text()
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    for line in [*indented(text), *spans]:
        if found := PROGRAM.fullmatch(line):
            yield found[1], shlex.split(found[2] or "")


@pytest.mark.parametrize("path", [*PAGES, *ROOT.glob("docs/how-to/*.*")], ids=name_of)
def test_commands_are_known(path):
    """Every command of ours can be parsed; every script exists."""
    for program, words in commands(path):
        if program != "cusp":
            assert importlib.util.find_spec(program.removeprefix("python -m ")), program
        elif words and words[0] in command.COMMANDS:
            if words[1:] and "--help" not in words:
                command.load(words[0])[1].parse_args(words[1:])
        else:
            assert not words or words[0] in ("COMMAND", "NAME", "--help", "--version", "completion"), (program, words)


def test_messages_name_commands():
    """A user of the wheel has the command ``cusp``, and no folder ``scripts``."""
    files = [path for folder in ("cusp", "gluon", "apps") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 200 and not [path for path in files if re.search(r"-m scripts\b|scripts/", path.read_text())]


def test_job_scripts():
    """The shell reads them, and what they start can be parsed."""
    folder = ROOT / "docs" / "how-to"
    subprocess.run(["bash", "-n", folder / "slurm.sh"], check=True)
    started = 0
    for name in ("slurm.sh", "mpijob.yaml"):
        for line in re.findall(r"^[^#\n]*\bcusp (\w+ .*)$", (folder / name).read_text(), re.MULTILINE):
            words = shlex.split(line)
            command.load(words[0])[1].parse_args(words[1:])
            started += 1
    assert started == 6


def test_slurm_script(tmp_path):
    """It survives modules that look at unset variables; what it compiles first are the steps of the job."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "activate").write_text('echo "$NOT_SET"\n')
    (tmp_path / "bin" / "srun").write_text("#!/bin/sh\necho \"$@\" | sed 's/.*cusp/cusp/' >> steps\n")
    (tmp_path / "bin" / "srun").chmod(0o755)
    script = f'module() {{ echo "$NOT_SET"; }}; export -f module; bash {ROOT}/docs/how-to/slurm.sh graph.h5 cvc'
    more = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2"}
    more |= {"CUSP_ENVIRONMENT": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=more, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    small, *steps = ((tmp_path / "steps").read_text()).splitlines()
    assert small.startswith("cusp generate ") and "-small" in steps[0] and "-small" in steps[1]
    assert [step.split()[1] for step in steps] == ["partition", "bfs"] * 2
    assert "--policy cvc" in steps[0] and "--policy cvc" in steps[2] and "--verify" in steps[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables with which a shell finds ``cusp``, ``mpirun`` and a Python with no more than README's install.

    Of the ranks of a ``cusp``, one compiles what all need, as in tests (compile_once.py).
    """
    home = tmp_path_factory.mktemp("installed") / "env"
    packages = environments.make(home)
    (packages / "editable.pth").write_text(f"{ROOT}\n")
    program = home / "bin" / "cusp"
    program.write_text(f"#!{home}/bin/python\nfrom cusp.commands.command import main\n{ONCE}main()\n")
    program.chmod(0o755)
    return environments.variables(home)


@from_top_to_bottom(ROOT / "README.md", *(ROOT / "docs" / "tutorial" / name for name in ("users.md", "algorithms.md")))
def test_pages_run_from_top_to_bottom(path, environment, tmp_path):
    """Every command, with only what the page has made before it; then the Python of the page."""
    text = path.read_text()
    for name, code in re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(code)
    lines = [line for line in indented(text) if line.startswith(("cusp ", "mpirun ", "printf "))]
    lines = [line for line in lines if "--device gpu" not in line]
    (tmp_path / "page.txt").write_text("".join(code for kind, code in FENCE.findall(text) if kind == "pycon"))
    assert len(lines) >= 3
    for line in [*lines, "python -m doctest page.txt"]:
        done = subprocess.run(["bash", "-euc", line], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), f"{line}\n{done.stdout}{done.stderr}"


def printed(cell: dict[str, Any]) -> str:
    """What a cell of a notebook shows as text."""
    texts = [output.get("text") or output["data"]["text/plain"] for output in cell.get("outputs", [])]
    return "".join("".join(text) for text in texts)


@from_top_to_bottom(*sorted(ROOT.glob("docs/notebooks/*.ipynb")))
def test_notebooks(path, tmp_path):
    """Every cell runs; what it prints is in the notebook, but for cells with `varies` in their metadata: times."""
    book = nbformat.read(path, as_version=4)
    before = [printed(cell) for cell in book.cells]
    NotebookClient(book, timeout=300, resources={"metadata": {"path": tmp_path}}).execute(
        env=environments.variables(Path(sys.prefix), PYTHONPATH=str(ROOT))
    )
    for cell, expected in zip(book.cells, before, strict=True):
        assert expected == printed(cell) or cell.metadata.get("varies"), cell.source


def anchors(path: Path) -> set[str]:
    """What ``#name`` may say in a link to a page."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links(path):
    """Files and headings that are linked exist."""
    for target, anchor, picture in LINK.findall(FENCE.sub("", path.read_text())):
        linked = (path.parent / (target or picture)).resolve() if target or picture else path
        assert linked.exists(), f"{name_of(path)} links {target or picture}"
        assert not anchor or anchor in anchors(linked), f"{name_of(path)} links {target}#{anchor}"


def test_site(tmp_path):
    """MkDocs builds it, and warns of nothing: every page has its place, every name in the reference is found."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "partition_graph" in (tmp_path / "site" / "api" / "index.html").read_text()


def test_ladder():
    """The page has the tables of the rows that are kept, and their picture."""
    rows = kept(ROWS / "ladder.jsonl", lambda row: (row["graph"], row["rung"]))
    picture = (ROOT / "docs" / "pictures" / "ladder.svg").read_text()
    assert all(f">{ladder.digits(row['ms'])}<" in picture for row in rows), "ladder --picture draws it anew"
    text = (ROOT / "docs" / "ladder.md").read_text()
    lines = [line for line in ladder.tables(rows, markdown=True).splitlines() if line.startswith("|")]
    assert len(lines) > 30 and all(line in text for line in lines)


def test_chart():
    """The chart is drawn from the figures in the page that shows it."""
    picture = draw_speed.TARGET.read_text()
    text = (ROOT / "docs" / "performance.md").read_text()
    for panel in draw_speed.PANELS.values():
        for algorithm, systems in panel.items():
            for system, value in systems.items():
                assert re.search(rf"(?<![\d.]){re.escape(f'{value:,g}')}(?![\d])", text), (algorithm, system, value)
                assert f">{system} {value:,g}<" in picture, "python -m scripts.draw_speed draws it anew"
