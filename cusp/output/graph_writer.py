"""Write a graph file in parallel; see :mod:`cusp.input.graph_file` for its layout."""

import os
from contextlib import AbstractContextManager

import numpy as np

from cusp.input.graph_file import FORMAT_VERSION, index_dtype
from cusp.names.numbering import NameSlab
from cusp.names.packed import WHOLE
from cusp.output.dataset_writer import DatasetWriter, writing_datasets
from cusp.runtime.mpi import MPI


def writing_graph(
    path: str | os.PathLike[str], comm: MPI.Intracomm, *, num_nodes: int, num_edges: int,
    weight_dtype: np.dtype | type | None = None, symmetric: bool = False, transpose: bool = False,
    names: NameSlab | None = None,
) -> AbstractContextManager[DatasetWriter]:  # fmt: skip
    """Write ``indptr``, ``indices``, ``data`` of one graph, and the same of its transpose with ``csc/`` before it.

    Parameters
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    weight_dtype : dtype or None
        Type of the edge weights ``data``; None for a graph without weights.
    symmetric : bool
        Whether each edge has its reverse; stored as an attribute.
    transpose : bool
        Whether there is also a group ``csc`` with the transpose.
    names : NameSlab or None
        What nodes are called, for which :meth:`NameSlab.write` writes the datasets.
    """
    group = {"indptr": (num_nodes + 1, np.dtype(np.int64)), "indices": (num_edges, index_dtype(num_nodes))}
    if weight_dtype is not None:
        group["data"] = (num_edges, np.dtype(weight_dtype))
    attributes = {
        "num_nodes": np.int64(num_nodes), "num_edges": np.int64(num_edges), "symmetric": np.bool_(symmetric),
        "format_version": np.int64(FORMAT_VERSION),
    }  # fmt: skip
    shapes = {prefix + name: group[name] for prefix in ["", "csc/"][: 1 + transpose] for name in group}
    if names is not None:
        shapes |= names.shapes()
        attributes |= {WHOLE: np.bool_(True)} if names.whole else {}
    return writing_datasets(path, comm, shapes, attributes)
