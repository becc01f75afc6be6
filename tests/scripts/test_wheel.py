"""The wheel: it holds all that we need, and works where nothing of the repository is in reach."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import environments
import pytest

import cusp

ROOT = Path(cusp.__file__).resolve().parents[1]
PACKAGES = ("cusp", "cusp/apps", "gluon")
OTHERS = ("apps", "scripts", "tests")  # folders that users have, too
PROJECT = environments.PROJECT


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
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == {"cusp", "gluon"}
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_a_source_distribution_makes_the_same_wheel(wheel, tmp_path):
    """Also of the folder that is a link in the repository; and there is nothing in it that only we need."""
    hatchling = [sys.executable, "-m", "hatchling", "build"]
    subprocess.run([*hatchling, "-t", "sdist", "-d", tmp_path], cwd=ROOT, check=True)
    subprocess.run(["tar", "-xf", next(tmp_path.glob("*.tar.gz")), "-C", tmp_path], check=True)  # 3.11.2 has no filter
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    assert not {"apps", "tests", "scripts", "benchmarks"} & {path.name for path in source.iterdir()}
    subprocess.run([*hatchling, "-t", "wheel", "-d", tmp_path], cwd=source, check=True)
    again = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    assert sorted(again.namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Run a line in a project with folders of our names, in an environment with the wheel and NetworkX."""
    home, user = (tmp_path_factory.mktemp(name) for name in ("env", "user"))
    packages = environments.make(home, ["networkx"])
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    assert not {*OTHERS} & {path.name for path in packages.iterdir()}
    for name in OTHERS:
        (user / name).mkdir()
        (user / name / "__init__.py").write_text("raise RuntimeError('of the user')\n")
    variables = environments.variables(home, CUSP_CACHE=str(user / "cache"), CUSP_DEVICE="cpu")

    def run(line: str, **files: str) -> str:
        for name, text in files.items():
            (user / name).write_text(text)
        done = subprocess.run(["bash", "-euc", line], cwd=user, env=variables, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    return run


def test_it_works_beside_folders_of_the_same_names(run):
    """Commands, and what NetworkX loads of us when it is imported."""
    assert run("cusp --version") == f"cusp {PROJECT['version']}\n"
    run("cusp generate star --nodes 50 --output star.h5")
    assert re.search("nodes +50\n", run("mpirun -n 2 cusp convert --info star.h5"))
    assert run("cusp bfs --help").startswith("usage: cusp bfs ")
    assert "site-packages" in run("python -W error -c 'import networkx, cusp; print(cusp.__file__)'")


USE = """
import networkx, cusp
graph = networkx.path_graph(5)
assert networkx.pagerank(graph, backend="cusp").keys() == {0, 1, 2, 3, 4}
assert cusp.bfs(cusp.partition_graph(graph), 4, verify=True).hops.tolist() == [4, 3, 2, 1, 0]
"""


@pytest.mark.slow  # compiles all of it
@pytest.mark.limit(900)
def test_the_tutorials_run_there(run):
    """What is in a page as Python, an app as a program, and our backend of NetworkX."""
    code = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    users, algorithms = (
        code.search((ROOT / "docs" / "tutorial" / name).read_text())[1] for name in ("users.md", "algorithms.md")
    )
    graph = "cusp generate rmat --scale 12 --symmetrize --drop-loops --dedup --output graph.h5 --weights "
    run(graph + "0.5:1.0")
    said = run("mpirun -n 2 python reliable.py graph.h5 --source 17 --verify", **{"reliable.py": algorithms})
    assert "verified" in said
    run(graph + "1:255")
    run("python -m doctest page.txt", **{"page.txt": users})
    run("python -W error use.py", **{"use.py": USE})


def test_versions_agree():
    """That of the package, of the citation and of the changes."""
    version = PROJECT["version"]
    assert cusp.__version__ == version
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"\n## {version}," in (ROOT / "CHANGELOG.md").read_text()
