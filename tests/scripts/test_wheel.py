"""The wheel: it holds all that we need, and works where nothing of the repository is in reach."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import cusp
from scripts import mpirun

ROOT = Path(cusp.__file__).resolve().parents[1]
PACKAGES = ("cusp", "gluon", "apps", "scripts")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built without the internet."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


def test_it_holds_all_that_packages_hold(wheel):
    """Python files, kernels, signatures, and the mark that we have types."""
    suffixes = (".py", ".pyi", ".cuh", ".typed")
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in suffixes]
    wanted = {path.relative_to(ROOT).as_posix() for path in files}
    held = set(zipfile.ZipFile(wheel).namelist())
    assert wanted <= held and {f"{package}/py.typed" for package in PACKAGES} <= held
    assert not [name for name in held if name.startswith(("tests/", "benchmarks/", "docs/"))]
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_it_works_in_an_empty_environment(wheel, tmp_path):
    """The command of a new environment runs, beside folders of the user that are named as ours."""
    home, user = tmp_path / "env", tmp_path / "user"
    venv.create(home, symlinks=True)
    packages = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (packages / "others.pth").write_text(sysconfig.get_path("platlib"))  # what we depend on; not our own packages
    for name in PACKAGES:
        (user / name).mkdir(parents=True)
        (user / name / "__init__.py").write_text("raise RuntimeError('of the user')\n")
    clean = {"PYTHONPATH": "", "CUSP_CACHE": str(tmp_path / "cache"), "CUSP_DEVICE": "cpu"}
    if library := next(Path(sys.prefix, "lib").glob("libmpi.so.*"), None):  # of our environment: mpich from PyPI
        clean["MPI4PY_LIBMPI"] = str(library)

    def run(ranks: int, *words: str) -> str:
        line = [*(mpirun.command(ranks) if ranks > 1 else []), home / "bin" / "cusp", *words]
        done = subprocess.run(line, cwd=user, env=mpirun.environment(clean), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    assert run(1, "--version") == f"cusp {PROJECT['version']}\n"
    run(1, "generate", "star", "--nodes", "50", "--output", "star.h5")
    assert re.search("nodes +50\n", run(2, "convert", "--info", "star.h5"))
    assert run(1, "bfs", "--help").startswith("usage: cusp bfs ")


def test_versions_agree():
    """That of the package, of the citation and of the changes."""
    version = PROJECT["version"]
    assert cusp.__version__ == version
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"\n## {version}," in (ROOT / "CHANGELOG.md").read_text()
