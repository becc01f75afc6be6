"""Partitions as folders that PyG trains from on several hosts."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cusp import Partition
from cusp.apps.shared.graphs.whole_rows import TIME, UNIFORM, edge_numbers, whole_rows
from cusp.errors import OptionError, together
from cusp.output.gid_order import in_gid_order
from cusp.output.whole_file import check_save_folder, explained, whole_file, write_json
from cusp.runtime.devices import to_host
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI

META = "META.json"


def write_pyg(
    part: Partition, comm: MPI.Intracomm, folder: str, nodes: Mapping[str, Any] | None = None,
    edges: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write what ``from_partition`` of PyG's ``LocalGraphStore`` and ``LocalFeatureStore`` reads. Collective.

    The part of a rank are the in-edges of its masters, by global ids, whatever the policy, as in PyG's own
    ``Partitioner``. Of ``edge_map.pt``, which has a number for each edge of the graph, rank 0 has all in memory.

    Parameters
    ----------
    part, comm
        Those of a :class:`PartitionedGraph`.
    folder : str
        On a file system that all ranks share. What is there of an earlier call is replaced; until all is complete,
        there is no ``META.json``, and PyG reads nothing.
    nodes, edges : dict of (nodes, ...) and (edges, ...) arrays, optional
        Features by global id and by number of the edge (``edge_numbers`` in apps/shared/graphs/whole_rows.py); memory
        maps are read in part. Unless ``edges`` has an ``edge_attr``, that is the weights, (edges, 1) int64 or float64.

    Raises
    ------
    InputError
        On every rank: torch is not installed; a feature has another size; the folder cannot be written.
    """
    with together(comm), explained(folder):
        torch = _torch()
        _check_features("node", part.num_nodes, nodes or {})
        _check_features("edge", part.num_edges, edges or {})
        check_save_folder(Path(folder))
        Path(folder, f"part_{comm.rank}").mkdir(parents=True, exist_ok=True)
        if comm.rank == 0:
            Path(folder, META).unlink(missing_ok=True)
    own, (graph, weights) = np.sort(to_host(part.gids[: part.num_masters])), _in_edges(part, comm)
    known = {} if weights is None else {"edge_attr": weights[:, None]}
    files = {
        "graph": graph | {"size": (part.num_nodes, part.num_nodes)},
        "node_feats": {"global_id": own, "feats": _rows(nodes or {}, own)},
        "edge_feats": {"global_id": graph["edge_id"], "feats": known | _rows(edges or {}, graph["edge_id"])},
    }
    files = {f"part_{comm.rank}/{name}": content for name, content in files.items()}
    _, ranks = in_gid_order(part, np.full(part.num_masters, part.rank, np.int64), comm)
    map_of_edges = np.empty(part.num_edges if comm.rank == 0 else 0, np.int64)
    for rank, some in enumerate(_on_first(graph["edge_id"], comm)):
        map_of_edges[some] = rank
    maps = {"node_map": np.concatenate(_on_first(ranks, comm)), "edge_map": map_of_edges}  # each (size,) int64: ranks
    with together(comm):
        for name, content in (files | maps if comm.rank == 0 else files).items():
            with whole_file(Path(folder, f"{name}.pt")) as file:
                torch.save(_tensors(torch, content), file)
    meta = {"num_parts": comm.size, "node_types": None, "edge_types": None, "node_offset": None}
    write_json(Path(folder, META), meta | {"is_hetero": False, "is_sorted": True}, comm)


def _torch() -> ModuleType:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise OptionError("folders of PyG are written by torch, which is not installed: pip install torch") from None


def _check_features(what: str, size: int, features: Mapping[str, Any]) -> None:
    for name, values in features.items():
        if len(values) != size:
            raise OptionError(f"{what}s: {name!r} has {len(values):,} rows, the graph {size:,} {what}s")


def _in_edges(part: Partition, comm: MPI.Intracomm) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """The in-edges of this rank's masters by target, then number, and their weights. Collective."""
    by = UNIFORM if part.weights is None else TIME
    whole = whole_rows(part, comm, by, incoming=True, numbers=edge_numbers(part, comm))
    ends, numbers = to_host(whole.gids(whole.rows.ends)), to_host(whole.numbers)
    targets = to_host(part.gids[: part.num_masters]).repeat(np.diff(to_host(whole.rows.offsets)))
    order = np.lexsort((numbers, targets))
    weights = None if whole.weights is None else to_host(whole.weights)[order]
    return {"edge_id": numbers[order], "row": ends[order], "col": targets[order]}, weights


def _on_first(values: np.ndarray, comm: MPI.Intracomm) -> list[np.ndarray]:
    """What each rank has, on rank 0; nothing on others. Collective."""
    return all_to_all(comm, [values, *[values[:0]] * (comm.size - 1)])


def _rows(features: Mapping[str, Any], places: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.asarray(values[places]) for name, values in features.items()}


def _tensors(torch: ModuleType, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tensors(torch, some) for name, some in value.items()}
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
