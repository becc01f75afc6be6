"""Tables with named columns: CSV and TSV with a header line (pandas), Parquet (pyarrow)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cusp.errors import GraphFileError, OptionError
from cusp.input.hdf5 import explained
from scripts.formats.binary import check_ids, open_binary
from scripts.formats.source import CHUNK_EDGES, Chunk, EdgeSource, ahead, is_gzip
from scripts.formats.text import FractionalWeightError


@dataclass
class TableSource(EdgeSource):
    """Named columns: source, target and perhaps weight."""

    names: tuple[str, ...] = ()

    def frames(self, rank: int, size: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield pieces of this rank's rows: column name -> values."""
        raise NotImplementedError

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.chunks`."""
        for frame in ahead(partial(self.frames, rank, size)):
            sources, targets = frame[self.names[0]], frame[self.names[1]]
            for name, ids in zip(self.names, (sources, targets), strict=False):
                if ids.dtype.kind not in "iu":
                    raise GraphFileError(f"{self.path}: column {name!r} holds {ids.dtype}, a node id is an integer")
                check_ids(self.path, ids, self.num_nodes)
            self.edges_read += len(sources)
            weights = frame[self.names[2]] if self.weighted else None
            if weights is not None and weights.dtype.kind == "f" and np.isinf(weights).any():
                raise GraphFileError(f"{self.path}: column {self.names[2]!r} has an infinite or too large weight")
            yield sources, targets, weights


class CsvSource(TableSource):
    """CSV or TSV, read by rank 0."""

    def frames(self, rank: int, size: int) -> Iterator[dict[str, np.ndarray]]:
        """See :meth:`TableSource.frames`."""
        if rank > 0:
            return
        types: dict[str, Any] = dict.fromkeys(self.names[:2], np.int64)
        if self.weighted:
            types[self.names[2]] = self.weight_dtype
        try:
            with explained(self.path, "the table"):
                for frame in read_csv(self, dtype=types, usecols=list(self.names), chunksize=CHUNK_EDGES // 2):
                    yield {name: frame[name].to_numpy() for name in self.names}
        except GraphFileError as error:
            integers = self.weight_dtype is not None and self.weight_dtype.kind != "f"
            raise (FractionalWeightError if integers else GraphFileError)(str(error)) from None


def read_csv(source: EdgeSource, **options: Any) -> Any:
    """pandas.read_csv with the separator that the format names."""
    import pandas

    separator = "\t" if source.format == "tsv" else ","
    return pandas.read_csv(
        source.path,
        sep=separator,
        compression="gzip" if is_gzip(source.path) else None,
        comment="#",
        skipinitialspace=True,
        **options,
    )


def open_csv(path: Path, format: str, columns: list[str] | None, real_weights: bool) -> EdgeSource:
    """Open a CSV or TSV table whose first line names the columns."""
    source = CsvSource(path, format)
    with explained(path, "the table"):
        head = read_csv(source, nrows=1000)
    types = {str(name): dtype for name, dtype in head.dtypes.items()}
    source.names = _chosen(path, list(types), columns)
    if len(source.names) > 2:
        dtype = np.float64 if real_weights else types[source.names[2]]
        if not isinstance(dtype, np.dtype | type) or np.dtype(dtype).kind not in "iuf":
            raise GraphFileError(f"{path}: column {source.names[2]!r} holds {dtype}, a weight is a number")
        source.weight_dtype = np.dtype(dtype)
    return source


class ParquetSource(TableSource):
    """Parquet; the ranks share its row groups."""

    def frames(self, rank: int, size: int) -> Iterator[dict[str, np.ndarray]]:
        """See :meth:`TableSource.frames`."""
        with explained(self.path, "the table"):
            file = _parquet(self.path)
            groups = list(range(rank, file.num_row_groups, size))
            for batch in file.iter_batches(CHUNK_EDGES, groups, list(self.names), use_threads=False):
                if any(column.null_count for column in batch.columns):
                    raise GraphFileError(f"{self.path}: a value is missing in the columns {', '.join(self.names)}")
                yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in self.names}


def open_parquet(path: Path, format: str, columns: list[str] | None, real_weights: bool) -> EdgeSource:
    """Open a Parquet table."""
    with explained(path, "the Parquet table"):
        file = _parquet(path)
        schema = file.schema_arrow
        num_rows = file.metadata.num_rows
    names = _chosen(path, schema.names, columns)
    source = ParquetSource(path, format, stored_edges=num_rows, names=names)
    if len(names) > 2:
        try:
            source.weight_dtype = np.dtype(schema.field(names[2]).type.to_pandas_dtype())
        except (NotImplementedError, TypeError):
            source.weight_dtype = np.dtype(object)
        if source.weight_dtype.kind not in "iuf":
            raise GraphFileError(f"{path}: column {names[2]!r} holds {source.weight_dtype}, a weight is a number")
    return source


def _parquet(path: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(open_binary(path))


def _chosen(path: Path, names: list[str], columns: list[str] | None) -> tuple[str, ...]:
    """The chosen columns, or the first two and, where there is one, the third; numbers count from 1."""
    if columns is None:
        columns = names[:3]
    chosen = []
    for column in columns:
        if column not in names and column.isdecimal() and 1 <= int(column) <= len(names):
            column = names[int(column) - 1]
        if column not in names:
            raise OptionError(f"--columns {','.join(columns)}: {path} has the columns {', '.join(names)}")
        chosen.append(column)
    if len(chosen) < 2:
        raise GraphFileError(f"{path}: has the columns {', '.join(names)}; an edge needs a source and a target")
    return tuple(chosen)
