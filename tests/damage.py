"""Graph files and policies with something wrong in them, and what the message about each must say."""

import os
from collections.abc import Callable
from pathlib import Path

import graphs
import h5py
import numpy as np
import ranks

GRAPH = graphs.random_directed(40, 200, seed=9)


def _changed(**changes) -> Callable[[Path], None]:
    """Writer of a graph file with whole datasets replaced (None: left out) and attributes set."""

    def write(path: Path) -> None:
        arrays = {"indptr": GRAPH.indptr, "indices": GRAPH.targets, "data": GRAPH.weights} | changes
        attributes = arrays.pop("attributes", {})
        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                if values is not None:
                    file[name] = values
            file.attrs.update(attributes)

    return write


def _with(values: np.ndarray, place: int, value: float) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


def _cut(fraction: float) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        _changed()(path)
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * fraction)])

    return write


def flipped(name: str) -> Callable[[Path], None]:
    """Writer of a graph file with checksums in which the lowest bit of an entry of a dataset is wrong."""

    def write(path: Path) -> None:
        graphs.write_here(path, GRAPH, weight=np.int32, sums=True)
        with h5py.File(path, "r+") as file:
            values = file[name][...]
            at = values.size // 2
            if name == "indptr":  # a change that leaves it monotone
                at = int(np.flatnonzero(np.diff(GRAPH.indptr) >= 2)[0]) + 1
                values[at] -= 1
            else:
                values[at] ^= 1
            file[name][...] = values

    return write


def _text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None


REAL = GRAPH.weights.astype(np.float32)
NO_FIRST = GRAPH.indptr + (np.arange(GRAPH.num_nodes + 1) == 0)
FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "no such file"),
    "folder": (lambda path: path.mkdir(), "folder|no partition is saved"),
    "empty": (_text(""), "is empty|not an HDF5 file"),
    "text": (_text("0 1\n1 2\n"), "not an HDF5 file"),
    "cut_in_half": (_cut(0.5), "cut short"),
    "cut_at_the_end": (_cut(0.99), "cut short"),
    "no_indices": (_changed(indices=None), "/indices"),
    "no_indptr": (_changed(indptr=None), "/indptr"),
    "no_nodes": (_changed(indptr=np.zeros(1, int), indices=GRAPH.targets[:0], data=None), "no nodes"),
    "empty_indptr": (_changed(indptr=np.zeros(0, int)), "no nodes"),
    "real_indices": (_changed(indices=GRAPH.targets.astype(float)), "float64"),
    "real_indptr": (_changed(indptr=GRAPH.indptr.astype(float)), "float64"),
    "boolean_weights": (_changed(data=GRAPH.weights > 3), "data"),
    "complex_weights": (_changed(data=GRAPH.weights * 1j), "data"),
    "two_dimensions": (_changed(indices=GRAPH.targets.reshape(-1, 2)), "2 dim"),
    "scalar": (_changed(indptr=7), "0 dim"),
    "descent": (_changed(indptr=_with(GRAPH.indptr, 20, 3)), "from .* to "),
    "leap": (_changed(indptr=_with(GRAPH.indptr, 20, 10**12)), "from .* to "),
    "negative_indptr": (_changed(indptr=_with(GRAPH.indptr, 20, -3)), "from .* to "),
    "starts_at_1": (_changed(indptr=NO_FIRST), "starts at 1"),
    "ends_early": (_changed(indptr=_with(GRAPH.indptr, -1, 199)), "ends at 199 but /indices has 200"),
    "ends_late": (_changed(indices=GRAPH.targets[:-3], data=None), "ends at 200 but /indices has 197"),
    "index_too_large": (_changed(indices=_with(GRAPH.targets, 77, 40)), r"indices\[77\] is 40"),
    "index_negative": (_changed(indices=_with(GRAPH.targets, 0, -1)), r"indices\[0\] is -1"),
    "index_huge": (_changed(indices=_with(GRAPH.targets.astype("u8"), 199, 2**64 - 1)), r"indices\[199\] is"),
    "too_few_weights": (_changed(data=GRAPH.weights[:-1]), "199 weights for 200 edges"),
    "wrong_num_nodes": (_changed(attributes={"num_nodes": 41}), "num_nodes says 41"),
    "wrong_num_edges": (_changed(attributes={"num_edges": 1}), "num_edges says 1"),
    "attribute_of_text": (_changed(attributes={"num_nodes": "many"}), "num_nodes"),
    "newer_format": (_changed(attributes={"format_version": 99}), "version 99"),
    "not_symmetric": (_changed(attributes={"symmetric": True}), "symmetric"),
    "flipped_indptr": (flipped("indptr"), "checksum of /indptr"),
    "flipped_indices": (flipped("indices"), "checksum of /indices|indices"),
}
WEIGHTED: dict[str, tuple[Callable[[Path], object], str]] = {  # found only where weights are read
    "flipped_data": (flipped("data"), "checksum of /data"),
    "not_a_number": (_changed(data=_with(REAL, 150, np.nan)), r"data\[150\] is not a number"),
    "negative_weight": (_changed(data=_with(GRAPH.weights, 30, -5)), "has the weight -5"),
    "negative_real": (_changed(data=_with(REAL, 30, -0.5)), "has the weight -0.5"),
}

BOTH = "def get_master(prop, node, mstate, masters):\n    {}\n"
EDGE = "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n    {}\n"
STATE = """
import numpy as np
from collections import namedtuple
State = namedtuple("State", "load")
def make_mstate(prop):
    return State(np.zeros(4, np.int64))
"""
LOAD = BOTH.format("return mstate.load[0]")
POLICIES = {
    "syntax": ("def get_master(prop, node:\n", "SyntaxError"),
    "raises_at_import": ("raise ValueError('no luck')\n", "no luck"),
    "imports_nothing_known": ("import no_such_module_at_all\n", "no_such_module_at_all"),
    "no_rules": ("x = 1\n", "neither get_master nor get_edge_owner"),
    "not_a_function": ("get_master = 3\n", "function"),
    "master_too_large": (BOTH.format("return prop.num_parts"), "get_master of node .* ranks 0 to"),
    "master_negative": (BOTH.format("return node - 5"), "get_master of node .* ranks 0 to"),
    "owner_too_large": (EDGE.format("return prop.num_parts + dst"), "get_edge_owner of the edge .* ranks 0 to"),
    "owner_negative": (EDGE.format("return -1"), "get_edge_owner of the edge .* ranks 0 to"),
    "master_divides_by_0": (BOTH.format("return node // (prop.num_parts - prop.num_parts)"), "ZeroDivisionError"),
    "owner_divides_by_0": (EDGE.format("return dst // (prop.num_parts - prop.num_parts)"), "ZeroDivisionError"),
    "master_raises": (BOTH.format("raise ValueError('never')"), "ValueError"),
    "undefined_name": (BOTH.format("return nowhere_defined"), "nowhere_defined"),
    "returns_nothing": (BOTH.format("pass"), "get_master of node .*whole number, not None"),
    "returns_text": (BOTH.format("return 'a'"), "get_master of node .*whole number, not 'a'"),
    "returns_half": (BOTH.format("return node / 2"), "get_master of node .*whole number, not .*0.0"),
    "exits": (BOTH.format("exit(0)"), "get_master of node .* raised SystemExit: 0"),
    "exits_at_import": ("raise SystemExit(0)\n", "cannot be run: SystemExit: 0"),
    "reader_of_nobody": (BOTH.format("return prop.reader(node - 10**12)"), "get_master of node .* ranks 0 to"),
    "masters_of_nobody": (BOTH.format("return masters[node + 10**12]"), "get_master of node .* ranks 0 to"),
    "owner_out_of_a_table": (f"TABLE = (1, 2)\n{EDGE.format('return TABLE[dst * 10**9 + 2]')}", "edge .* IndexError"),
    "state_out_of_range": (STATE + BOTH.format("return mstate.load[node + 10**9]"), "get_master of node .* IndexError"),
    "state_without_argument": (
        STATE.replace("prop", "") + BOTH.format("return mstate.load[0]"),
        "make_mstate raised TypeError",
    ),
    "combine": ("combine = 3\n" + BOTH.format("return 0"), "combine is 3, not a dict"),
    "misspelt": (BOTH.format("return 0").replace("get_master", "getMaster"), "get_edge_owner, only getMaster"),
}


def make(entry: tuple[Callable[[Path], object], str], path: Path) -> str:
    """Write a damaged file on rank 0; returns the pattern of its message. Collective."""
    if ranks.COMM.rank == 0:
        entry[0](path)
    ranks.COMM.Barrier()
    return entry[1]


def _linked(link: Callable[[h5py.File, Path], None]) -> Callable[[Path], None]:
    """Writer of a graph file in which ``link(file, folder)`` puts something else in the place of /indices."""

    def write(path: Path) -> None:
        _changed(indices=None)(path)
        (path.parent / "raw").write_bytes(GRAPH.targets.astype("i8").tobytes())
        with h5py.File(path.parent / "other.h5", "w") as other:
            other["x"] = GRAPH.targets
        with h5py.File(path, "r+") as file:
            link(file, path.parent)

    return write


def _virtual(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((200,), "i8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", (200,))
    file.create_virtual_dataset("indices", layout)


def _linked_to(link: object) -> Callable[[Path], None]:
    return _linked(lambda file, folder: file.__setitem__("indices", link))


def _external(file: h5py.File, folder: Path) -> None:
    file.create_dataset("indices", (200,), "i8", external=[(str(folder / "raw"), 0, 1600)])


def _claiming(name: str, **how) -> Callable[[Path], None]:
    return _linked(
        lambda file, folder: (
            (
                file.pop(name, None),
                file.create_dataset(name, (10**12,), "i8", **how),
                file.require_dataset("indices", (200,), "i8", exact=True) if name == "indptr" else None,
            )
            and None
        )
    )


def _transposed(**changes) -> Callable[[Path], None]:
    """Writer of a graph file whose group csc is as in ``changes`` (None: not there)."""
    arrays = {"indptr": GRAPH.indptr, "indices": GRAPH.targets, "data": GRAPH.weights} | changes
    return _changed(**{f"csc/{name}": values for name, values in arrays.items()})


UNTRUSTED: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (lambda path: os.mkfifo(path), "pipe or device"),
    "link_to_itself": (_linked_to(h5py.SoftLink("/indices")), "is a link"),
    "link_to_no_file": (_linked_to(h5py.ExternalLink("/dev/stdin", "x")), "is a link"),
    "link_to_a_file": (_linked_to(h5py.ExternalLink("other.h5", "x")), "is a link"),
    "virtual": (_linked(_virtual), "in other files"),
    "external": (_linked(_external), "in other files"),
    "claims_nodes": (_claiming("indptr"), "says that it has 1,000,000,000,000 entries"),
    "claims_edges": (_claiming("indices"), "says that it has 1,000,000,000,000 entries"),
    "claims_chunks": (_claiming("indices", chunks=(1 << 16,), compression="gzip"), "says that it has"),
    "half_weights": (_changed(data=GRAPH.weights.astype("f2")), "float16"),
    "narrow_negative": (_changed(indices=_with(GRAPH.targets.astype("i1"), 3, -100)), r"indices\[3\] is -100"),
    "attribute_array": (_changed(attributes={"num_nodes": [40, 40]}), "num_nodes"),
    "attribute_infinite": (_changed(attributes={"num_edges": np.inf}), "num_edges"),
    "attribute_nan": (_changed(attributes={"format_version": np.nan}), "format_version"),
    "attribute_bytes": (_changed(attributes={"symmetric": b"\xff"}), "symmetric"),
    "transpose_without_indices": (_transposed(indices=None), "/csc/indices"),
    "transpose_of_another_size": (_transposed(indptr=GRAPH.indptr[1:]), "/csc/indptr has 40"),
    "transpose_ends_early": (_transposed(indptr=_with(GRAPH.indptr, -1, 199)), "/csc/indptr ends at 199"),
    "transpose_is_a_number": (_changed(csc=3), "/csc/indptr"),
}
