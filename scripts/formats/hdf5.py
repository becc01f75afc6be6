"""Our own graph files as input: see :mod:`cusp.input.graph_file` for the layout."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from cusp.errors import GraphFileError
from cusp.input.graph_file import read_header
from scripts.formats.binary import CsrSource
from scripts.formats.source import EdgeSource, is_gzip


@dataclass
class GraphFileSource(CsrSource):
    """A CSR graph in HDF5."""

    @cached_property
    def _file(self) -> h5py.File:
        return h5py.File(self.path, "r")

    def offsets(self) -> np.ndarray:
        """All offsets."""
        return self._file["indptr"][...].astype(np.int64, copy=False)

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        weights = self._file["data"][first:end] if self.weighted else None
        return self._file["indices"][first:end], weights


def open_graph_file(path: Path, format: str, columns: list[str] | None, real_weights: bool) -> EdgeSource:
    """Open a graph file of this project, or any HDF5 file with ``indptr`` and ``indices``."""
    if is_gzip(path):
        raise GraphFileError(f"{path}: is packed with gzip; unpack it with gunzip, HDF5 is read in place")
    header = read_header(str(path))
    return GraphFileSource(
        path,
        format,
        header.num_nodes,
        stored_edges=header.num_edges,
        weight_dtype=header.weight_dtype,
        symmetric=header.symmetric,
        reverse_stored=header.symmetric,
    )
