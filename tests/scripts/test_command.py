"""The command ``cusp``: it knows every program, starts in no time, and completes what a user types."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spawn

from cusp.__main__ import COMMANDS as OF_CUSP
from cusp.apps import library
from cusp.commands import command
from cusp.commands.completion import script
from scripts import mpirun

ROOT = Path(command.__file__).resolve().parents[2]


@pytest.fixture
def cusp(shared_tmp):
    """Run the command in a folder of a user, as the script that pip installs does."""
    program = shared_tmp / "bin" / "cusp"
    program.parent.mkdir()
    program.write_text("from cusp.commands.command import main\nmain()\n")
    return lambda *words, ranks=1: spawn.mpirun(ranks, program, *words, cwd=shared_tmp, launcher=ranks > 1)


def programs() -> set[str]:
    """The modules that run on all ranks, benchmarks apart."""
    files = [path for folder in ("apps", "commands") for path in (ROOT / "cusp" / folder).rglob("*.py")]
    found = [path for path in files if re.search(r"^    run_main\(", path.read_text(), re.MULTILINE)]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found} - {"cusp.commands.command"}


def test_every_program_has_a_command():
    targets = {entry.target.partition(":")[0] for entry in command.COMMANDS.values()}
    assert targets - {"cusp.__main__", "cusp.program.compare"} == programs()
    assert OF_CUSP.keys() | {*library.APPS} <= command.COMMANDS.keys()


@pytest.mark.parametrize("name", command.COMMANDS)
def test_commands_name_themselves(name, monkeypatch):
    """Their help says how they were started."""
    monkeypatch.setattr(sys, "argv", [f"cusp {name}"])
    main, parser = command.load(name)
    assert callable(main) and parser.format_usage().startswith(f"usage: cusp {name} ")
    monkeypatch.setattr(sys, "argv", ["/somewhere/program.py"])
    assert command.load(name)[1].prog.startswith("python -m ")


def test_help_and_version_load_nothing_large(cusp):
    """Neither MPI nor numba nor NumPy; half a second is far more than they take."""
    began = time.perf_counter()
    for word in ("--help", "--version"):
        done = cusp(word)
        assert (done.returncode, done.stderr) == (0, "")
    assert time.perf_counter() - began < 4  # both, beside other tests
    code = "import sys, cusp.commands.command as c; c.about('--help', []); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"mpi4py", "numba", "numpy"} & set(loaded.stdout.split())


def test_runs_on_ranks_beside_folders_of_the_user(cusp, shared_tmp):
    """``apps``, ``scripts`` and ``cusp`` in the current folder are not ours; a policy module there is found."""
    for name in ("apps", "scripts", "cusp", "gluon"):
        (shared_tmp / name).mkdir()
        (shared_tmp / name / "__init__.py").write_text("raise RuntimeError('of the user')\n")
    (shared_tmp / "mine.py").write_text("def get_master(prop, node, mstate, masters):\n    return 0\n")
    done = cusp("generate", "star", "--nodes", "50", "--output", "star.h5")
    assert (done.returncode, done.stderr) == (0, "")
    done = cusp("bfs", "star.h5", "--source", "0", "--verify", ranks=2)
    assert (done.returncode, done.stderr) == (0, "") and "50 nodes reached" in done.stdout
    done = cusp("compare", "star.h5", "--ranks", "3", "--policies", "oec,mine:")
    assert (done.returncode, done.stderr) == (0, "") and "mine:" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bsf"], "error: no command 'bsf', but 'bfs'; cusp --help lists all commands\n"),
        (["here.h5"], "error: here.h5: name a command first, such as cusp partition here.h5; "),
        (["completion", "fish"], "error: cusp completion bash, or cusp completion zsh\n"),
        (
            ["bfs", "--sorce", "1"],
            "error: unrecognized arguments: --sorce; did you mean --source? (cusp bfs --help lists",
        ),
    ],
)
def test_mistakes_are_said_once(cusp, shared_tmp, words, says):
    (shared_tmp / "here.h5").write_text("")
    done = cusp(*words, ranks=2)
    assert done.returncode == 2 and done.stderr.startswith(says) and done.stderr.count("rror: ") == 1


def complete(text: str, *words: str) -> set[str]:
    """What bash offers for the last of ``words``."""
    line = f'COMP_WORDS=({" ".join(words)} ); COMP_CWORD={len(words) - 1}; _cusp; printf "%s\\n" "${{COMPREPLY[@]}}"'
    if words[-1] == "''":
        line = line.replace("'' )", '"" )')
    done = subprocess.run(["bash", "-c", f"{text}\n{line}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_completion_in_bash():
    text = script("bash", {name: command.load(name)[1] for name in command.COMMANDS})
    assert complete(text, "cusp", "bf") == {"bfs"}
    assert complete(text, "cusp", "''") >= command.COMMANDS.keys() | {"completion", "--version"}
    assert complete(text, "cusp", "bfs", "--pa") == {"--parents", "--passes"}
    assert complete(text, "cusp", "bfs", "--direction", "''") == {"auto", "push", "pull"}
    assert complete(text, "cusp", "communities", "g.h5", "--policy", "cv") == {"cvc"}
    assert complete(text, "cusp", "generate", "r") == {"rmat", "road"}
    assert complete(text, "cusp", "generate", "rmat", "--dr") == {"--drop-loops"}
    assert complete(text, "cusp", "bfs", "gra") == set()  # files, which bash itself offers


def test_completion_scripts_are_printed(cusp):
    """That for zsh takes the same function."""
    scripts = [cusp("completion", shell) for shell in ("bash", "zsh")]
    assert [(done.returncode, done.stderr) for done in scripts] == [(0, "")] * 2
    bash, zsh = (done.stdout for done in scripts)
    assert "bashcompinit" in zsh and zsh.endswith(bash.partition("\n")[2])
    assert subprocess.run(["bash", "-n"], input=bash, text=True).returncode == 0


@pytest.mark.parametrize("other", ["--help", "no-such-command", "sssp"])
def test_ranks_with_different_commands(other):
    """One of them would wait for the others for ever, or they for it."""
    python = [sys.executable, "-c", "from cusp.commands.command import main; main()"]
    line = [*mpirun.command(1), *python, "bfs", ":", "-n", "1", *python, other]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=60, env=mpirun.environment())
    assert done.returncode == 1 and "error: the ranks were given different commands: " in done.stderr, done.stderr
    assert done.stderr.count("error: ") == 1
