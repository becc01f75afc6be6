"""The interface of all readers of graph files: a few facts from the header, and a stream of edges."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import numpy as np

from cusp.errors import GraphFileError
from cusp.runtime.files import open_input

if TYPE_CHECKING:
    from cusp.names.dictionary import Dictionary
    from cusp.names.names import SortedNames

Chunk = tuple[np.ndarray, np.ndarray, np.ndarray | None]
T = TypeVar("T")

CHUNK_EDGES = 1 << 21
BLOCK_BYTES = 1 << 24  # of text
IDS = ("auto", "names", "numbers")  # what whole numbers may be


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of the reader of a file.

    Attributes
    ----------
    columns : list of str, optional
        Source, target and (optional) weight column of an edge list or table: names, or numbers from 1.
    real_weights : bool
        Read weights as float64 even where the first ones, or the format, say that they are integers.
    ids : str
        Of nodes: ``names``, also where the first ones are whole numbers; ``numbers``; or ``auto``, as they look.
    latin1 : bool
        Texts are in Latin-1, even where the first ones are valid UTF-8.
    """

    columns: list[str] | None = None
    real_weights: bool = False
    ids: str = "auto"
    latin1: bool = False


class WideIdsError(GraphFileError):
    """An id beyond int64: read the file again with ids as names."""


class FractionalWeightError(GraphFileError):
    """A weight with a fraction after weights that had none: read the file again with float64 weights."""


class EncodingError(GraphFileError):
    """Bytes that are not UTF-8: read the file again as Latin-1."""


@dataclass
class EdgeSource:
    """A recognised graph file. ``chunks()`` may be called again: each call reads from the start.

    Attributes
    ----------
    path, format
        The file, and the name of its format (a key of :data:`cusp.formats.FORMATS`).
    num_nodes : int or None
        Nodes that the header states; None where the format states none.
    min_nodes : int
        Lower bound from a comment such as ``# Nodes: 325557``: right when ids are dense, too small when not.
    stored_edges : int or None
        Edges in the file according to its header, an undirected edge counted each time it is written.
    weight_dtype : dtype or None
        None where there are no weights.
    symmetric : bool
        Edges are undirected.
    reverse_stored : bool
        The file should list every edge at both ends: worth a check. Else each edge that is read stands for its reverse.
    edges_read : int
        Stored edges that ``chunks()`` has yielded so far on this rank.
    sums : dict
        Checksums, by dataset, of what this rank read, where the format stores any.
    dictionary : Dictionary or None
        Node ids are names: ``chunks()`` numbers them as this rank reads them, and these are their names.
    takes_names : bool
        Node ids of this format may be names.
    notes : list of str
        What was decided by the looks of the file and might have been meant otherwise.
    unused : list of str
        For each column of numbers that might be weights, but was not named: ``--columns`` with it.
    """

    path: Path
    format: str
    num_nodes: int | None = None
    min_nodes: int = 0
    stored_edges: int | None = None
    weight_dtype: np.dtype | None = None
    symmetric: bool = False
    reverse_stored: bool = False
    edges_read: int = 0
    sums: dict[str, int] = field(default_factory=dict, repr=False)
    dictionary: "Dictionary | None" = field(default=None, repr=False)
    takes_names: bool = False
    notes: list[str] = field(default_factory=list, repr=False)
    unused: list[str] = field(default_factory=list, repr=False)

    @property
    def weighted(self) -> bool:
        """Whether the edges carry weights."""
        return self.weight_dtype is not None

    @property
    def named(self) -> bool:
        """Whether nodes have names."""
        return self.dictionary is not None

    def stored_names(self, rank: int, size: int) -> "SortedNames | None":
        """The names of this rank's even share of the nodes, where the file has some beside the edges."""
        return None

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """Yield ``(sources, targets, weights or None)`` of this rank's share of the stored edges, ids from 0.

        While the caller works on a chunk, the next is read.
        """
        for edges in ahead(partial(self.read, rank, size)):
            self.edges_read += len(edges[0])
            yield edges

    def read(self, rank: int, size: int) -> Iterator[Chunk]:
        """The same.

        The shares of ranks ``0 .. size - 1`` are disjoint and together the whole file; a file that
        can only be read from start to end is read by rank 0.
        """
        raise NotImplementedError

    def check_complete(self, edges_read: int, sums: list[dict[str, int]]) -> None:
        """Raise GraphFileError unless all ranks together read what the header states: ``sums`` are those of each."""
        if self.stored_edges is not None and edges_read != self.stored_edges:
            raise GraphFileError(
                f"{self.path}: the header states {self.stored_edges:,} edges but the file holds "
                f"{edges_read:,}; it was cut short or its header is wrong"
            )


def share(total: int, rank: int, size: int) -> tuple[int, int]:
    """First and end position of this rank's equal share of ``total`` items."""
    return total * rank // size, total * (rank + 1) // size


def is_number(word: str | bytes) -> bool:
    """Whether a word stands for a number of any kind."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_gzip(path: Path) -> bool:
    """Whether the file starts like a gzip file, whatever its name."""
    with open_input(path) as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def readable(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked if it is gzip; damage becomes a GraphFileError."""
    try:
        with open_input(path) as file:
            if is_gzip(path):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield file  # type: ignore[misc]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise GraphFileError(f"{path}: damaged gzip file ({error}); fetch or pack it again") from None
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be read ({error.strerror or error})") from None


def read_head(path: Path, length: int = 1 << 16) -> bytes:
    """First ``length`` bytes of a file, unpacked."""
    with readable(path) as file:
        parts = []
        while length > 0 and (part := file.read(length)):
            parts.append(part)
            length -= len(part)
    return b"".join(parts)


def ahead(start: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Run an iterator in a thread that stays one item ahead: reading overlaps with what the caller does.

    Parsing and unpacking release the interpreter's lock. Errors are raised to the caller.
    """
    with ThreadPoolExecutor(1) as reader:
        items = start()
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item
