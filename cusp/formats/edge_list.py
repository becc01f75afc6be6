"""SNAP, GAP ``.el``/``.wel``, KONECT: lines ``source target [weight ...]``; ids are numbers or names.

Columns are separated by blanks or commas. Names may have blanks where the first line of edges has a tab or a comma,
which then separates all columns.
"""

import re
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError, OptionError
from cusp.formats.source import Asked, EdgeSource, is_number, read_head
from cusp.formats.text import LineSource
from cusp.names.dictionary import Dictionary

_COUNTS = re.compile(rb"nodes:\s*(\d{1,18})\s+edges:\s*(\d+)", re.IGNORECASE)
_COMMENTS = (b"#", b"%")


def open_edge_list(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Look at the first lines: how many columns, whether ids are names, and whether the weights have fractions.

    ``columns`` are numbers from 1. A comment ``# Nodes: N Edges: M`` gives ``min_nodes``: files whose ids
    are not dense state how many nodes *occur*, which is less than the largest id. Ids are names if one of the first
    line is not a number.
    """
    comments, lines = _first_lines(path, 1 << 16)
    if not lines:
        comments, lines = _first_lines(path, 1 << 22)
    counts = _COUNTS.search(comments)
    rows = [line.replace(b",", b" ").split() for line in lines]
    which = _chosen(path, asked.columns, len(rows[0]) if rows else 2)
    numbers = asked.ids == "numbers" or all(is_number(rows[0][place]) for place in which[:2]) if rows else True
    names = not numbers or (bool(rows) and asked.ids == "names")
    separator = b""
    if names:
        separator = next((byte for byte in (b"\t", b",") if byte in lines[0]), b"")
        rows = [[word.strip() for word in line.split(separator or None)] for line in lines]
        which = _chosen(path, asked.columns, len(rows[0]))
        if asked.columns is None and not is_number(rows[0][which[2]]):
            which = (0, 1, -1)
    number = len(rows[0]) if rows else 2
    weight_dtype = None
    if which[2] >= 0:
        written = [row[which[2]] for row in rows if len(row) == number]
        real = asked.real_weights or any(set(text) & set(b".eE") for text in written)
        weight_dtype = np.dtype(np.float64 if real else np.int64)
    source = LineSource(path, format, separator=separator, encoding="latin1" if asked.latin1 else "utf8")
    source.dictionary, source.takes_names = Dictionary() if names else None, True
    source.min_nodes = int(counts[1]) if counts and not names else 0
    source.weight_dtype, source.columns, source.which = weight_dtype, number, which
    return source


def _first_lines(path: Path, length: int) -> tuple[bytes, list[bytes]]:
    """The comments and the edge lines of the first ``length`` bytes."""
    head = read_head(path, length)
    lines = [line.strip() for line in head.splitlines()]
    if len(head) == length:
        del lines[-1]  # it may be incomplete
    comments = b" ".join(line for line in lines if line[:1] in _COMMENTS)
    return comments, [line for line in lines if line and line[:1] not in _COMMENTS]


def _chosen(path: Path, columns: list[str] | None, number: int) -> tuple[int, int, int]:
    """Positions from 0 of source, target and weight (-1: none)."""
    if number < 2:
        raise GraphFileError(f"{path}: the first edge line has {number} column; an edge needs source and target")
    if columns is None:
        return 0, 1, 2 if number > 2 else -1
    columns = [text or str(place) for place, text in enumerate(columns, 1)]
    if not all(text.isdecimal() and 1 <= int(text) <= number for text in columns):
        raise OptionError(f"--columns {','.join(columns)}: {path} has columns 1 to {number}, without names")
    positions = [int(text) - 1 for text in columns]
    return positions[0], positions[1], positions[2] if len(positions) > 2 else -1
