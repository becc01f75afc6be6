"""Tables as CSV, TSV, JSON or Parquet, by the suffix of the file: rank 0 writes the rows of all ranks in rank order."""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain
from typing import IO, Any

import numpy as np

from cusp.errors import Intracomm, raise_together, shortened
from cusp.names.names import Names
from cusp.output.whole_file import Name, OutputError, whole_file

HDF5, TABLES = (".h5", ".hdf5"), (".csv", ".tsv", ".json", ".parquet")
AT_ONCE = 1 << 18  # rows that a rank sends, and rank 0 writes, at a time


def suffix_of(path: Name) -> str:
    """The suffix of a name, in small letters."""
    return os.path.splitext(os.fspath(path))[1].lower()


def check_suffix(path: Name, known: Sequence[str], option: str) -> None:
    """Raise OutputError unless the name of a file says in which of the known formats it is written."""
    if suffix_of(path) not in known:
        raise OutputError(
            f"{option} {shortened(path)}: the suffix of the name decides the format; use one of {', '.join(known)}"
        )


def named_columns(columns: dict[str, Any], names: Names | None, nodes: Sequence[str]) -> dict[str, Any]:
    """The same columns with names in place of numbers in those that have nodes; None where there is no node."""
    return columns if names is None else {name: names.of(v) if name in nodes else v for name, v in columns.items()}


def write_columns(
    path: Name, columns: dict[str, np.ndarray], names: Names | None, nodes: Sequence[str], comm: Intracomm
) -> None:
    """Write columns of which each rank has consecutive rows. Collective.

    Parameters
    ----------
    nodes
        Columns whose values are nodes, or -1: by name where nodes have names.

    Raises
    ------
    OutputError
        On every rank.
    """
    import pyarrow

    named = () if names is None else nodes
    kind = pyarrow.int64() if names is not None and names.whole else pyarrow.string()
    types = {name: pyarrow.from_numpy_dtype(column.dtype) for name, column in columns.items()}
    schema = pyarrow.schema(types | {name: kind for name in types if name in named})

    def batches() -> Iterator[Any]:
        for at in range(0, len(next(iter(columns.values()))), AT_ONCE):
            some = {name: column[at : at + AT_ONCE] for name, column in columns.items()}
            yield pyarrow.record_batch(named_columns(some, names, nodes), schema)

    write_table(path, schema, batches(), comm)


def write_table(path: Name, schema: Any, batches: Iterable[Any], comm: Intracomm, suffix: str = "") -> None:
    """Write the rows of all ranks, in rank order. Collective.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The rows of this rank.
    suffix : str
        One of ``TABLES``; that of the path if left out.

    Raises
    ------
    OutputError
        On every rank; a file of that name is as it was.
    """
    write_rows(path, batches, partial(_writing, suffix or suffix_of(path), schema), comm)


def write_rows(
    path: Name,
    batches: Iterable[Any],
    write_in: Callable[[IO[bytes]], AbstractContextManager[Callable[[Any], object]]],
    comm: Intracomm,
) -> None:
    """The same for batches of any kind; ``write_in(file)`` gives the function that writes one. Collective."""
    error: Exception | None = None
    received = _received(comm)
    try:
        if comm.rank == 0:
            with whole_file(path) as temporary, open(temporary, "wb") as file, write_in(file) as write:
                for batch in chain(batches, received):
                    if isinstance(batch, _ElsewhereError):
                        raise batch
                    write(batch)
        else:
            for batch in batches:
                comm.send(batch, 0)
    except _ElsewhereError:
        pass
    except Exception as caught:  # noqa: BLE001 - raised on every rank below
        error = caught
    if comm.rank:
        if error is not None:
            comm.send(_ElsewhereError(), 0)
        comm.send(None, 0)
    for _ in received:  # what an error left
        pass
    raise_together(comm, error)


class _ElsewhereError(Exception):
    """Another rank failed, and will say why: the file is not to be completed."""


def _received(comm: Intracomm) -> Iterator[Any]:
    """On rank 0, what the other ranks send, one after the other; nothing on these."""
    for rank in range(1, comm.size) if comm.rank == 0 else ():
        while (batch := comm.recv(source=rank)) is not None:
            yield batch


@contextmanager
def _writing(suffix: str, schema: Any, file: IO[bytes]) -> Iterator[Callable[[Any], object]]:
    import pyarrow.csv
    import pyarrow.parquet

    if suffix == ".json":
        with _writing_json(file) as write:
            yield write
    elif suffix == ".parquet":
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            yield writer.write_batch
    else:
        options = pyarrow.csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
        with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
            yield writer.write_batch


@contextmanager
def _writing_json(file: IO[bytes]) -> Iterator[Callable[[Any], object]]:
    """A list with an object for each row; JSON has no infinity: null stands for it."""
    before = "[\n"

    def write(batch: Any) -> None:
        nonlocal before
        for row in batch.to_pylist():
            plain = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
            file.write(f"{before}{json.dumps(plain, ensure_ascii=False)}".encode())
            before = ",\n"

    yield write
    file.write(b"\n]\n" if before == ",\n" else b"[]\n")
