"""An environment as a user's install makes it: with what we depend on, and without what only tests need."""

import os
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from scripts import mpirun

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def make(folder: Path, more: Iterable[str] = ()) -> Path:
    """A new environment with what ``pip install '.[mpich]'`` brings besides ourselves; returns its packages.

    It is linked from this environment. ``more`` are other packages that a user has.
    """
    venv.create(folder, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["mpich"], *more]
    for package in {found.name: found for found in needed(wanted)}.values():
        home = Path(str(package.locate_file("")))
        for file in package.files or ():
            inside = file.parts[0] != ".."
            source = home / file.parts[0] if inside else Path(os.path.normpath(home / file))
            link = packages / file.parts[0] if inside else folder / source.relative_to(home.parents[2])
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink() and link.name != "__pycache__":
                link.symlink_to(source)
    return packages


def needed(requirements: Iterable[str]) -> Iterator[metadata.Distribution]:
    """The distributions that are installed for some requirements, and for theirs; not an MPI library of the site."""
    for requirement in map(Requirement, requirements):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            package = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            assert requirement.name in PROJECT["optional-dependencies"]["mpich"], requirement
            continue
        yield package
        yield from needed(package.requires or ())


def variables(folder: Path, **more: str) -> dict[str, str]:
    """Those with which a shell finds the commands of an environment, and an MPI launcher."""
    search = [str(folder / "bin"), str(Path(mpirun.mpirun_path()).parent), os.environ["PATH"]]
    chosen = {"PATH": os.pathsep.join(search), "PYTHONPATH": "", **more}
    if mpirun.is_open_mpi():
        chosen |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    return mpirun.environment(chosen)
