"""Readers of graph files, one file per family: :func:`open_edges` recognises the format and streams the edges."""

import os
import struct
from importlib import import_module
from pathlib import Path

from cusp.errors import GraphFileError, OptionError
from cusp.formats.source import Asked, EdgeSource, is_number, read_head
from cusp.runtime.files import check_regular

__all__ = ["FORMATS", "EdgeSource", "open_edges", "recognise"]

# Format -> (module, function, file extensions, what it is)
FORMATS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "edges": (
        "edge_list",
        "open_edge_list",
        (".txt", ".el", ".wel", ".edges", ".edgelist", ".snap"),
        "lines 'source target'",
    ),
    "mtx": ("headed_text", "open_matrix_market", (".mtx", ".mm"), "MatrixMarket coordinate"),
    "dimacs": ("headed_text", "open_problem", (), "DIMACS 'p sp', 'p edge' (text .gr, .col)"),
    "pace": ("headed_text", "open_problem", (), "PACE 'p tw' (text .gr)"),
    "metis": ("headed_text", "open_metis", (".graph", ".metis"), "METIS neighbour lists"),
    "galois": ("binary", "open_galois", (), "Galois binary .gr, version 1 or 2"),
    "galois-real": ("binary", "open_galois", (), "the same with floating-point edge data"),
    "sg": ("binary", "open_gap", (".sg",), "GAP serialized graph"),
    "wsg": ("binary", "open_gap", (".wsg",), "GAP serialized graph with weights"),
    "npy": ("arrays", "open_npy", (".npy",), "NumPy array (edges, 2 or 3)"),
    "npz": ("arrays", "open_npz", (".npz",), "SciPy sparse matrix, or arrays sources and targets"),
    "pairs32": ("arrays", "open_pairs", (), "raw little-endian int32 pairs"),
    "pairs64": ("arrays", "open_pairs", (), "raw little-endian int64 pairs"),
    "csv": ("tables", "open_csv", (".csv",), "table with a header line; separated by , ; or tabs"),
    "tsv": ("tables", "open_csv", (".tsv",), "tab-separated table with a header line"),
    "parquet": ("tables", "open_arrow", (".parquet", ".pq"), "Parquet table"),
    "feather": ("tables", "open_arrow", (".feather", ".arrow", ".ipc"), "Arrow table in a file (Feather 2)"),
    "graphml": ("from_networkx", "open_with_networkx", (".graphml",), "GraphML, with NetworkX"),
    "gexf": ("from_networkx", "open_with_networkx", (".gexf",), "GEXF, with NetworkX"),
    "gml": ("from_networkx", "open_with_networkx", (".gml",), "GML, with NetworkX"),
    "pajek": ("from_networkx", "open_with_networkx", (".net", ".paj"), "Pajek, with NetworkX"),
    "nx-edges": ("from_networkx", "open_with_networkx", (), "lines 'source target {...}' of nx.write_edgelist"),
    "hdf5": ("hdf5", "open_graph_file", (".h5", ".hdf5"), "graph file of this project"),
}
_MAGIC = {b"\x89HDF\r\n": "hdf5", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PAR1": "parquet", b"ARROW1": "feather"}
_OF_NETWORKX = ("graphml", "gexf", "gml", "pajek", "nx-edges")
_WITH_NAMES = ("edges", "csv", "tsv", "parquet", "feather", *_OF_NETWORKX)
_WITH_COLUMNS = (*_WITH_NAMES, "npz")
AS_IT_LOOKS = Asked()
_BY_EXTENSION = {extension: name for name, entry in FORMATS.items() for extension in entry[2]}


def open_edges(path: str | Path, format: str | None = None, asked: Asked = AS_IT_LOOKS) -> EdgeSource:
    """Open a graph file of any known format.

    Parameters
    ----------
    path : path
        May be packed with gzip.
    format : str, optional
        A key of FORMATS; recognised by content and extension if left out.

    Raises
    ------
    GraphFileError
        The file cannot be read, or its header is wrong.
    OptionError
        There is no such format, or no such columns in the file.
    """
    path, columns = Path(path), asked.columns
    _check_readable(path)
    format = format or recognise(path)
    if columns is not None and len(columns) not in (2, 3) and format not in _OF_NETWORKX:
        raise OptionError(f"--columns {','.join(columns)}: expected SOURCE,TARGET or SOURCE,TARGET,WEIGHT")
    if format not in FORMATS:
        raise OptionError(f"--format {format}: expected one of {', '.join(FORMATS)}")
    if columns is not None and format not in _WITH_COLUMNS:
        raise OptionError(f"--columns: {path} is {format}, only {', '.join(_WITH_COLUMNS)} have columns to choose")
    module, function = FORMATS[format][:2]
    opener = getattr(import_module(f"cusp.formats.{module}"), function)
    source: EdgeSource = opener(path, format, asked)
    if asked.ids == "names" and source.num_nodes is not None:
        raise OptionError(f"--ids names: {path} is {format}, whose ids are numbers from 0 or 1")
    return source


def _check_readable(path: Path) -> None:
    check_regular(path)
    if not os.access(path, os.R_OK):
        raise GraphFileError(f"{path}: no permission to read it")
    if path.stat().st_size == 0:
        raise GraphFileError(f"{path}: is empty (0 bytes); there is no graph in it")


def is_graph_file(path: str | Path) -> bool:
    """Whether a file is no file of another format.

    Raises
    ------
    GraphFileError
        It cannot be read, or its format is not recognised.
    """
    _check_readable(Path(path))
    return recognise(Path(path)) == "hdf5"


def recognise(path: Path) -> str:
    """Name the format of a file by its content first, then by its extension without ``.gz``.

    Raises
    ------
    GraphFileError
        Neither tells; the message lists the formats.
    """
    head = read_head(path)
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    extension = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if extension in (".sg", ".wsg"):
        return extension[1:]
    if len(head) >= 32 and struct.unpack_from("<Q", head)[0] in (1, 2) and extension in (".gr", ""):
        return "galois"
    text = b"\0" not in head and extension not in (".bin", ".raw")
    format = _recognise_text(head, extension) if text else None
    if format is None:
        raise GraphFileError(
            f"{path}: cannot tell its format; cusp convert takes it if you name that with --format: "
            f"{', '.join(FORMATS)}"
        )
    return format


def _recognise_text(head: bytes, extension: str) -> str | None:
    """Name a text format by the first line that is not a comment."""
    if head[:14].lower() == b"%%matrixmarket":
        return "mtx"
    lines = [line.split() for line in head.splitlines()]
    plain = [words for words in lines if words and words[0] != b"c" and words[0][:1] not in (b"#", b"%")]
    if plain and plain[0][0] == b"p" and len(plain[0]) > 1:
        return "dimacs" if plain[0][1] in (b"sp", b"edge", b"col") else "pace"
    named = _BY_EXTENSION.get(extension)
    if named not in (None, "csv", "tsv", "edges"):
        return named
    if named in ("edges", None) and plain and plain[0][-1].endswith(b"}") and any(b"{" in word for word in plain[0]):
        return "nx-edges"
    first = b" ".join(plain[0]).replace(b",", b" ").split() if plain else []
    if named in ("csv", "tsv") and not all(is_number(word) for word in first):
        return named
    if named is not None or not first or all(is_number(word) for word in first):
        return "edges"
    return None
