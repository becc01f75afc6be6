"""Text with one edge per line, read in blocks: what all such formats share."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.source import Chunk, EdgeSource, WideIdsError, ahead, both_ways, is_gzip, readable, share

BLOCK_BYTES = 1 << 24
MAX_ID = 2**63 - 1


class FractionalWeightError(GraphFileError):
    """A weight with a fraction after weights that had none: read the file again with float64 weights."""


@dataclass
class LineSource(EdgeSource):
    """Edges written as lines of columns.

    Attributes
    ----------
    letter, comments
        The byte that starts each edge line (or none), and the two that start comment lines.
    columns, which
        Number of columns, and those of source, target and weight (-1: none).
    base
        0 or 1: the smallest node id in the file.
    start
        Bytes before the first edge line.
    undirected
        Each line stands for both directions.
    """

    letter: bytes = b""
    comments: bytes = b"#%"
    columns: int = 2
    which: tuple[int, int, int] = (0, 1, -1)
    base: int = 0
    start: int = 0

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.chunks`; the ranks share the bytes of a plain file, rank 0 reads a gzip file."""
        for edges in ahead(partial(self._parsed, rank, size)):
            self.edges_read += len(edges[0])
            yield both_ways(*edges) if self.symmetric else edges

    def _parsed(self, rank: int, size: int) -> Iterator[Chunk]:
        begin, end = self.start, None
        if is_gzip(self.path):
            if rank > 0:
                return
        else:
            begin, end = line_range(self.path, self.start, rank, size)
        for data, offset in blocks(self.path, begin, end):
            edges = self._parse(data, offset)
            if len(edges[0]):
                yield edges

    def _parse(self, data: np.ndarray, offset: int) -> Chunk:
        from cusp.formats.parse import INFINITE, OK

        capacity = data.size // 4 + 1
        sources, targets = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        real = self.weight_dtype is not None and self.weight_dtype.kind == "f"
        weights = None if self.weight_dtype is None else np.empty(capacity, np.float64 if real else np.int64)
        integers = weights if weights is not None and not real else np.empty(0, np.int64)
        reals = weights if weights is not None and real else np.empty(0)
        inexact = np.empty((capacity if real else 0, 2), np.int64)
        edges, rounds, code, position = self._parse_into(data, sources, targets, integers, reals, inexact)
        if code != OK:
            self._refuse(code, data, position, offset)
        raw = data.tobytes() if rounds else b""
        for edge, at in inexact[:rounds].tolist():
            reals[edge] = float(raw[at : raw.index(b"\n", at)].replace(b",", b" ").split(maxsplit=1)[0])
            if np.isinf(reals[edge]):
                self._refuse(INFINITE, data, at, offset)
        return sources[:edges], targets[:edges], None if weights is None else weights[:edges]

    def _parse_into(
        self, data: np.ndarray, sources: np.ndarray, targets: np.ndarray, integers: np.ndarray, reals: np.ndarray,
        inexact: np.ndarray,
    ) -> tuple[int, int, int, int]:  # fmt: skip
        """See :func:`cusp.formats.parse.parse_lines`."""
        from cusp.formats.parse import parse_lines

        letter = self.letter[0] if self.letter else 0
        comments = (self.comments[0], self.comments[-1])
        ids = (-MAX_ID, MAX_ID) if self.num_nodes is None else (self.base, self.num_nodes + self.base)
        return parse_lines(  # type: ignore[no-any-return]
            data, letter, comments, self.columns, self.which, self.base, *ids, sources, targets, integers, reals,
            inexact,
        )  # fmt: skip

    def _refuse(self, code: int, data: np.ndarray, position: int, offset: int) -> NoReturn:
        from cusp.formats.parse import FRACTION, INFINITE, OUT_OF_RANGE, TOO_LARGE

        line, number = line_at(self.path, data, position, offset)
        shape = f"{self.letter.decode()} " if self.letter else ""
        expected = shape + " ".join(
            {self.which[0]: "source", self.which[1]: "target", self.which[2]: "weight"}.get(i, "...")
            for i in range(self.columns)
        )
        reason = f"expected '{expected}'"
        advice = "; if node ids are names, say so with --ids names" if self.takes_names and not self.named else ""
        if code == TOO_LARGE:
            reason = "a number is too large"
        elif code == INFINITE:
            reason = f"the weight is beyond the largest float64, {np.finfo(float).max:.1e}"
        elif code == FRACTION:
            raise FractionalWeightError(
                f"{self.path}, line {number:,}: the weight is not an integer, those before were: {line!r}"
            )
        elif code == OUT_OF_RANGE:
            last = "" if self.num_nodes is None else f" to {self.num_nodes - 1 + self.base:,}"
            reason = f"node ids must run from {self.base}{last}"
        wide = code == TOO_LARGE and advice  # as a name, it fits
        raise (WideIdsError if wide else GraphFileError)(
            f"{self.path}, line {number:,}: {reason}, found {line!r}{advice}"
        )


def line_range(path: Path, start: int, rank: int, size: int) -> tuple[int, int]:
    """Bytes ``begin, end`` of this rank's lines: those whose first byte is in its equal share."""
    first, last = share(path.stat().st_size - start, rank, size)
    with open(path, "rb") as file:

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
