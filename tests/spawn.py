"""Run a program under mpirun from a test: on the device that the tests run on, unless ``env`` says otherwise."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from scripts import mpirun as launcher_of

ROOT = Path(__file__).resolve().parent.parent
# What some launchers add: colors around what ranks say, and words of their own about exit codes, between two lines.
OF_LAUNCHERS = re.compile(r"\x1b\[[0-9;]*m|^-{60,}\n(?:(?!-{60,}).*\n)*-{60,}\n?", re.MULTILINE)

# The first lines of a program of which one rank compiles what all need, as in tests.
ONCE = f"import sys\nsys.path.append({str(ROOT / 'tests')!r})\nimport compile_once\ncompile_once.install()\n"


def mpirun(
    n: int,
    *args: str | Path,
    timeout: float = 120,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    launcher: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run ``mpirun -n n python args...`` in the repository (or ``cwd``) and return its outcome and output.

    With ``launcher=False`` and n = 1: ``python args...`` as a user types it.
    """
    texts = [str(argument) for argument in args]
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = launcher_of.run(n, texts, timeout=timeout, env=path | dict(env or {}), cwd=cwd or ROOT, launcher=launcher)
    done.stdout, done.stderr = (OF_LAUNCHERS.sub("", text) for text in (done.stdout, done.stderr))
    return done
