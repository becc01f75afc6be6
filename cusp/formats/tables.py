"""Tables with named columns, read by pyarrow: CSV and TSV with a header line, Parquet, Feather."""

import codecs
import csv as csv_rows
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import compute, csv, ipc, parquet, types

from cusp.errors import GraphFileError, shortened
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
    is_number,
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

    def first_wrong(self) -> str | None:
        """The first row that cannot be taken, by its line; None where rows are no lines, or it is not found."""
        return None

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
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
            self.unused = unused_columns(self.columns, (name for name in kinds if is_numeric(kinds[name])))
        if len(chosen) > 2:
            if not is_numeric(chosen[2]) and not types.is_null(chosen[2]):
                what = f"{self.path}: column {self.columns[2]!r} holds {chosen[2]}, a weight is a number"
                raise GraphFileError(self.first_wrong() or what)
            real = asked.real_weights or types.is_null(chosen[2])
            self.weight_dtype = np.dtype(np.float64 if real else chosen[2].to_pandas_dtype())


@dataclass
class CsvSource(TableSource):
    """CSV or TSV, read by rank 0.

    Attributes
    ----------
    encoding, separator, point : str
        Of the text; between columns; in numbers.
    comments : int
        Lines before the headings.
    headings : dict
        Column -> its heading in the file, with blanks around it.
    """

    encoding: str = "utf8"
    separator: str = ","
    point: str = "."
    comments: int = 0
    headings: dict[str, str] = field(default_factory=dict)

    def reader(self, **options: Any) -> Any:
        """A reader of batches; options say how to convert columns."""
        read = csv.ReadOptions(block_size=BLOCK_BYTES, encoding=self.encoding, skip_rows=self.comments)
        parse = csv.ParseOptions(
            delimiter=self.separator, newlines_in_values=True,
            invalid_row_handler=lambda row: "skip" if (row.text or "").lstrip().startswith("#") else "error",
        )  # fmt: skip
        convert = csv.ConvertOptions(decimal_point=self.point, **options)
        file = pyarrow.input_stream(str(self.path), compression="gzip" if is_gzip(self.path) else None)
        return csv.open_csv(file, read, parse, convert)

    def batches(self, rank: int, size: int) -> Iterator[Any]:
        if rank > 0:
            return
        raw = [self.headings[name] for name in self.columns]
        ids = pyarrow.int64() if self.dictionary is None else pyarrow.large_string()
        kinds = [ids, ids] + ([] if self.weight_dtype is None else [pyarrow.from_numpy_dtype(self.weight_dtype)])
        with self.by_line():
            for batch in self.reader(include_columns=raw, column_types=dict(zip(raw, kinds))):
                columns = list(batch.columns)
                if self.named:  # blanks around names do not count
                    columns[:2] = [compute.utf8_trim_whitespace(column) for column in columns[:2]]
                yield pyarrow.record_batch(columns, list(self.columns))

    @contextmanager
    def by_line(self) -> Iterator[None]:
        """Say in which line of the table that is which pyarrow cannot take; or how the file is to be read again."""
        try:
            with explained(self.path, "the table"):
                yield
        except GraphFileError as error:
            kind = self._kind_of(str(error))
            raise kind((kind is GraphFileError and self.first_wrong()) or str(error)) from None

    def first_wrong(self) -> str | None:
        with (
            suppress(csv_rows.Error),
            readable(self.path) as file,
            TextIOWrapper(file, self.encoding, "replace", newline="") as lines,
        ):
            before = sum(1 for _ in islice(lines, self.comments))
            rows = csv_rows.reader(lines, delimiter=self.separator)
            headings = next(rows, [])
            places = {name: headings.index(self.headings[name]) for name in self.columns}
            for row in rows:
                if not row or row[0].lstrip().startswith("#"):
                    continue
                where = f"{self.path}, line {before + rows.line_num:,}"
                if len(row) != len(headings):
                    return f"{where}: expected {len(headings)} columns, as in the first line, found {len(row)}"
                for number, (name, place) in enumerate(places.items()):
                    text = shortened(row[place])
                    if number < 2 and not self.named and not re.fullmatch(r"\s*-?\d+\s*", row[place]):
                        return f"{where}: column {name!r} holds {text!r}, not a whole number{NAMES_ADVICE}"
                    if number == 2 and not is_number(row[place].replace("," if self.separator == ";" else ".", ".")):
                        return f"{where}: column {name!r} holds {text!r}, a weight is a number"
        return None

    def _kind_of(self, error: str) -> type[GraphFileError]:
        """What was wrong, by what pyarrow says."""
        if "UTF8" in error:
            return EncodingError
        if re.search(r"to int64: invalid value '\s*-?\d{19,}\s*'", error):
            return WideIdsError
        whole = self.weight_dtype is not None and self.weight_dtype.kind != "f"
        return FractionalWeightError if whole else GraphFileError


def open_csv(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a CSV or TSV table whose first line names the columns; the separator is what is most frequent there."""
    head, comments = read_head(path), 0
    with readable(path) as file:
        while (line := file.readline(1 << 20)).lstrip().startswith(b"#"):
            comments += 1
    encoding = "latin1" if asked.latin1 or not _is_utf8(head) else "utf8"
    separator = "\t" if format == "tsv" else max(",;\t|", key=lambda sign: line.count(sign.encode()))
    source = CsvSource(path, format, encoding=encoding, comments=comments, separator=separator)
    with source.by_line():
        points = ".," if separator == ";" else "."  # as spreadsheets write where numbers are 1,5
        found = {point: _columns_of(path, replace(source, point=point).reader().schema) for point in points}
        source.point, kinds = max(found.items(), key=lambda each: sum(map(is_numeric, each[1].values())))
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
    raw = [source.headings[name] for name in ends]
    batch = source.reader(include_columns=raw, column_types=dict.fromkeys(raw, pyarrow.string())).read_next_batch()
    texts = [compute.utf8_trim_whitespace(column) for column in batch.columns]
    numbers = [compute.match_substring_regex(column, r"^([-+]?[0-9.]+([eE][-+]?\d+)?)?$") for column in texts]
    wide = [compute.match_substring_regex(column, r"^-?\d{19,}$") for column in texts]
    return not all(compute.all(each).as_py() for each in numbers) or any(compute.any(each).as_py() for each in wide)


class ArrowSource(TableSource):
    """Parquet, whose row groups the ranks share; or a file that Arrow wrote, such as Feather 2: its record batches."""

    def batches(self, rank: int, size: int) -> Iterator[Any]:
        with explained(self.path, "the table"):
            file, columns = _open_arrow(self.path, self.format), list(self.columns)
            if self.format == "parquet":
                groups = list(range(rank, file.num_row_groups, size))
                yield from file.iter_batches(CHUNK_EDGES, groups, columns, use_threads=False)
            else:
                yield from (file.get_batch(at).select(columns) for at in range(rank, file.num_record_batches, size))


def open_arrow(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a table that knows the types of its columns."""
    with explained(path, f"the {'Parquet' if format == 'parquet' else 'Arrow'} table"):
        file = _open_arrow(path, format)
        schema = file.schema_arrow if format == "parquet" else file.schema
        num_rows = file.metadata.num_rows if format == "parquet" else None
    source = ArrowSource(path, format, stored_edges=num_rows)
    source.choose(asked, _columns_of(path, schema))
    return source


def _open_arrow(path: Path, format: str) -> Any:
    if format == "parquet":
        return parquet.ParquetFile(open_binary(path))
    return ipc.open_file(open_binary(path) if is_gzip(path) else pyarrow.memory_map(str(path)))


def _columns_of(path: Path, schema: Any) -> dict[str, Any]:
    """Names of the columns of a table, and what each holds, also if it is dictionary-encoded."""
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise GraphFileError(f"{path}: {schema.names.count(twice[0])} columns are called {twice[0]!r}; rename them")
    return {
        name: kind.value_type if types.is_dictionary(kind) else kind for name, kind in zip(schema.names, schema.types)
    }
