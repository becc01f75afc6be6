"""What a file says about itself, in lines of text."""

from pathlib import Path

import h5py
import numpy as np

from cusp.errors import GraphFileError
from cusp.input.checksum import checksum
from cusp.input.graph_file import read_header
from scripts.formats import FORMATS, open_edges
from scripts.formats.source import CHUNK_EDGES, EdgeSource, is_gzip


def describe(path: Path, format: str | None = None, columns: list[str] | None = None, check: bool = False) -> str:
    """Describe a graph in any known format; for graph files also the degrees and checksums.

    Raises
    ------
    GraphFileError
        The file cannot be read; with ``check`` also if a checksum differs from the data.
    """
    source = open_edges(path, format, columns)
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
    ]


def graph_file_facts(path: Path, check: bool) -> list[tuple[str, str]]:
    """What a graph file holds. Only with ``check`` are the edges read."""
    header = read_header(str(path))
    with h5py.File(path, "r") as file:
        indptr = file["indptr"][...]
        degrees = np.diff(indptr)
        in_degrees = np.diff(file["csc/indptr"][...]) if header.has_transpose else degrees
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
        ("transpose stored", "yes" if header.has_transpose else "no"),
        ("checksums", sums),
        ("out-degree", f"max {int(degrees.max()):,}, mean {mean:.2f}"),
        (
            "isolated nodes" if ends_known else "without out-edges",
            f"{alone:,} ({100 * alone / header.num_nodes:.1f} %)",
        ),
    ]


def _checksums(path: Path, file: h5py.File, check: bool) -> str:
    names = [group + name for group in ("", "csc/") for name in ("indptr", "indices", "data") if group + name in file]
    summed = [name for name in names if "checksum" in file[name].attrs]
    if not summed:
        return "none"
    which = "all" if summed == names else ", ".join(summed)
    if not check:
        return f"present ({which}), not compared (--check does so)"
    for name in summed:
        stored, actual = int(file[name].attrs["checksum"]), stream_checksum(file[name])
        if stored != actual:
            raise GraphFileError(
                f"{path}: /{name} has the checksum {actual:#018x} but {stored:#018x} is stored; "
                "the file is damaged, convert it again"
            )
    return f"compared and right ({which})"


def stream_checksum(dataset: h5py.Dataset) -> int:
    """Checksum of a dataset, read in pieces."""
    total = 0
    for first in range(0, dataset.size, CHUNK_EDGES):
        total += checksum(dataset[first : first + CHUNK_EDGES], first)
    return total % 2**64
