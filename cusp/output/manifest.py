"""What a folder with a saved partition says of itself: ``manifest.json``; see :mod:`cusp.output.saved`."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cusp.errors import InputError
from cusp.input.graph_file import GraphHeader, read_header, stored_checksums
from cusp.runtime.leftovers import replacing

FORMAT_VERSION = 1
MANIFEST = "manifest.json"


class SavedError(InputError):
    """A saved partition that is missing, damaged, or of another graph."""


@dataclass(frozen=True)
class Manifest:
    """The contents of ``manifest.json``.

    Attributes
    ----------
    format_version, ranks : int
    policy : str
        As the user gave it; with ``parameters`` it can be loaded again.
    parameters : dict
        Of the policy, see :func:`cusp.policies.load_policy`.
    order, split : str
    graph : str
        Absolute path of the graph file.
    num_nodes, num_edges, symmetric, index_dtype, weight_dtype
        Of the graph.
    checksums : dict
        Of the datasets of the graph file, where it has some.
    parts : list of str
        Names of the files, by rank.
    """

    format_version: int
    ranks: int
    policy: str
    parameters: dict[str, Any]
    order: str
    split: str
    graph: str
    num_nodes: int
    num_edges: int
    symmetric: bool
    index_dtype: str
    weight_dtype: str | None
    checksums: dict[str, int]
    parts: list[str]

    def header(self) -> GraphHeader:
        """What the header of the graph file said."""
        weights = None if self.weight_dtype is None else np.dtype(self.weight_dtype)
        index = np.dtype(self.index_dtype)
        return GraphHeader(self.graph, self.num_nodes, self.num_edges, self.symmetric, index, weights, False)


def read_manifest(folder: str) -> Manifest:
    """The manifest of a folder.

    Raises
    ------
    SavedError
        There is none, or this version cannot read it.
    """
    path = Path(folder) / MANIFEST
    try:
        manifest = Manifest(**json.loads(path.read_text()))
    except FileNotFoundError:
        message = f"{folder}: no {MANIFEST}, so no partition is saved there; python -m cusp --save makes one"
        raise SavedError(message) from None
    except (OSError, ValueError, TypeError) as error:
        raise SavedError(f"{path}: cannot be read: {error}") from None
    if manifest.format_version > FORMAT_VERSION:
        version = manifest.format_version
        raise SavedError(f"{path}: format version {version}, this program reads up to {FORMAT_VERSION}; update it")
    return manifest


def check_graph(folder: str, manifest: Manifest) -> None:
    """Raise SavedError if the graph file has changed since the partition was saved; it may be gone."""
    if not os.path.exists(manifest.graph):
        return
    header = read_header(manifest.graph)
    same = (header.num_nodes, header.num_edges) == (manifest.num_nodes, manifest.num_edges)
    if not same or stored_checksums(manifest.graph) != manifest.checksums:
        raise SavedError(
            f"{folder}: is a partition of {manifest.graph} as it was with {manifest.num_nodes:,} nodes and "
            f"{manifest.num_edges:,} edges, but that file has changed; partition it again"
        )


def replace_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, in one step, and remove the parts that it does not name."""
    with replacing(folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(asdict(manifest), indent=1))
    for old in folder.glob("part-*-of-*.h5"):
        if old.name not in manifest.parts:
            old.unlink(missing_ok=True)
