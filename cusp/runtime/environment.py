"""Settings that numba and the MPI libraries read only once, when they are imported; ranks per host; caches."""

import functools
import hashlib
import os
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cusp", "gluon", "apps", "scripts")


def prepare() -> None:
    """Choose numba's cache and let waiting ranks yield; what the user has set is kept."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / source_digest()))
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]  # type: ignore[attr-defined]
    # Ranks that wait must not starve those that work when there are more ranks than cores.
    if local_ranks() > len(os.sched_getaffinity(0)):
        os.environ.setdefault("MPIR_CVAR_POLLS_BEFORE_YIELD", "0")
    # A warning of mpi4py about a launcher of another library; cusp.launch has a clearer one.
    warnings.filterwarnings("ignore", message="suspicious MPI execution environment", category=RuntimeWarning)
    os.environ.setdefault("HDF5_USE_FILE_LOCKING", "BEST_EFFORT")


def local_ranks() -> int:
    """Number of ranks on this host, according to MPICH or Open MPI."""
    return int(os.environ.get("MPI_LOCALNRANKS") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or 1)


def cache_folder() -> Path:
    """Folder for compiled code: ``$CUSP_CACHE``, else ``$XDG_CACHE_HOME/cusp`` or ``~/.cache/cusp``."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(os.environ.get("CUSP_CACHE") or os.path.join(home, "cusp"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.gettempdir()) / f"cusp-{os.getuid()}"


@functools.cache
def source_digest() -> str:
    """Hash of all our Python files: numba does not notice edits in the files of *callees*."""
    digest = hashlib.sha256(sys.version.encode())
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(str(path).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
