"""Tables with named columns, read by pyarrow: CSV and TSV with a header line, Parquet, Feather."""

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import compute, csv, ipc, parquet, types

from cusp.errors import GraphFileError, OptionError, shortened
from cusp.formats.binary import open_binary
from cusp.formats.source import (
    CHUNK_EDGES,
    Asked,
    Chunk,
    EdgeSource,
    EncodingError,
    WideIdsError,
    ahead,
    is_gzip,
    read_head,
    readable,
)  # fmt: skip
from cusp.formats.text import BLOCK_BYTES, FractionalWeightError
from cusp.input.hdf5 import explained
from cusp.names.dictionary import Dictionary
from cusp.names.packed import Packed

PAIRS = (
    ("source", "target"), ("src", "dst"), ("src", "tgt"), ("source", "destination"), ("src", "dest"), ("s", "t"),
    ("from", "to"), ("u", "v"), ("i", "j"), ("start", "end"), ("origin", "destination"), ("orig", "dest"),
    ("sender", "receiver"), ("sender", "recipient"), ("follower", "followee"), ("node1", "node2"), ("id1", "id2"),
    ("row", "col"),
)  # fmt: skip
WEIGHTS = {
    "weight", "weights", "w", "value", "km", "miles", "length", "distance", "dist", "cost", "capacity", "strength",
    "count",
}  # fmt: skip
PLAIN = ("weight", "weights", "w")  # come before others


def choose_columns(where: object, names: list[str], wanted: list[str] | None = None) -> tuple[str, ...]:
    """Names of the columns of source, target and, where there is one, weight.

    Without ``wanted`` they are those with the usual headings: ``source`` and ``target``, ``from`` and ``to`` ..., in
    capitals or not, also ``source_id`` or ``FromNodeId``. Two columns beside one of weights are source and target,
    whatever their headings.

    >>> choose_columns("a.csv", ["year", "From", "To", "km"]), choose_columns("a.csv", ["a", "b", "c"], ["3", "a"])
    (('From', 'To', 'km'), ('c', 'a'))

    Parameters
    ----------
    where : path or str
        What the table is called in messages.
    names : list of str
        Of all columns.
    wanted : list of str, optional
        Names of two or three columns, or their numbers from 1. Two empty ones before a third: the usual headings.

    Raises
    ------
    OptionError
        There is no such column; or the headings leave open which are meant.
    """
    if wanted and wanted[:2] == ["", ""]:
        weight = _named(names, wanted[2]) or ""
        usual = choose_columns(where, [name for name in names if name != weight])
        return choose_columns(where, names, [*usual[:2], weight])
    there = f"{where} has the columns {shortened(', '.join(names))}"
    if wanted is not None:
        chosen = [_named(names, column) for column in wanted]
        if None in chosen or len(chosen) not in (2, 3):
            raise OptionError(f"--columns {','.join(wanted)}: {there}; expected SOURCE,TARGET or SOURCE,TARGET,WEIGHT")
        return tuple(column for column in chosen if column is not None)
    plain = {_plain(name): name for name in reversed(names)}
    heavy = [name for name in names if _plain(name) in WEIGHTS]
    heavy = [name for name in heavy if _plain(name) in PLAIN] or heavy
    ends = [(plain[source], plain[target]) for source, target in PAIRS if source in plain and target in plain]
    others = [name for name in names if name not in heavy]
    if not ends and heavy and len(others) == 2:
        ends = [(others[0], others[1])]
    if len(ends) != 1 or len(heavy) > 1:
        what = "the source and target of an edge" if len(ends) != 1 else "its weight"
        raise OptionError(f"{there}; name those that are {what}: --columns SOURCE,TARGET[,WEIGHT]")
    return (*ends[0], *heavy)


def _named(names: list[str], column: str) -> str | None:
    """The column of this name or number."""
    if column not in names and column.isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    return column if column in names else None


def _plain(name: str) -> str:
    """A heading without capitals, signs, and the words node and id at its end: ``FromNodeId`` is ``from``."""
    word = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"(?<=.)(node|vertex)?(id|name)?$", "", word) or word


def unused_columns(chosen: tuple[str, ...], kinds: dict[str, Any]) -> list[str]:
    """For each column of numbers that is not among the two chosen ones: ``--columns`` with it as the weight."""
    others = [name for name, kind in kinds.items() if name not in chosen and is_numeric(kind)]
    return [",".join((*chosen, name)) for name in others] if len(chosen) == 2 else []


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers."""
    return types.is_integer(kind) or types.is_floating(kind)


def edges_of(where: object, names: tuple[str, ...], columns: list[Any], dictionary: Dictionary | None) -> Chunk:
    """Sources, targets and weights, from arrays of Arrow.

    Parameters
    ----------
    where, names
        The table and its columns, for messages.
    columns : list of array
    dictionary : Dictionary or None
        Numbers ids that are names.

    Raises
    ------
    WideIdsError
        A whole number does not fit into int64.
    GraphFileError
        A value is missing; or is neither a whole number nor a name; a weight is infinite.
    """
    columns = [each.dictionary_decode() if types.is_dictionary(each.type) else each for each in columns]
    if any(column.null_count for column in columns[:2]):
        raise GraphFileError(f"{where}: a value is missing in the columns {', '.join(names[:2])}")
    weights = None
    if len(columns) > 2:
        weights = columns[2].cast(pyarrow.float64()) if columns[2].null_count else columns[2]
        weights = weights.to_numpy(zero_copy_only=False)
        if weights.dtype.kind == "f" and np.isinf(weights).any():
            raise GraphFileError(f"{where}: column {names[2]!r} has an infinite or too large weight")
    if dictionary is None:
        return _integers(where, names[0], columns[0]), _integers(where, names[1], columns[1]), weights
    with explained(where, "the names"):
        ends = pyarrow.concat_arrays([column.cast(pyarrow.large_string()) for column in columns[:2]])
        encoded = ends.dictionary_encode()
    known = Packed.of_arrow(encoded.dictionary)
    if (np.diff(known.offsets) == 0).any():
        raise GraphFileError(f"{where}: a value is missing in the columns {', '.join(names[:2])}: a name is empty")
    sources, targets = np.split(dictionary.number(known)[encoded.indices.to_numpy()], 2)
    return sources, targets, weights


def _integers(where: object, name: str, ids: Any) -> np.ndarray:
    if not types.is_integer(ids.type):
        raise GraphFileError(f"{where}: column {name!r} holds {ids.type}, a node id is a whole number or a name")
    values: np.ndarray = ids.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64 and values.size and values.max() > 2**63 - 1:
        raise WideIdsError(f"{where}: the id {values.max()} in column {name!r} is beyond int64; take ids as names")
    return values


def has_names(where: object, names: tuple[str, ...], kinds: list[Any], ids: str) -> bool:
    """Whether ids of these types of Arrow are names.

    Raises
    ------
    GraphFileError
        One is, the other is not, so that 1 and "1" would be the same node.
    """
    texts = [not is_numeric(kind) and not types.is_null(kind) for kind in kinds[:2]]
    if ids == "auto" and any(texts) and not all(texts):
        raise GraphFileError(
            f"{where}: column {names[0]!r} holds {kinds[0]}, but {names[1]!r} {kinds[1]}: 1 and '1' would be one node; "
            "make both numbers, or both texts, or say that they are meant so with --ids names"
        )
    return ids == "names" or (ids == "auto" and any(texts))


@dataclass
class TableSource(EdgeSource):
    """Named columns: source, target and perhaps weight."""

    columns: tuple[str, ...] = ()
    takes_names: bool = True

    def batches(self, rank: int, size: int) -> Iterator[Any]:
        """Yield pieces of this rank's rows, of the chosen columns, as record batches of Arrow."""
        raise NotImplementedError

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.chunks`."""
        for batch in ahead(partial(self.batches, rank, size)):
            self.edges_read += len(batch)
            for first in range(0, len(batch), CHUNK_EDGES):
                piece = batch.slice(first, CHUNK_EDGES)
                yield edges_of(self.path, self.columns, [piece.column(name) for name in self.columns], self.dictionary)

    def choose(self, asked: Asked, kinds: dict[str, Any], named: bool | None = None) -> None:
        """Decide on columns and names by the types that the columns have."""
        self.columns = choose_columns(self.path, list(kinds), asked.columns)
        chosen = [kinds[name] for name in self.columns]
        if has_names(self.path, self.columns, chosen, asked.ids) if named is None else named:
            self.dictionary = Dictionary()
        if asked.columns is None:
            self.unused = unused_columns(self.columns, kinds)
        if len(chosen) > 2:
            if not is_numeric(chosen[2]) and not types.is_null(chosen[2]):
                raise GraphFileError(f"{self.path}: column {self.columns[2]!r} holds {chosen[2]}, a weight is a number")
            real = asked.real_weights or types.is_null(chosen[2])
            self.weight_dtype = np.dtype(np.float64 if real else chosen[2].to_pandas_dtype())


@dataclass
class CsvSource(TableSource):
    """CSV or TSV, read by rank 0.

    Attributes
    ----------
    how : dict
        Options of pyarrow: encoding, lines before the headings, separator, decimal point.
    headings : dict
        Column -> its heading in the file, with blanks around it.
    """

    how: dict[str, Any] | None = None
    headings: dict[str, str] | None = None

    def reader(self, **options: Any) -> Any:
        """A reader of batches; options say how to convert columns."""
        how = self.how or {}
        read = csv.ReadOptions(block_size=BLOCK_BYTES, encoding=how["encoding"], skip_rows=how["comments"])
        parse = csv.ParseOptions(
            delimiter=how["separator"], newlines_in_values=True,
            invalid_row_handler=lambda row: "skip" if (row.text or "").lstrip().startswith("#") else "error",
        )  # fmt: skip
        convert = csv.ConvertOptions(decimal_point=how["point"], **options)
        file = pyarrow.input_stream(str(self.path), compression="gzip" if is_gzip(self.path) else None)
        return csv.open_csv(file, read, parse, convert)

    def batches(self, rank: int, size: int) -> Iterator[Any]:
        """See :meth:`TableSource.batches`."""
        if rank > 0:
            return
        raw = [(self.headings or {})[name] for name in self.columns]
        ids = pyarrow.int64() if self.dictionary is None else pyarrow.large_string()
        kinds = [ids, ids] + ([] if self.weight_dtype is None else [pyarrow.from_numpy_dtype(self.weight_dtype)])
        try:
            with explained(self.path, "the table"):
                for batch in self.reader(include_columns=raw, column_types=dict(zip(raw, kinds))):
                    columns = list(batch.columns)
                    if self.named:  # blanks around names do not count
                        columns[:2] = [compute.utf8_trim_whitespace(column) for column in columns[:2]]
                    yield pyarrow.record_batch(columns, list(self.columns))
        except GraphFileError as error:
            raise self._kind_of(str(error))(f"{error}{'' if self.named else ADVICE}") from None

    def _kind_of(self, error: str) -> type[GraphFileError]:
        """What was wrong, by what pyarrow says."""
        if "UTF8" in error:
            return EncodingError
        if re.search(r"to int64: invalid value '\s*-?\d{19,}\s*'", error):
            return WideIdsError
        return (
            FractionalWeightError if self.weight_dtype is not None and self.weight_dtype.kind != "f" else GraphFileError
        )


ADVICE = "; if node ids are names, say so with --ids names"


def open_csv(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a CSV or TSV table whose first line names the columns; the separator is what is most frequent there."""
    head, comments = read_head(path), 0
    with readable(path) as file:
        while (line := file.readline(1 << 20)).lstrip().startswith(b"#"):
            comments += 1
    encoding = "latin1" if asked.latin1 or not _is_utf8(head) else "utf8"
    separator = "\t" if format == "tsv" else max(",;\t|", key=lambda sign: line.count(sign.encode()))
    source = CsvSource(path, format, how={"encoding": encoding, "comments": comments, "separator": separator})
    assert source.how is not None
    with _utf8_or_latin1(), explained(path, "the table"):
        kinds: dict[str, Any] = {}
        for point in ".," if separator == ";" else ".":  # as spreadsheets write where numbers are 1,5
            source.how["point"], before = point, sum(map(is_numeric, kinds.values()))
            schema = source.reader().schema
            found = dict(zip(schema.names, schema.types))
            if sum(map(is_numeric, found.values())) > before or not kinds:
                kinds, best = found, point
        source.how["point"] = best
        source.headings = {name.strip(): name for name in kinds}
        kinds = {name.strip(): kind for name, kind in kinds.items()}
        named = None if asked.ids == "auto" else asked.ids == "names"
        if named is None:
            named = _looks_named(source, choose_columns(path, list(kinds), asked.columns)[:2], kinds)
    source.choose(asked, kinds, named)
    if encoding == "latin1":
        source.notes.append(
            f"{path}: is not UTF-8, so it is read as Latin-1; save it as UTF-8 if letters come out wrong"
        )
    return source


@contextmanager
def _utf8_or_latin1() -> Iterator[None]:
    """Make an error of what pyarrow says of bytes that are not UTF-8, by which the file is read again."""
    try:
        yield
    except GraphFileError as error:
        raise (EncodingError if "UTF8" in str(error) else type(error))(str(error)) from None


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last letter may be incomplete
    except UnicodeDecodeError:
        return False
    return True


def _looks_named(source: CsvSource, ends: tuple[str, ...], kinds: dict[str, Any]) -> bool:
    """Whether an id of the first rows is no number, or a whole one beyond int64."""
    if all(types.is_integer(kinds[name]) or types.is_null(kinds[name]) for name in ends):
        return False
    raw = [(source.headings or {})[name] for name in ends]
    batch = source.reader(include_columns=raw, column_types=dict.fromkeys(raw, pyarrow.string())).read_next_batch()
    texts = [compute.utf8_trim_whitespace(column) for column in batch.columns]
    numbers = [compute.match_substring_regex(column, r"^([-+]?[0-9.]+([eE][-+]?\d+)?)?$") for column in texts]
    wide = [compute.match_substring_regex(column, r"^-?\d{19,}$") for column in texts]
    return not all(compute.all(each).as_py() for each in numbers) or any(compute.any(each).as_py() for each in wide)


class ParquetSource(TableSource):
    """Parquet; the ranks share its row groups."""

    def batches(self, rank: int, size: int) -> Iterator[Any]:
        """See :meth:`TableSource.batches`."""
        with explained(self.path, "the table"):
            file = parquet.ParquetFile(open_binary(self.path))
            groups = list(range(rank, file.num_row_groups, size))
            yield from file.iter_batches(CHUNK_EDGES, groups, list(self.columns), use_threads=False)


def open_parquet(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a Parquet table."""
    with explained(path, "the Parquet table"):
        file = parquet.ParquetFile(open_binary(path))
        schema, num_rows = file.schema_arrow, file.metadata.num_rows
    source = ParquetSource(path, format, stored_edges=num_rows)
    source.choose(asked, dict(zip(schema.names, map(_plain_type, schema.types))))
    return source


class FeatherSource(TableSource):
    """An Arrow file; the ranks share its record batches."""

    def batches(self, rank: int, size: int) -> Iterator[Any]:
        """See :meth:`TableSource.batches`."""
        with explained(self.path, "the table"):
            file = _open_arrow(self.path)
            for place in range(rank, file.num_record_batches, size):
                yield file.get_batch(place).select(list(self.columns))


def open_feather(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a table that Arrow wrote into a file, such as Feather 2."""
    with explained(path, "the Arrow table"):
        schema = _open_arrow(path).schema
    source = FeatherSource(path, format)
    source.choose(asked, dict(zip(schema.names, map(_plain_type, schema.types))))
    return source


def _open_arrow(path: Path) -> Any:
    return ipc.open_file(open_binary(path) if is_gzip(path) else pyarrow.memory_map(str(path)))


def _plain_type(kind: Any) -> Any:
    """What a dictionary-encoded column holds."""
    return kind.value_type if types.is_dictionary(kind) else kind
