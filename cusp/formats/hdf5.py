"""Our own graph files as input: see :mod:`cusp.input.graph_file` for the layout."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.binary import CsrSource
from cusp.formats.source import Asked, EdgeSource, is_gzip, share
from cusp.input.checksum import checksum, combine
from cusp.input.edge_slice import compare_sums
from cusp.input.graph_file import read_direct, read_header
from cusp.input.hdf5 import open_hdf5, stored_checksum
from cusp.names.graph_names import check_names, has_names, mapped_names
from cusp.names.names import SortedNames


@dataclass
class GraphFileSource(CsrSource):
    """A CSR graph in HDF5."""

    @cached_property
    def _file(self) -> h5py.File:
        return open_hdf5(str(self.path))

    @cached_property
    def named(self) -> bool:  # type: ignore[override]
        """See :class:`EdgeSource`."""
        return has_names(str(self.path))

    def stored_names(self, rank: int, size: int) -> SortedNames | None:
        """See :meth:`EdgeSource.stored_names`; all of them are checked."""
        if not self.named:
            return None
        names = mapped_names(str(self.path), self.num_nodes or 0)
        check_names(str(self.path), names.packed())
        return SortedNames(names.packed(*share(len(names), rank, size)), names.whole)

    def offsets(self) -> np.ndarray:
        """All offsets."""
        offsets = np.empty((self.num_nodes or 0) + 1, np.int64)
        read_direct(self._file["indptr"], offsets, 0)
        self.sums = {"indptr": checksum(offsets)}  # the same on every rank
        return offsets

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        targets = self._entries("indices", first, end)
        return targets, self._entries("data", first, end) if self.weighted else None

    def _entries(self, name: str, first: int, end: int) -> np.ndarray:
        dataset = self._file[name]
        values = np.empty(end - first, dataset.dtype.newbyteorder("="))
        read_direct(dataset, values, first)
        self.sums[name] = combine([self.sums.get(name, 0), checksum(values, first)])
        return values

    def check_complete(self, edges_read: int, sums: list[dict[str, int]]) -> None:
        """See :meth:`EdgeSource.check_complete`; what was read must also have the checksums that were stored."""
        super().check_complete(edges_read, sums)
        for name in ("indptr", "indices", "data") if self.weighted else ("indptr", "indices"):
            parts = [part.get(name, 0) for part in sums]
            actual = parts[0] if name == "indptr" else combine(parts)
            compare_sums(str(self.path), name, stored_checksum(str(self.path), self._file[name]), actual)


def open_graph_file(path: Path, format: str, asked: Asked) -> EdgeSource:
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
