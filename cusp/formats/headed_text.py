"""Text that states its size first, ids from 1: MatrixMarket, DIMACS and PACE."""

from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.source import Asked, EdgeSource, read_head
from cusp.formats.text import LineSource

_HEAD_BYTES = 1 << 20


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
    triangle and yields both directions. Skew-symmetric, Hermitian, complex and dense ones are refused.
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
