"""SNAP, GAP ``.el``/``.wel``, KONECT: lines ``source target [weight ...]``, separated by blanks or commas."""

import re
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError, OptionError
from scripts.formats.source import EdgeSource, read_head
from scripts.formats.text import LineSource

_COUNTS = re.compile(rb"nodes:\s*(\d{1,18})\s+edges:\s*(\d+)", re.IGNORECASE)


def open_edge_list(path: Path, format: str, columns: list[str] | None, real_weights: bool) -> EdgeSource:
    """Look at the first lines: how many columns, and whether the weights have fractions.

    ``columns`` are numbers from 1. A comment ``# Nodes: N Edges: M`` gives ``min_nodes``: files whose ids
    are not dense state how many nodes *occur*, which is less than the largest id.
    """
    comments, rows = _first_lines(path, 1 << 16)
    if not rows:
        comments, rows = _first_lines(path, 1 << 22)
    counts = _COUNTS.search(comments)
    number = len(rows[0]) if rows else 2
    which = _chosen(path, columns, number)
    weight_dtype = None
    if which[2] >= 0:
        written = [row[which[2]] for row in rows if len(row) == number]
        real = real_weights or any(set(text) & set(b".eE") for text in written)
        weight_dtype = np.dtype(np.float64 if real else np.int64)
    return LineSource(
        path,
        format,
        min_nodes=int(counts[1]) if counts else 0,
        weight_dtype=weight_dtype,
        columns=number,
        which=which,
    )


def _first_lines(path: Path, length: int) -> tuple[bytes, list[list[bytes]]]:
    """The comments and the edge lines, as words, of the first ``length`` bytes."""
    head = read_head(path, length)
    lines = [line.strip() for line in head.splitlines()]
    if len(head) == length:
        del lines[-1]  # it may be incomplete
    comments = b" ".join(line for line in lines if line[:1] in (b"#", b"%"))
    return comments, [line.replace(b",", b" ").split() for line in lines if line and line[:1] not in (b"#", b"%")]


def _chosen(path: Path, columns: list[str] | None, number: int) -> tuple[int, int, int]:
    """Positions from 0 of source, target and weight (-1: none)."""
    if number < 2:
        raise GraphFileError(f"{path}: the first edge line has {number} column; an edge needs source and target")
    if columns is None:
        return 0, 1, 2 if number > 2 else -1
    if not all(text.isdecimal() and 1 <= int(text) <= number for text in columns):
        raise OptionError(f"--columns {','.join(columns)}: {path} has columns 1 to {number}, without names")
    positions = [int(text) - 1 for text in columns]
    return positions[0], positions[1], positions[2] if len(positions) > 2 else -1
