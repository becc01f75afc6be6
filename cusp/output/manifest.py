"""What a folder with a saved partition says of itself: ``manifest.json``; see :mod:`cusp.output.saved`.

It may come from anywhere: every entry is checked, it names no file but the graph and the parts beside it, and
nothing that it names is run. Whether the graph file is still the one that was partitioned is told by its checksums; if
it has none, by its size and the time of its last change, and if only the time differs, by a sample of its bytes.
"""

import json
import os
import re
import stat
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from cusp.errors import InputError
from cusp.input.graph_file import GraphHeader, read_header, stored_checksums
from cusp.runtime.files import from_json, read_input, sample
from cusp.runtime.leftovers import replacing

FORMAT_VERSION = 3
MANIFEST = "manifest.json"
MOST_BYTES = 1 << 26  # of a manifest: the names of a million parts
PART = re.compile(r"part-(\d+)-of-(\d+)\.[0-9a-f]+\.h5")
ADDED: dict[str, Any] = {"fingerprint": {}, "added": {}}  # entries of later versions, and what takes their place


class SavedError(InputError):
    """A saved partition that is missing, damaged, or of another graph."""


@dataclass(frozen=True)
class Manifest:
    """The contents of ``manifest.json``.

    Attributes
    ----------
    format_version, ranks : int
    policy : str
        As the user gave it.
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
    fingerprint : dict
        Of the graph file, see :func:`fingerprint`; empty in version 1.
    added : dict
        How many ``nodes`` and ``edges`` are not in the graph file, as ``cusp add`` has added them since; empty if none,
        and before version 3.
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
    fingerprint: dict[str, Any]
    added: dict[str, int]

    def header(self) -> GraphHeader:
        """What the header of the graph file said."""
        weights = None if self.weight_dtype is None else np.dtype(self.weight_dtype)
        index = np.dtype(self.index_dtype)
        return GraphHeader(self.graph, self.num_nodes, self.num_edges, self.symmetric, index, weights, False)

    def in_file(self, what: str) -> int:
        """How many ``nodes`` or ``edges`` the graph file has."""
        whole: int = getattr(self, f"num_{what}") - self.added.get(what, 0)
        return whole

    def policy_parameters(self) -> dict[str, Any]:
        """What :func:`cusp.policies.load_policy` takes."""
        grid = self.parameters.get("grid")
        return self.parameters | {"grid": grid and tuple(grid)}

    def write(self, folder: Path) -> None:
        """Put it in place of the folder's manifest, in one step."""
        with replacing(folder / MANIFEST) as temporary:
            temporary.write_text(json.dumps(asdict(self), indent=1))

    def check_graph(self, folder: str | Path) -> None:
        """Compare the graph file with what was said of it; it may be gone.

        Warns if it was written again, but nothing else shows a change.

        Raises
        ------
        SavedError
            It has changed since the partition was saved.
        """
        path = self.graph
        if not os.path.exists(path):
            return
        self.check_regular(folder)
        header = read_header(path)
        for what, before, now in (
            ("nodes", self.in_file("nodes"), header.num_nodes),
            ("edges", self.in_file("edges"), header.num_edges),
        ):
            if before != now:
                raise self._changed(folder, f"it had {before:,} {what} and now has {now:,}")
        checksums = stored_checksums(path)
        for name in {**self.checksums, **checksums}:
            if checksums.get(name) != self.checksums.get(name):
                raise self._changed(folder, f"the checksum of /{name} is another")
        if self.fingerprint and not checksums:
            self._check_fingerprint(folder)

    def check_regular(self, folder: str | Path) -> None:
        """Raise SavedError if the graph is there and is no plain file, so that no device or pipe is read."""
        if os.path.exists(self.graph) and not stat.S_ISREG(os.stat(self.graph).st_mode):
            raise SavedError(f"{folder}: is a partition of {self.graph}, which is not a file; save the partition again")

    def _check_fingerprint(self, folder: str | Path) -> None:
        path, before, status = self.graph, self.fingerprint, os.stat(self.graph)
        if status.st_size != before.get("bytes"):
            raise self._changed(folder, f"it had {before.get('bytes', 0):,} bytes and now has {status.st_size:,}")
        if status.st_mtime_ns == before.get("modified"):
            return
        if sample(path) != before.get("sample"):
            raise self._changed(folder, "its size is the same, but not its bytes")
        warnings.warn(
            f"{folder}: {path} was written again after the partition was saved; a sample of it is the same, and it has "
            "no checksums that would show a change: partition it again if its edges have changed",
            stacklevel=2,
        )

    def _changed(self, folder: str | Path, what: str) -> SavedError:
        return SavedError(f"{folder}: is a partition of {self.graph}, which has changed: {what}; partition it again")


def whole(value: Any, least: int = 0, most: int = 2**62) -> bool:
    """Whether this is a whole number in a range."""
    return type(value) is int and least <= value <= most


def _text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) < 4096


def _numbers(value: Any, names: str) -> bool:
    return isinstance(value, dict) and value.keys() <= {*names.split()} and all(
        whole(number, 0, 2**64 - 1) for number in value.values()
    )  # fmt: skip


def _dtype(value: Any, floats: str) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[<|]([iu][1248]{floats})", value) is not None


PARAMETERS: dict[str, Callable[[Any], bool]] = {
    "grid": lambda value: (
        value is None
        or (isinstance(value, list) and len(value) == 2 and all(whole(size, 1, 1 << 16) for size in value))
    ),
    "threshold": lambda value: value is None or whole(value, -(2**62)),
    "slack": lambda value: whole(value, 0, 100),
    "rounds": lambda value: whole(value, 1),
    "passes": lambda value: whole(value, 1),
    "node_map": lambda value: value is None or _text(value),
    "strict": lambda value: isinstance(value, bool),
}
ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {  # what is expected, for people, and whether a value is that
    "format_version": ("a number above 0", lambda value: whole(value, 1)),
    "ranks": ("a number of ranks", lambda value: whole(value, 1, 1 << 16)),
    "policy": ("a name", _text),
    "parameters": (f"an object with {', '.join(PARAMETERS)}", lambda value: isinstance(value, dict) and all(
        name in PARAMETERS and PARAMETERS[name](entry) for name, entry in value.items())),
    "order": ("degree or natural", lambda value: value in ("degree", "natural")),
    "split": ("edges, nodes, weighted or NODE:EDGE", lambda value: isinstance(value, str)
              and re.fullmatch(r"edges|nodes|weighted|\d{1,18}:\d{1,18}", value) is not None),
    "graph": ("a path", _text),
    "num_nodes": ("a number of nodes", lambda value: whole(value, 1)),
    "num_edges": ("a number of edges", whole),
    "symmetric": ("true or false", lambda value: isinstance(value, bool)),
    "index_dtype": ("a type of integers such as <u4", lambda value: _dtype(value, "")),
    "weight_dtype": ("null, or a type of numbers such as <f4", lambda value: value is None or _dtype(value, "|f[48]")),
    "checksums": ("checksums of indptr, indices and data", lambda value: _numbers(value, "indptr indices data")),
    "parts": ("a list of names", lambda value: isinstance(value, list) and all(map(_text, value))),
    "fingerprint": ("whole numbers", lambda value: _numbers(value, "bytes modified sample")),
    "added": ("numbers of nodes and edges", lambda value: _numbers(value, "nodes edges")),
}  # fmt: skip


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """The manifest of a folder.

    Raises
    ------
    SavedError
        There is none, this version cannot read it, or an entry is not what it must be.
    """
    path = Path(folder) / MANIFEST
    if not os.path.lexists(path):
        raise SavedError(f"{folder}: no {MANIFEST}, so no partition is saved there; cusp partition --save makes one")
    if path.is_symlink():
        raise SavedError(f"{path}: is a link, which is not followed; save the partition again")
    content = from_json(read_input(path, SavedError, MOST_BYTES), f"{path}:", SavedError)
    if not isinstance(content, dict):
        raise SavedError(f"{path}: is not an object of JSON; save the partition again")
    version = content.get("format_version")
    if whole(version, FORMAT_VERSION + 1):
        raise SavedError(f"{path}: format version {version}, this program reads up to {FORMAT_VERSION}; update it")
    manifest = _checked(path, content | {name: content.get(name, value) for name, value in ADDED.items()})
    for rank, name in enumerate(manifest.parts):
        match = PART.fullmatch(name)
        if match is None or (int(match[1]), int(match[2])) != (rank, manifest.ranks):
            raise SavedError(
                f"{path}: part {rank} of {manifest.ranks} is {_shown(name)}, expected a file beside the manifest such "
                f"as part-{rank}-of-{manifest.ranks}.5f3a9c1e.h5; save the partition again"
            )
    return manifest


def _checked(path: Path, content: dict[str, Any]) -> Manifest:
    known = [field.name for field in fields(Manifest)]
    missing, unknown = [name for name in known if name not in content], [name for name in content if name not in known]
    if missing or unknown:
        which = f"the entry {missing[0]} is missing" if missing else f"the entry {_shown(unknown[0])} is not known"
        raise SavedError(f"{path}: {which}; save the partition again")
    for name, (expected, fits) in ENTRIES.items():
        if not fits(content[name]):
            raise SavedError(
                f"{path}: {name} is {_shown(content[name])}, expected {expected}; save the partition again"
            )
    ranks, parts, grid = content["ranks"], content["parts"], content["parameters"].get("grid")
    if len(parts) != ranks:
        raise SavedError(f"{path}: {ranks} ranks, but {len(parts)} parts; save the partition again")
    if grid and grid[0] * grid[1] != ranks:
        raise SavedError(f"{path}: {ranks} ranks, but a grid of {grid[0]}x{grid[1]}; save the partition again")
    return Manifest(**content)


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def fingerprint(path: str) -> dict[str, int]:
    """Size in bytes, time of the last change in ns, and the sample of a file."""
    status = os.stat(path)
    return {"bytes": status.st_size, "modified": status.st_mtime_ns, "sample": sample(path)}
