"""Formats that NetworkX reads, whole and on every rank: GraphML, GEXF, GML, Pajek, edge lists with attributes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.binary import open_binary
from cusp.formats.in_memory import EdgeList, GraphError, edge_list_of
from cusp.formats.source import Asked, Chunk, EdgeSource, is_gzip, share
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


@dataclass
class NetworkxSource(EdgeSource):
    """A graph that NetworkX has read: nodes have the names that it gives them."""

    edges: EdgeList | None = field(default=None, repr=False)
    nodes: list[Any] = field(default_factory=list, repr=False)
    takes_names: bool = True

    def read(self, rank: int, size: int) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.read`; nodes without edges get numbers too."""
        assert self.edges is not None and self.dictionary is not None
        numbers = self.dictionary.number(Packed.of(map(str, self.nodes)))
        part = slice(*share(self.edges.sources.size, rank, size))
        weights = None if self.edges.weights is None else self.edges.weights[part]
        yield numbers[self.edges.sources[part]], numbers[self.edges.targets[part]], weights


def open_with_networkx(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Let NetworkX read a file.

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
    source = NetworkxSource(path, format, edges=edges, nodes=nodes, symmetric=not graph.is_directed())
    source.dictionary, source.weight_dtype = Dictionary(), edges.weight_dtype
    if asked.real_weights and edges.weights is not None:
        source.weight_dtype = np.dtype(np.float64)
    source.unused = edges.unused
    return source
