"""Graph files with something wrong in them: attributes, datasets, links, sizes, bytes."""

from collections.abc import Callable
from pathlib import Path

import graphs
import h5py
import numpy as np
from fuzz import programs
from fuzz.case import Case, Step, random_graph

NAMES = ("indptr", "indices", "data")
ODD = (
    "many", b"\xff\xfe", np.nan, np.inf, -1, 0, 2**62, -(2**63), 1e300, True, [1, 2], [], "", np.float16(3), 1 + 2j,
)  # fmt: skip
TYPES = ("f2", "f4", "f8", "i1", "u1", "i2", ">i4", ">u8", "u8", "?", "c8", "S4")


def make_case(random: np.random.Generator) -> Case:
    """A random graph file, one to three faults in it, and an app that reads it."""
    graph = random_graph(random, 50, 150)
    weighted, sums, transpose, named = (bool(random.integers(2)) for _ in range(4))
    if random.integers(3) == 0:
        graph = graphs.both_ways(graph)
    if random.integers(4) == 0:
        graph = graph._replace(weights=graph.weights * 0.5)
    weight = graph.weights.dtype if weighted else None

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graph, weight=weight, sums=sums, transpose=transpose)
        if named:
            with h5py.File(folder / "g.h5", "r+") as file:
                file["names/offsets"] = np.arange(0, 3 * graph.num_nodes + 1, 3)
                file["names/bytes"] = np.frombuffer(b"".join(b"%03d" % gid for gid in range(graph.num_nodes)), np.uint8)

    steps = [_damage(random) for _ in range(random.integers(1, 4))]
    name = str(
        random.choice(
            ["bfs", "sssp", "cc", "pagerank", "convert", "info", "cusp", "dry"],
            p=[0.3, 0.2, 0.1, 0.05, 0.1, 0.05, 0.1, 0.1],
        )
    )

    def run(folder: Path) -> int:
        path = folder / "g.h5"
        if name == "convert":
            return programs.command("cusp.commands.convert", path, "-o", folder / "again.h5")
        if name == "info":
            return programs.command("cusp.commands.convert", "--info", path, "--check")
        if name == "cusp":
            return programs.command("cusp", path, "--policy", "cvc")
        if name == "dry":
            return programs.command("cusp", path, "--dry-run", "--ranks", 3)
        more = ["--source", "000" if named else 0] if name in ("bfs", "sssp") else []
        return programs.app(name, path, *more, "--output", folder / "out.h5")

    def check(folder: Path) -> str:
        if name not in ("bfs", "sssp"):
            return ""
        read = _as_read_by_h5py(folder / "g.h5", name == "sssp")
        if read is None:
            return "h5py does not read the file, but it was accepted"
        with h5py.File(folder / "out.h5") as file:
            answer = file["hops" if name == "bfs" else "distance"][...]
        if name == "bfs":
            expected = graphs.serial_hops(read, 0)
        else:
            expected = graphs.serial_distances(read, 0)
        return "" if np.allclose(answer, expected) else f"{name} gave {answer[:8]}, expected {expected[:8]}"

    return Case(make, steps, run, check, f"{name} {weight} {transpose}")


def _as_read_by_h5py(path: Path, weighted: bool) -> graphs.Graph | None:
    """The graph that stands in the file, read without our code."""
    try:
        with h5py.File(path) as file:
            indptr, targets = (_values(file, key).astype(np.int64) for key in ("indptr", "indices"))
            weights = _values(file, "data") if weighted and "data" in file else np.ones(targets.size, np.int64)
    except Exception:
        return None
    sources = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    pairs = np.stack([sources, targets], axis=1)
    return graphs.make(indptr.size - 1, pairs, weights)


def _damage(random: np.random.Generator) -> Step:
    kinds = (_attribute, _entry, _retype, _resize, _replace, _claim, _link, _bytes, _cut, _transpose, _names)
    return kinds[random.integers(len(kinds))](random)


def _names(random: np.random.Generator) -> Step:
    name, value = str(random.choice(["names/offsets", "names/bytes"])), int(random.choice([-(2**63), -1, 0, 50, 2**62]))
    at, kind = int(random.integers(150)), str(random.choice(TYPES))

    def change(file: h5py.File) -> None:
        values = file[name][...]
        values[at % values.size] = value if name.endswith("offsets") else value % 256
        del file[name]
        file[name] = values if random.integers(4) else values[: at // 2].astype(kind)

    return _inside(f"{name} changed at {at} to {value} {kind}", change)


def _inside(name: str, change: Callable[[h5py.File], None]) -> Step:
    """A step on the open file; what cannot be done to a file that is broken already is left out."""

    def step(folder: Path) -> None:
        try:
            with h5py.File(folder / "g.h5", "r+") as file:
                change(file)
        except Exception:
            pass

    return name, step


def _values(group: h5py.Group, name: str) -> np.ndarray:
    """All entries; a dataset that claims 10**9 of them stays as it is, since this process would read them all."""
    if group[name].size > 10**6:
        raise ValueError(f"{name} claims {group[name].size:,} entries")
    return group[name][...]


def _attribute(random: np.random.Generator) -> Step:
    name = str(random.choice(["num_nodes", "num_edges", "symmetric", "format_version", "checksum"]))
    value = ODD[random.integers(len(ODD))]
    dataset = str(random.choice(NAMES))

    def change(file: h5py.File) -> None:
        (file[dataset] if name == "checksum" else file).attrs[name] = value

    return _inside(f"attribute {name} = {value!r}", change)


def _entry(random: np.random.Generator) -> Step:
    name = str(random.choice(NAMES))
    value = [-1, 0, 1, 2**31, 2**32, 2**62, np.nan, np.inf, -np.inf, 1e308][random.integers(10)]
    at = float(random.random())

    def change(file: h5py.File) -> None:
        file[name][int(at * file[name].size)] = value

    return _inside(f"{name}[{at:.2f}] = {value}", change)


def _retype(random: np.random.Generator) -> Step:
    name, kind = str(random.choice(NAMES)), str(random.choice(TYPES))

    def change(file: h5py.File) -> None:
        values = _values(file, name)
        del file[name]
        file[name] = values.astype(kind)

    return _inside(f"{name} as {kind}", change)


def _resize(random: np.random.Generator) -> Step:
    name, cut = str(random.choice(NAMES)), int(random.integers(-3, 4))

    def change(file: h5py.File) -> None:
        values = _values(file, name)
        del file[name]
        file[name] = values[:cut] if cut < 0 else np.append(values, values[:cut])

    return _inside(f"{name} resized by {cut}", change)


def _replace(random: np.random.Generator) -> Step:
    name = str(random.choice(NAMES))
    how = int(random.integers(6))

    def change(file: h5py.File) -> None:
        values = _values(file, name)
        del file[name]
        if how == 0:
            file.create_group(name)
        elif how == 1:
            file[name] = values.reshape(1, -1)
        elif how == 2:
            file[name] = 7
        elif how == 3:
            file[name] = h5py.Empty("i8")
        elif how == 4:
            file.create_dataset(name, data=values, chunks=(2,), compression="gzip")

    return _inside(f"{name} replaced, way {how}", change)


def _claim(random: np.random.Generator) -> Step:
    """Datasets that claim far more than the file holds: they are not allocated."""
    name, size = str(random.choice(NAMES)), int(random.choice([10**9, 10**12, 10**15]))
    chunked = bool(random.integers(2))

    def change(file: h5py.File) -> None:
        kind = file[name].dtype
        del file[name]
        more = {"chunks": (1 << 16,)} if chunked else {}
        file.create_dataset(name, (size + (name == "indptr"),), kind, **more)

    return _inside(f"{name} claims {size:.0e} entries", change)


def _link(random: np.random.Generator) -> Step:
    name, how = str(random.choice(NAMES)), int(random.integers(5))

    def step(folder: Path) -> None:
        other = folder / "other.h5"
        with h5py.File(other, "w") as file:
            file["x"] = np.arange(10)
        (folder / "raw").write_bytes(bytes(80))
        try:
            with h5py.File(folder / "g.h5", "r+") as file:
                del file[name]
                if how == 0:
                    file[name] = h5py.SoftLink(f"/{name}")
                elif how == 1:
                    file[name] = h5py.ExternalLink(str(other), "x")
                elif how == 2:
                    file[name] = h5py.ExternalLink("/no/such/file.h5", "x")
                elif how == 3:
                    file.create_dataset(name, (10,), "i8", external=[(str(folder / "raw"), 0, 80)])
                else:
                    layout = h5py.VirtualLayout((10,), "i8")
                    layout[:] = h5py.VirtualSource(str(other), "x", (10,))
                    file.create_virtual_dataset(name, layout)
        except Exception:
            pass

    return f"{name} linked, way {how}", step


def _bytes(random: np.random.Generator) -> Step:
    places, seed = int(random.integers(1, 9)), int(random.integers(1 << 30))

    def step(folder: Path) -> None:
        dice = np.random.default_rng(seed)
        content = bytearray((folder / "g.h5").read_bytes())
        for _ in range(places):
            content[dice.integers(len(content))] ^= 1 << dice.integers(8)
        (folder / "g.h5").write_bytes(content)

    return f"{places} bits flipped, seed {seed}", step


def _cut(random: np.random.Generator) -> Step:
    share, fill = float(random.random()), bool(random.integers(2))

    def step(folder: Path) -> None:
        content = (folder / "g.h5").read_bytes()
        kept = int(len(content) * share)
        (folder / "g.h5").write_bytes(content[:kept] + (bytes(len(content) - kept) if fill else b""))

    return f"cut at {share:.2f}{', filled with zeros' if fill else ''}", step


def _transpose(random: np.random.Generator) -> Step:
    name, how = str(random.choice(NAMES)), int(random.integers(4))

    def change(file: h5py.File) -> None:
        group = file.require_group("csc")
        if how == 0 and name in group:
            del group[name]
        elif how == 1:
            values = _values(group, name)
            del group[name]
            group[name] = values[:-1]
        elif how == 2:
            group[name][0] = 5
        else:
            del file["csc"]
            file["csc"] = 3

    return _inside(f"csc/{name} damaged, way {how}", change)
