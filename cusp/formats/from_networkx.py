"""Formats that NetworkX reads, whole and on every rank: GraphML, GEXF, GML, Pajek, edge lists with attributes."""

from importlib import import_module
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.arrays import ColumnSource
from cusp.formats.binary import open_binary
from cusp.formats.in_memory import GraphError, edge_list_of
from cusp.formats.source import Asked, EdgeSource, is_gzip
from cusp.input.hdf5 import explained
from cusp.names.dictionary import Dictionary
from cusp.names.packed import Packed

_READERS = {
    "graphml": lambda nx, path: nx.read_graphml(path, force_multigraph=True),
    "gexf": lambda nx, path: nx.read_gexf(path),
    "gml": lambda nx, path: nx.read_gml(path),
    "pajek": lambda nx, path: nx.read_pajek(path),
    "nx-edges": lambda nx, path: nx.read_edgelist(path, create_using=nx.MultiDiGraph),
}


def open_with_networkx(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Let NetworkX read a file; nodes have the names that it gives them, also those without edges.

    Raises
    ------
    GraphFileError
        It is not installed, or cannot read the file; two nodes would have the same name.
    """
    try:
        nx = import_module("networkx")
    except ImportError:
        raise GraphFileError(f"{path}: NetworkX reads {format}, and is not installed: pip install networkx") from None
    with explained(path, f"the {format} file"):
        packed = is_gzip(path) and path.suffix != ".gz"  # NetworkX goes by the name
        graph = _READERS[format](nx, open_binary(path) if packed else path)
    try:
        edges = edge_list_of(graph, columns=asked.columns and [name for name in asked.columns if name])
    except GraphError as error:
        raise GraphFileError(f"{path}: {error}") from None
    nodes = list(graph.nodes)
    if len({*map(str, nodes)}) < len(nodes) or "" in nodes:
        raise GraphFileError(f"{path}: two nodes have the same name, or one has none; give each node a name of its own")
    dictionary = Dictionary()
    numbers = dictionary.number(Packed.of(map(str, nodes)))
    weights = () if edges.weights is None else (edges.weights,)
    return ColumnSource(
        path, format, weight_dtype=np.dtype(np.float64) if asked.real_weights and weights else edges.weight_dtype,
        symmetric=not graph.is_directed(), dictionary=dictionary, takes_names=True, unused=edges.unused,
        columns=(numbers[edges.sources], numbers[edges.targets], *weights),
    )  # fmt: skip
