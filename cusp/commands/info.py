"""What a file says about itself, in lines of text."""

from pathlib import Path

import h5py
import numpy as np

from cusp.formats import FORMATS, open_edges
from cusp.formats.binary import check_offsets
from cusp.formats.source import CHUNK_EDGES, Asked, EdgeSource, is_gzip
from cusp.input.checksum import checksum
from cusp.input.edge_slice import compare_sums
from cusp.input.graph_file import GraphHeader, read_direct, read_header
from cusp.input.hdf5 import explained, open_hdf5, stored_checksum
from cusp.names.graph_names import has_names
from cusp.names.packed import OFFSETS, TEXT


def describe(path: Path, format: str | None = None, columns: list[str] | None = None, check: bool = False) -> str:
    """Describe a graph in any known format; for graph files also the degrees and checksums.

    Raises
    ------
    GraphFileError
        The file cannot be read; with ``check`` also if a checksum differs from the data.
    """
    source = open_edges(path, format, Asked(columns=columns))
    facts = graph_file_facts(path, check) if source.format == "hdf5" else header_facts(source)
    width = max(len(name) for name, _ in facts)
    return "\n".join([f"{path}:", *(f"  {name:{width}}  {value}" for name, value in facts)])


def header_facts(source: EdgeSource) -> list[tuple[str, str]]:
    """What the header of a foreign format says."""
    packed = ", packed with gzip" if is_gzip(source.path) else ""
    nodes = "not stated" if source.num_nodes is None else f"{source.num_nodes:,}"
    if source.num_nodes is None and source.min_nodes:
        nodes = f"{source.min_nodes:,} occur, according to a comment"
    return [
        ("format", f"{source.format} ({FORMATS[source.format][3]}){packed}"),
        ("nodes", nodes),
        ("stored edges", "not stated" if source.stored_edges is None else f"{source.stored_edges:,}"),
        ("weights", "none" if source.weight_dtype is None else str(source.weight_dtype)),
        ("symmetric", "yes" if source.symmetric else "not stated"),
        ("node ids", "names" if source.named else "numbers"),
    ]


def graph_file_facts(path: Path, check: bool) -> list[tuple[str, str]]:
    """What a graph file holds. Only with ``check`` are the edges read."""
    header = read_header(str(path))
    with explained(str(path), "the graph"), open_hdf5(str(path)) as file:
        degrees = _degrees(path, file, "indptr", header)
        in_degrees = _degrees(path, file, "csc/indptr", header) if header.has_transpose else degrees
        sums = _checksums(path, file, check)
    mean = header.num_edges / header.num_nodes
    ends_known = header.symmetric or header.has_transpose
    alone = int(np.count_nonzero((degrees == 0) & (in_degrees == 0 if ends_known else True)))
    return [
        ("format", f"graph file (HDF5, CSR), targets {header.index_dtype}"),
        ("nodes", f"{header.num_nodes:,}"),
        ("edges", f"{header.num_edges:,}"),
        ("weights", "none" if header.weight_dtype is None else str(header.weight_dtype)),
        ("symmetric", "yes" if header.symmetric else "not stated"),
        ("node names", "yes" if has_names(str(path)) else "no"),
        ("transpose stored", "yes" if header.has_transpose else "no"),
        ("checksums", sums),
        ("out-degree", f"max {int(degrees.max()):,}, mean {mean:.2f}"),
        (
            "isolated nodes" if ends_known else "without out-edges",
            f"{alone:,} ({100 * alone / header.num_nodes:.1f} %)",
        ),
    ]


def _degrees(path: Path, file: h5py.File, name: str, header: GraphHeader) -> np.ndarray:
    offsets = np.empty(header.num_nodes + 1, np.int64)
    read_direct(file[name], offsets, 0)
    check_offsets(path, offsets, header.num_nodes, header.num_edges)
    return np.diff(offsets)


def _checksums(path: Path, file: h5py.File, check: bool) -> str:
    names = [group + name for group in ("", "csc/") for name in ("indptr", "indices", "data")] + [OFFSETS, TEXT]
    names = [name for name in names if name in file]
    summed = [name for name in names if "checksum" in file[name].attrs]
    if not summed:
        return "none"
    which = "all" if summed == names else ", ".join(summed)
    if not check:
        return f"present ({which}), not compared (--check does so)"
    for name in summed:
        compare_sums(str(path), name, stored_checksum(str(path), file[name]), stream_checksum(file[name]))
    return f"compared and right ({which})"


def stream_checksum(dataset: h5py.Dataset) -> int:
    """Checksum of a dataset, read in pieces."""
    total = 0
    for first in range(0, dataset.size, CHUNK_EDGES):
        values = np.empty(min(CHUNK_EDGES, dataset.size - first), dataset.dtype.newbyteorder("="))
        read_direct(dataset, values, first)
        total += checksum(values, first)
    return total % 2**64
