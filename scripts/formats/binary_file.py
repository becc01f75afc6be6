"""Numbers at known places of a binary file, packed with gzip or not."""

import os
import tempfile
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from cusp.errors import GraphFileError
from cusp.runtime.files import read_at
from scripts.formats.source import is_gzip, readable


class BinaryFile:
    """A file open for reading at any place, closed with its last reference.

    Attributes
    ----------
    path : Path
    file : BinaryIO
    size : int
        Bytes, unpacked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = open_binary(path)
        self.size = os.fstat(self.file.fileno()).st_size

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def array(self, offset: int, count: int, dtype: str) -> np.ndarray:
        """Read ``count`` numbers that stand at byte ``offset``, aligned or not.

        Raises
        ------
        GraphFileError
            The file ends too early, or cannot be read.
        """
        needed = offset + count * np.dtype(dtype).itemsize
        if count < 0 or needed > self.size:
            raise GraphFileError(
                f"{self.path}: has {self.size:,} bytes where its header needs {needed:,}; "
                "it was cut short or is another format"
            )
        values = np.empty(count, dtype)
        try:
            read_at(self.file.fileno(), offset, values)
        except OSError as error:
            raise GraphFileError(f"{self.path}: cannot be read: {error}") from None
        return values


def open_binary(path: Path) -> BinaryIO:
    """Open a file that can be read at any place: if it is gzip, a temporary unpacked copy."""
    if not is_gzip(path):
        return cast(BinaryIO, open(path, "rb", buffering=0))
    plain = tempfile.TemporaryFile()
    with readable(path) as packed:
        while part := packed.read(1 << 22):
            plain.write(part)
    plain.flush()
    return cast(BinaryIO, plain)
