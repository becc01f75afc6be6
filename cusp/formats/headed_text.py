"""Text that states its size first, ids from 1: MatrixMarket, DIMACS and PACE, METIS."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.source import Asked, Chunk, EdgeSource, read_head
from cusp.formats.text import LineSource, blocks, line_at
from cusp.runtime.compiled_code import njit

_HEAD_BYTES = 1 << 20
# Of METIS: what a block of text turned out to be, and the state between blocks.
OK, MALFORMED, OUT_OF_RANGE = range(3)
_ROW, _SLOT, _COMMENT, _TOKENS, _NEIGHBOUR = range(5)


def first_line(path: Path, comments: bytes, after: int = 0) -> tuple[list[str], int]:
    """Words of the first line after byte ``after`` that is neither empty nor a comment, and where the next line starts.

    There are no words at the end of the file.
    """
    head = read_head(path, _HEAD_BYTES) + b"\n"
    while after < len(head):
        end = head.index(b"\n", after) + 1
        line = head[after:end].strip()
        after = end
        if line and line[0] not in comments:
            return line.decode(errors="replace").split(), min(end, len(head) - 1)
    return [], len(head) - 1


def whole_numbers(path: Path, words: list[str], what: str) -> list[int]:
    """Turn the words of a header into numbers, or say which header is wrong."""
    if not words or not all(word.isdecimal() and len(word) <= 18 for word in words):
        raise GraphFileError(f"{path}: expected {what}, found {' '.join(words) or 'the end of the file'!r}")
    return [int(word) for word in words]


def open_matrix_market(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a square coordinate matrix: entry (i, j) is the edge ``i - 1 -> j - 1``.

    ``pattern`` has no weights, ``integer`` has int64 and ``real`` float64. ``symmetric`` stores one
    triangle, which stands for both. Skew-symmetric, Hermitian, complex and dense ones are refused.
    """
    banner, after = first_line(path, b"")
    kinds = [word.lower() for word in banner]
    if len(kinds) != 5 or kinds[0] != "%%matrixmarket" or kinds[1] != "matrix":
        raise GraphFileError(
            f"{path}, line 1: expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY', found {' '.join(banner)!r}"
        )
    layout, field, symmetry = kinds[2:]
    if layout != "coordinate" or field not in ("pattern", "integer", "real"):
        raise GraphFileError(f"{path}: a {layout} {field} matrix is not a graph; coordinate pattern/integer/real are")
    if symmetry not in ("general", "symmetric"):
        raise GraphFileError(f"{path}: a {symmetry} matrix is not a graph; general and symmetric are")
    words, start = first_line(path, b"%", after)
    sizes = whole_numbers(path, words, "'rows columns entries' after the comments")
    if len(sizes) != 3 or sizes[0] != sizes[1]:
        raise GraphFileError(f"{path}: a graph is a square matrix, this header says {' '.join(words)!r}")
    dtype = {"pattern": None, "integer": np.float64 if asked.real_weights else np.int64, "real": np.float64}[field]
    return _lines(path, format, sizes[0], sizes[2], dtype, symmetry == "symmetric", start, b"%")


# Problem line -> (letter of an edge line, weighted, undirected)
PROBLEMS = {
    "sp": (b"a", True, False),
    "edge": (b"e", False, True),
    "col": (b"e", False, True),
    **dict.fromkeys(("tw", "td", "ds", "vc"), (b"", False, True)),
}


def open_problem(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a DIMACS or PACE file: comment lines ``c``, one problem line ``p KIND nodes edges``, the edges.

    DIMACS ``sp`` has directed, weighted lines ``a source target weight``; ``edge`` and ``col`` have
    undirected lines ``e source target``; PACE (``tw``, ``ds``, ...) has undirected lines ``source target``.
    """
    words, start = first_line(path, b"c")
    if len(words) != 4 or words[0] != "p" or words[1] not in PROBLEMS:
        kinds = "|".join(PROBLEMS)
        raise GraphFileError(f"{path}: expected 'p {kinds} nodes edges', found {' '.join(words)!r}")
    nodes, edges = whole_numbers(path, words[2:], "'p KIND nodes edges'")
    letter, weighted, undirected = PROBLEMS[words[1]]
    dtype = (np.float64 if asked.real_weights else np.int64) if weighted else None
    return _lines(path, format, nodes, edges, dtype, undirected, start, b"c", letter)


def _lines(
    path: Path, format: str, nodes: int, edges: int, dtype: type | None, symmetric: bool, start: int, comments: bytes,
    letter: bytes = b"",
) -> LineSource:  # fmt: skip
    return LineSource(
        path, format, num_nodes=nodes, stored_edges=edges, weight_dtype=None if dtype is None else np.dtype(dtype),
        symmetric=symmetric, letter=letter, comments=comments, columns=3 if dtype else 2,
        which=(0, 1, 2 if dtype else -1), base=1, start=start,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _digits(data, i):  # type: ignore[no-untyped-def]
    """The number that is written at ``i``, and the position after it."""
    value = 0
    while 48 <= data[i] <= 57:
        value = value * 10 + np.int64(data[i]) - 48
        i += 1
    return value, i


@njit(cache=True, nogil=True)
def parse_rows(data, state, skip, weighted, num_nodes, sources, targets, weights):  # type: ignore[no-untyped-def]
    """Parse text that may be cut between any two words.

    ``state`` (int64[5], kept between blocks): rows ended, words so far in this row, whether this line is
    a comment, words in all, the neighbour whose weight comes next. The first ``skip`` words of a row are
    not neighbours; with ``weighted``, neighbours and weights alternate. With empty ``targets``, words are
    only counted.

    Returns ``(edges, code, position)``.
    """
    i = 0
    edge = 0
    while i < data.size:
        c = data[i]
        if c == 10:
            if state[_COMMENT] == 0:
                if weighted and targets.size > 0 and state[_SLOT] > skip and (state[_SLOT] - skip) % 2 == 1:
                    return edge, MALFORMED, i
                state[_ROW] += 1
            state[_COMMENT] = 0
            state[_SLOT] = 0
            i += 1
        elif state[_COMMENT] == 1 or c == 32 or c == 9 or c == 13:
            i += 1
        elif c == 37 and state[_SLOT] == 0:
            state[_COMMENT] = 1
        else:
            value, end = _digits(data, i)
            after = data[end]
            if end == i or end - i > 18 or not (after == 32 or after == 10 or after == 9 or after == 13):
                return edge, MALFORMED, i
            if state[_ROW] >= num_nodes:
                return edge, OUT_OF_RANGE, i
            slot = state[_SLOT] - skip
            state[_SLOT] += 1
            state[_TOKENS] += 1
            if targets.size > 0 and slot >= 0:
                if weighted and slot % 2 == 1:
                    weights[edge] = value
                elif value < 1 or value > num_nodes:
                    return edge, OUT_OF_RANGE, i
                else:
                    state[_NEIGHBOUR] = value - 1
                if not weighted or slot % 2 == 1:
                    sources[edge] = state[_ROW]
                    targets[edge] = state[_NEIGHBOUR]
                    edge += 1
            i = end
    return edge, OK, i


@dataclass
class MetisSource(EdgeSource):
    """Neighbours of node i in line i; ``skip`` words, its size and weights, come before those of each node."""

    start: int = 0
    skip: int = 0

    def read(self, rank: int, size: int) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.read`; rank 0 reads all: a row's number is only known from those before."""
        if rank == 0:
            yield from self.parsed(np.zeros(5, np.int64))

    def parsed(self, state: np.ndarray, count_only: bool = False) -> Iterator[Chunk]:
        """Parse block by block; a row may be longer than a block."""
        step = 2 if self.weighted else 1
        for data, offset in blocks(self.path, self.start, None, cut=b"\n \t"):
            capacity = 0 if count_only else data.size // (2 * step) + 1
            sources, targets = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            weights = np.empty(capacity if self.weighted else 0, np.int64)
            edges, code, position = parse_rows(
                data, state, self.skip, self.weighted, self.num_nodes, sources, targets, weights
            )
            if code != OK:
                line, number = line_at(self.path, data, position, offset)
                reason = f"node ids must run from 1 to {self.num_nodes:,} and no more lines follow"
                if code == MALFORMED:
                    reason = "expected 'neighbour weight' pairs" if self.weighted else "expected whole numbers"
                raise GraphFileError(f"{self.path}, line {number:,}: {reason}, found {line!r}")
            yield sources[:edges], targets[:edges], weights[:edges] if self.weighted else None


def open_metis(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a METIS graph and count its words, by which three dialects differ.

    METIS lists each of the ``edges`` of the header twice. Converters also write directed graphs, each
    edge once; the number of words shows which. A hundreds digit in ``fmt`` means that a node's size
    starts its line (METIS), or only that loops and parallel edges occur (10th DIMACS challenge).
    """
    words, start = first_line(path, b"%")
    what = "'nodes edges [format [constraints]]'"
    header = whole_numbers(path, words, what)
    digits = words[2].zfill(3) if len(words) > 2 else "000"
    if not 2 <= len(header) <= 4 or len(digits) != 3 or set(digits) - set("01"):
        raise GraphFileError(f"{path}: expected {what}, found {' '.join(words)!r}")
    nodes, edges = header[:2]
    constraints = (header[3] if len(header) > 3 else 1) if digits[1] == "1" else 0
    weighted = digits[2] == "1"
    source = MetisSource(
        path, format, num_nodes=nodes, weight_dtype=np.dtype(np.int64) if weighted else None, start=start
    )
    state = np.zeros(5, np.int64)
    for _ in source.parsed(state, count_only=True):
        pass
    written = int(state[_TOKENS])
    per_edge = 2 if weighted else 1
    for sizes in (0, 1) if digits[0] == "1" else (0,):
        neighbours = written - (sizes + constraints) * nodes
        for copies in (2, 1):
            if neighbours == per_edge * copies * edges:
                source.symmetric = source.reverse_stored = copies == 2
                source.stored_edges = copies * edges
                source.skip = sizes + constraints
                return source
    raise GraphFileError(
        f"{path}: the header states {edges:,} edges, each written twice, so "
        f"{2 * edges * per_edge + constraints * nodes:,} numbers should follow, but there are {written:,}; "
        "the file was cut short or its header is wrong"
    )
