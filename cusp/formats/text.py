"""Text with one edge per line, read in blocks: what all such formats share."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import compute, csv

from cusp.errors import GraphFileError
from cusp.formats.columns import edges_of
from cusp.formats.source import (
    BLOCK_BYTES,
    Chunk,
    EdgeSource,
    EncodingError,
    FractionalWeightError,
    WideIdsError,
    is_gzip,
    is_number,
    readable,
    share,
)
from cusp.runtime.compiled_code import njit
from cusp.runtime.files import open_input

NAMES_ADVICE = "; if node ids are names, say so with --ids names"
_NEWLINE, _TAB = ord("\n"), ord("\t")
_DIGITS = 18  # every number of as many fits int64


@dataclass
class LineSource(EdgeSource):
    """Edges written as lines of columns.

    Attributes
    ----------
    letter, comments
        The word that starts each edge line (or none), and the bytes that start comment lines.
    columns, which
        Number of columns, and those of source, target and weight (-1: none).
    base
        0 or 1: the smallest node id in the file.
    start
        Bytes before the first edge line.
    separator
        The byte between columns; nothing if they are separated by any number of blanks and commas.
    encoding
        Of names.
    """

    letter: bytes = b""
    comments: bytes = b"#%"
    columns: int = 2
    which: tuple[int, int, int] = (0, 1, -1)
    base: int = 0
    start: int = 0
    separator: bytes = b""
    encoding: str = "utf8"

    def read(self, rank: int, size: int) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.read`; the ranks share the bytes of a plain file, rank 0 reads a gzip file."""
        begin, end = self.start, None
        if is_gzip(self.path):
            if rank > 0:
                return
        else:
            begin, end = line_range(self.path, self.start, rank, size)
        for data, offset in blocks(self.path, begin, end):
            try:
                columns = self._columns(data)
            except _RowError as error:
                raise self._explained(error.row, data, offset) from None
            if columns:
                sources, targets, weights = edges_of(self.path, ("source", "target"), columns, self.dictionary)
                yield sources - self.base if self.base else sources, targets - self.base, weights

    def _columns(self, data: np.ndarray) -> list[pyarrow.Array]:
        """Sources, targets and weights of whole lines, as they are written; nothing if there are no edges."""
        text = np.empty(data.size, np.uint8)
        size = tidy(data, _set(self.comments), self._blanks(), not self.separator, text)
        if size == 0:
            return []
        ids = pyarrow.int64() if self.dictionary is None else pyarrow.large_string()
        weight = [] if self.weight_dtype is None else [pyarrow.from_numpy_dtype(self.weight_dtype)]
        places = [place + bool(self.letter) for place in self.which if place >= 0]
        kinds = dict(zip(map(str, places), [ids, ids, *weight])) | ({"0": pyarrow.binary()} if self.letter else {})
        headings = [str(place) for place in range(self.columns + bool(self.letter))]
        try:
            table = csv.read_csv(
                pyarrow.BufferReader(text[:size]),
                csv.ReadOptions(column_names=headings, block_size=size, use_threads=False, encoding=self.encoding),
                csv.ParseOptions(delimiter=(self.separator or b"\t").decode(), quote_char=False),
                csv.ConvertOptions(include_columns=[*kinds], column_types=kinds, null_values=[]),
                memory_pool=pyarrow.system_memory_pool(),  # which gives memory back at once
            )
        except pyarrow.ArrowInvalid as error:
            row = re.search(r"Row #(\d+)", str(error))
            if "UTF8" in str(error) or row is None:
                raise EncodingError(f"{self.path}: {error}") from None
            raise _RowError(int(row[1]) - 1) from None
        columns = [table[str(place)].combine_chunks() for place in places]
        if self.letter:
            _check_rows(compute.equal(table["0"], self.letter))
        if self.separator:
            columns[:2] = [compute.utf8_trim_whitespace(column) for column in columns[:2]]
        for column in columns[:2]:
            if self.dictionary is not None:
                _check_rows(compute.not_equal(column, ""))
            elif self.num_nodes is not None:
                ids_read = column.to_numpy()
                _check_rows((ids_read >= self.base) & (ids_read < self.num_nodes + self.base))
        if weight and pyarrow.types.is_floating(weight[0]):
            _check_rows(compute.is_finite(columns[2]))
        return columns

    def _blanks(self) -> np.ndarray:
        """Which bytes are blanks at the begin of a line; without a separator, between columns too."""
        return _set(bytes({*b" \t\r"} - {*self.separator}) + (b"" if self.separator else b","))

    def _explained(self, row: int, data: np.ndarray, offset: int) -> GraphFileError:
        """What is wrong with an edge line of a block."""
        blanks, skipped, position = np.flatnonzero(self._blanks()).tolist(), {*self.comments}, 0
        for line in data.tobytes().splitlines(keepends=True):
            if (text := line.lstrip(bytes([*blanks, _NEWLINE]))) and text[0] not in skipped:
                row -= 1
            if row < 0:
                break
            position += len(line)
        shown, number = line_at(self.path, data, position, offset)
        kind, reason = self._reason(text)
        advice = NAMES_ADVICE if self.takes_names and not self.named and reason.startswith("expected") else ""
        return kind(f"{self.path}, line {number:,}: {reason}, found {shown!r}{advice}")

    def _reason(self, line: bytes) -> tuple[type[GraphFileError], str]:
        """Why a line cannot be taken."""
        words = line.split(self.separator) if self.separator else line.replace(b",", b" ").split()
        ends = {self.which[0]: "source", self.which[1]: "target", self.which[2]: "weight"}
        shape = ([self.letter.decode()] if self.letter else []) + [ends.get(i, "...") for i in range(self.columns)]
        expected = GraphFileError, f"expected '{' '.join(shape)}'"
        if len(words) != len(shape) or (self.letter and words.pop(0) != self.letter):
            return expected
        weight = words[self.which[2]].strip() if self.which[2] >= 0 else b""
        if not self.named:
            ids = [words[place] for place in self.which[:2]]
            if not all(re.fullmatch(rb"-?\d+", each) for each in ids):
                return expected
            if any(len(each) > _DIGITS for each in ids):
                return WideIdsError if self.takes_names else GraphFileError, "a number is too large"  # a name fits
            last = (self.num_nodes or 0) - 1 + self.base
            if self.num_nodes is not None and not all(self.base <= int(each) <= last for each in ids):
                return GraphFileError, f"node ids must run from {self.base} to {last:,}"
        if not is_number(weight):
            return GraphFileError, "the weight is not a number"
        if self.weight_dtype == np.int64:
            return FractionalWeightError, "the weight is not an integer, those before were"
        if np.isinf(float(weight)):
            return GraphFileError, f"the weight is beyond the largest float64, {np.finfo(float).max:.1e}"
        return expected


class _RowError(Exception):
    """An edge line cannot be taken: the one after ``row`` others of its block."""

    def __init__(self, row: int) -> None:
        super().__init__()
        self.row = row


def _check_rows(right: "np.ndarray | pyarrow.ChunkedArray") -> None:
    wrong = ~np.asarray(right)
    if wrong.any():
        raise _RowError(int(wrong.argmax()))


def _set(members: bytes) -> np.ndarray:
    """A table of bytes: which are members."""
    return np.isin(np.arange(256), [*members])


@njit(cache=True, nogil=True)
def tidy(data, comments, blanks, between, text):  # type: ignore[no-untyped-def]
    """Copy lines without comments, empty lines and blanks at their begin; returns the number of bytes.

    Parameters
    ----------
    data : uint8[:]
        Whole lines; the last byte is a newline.
    comments, blanks : bool[256]
        Bytes that start a comment; that are blanks.
    between : bool
        Blanks are between columns too, and become one tab.
    text : uint8[data.size]
        Filled.
    """
    i = size = 0
    while i < data.size:
        while blanks[data[i]]:
            i += 1
        line, skipped, gap = size, comments[data[i]], False
        while data[i] != _NEWLINE:
            if between and blanks[data[i]]:
                gap = True
            elif not skipped:
                if gap:
                    text[size] = _TAB
                    size += 1
                    gap = False
                text[size] = data[i]
                size += 1
            i += 1
        i += 1
        if size > line:
            text[size] = _NEWLINE
            size += 1
    return size


def line_range(path: Path, start: int, rank: int, size: int) -> tuple[int, int]:
    """Bytes ``begin, end`` of this rank's lines: those whose first byte is in its equal share."""
    first, last = share(path.stat().st_size - start, rank, size)
    with io.BufferedReader(open_input(path)) as file:

        def next_line(position: int) -> int:
            if position == start:
                return start
            file.seek(position - 1)
            file.readline()
            return file.tell()

        return next_line(start + first), next_line(start + last)


def blocks(path: Path, begin: int, end: int | None, cut: bytes = b"\n") -> Iterator[tuple[np.ndarray, int]]:
    """Yield ``(text, offset)``: whole lines, always ended by a newline, and where they start in the file.

    The text is overwritten by the next block. ``cut`` lists the bytes after which a block may be cut.
    """
    buffer = bytearray(BLOCK_BYTES + 1)
    view = memoryview(buffer)
    offset, kept = begin, 0
    with readable(path) as file:
        file.seek(begin)
        while True:
            wanted = BLOCK_BYTES - kept
            if end is not None:
                wanted = min(wanted, end - offset - kept)
            read = file.readinto(view[kept : kept + wanted]) if wanted > 0 else 0  # type: ignore[attr-defined]
            filled = kept + read
            if read == 0:
                break
            whole = max(buffer.rfind(byte, 0, filled) for byte in cut) + 1
            if whole == 0 and filled == BLOCK_BYTES:
                raise GraphFileError(f"{path}: a line is longer than {BLOCK_BYTES:,} bytes; is this a text file?")
            if whole > 0:
                yield np.frombuffer(buffer, np.uint8, whole), offset
            kept = filled - whole
            view[:kept] = bytes(view[whole:filled])
            offset += whole
    if kept:
        buffer[kept] = ord("\n")
        yield np.frombuffer(buffer, np.uint8, kept + 1), offset


def line_at(path: Path, data: np.ndarray, position: int, offset: int) -> tuple[str, int]:
    """Text and number (from 1) of the line at ``data[position]``, where ``data`` begins at byte ``offset``.

    Of a line that is not whole in ``data``, what is there.
    """
    text = data.tobytes()
    begin = text.rfind(b"\n", 0, position) + 1
    line = (text[begin:position] + text[position:].partition(b"\n")[0]).decode(errors="replace").strip()
    number = text.count(b"\n", 0, begin) + 1
    with readable(path) as file:
        left = offset
        while left > 0 and (part := file.read(min(left, BLOCK_BYTES))):
            number += part.count(b"\n")
            left -= len(part)
    return (line if len(line) <= 80 else line[:77] + "..."), number
