"""SNAP, GAP ``.el``/``.wel``, KONECT: lines ``source target [weight ...]``; ids are numbers or names.

Columns are separated by blanks or commas. Names may have blanks where the first line of edges has a tab or a comma,
which then separates all columns.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError, OptionError
from cusp.formats.parse import _NEWLINE, _RETURN, _SPACE, _TAB, MALFORMED, OK, _ends, _integer, _real
from cusp.formats.source import Asked, EdgeSource, is_number, read_head
from cusp.formats.text import LineSource
from cusp.names.dictionary import Dictionary
from cusp.runtime.compiled_code import njit

_COUNTS = re.compile(rb"nodes:\s*(\d{1,18})\s+edges:\s*(\d+)", re.IGNORECASE)
_COMMENTS = (b"#", b"%")


@dataclass
class NameSource(LineSource):
    """Lines whose node ids are names.

    Attributes
    ----------
    separator : bytes
        A tab or a comma; nothing if columns are separated by any number of blanks.
    """

    separator: bytes = b""

    def _parse_into(
        self, data: np.ndarray, sources: np.ndarray, targets: np.ndarray, integers: np.ndarray, reals: np.ndarray,
        inexact: np.ndarray,
    ) -> tuple[int, int, int, int]:  # fmt: skip
        assert self.dictionary is not None
        source_ends, target_ends = np.empty_like(sources), np.empty_like(targets)
        edges, rounds, code, position = parse_named_lines(
            data, (self.comments[0], self.comments[-1]), self.separator[0] if self.separator else 0, self.columns,
            self.which, sources, source_ends, targets, target_ends, integers, reals, inexact,
        )  # fmt: skip
        if code == OK:
            for begins, ends in ((sources, source_ends), (targets, target_ends)):
                begins[:edges] = self.dictionary.number_parts(data, begins[:edges], ends[:edges])
        return edges, rounds, code, position


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
    source = LineSource(path, format) if not names else NameSource(path, format, separator=separator)
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


@njit(cache=True, nogil=True)
def _word(data, i, separator):  # type: ignore[no-untyped-def]
    """Begin and end of the word at ``i``, without the blanks around it, and the position of what ends it."""
    while data[i] == _SPACE or data[i] == _RETURN or (data[i] == _TAB and separator != _TAB):
        i += 1
    begin = i
    while data[i] != _NEWLINE and data[i] != separator and (separator != 0 or not _ends(data, i)):
        i += 1
    end = i
    while end > begin and (data[end - 1] == _SPACE or data[end - 1] == _RETURN or data[end - 1] == _TAB):
        end -= 1
    return begin, end, i


@njit(cache=True, nogil=True)
def parse_named_lines(  # type: ignore[no-untyped-def]
    data, comments, separator, columns, which, sources, source_ends, targets, target_ends, integers, reals, inexact
):
    """Parse whole lines ``column column ...`` into edges whose ends are names; see :func:`parse_lines`.

    Parameters
    ----------
    separator : int
        The byte between columns; 0: any number of blanks.
    sources, source_ends, targets, target_ends : int64[:]
        Filled with the positions of the names in ``data``.
    """
    i = 0
    edge = 0
    rounds = 0
    while i < data.size:
        begin, end, i = _word(data, i, separator)
        if begin == end and data[i] == _NEWLINE:
            i += 1
            continue
        if data[begin] == comments[0] or data[begin] == comments[1]:
            while data[i] != _NEWLINE:
                i += 1
            i += 1
            continue
        for column in range(columns):
            if column > 0:
                if separator != 0 and data[i] != separator:
                    return edge, rounds, MALFORMED, begin
                begin, end, i = _word(data, i + (separator != 0), separator)
            code = MALFORMED if begin == end else OK
            if column == which[0]:
                sources[edge], source_ends[edge] = begin, end
            elif column == which[1]:
                targets[edge], target_ends[edge] = begin, end
            elif column == which[2] and integers.size > 0:
                integers[edge], after, code = _integer(data, begin)
                code = MALFORMED if code == OK and after != end else code
            elif column == which[2]:
                reals[edge], after, code, exact = _real(data, begin)
                code = MALFORMED if code == OK and after != end else code
                if not exact:
                    inexact[rounds, 0] = edge
                    inexact[rounds, 1] = begin
                    rounds += 1
            elif separator != 0:
                code = OK  # a cell that nobody reads may be empty
            if code != OK:
                return edge, rounds, code, begin
        while data[i] == _SPACE or data[i] == _RETURN or data[i] == _TAB:
            i += 1
        if data[i] != _NEWLINE:
            return edge, rounds, MALFORMED, i
        i += 1
        edge += 1
    return edge, rounds, OK, i
