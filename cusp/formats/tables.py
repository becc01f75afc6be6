"""Tables with named columns: CSV and TSV with a header line (pandas), Parquet (pyarrow)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.binary import check_ids, open_binary
from cusp.formats.columns import choose_columns
from cusp.formats.source import CHUNK_EDGES, Chunk, EdgeSource, ahead, is_gzip, is_number, readable
from cusp.formats.text import FractionalWeightError
from cusp.input.hdf5 import explained
from cusp.names.dictionary import Dictionary
from cusp.names.packed import Packed


@dataclass
class TableSource(EdgeSource):
    """Named columns: source, target and perhaps weight."""

    columns: tuple[str, ...] = ()
    takes_names: bool = True

    def frames(self, rank: int, size: int) -> Iterator[dict[str, Any]]:
        """Yield pieces of this rank's rows: column name -> values."""
        raise NotImplementedError

    def texts(self, column: Any) -> Any:
        """A column of a piece as an Arrow array of large strings."""
        raise NotImplementedError

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.chunks`."""
        for frame in ahead(partial(self.frames, rank, size)):
            if self.dictionary is not None:
                sources, targets = self._numbers(frame, self.dictionary)
            else:
                sources, targets = (self._ids(frame, name) for name in self.columns[:2])
            self.edges_read += len(sources)
            weights = np.asarray(frame[self.columns[2]]) if self.weighted else None
            if weights is not None and weights.dtype.kind == "f" and np.isinf(weights).any():
                raise GraphFileError(f"{self.path}: column {self.columns[2]!r} has an infinite or too large weight")
            yield sources, targets, weights

    def _ids(self, frame: dict[str, Any], name: str) -> np.ndarray:
        ids = np.asarray(frame[name])
        if ids.dtype.kind not in "iu":
            raise GraphFileError(f"{self.path}: column {name!r} holds {ids.dtype}, a node id is an integer or a name")
        check_ids(self.path, ids, self.num_nodes)
        return ids

    def _numbers(self, frame: dict[str, Any], dictionary: "Dictionary") -> list[np.ndarray]:
        """Sources and targets of a piece whose ids are names."""
        import pyarrow

        with explained(self.path, "the names"):
            ends = pyarrow.concat_arrays([self.texts(frame[name]) for name in self.columns[:2]])
            encoded = ends.dictionary_encode()
            names = encoded.dictionary
            offsets = np.frombuffer(names.buffers()[1], np.int64)[names.offset :][: len(names) + 1]
        if ends.null_count or (np.diff(offsets) == 0).any():
            raise GraphFileError(
                f"{self.path}: a value is missing in the columns {', '.join(self.columns[:2])}, or is an empty name"
            )
        numbers = dictionary.number(Packed(offsets, np.frombuffer(names.buffers()[2] or b"", np.uint8)))
        return np.split(numbers[encoded.indices.to_numpy()], 2)


class CsvSource(TableSource):
    """CSV or TSV, read by rank 0."""

    def frames(self, rank: int, size: int) -> Iterator[dict[str, Any]]:
        """See :meth:`TableSource.frames`."""
        if rank > 0:
            return
        ids = np.int64 if self.dictionary is None else str
        types: dict[str, Any] = dict.fromkeys(self.columns[:2], ids)
        if self.weighted:
            types[self.columns[2]] = self.weight_dtype
        try:
            with explained(self.path, "the table"):
                for frame in read_csv(self, dtype=types, usecols=list(self.columns), chunksize=CHUNK_EDGES // 2):
                    yield {name: frame[name] for name in self.columns}
        except GraphFileError as error:
            integers = self.weight_dtype is not None and self.weight_dtype.kind != "f"
            advice = "" if self.named else "; if node ids are names, say so with --names"
            raise (FractionalWeightError if integers else GraphFileError)(f"{error}{advice}") from None

    def texts(self, column: Any) -> Any:
        """See :meth:`TableSource.texts`; blanks around names do not count."""
        import pyarrow
        from pyarrow import compute

        array = pyarrow.array(column, pyarrow.large_string(), from_pandas=True)
        array = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
        return compute.utf8_trim_whitespace(array)


def read_csv(source: EdgeSource, **options: Any) -> Any:
    """pandas.read_csv with the separator that the format names.

    Where ids are names, every cell of theirs is one, such as NA and C#; lines of comments are at the top only.
    """
    import pandas

    as_names = {"keep_default_na": False, "skiprows": _comments(source.path)}
    return pandas.read_csv(
        source.path,
        sep="\t" if source.format == "tsv" else ",",
        compression="gzip" if is_gzip(source.path) else None,
        skipinitialspace=True,
        **(as_names if source.named else {"comment": "#"}),
        **options,
    )


def _comments(path: Path) -> int:
    """Lines at the top of a file that begin with #."""
    number = 0
    with readable(path) as file:
        while file.readline(1 << 16).lstrip().startswith(b"#"):
            number += 1
    return number


def open_csv(path: Path, format: str, columns: list[str] | None, real_weights: bool, names: bool) -> EdgeSource:
    """Open a CSV or TSV table whose first line names the columns."""
    source = CsvSource(path, format)
    with explained(path, "the table"):
        head = read_csv(source, nrows=1000)
    types = {str(name): dtype for name, dtype in head.dtypes.items()}
    source.columns = choose_columns(path, list(types), columns)
    words = (word for name in source.columns[:2] if types[name].kind not in "iuf" for word in head[name].dropna())
    if names or not all(is_number(str(word)) for word in words):
        source.dictionary = Dictionary()
        head = read_csv(source, nrows=1000)  # again, as names are read
    if len(source.columns) > 2:
        dtype = np.float64 if real_weights else head.dtypes[source.columns[2]]
        if not isinstance(dtype, np.dtype | type) or np.dtype(dtype).kind not in "iuf":
            raise GraphFileError(f"{path}: column {source.columns[2]!r} holds {dtype}, a weight is a number")
        source.weight_dtype = np.dtype(dtype)
    return source


class ParquetSource(TableSource):
    """Parquet; the ranks share its row groups."""

    def frames(self, rank: int, size: int) -> Iterator[dict[str, Any]]:
        """See :meth:`TableSource.frames`."""
        with explained(self.path, "the table"):
            file = _parquet(self.path)
            groups = list(range(rank, file.num_row_groups, size))
            for batch in file.iter_batches(CHUNK_EDGES, groups, list(self.columns), use_threads=False):
                if any(column.null_count for column in batch.columns):
                    raise GraphFileError(f"{self.path}: a value is missing in the columns {', '.join(self.columns)}")
                yield {name: batch.column(name) for name in self.columns}

    def texts(self, column: Any) -> Any:
        """See :meth:`TableSource.texts`."""
        import pyarrow

        return column.cast(pyarrow.large_string())


def open_parquet(path: Path, format: str, columns: list[str] | None, real_weights: bool, names: bool) -> EdgeSource:
    """Open a Parquet table."""
    from pyarrow import types

    with explained(path, "the Parquet table"):
        file = _parquet(path)
        schema = file.schema_arrow
        num_rows = file.metadata.num_rows
    chosen = choose_columns(path, schema.names, columns)
    source = ParquetSource(path, format, stored_edges=num_rows, columns=chosen)
    ends = [schema.field(name).type for name in chosen[:2]]
    ends = [type.value_type if types.is_dictionary(type) else type for type in ends]
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    if names or any(is_text(type) for is_text in texts for type in ends):
        source.dictionary = Dictionary()
    if len(chosen) > 2:
        try:
            source.weight_dtype = np.dtype(schema.field(chosen[2]).type.to_pandas_dtype())
        except (NotImplementedError, TypeError):
            source.weight_dtype = np.dtype(object)
        if source.weight_dtype.kind not in "iuf":
            raise GraphFileError(f"{path}: column {chosen[2]!r} holds {source.weight_dtype}, a weight is a number")
    return source


def _parquet(path: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(open_binary(path))
