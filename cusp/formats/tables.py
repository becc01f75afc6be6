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

from cusp.errors import GraphFileError
from cusp.formats.binary import open_binary
from cusp.formats.columns import choose_columns, edges_of, has_names, is_numeric, unused_columns
from cusp.formats.source import (
    BLOCK_BYTES,
    CHUNK_EDGES,
    Asked,
    Chunk,
    EdgeSource,
    EncodingError,
    FractionalWeightError,
    WideIdsError,
    ahead,
    is_gzip,
    read_head,
    readable,
)  # fmt: skip
from cusp.formats.text import NAMES_ADVICE
from cusp.input.hdf5 import explained
from cusp.names.dictionary import Dictionary


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
            raise self._kind_of(str(error))(f"{error}{'' if self.named else NAMES_ADVICE}") from None

    def _kind_of(self, error: str) -> type[GraphFileError]:
        """What was wrong, by what pyarrow says."""
        if "UTF8" in error:
            return EncodingError
        if re.search(r"to int64: invalid value '\s*-?\d{19,}\s*'", error):
            return WideIdsError
        return (
            FractionalWeightError if self.weight_dtype is not None and self.weight_dtype.kind != "f" else GraphFileError
        )


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
