"""Whether a graph file is still the one that was partitioned: its size, its time and a sample of its bytes.

A file that stores checksums is compared by these. Other files are compared by their size and the time of their last
change, and if only the time differs, by a sample.
"""

import os
import stat
import warnings
from pathlib import Path

from cusp.input.graph_file import read_header, stored_checksums
from cusp.output.manifest import Manifest, SavedError
from cusp.runtime.files import sample


def fingerprint(path: str) -> dict[str, int]:
    """Size in bytes, time of the last change in ns, and the sample of a file."""
    status = os.stat(path)
    return {"bytes": status.st_size, "modified": status.st_mtime_ns, "sample": sample(path)}


def check_graph(folder: str | Path, manifest: Manifest) -> None:
    """Compare the graph file with what the manifest says of it; it may be gone.

    Warns if it was written again, but nothing else shows a change.

    Raises
    ------
    SavedError
        It has changed since the partition was saved.
    """
    path = manifest.graph
    if not os.path.exists(path):
        return
    check_regular(folder, path)
    header = read_header(path)
    for what, before, now in (
        ("nodes", manifest.in_file("nodes"), header.num_nodes),
        ("edges", manifest.in_file("edges"), header.num_edges),
    ):
        if before != now:
            raise _changed(folder, path, f"it had {before:,} {what} and now has {now:,}")
    checksums = stored_checksums(path)
    for name in {**manifest.checksums, **checksums}:
        if checksums.get(name) != manifest.checksums.get(name):
            raise _changed(folder, path, f"the checksum of /{name} is another")
    if checksums or not manifest.fingerprint:
        return
    _check_fingerprint(folder, path, manifest.fingerprint)


def check_regular(folder: str | Path, path: str) -> None:
    """Raise SavedError if the graph that a manifest names is no plain file, so that no device or pipe is read."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise SavedError(f"{folder}: is a partition of {path}, which is not a file; save the partition again")


def _check_fingerprint(folder: str | Path, path: str, before: dict[str, int]) -> None:
    status = os.stat(path)
    if status.st_size != before.get("bytes"):
        raise _changed(folder, path, f"it had {before.get('bytes', 0):,} bytes and now has {status.st_size:,}")
    if status.st_mtime_ns == before.get("modified"):
        return
    if sample(path) != before.get("sample"):
        raise _changed(folder, path, "its size is the same, but not its bytes")
    warnings.warn(
        f"{folder}: {path} was written again after the partition was saved; a sample of it is the same, and it has no "
        "checksums that would show a change: partition it again if its edges have changed",
        stacklevel=2,
    )


def _changed(folder: str | Path, path: str, what: str) -> SavedError:
    return SavedError(f"{folder}: is a partition of {path}, which has changed: {what}; partition it again")
