"""Rows of results: a trial as a line to read and as a line of JSON, and the commit that it belongs to."""

import json
import os
import subprocess
from typing import Any

from mpi4py import MPI

from cusp.errors import together
from cusp.output.whole_file import append_lines


def trial_line(row: dict, figures: dict[str, Any]) -> str:
    """One trial in a line to read."""
    source = row["source"]
    reached = [] if source is None else [f"{row['reached']:,} nodes reached"]
    values = (
        f"{name.replace('_', ' ')} {value:{',' if isinstance(value, int) else '.6g'}}"
        for name, value in figures.items()
    )
    parts = [
        f"{row['app']}{'' if source is None else f' from {source}'}: {row['seconds'] * 1e3:.2f} ms", *values,
        f"{row['rounds']} rounds", f"{row['messages']} messages", f"{row['mb_sent']:.3f} MB sent", *reached,
        f"{row['traversed_edges'] / row['seconds'] / 1e6:,.1f} M edges/s", *(["verified"] if row["verified"] else []),
    ]  # fmt: skip
    return ", ".join(parts)


def commit() -> str | None:
    """Short hash of the commit that this code is from, if it is a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return git.stdout.strip() or None


def append_rows(path: str, rows: list[dict], comm: MPI.Intracomm) -> None:
    """Append one JSON line per trial. Collective.

    Raises
    ------
    OutputError
        On every rank: the file cannot be written; it is as it was.
    """
    with together(comm):
        if comm.rank == 0:
            append_lines(path, [json.dumps(row) for row in rows])
