"""Start Python programs under mpirun, also from a process that is itself an MPI rank."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# What launchers pass to their ranks. A child that inherits these takes itself for one of the ranks.
LAUNCHER_VARIABLES = ("PMI_", "PMIX_", "MPI_", "MPICH", "HYDRA", "HYDI_", "OMPI_", "PRTE_", "MPIEXEC_")
# What only users and their images set for Open MPI: how to reach hosts, and which network to take.
CHOSEN = tuple(f"OMPI_MCA_{framework}" for framework in ("plm", "btl", "pml", "mtl", "coll", "rmaps_", "opal_"))


def command(ranks: int) -> list[str]:
    """The launcher and its options; ``python args...`` comes after it."""
    extra = ["--oversubscribe", "--bind-to", "none"] if is_open_mpi() else []  # or all jobs would share core 0
    return [mpirun_path(), *extra, "-n", str(ranks)]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a launcher: ours without what another launcher put there, plus ``extra``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(CHOSEN) or not name.startswith(LAUNCHER_VARIABLES)
    }
    if os.geteuid() == 0:  # Open MPI refuses to run as root without both
        kept |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return kept | dict(extra or {})


def run(
    ranks: int,
    args: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    launcher: bool = True,
    capture: bool = True,
    under: Sequence[str] = (),
    progress: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``mpirun -n ranks python args...`` to its end, or kill all of it after ``timeout`` seconds.

    Parameters
    ----------
    env : variables to set besides the cleaned environment.
    launcher : False runs ``python args...`` alone, for one rank.
    capture : False lets the output through to the terminal.
    under : a command, such as a debugger, that starts each Python.
    progress : a file to which the program writes as it goes on; ``timeout`` counts from the last change of it.

    Raises
    ------
    subprocess.TimeoutExpired : with the output so far.
    """
    if ranks > 1 and not launcher:
        raise ValueError(f"{ranks} ranks need a launcher")
    line = [*(command(ranks) if launcher else []), *under, sys.executable, *args]
    pipe = subprocess.PIPE if capture else None
    whole = {} if progress else {"MPIEXEC_TIMEOUT": str(int(timeout) + 1)}
    variables = environment(whole | dict(env or {}))
    started = time.time()
    process = subprocess.Popen(
        line, env=variables, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True,
        start_new_session=True,
    )  # fmt: skip

    def time_left() -> float:
        return timeout + (progress.stat().st_mtime if progress else started) - time.time()

    try:
        while True:
            try:
                out, err = process.communicate(timeout=time_left())
                break
            except subprocess.TimeoutExpired:
                if time_left() <= 0:
                    raise
    except BaseException:
        kill_session(process)
        raise
    return subprocess.CompletedProcess(line, process.returncode, out, err)


def kill_session(process: subprocess.Popen[str]) -> None:
    """Ask the launcher to end its ranks, then kill whatever is left of its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(5)


@functools.cache
def mpirun_path() -> str:
    """The mpirun beside this Python (its library is the one that mpi4py loads), else the one in PATH."""
    beside = Path(sys.executable).parent / "mpirun"
    path = str(beside) if beside.exists() else shutil.which("mpirun") or shutil.which("mpiexec")
    if path is None:
        raise FileNotFoundError("no mpirun: install an MPI library, or pip install -e '.[mpich]'")
    return path


@functools.cache
def is_open_mpi() -> bool:
    """Whether the launcher is Open MPI's, which counts cores unless an option says otherwise."""
    version = subprocess.run([mpirun_path(), "--version"], capture_output=True, text=True, env=environment())
    return "Open MPI" in version.stdout or "open-mpi" in version.stdout
