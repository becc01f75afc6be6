"""``--help`` of every script."""

import re
import subprocess
import sys

import pytest

from scripts.bench.__main__ import BENCHMARKS
from scripts.test import ROOT


@pytest.mark.limit(300)
def test_help_of_every_script():
    """Each one has it, and does nothing else; nothing in it is a sign of argparse's own."""
    files = [path for path in (ROOT / "scripts").rglob("*.py") if "__name__ ==" in path.read_text()]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__") for path in files}
    assert {"scripts.bench", "scripts.test", "scripts.draw_speed"} <= {*names.values()}
    started = {
        name: subprocess.Popen(
            [sys.executable, "-m", *name.split(), "--help"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )
        for name in names.values()
    }  # fmt: skip
    for name, process in started.items():
        out, err = process.communicate(timeout=250)
        assert (process.returncode, err) == (0, ""), name
        assert out.startswith("usage: ") and not re.search(r"==|%\(", out), f"{name}: {out}"
        if name == "scripts.bench":
            assert all(re.search(rf"^ +{what}( |$)", out, re.MULTILINE) for what in BENCHMARKS)
