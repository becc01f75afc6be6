"""Folders with a saved partition that somebody edited: arrays with fitting checksums, manifests, missing files."""

import contextlib
import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import graphs
import h5py
import numpy as np
from fuzz import programs
from fuzz.case import Case, Step, change_bytes, random_graph

from cusp.input.checksum import checksum

ARRAYS = ("mirror_starts", "gids", "offsets", "targets", "weights", "has_in", "degrees")
GRAPHS = 20  # each is partitioned and saved once
KEPT = tempfile.TemporaryDirectory(prefix="cusp-fuzz-")
ODD = (None, -1, 0, 2, 10**9, 2**63, 1.5, "", "x", "../../etc/passwd", "/dev/zero", [], {}, True, "int7", ["a"])


def make_case(random: np.random.Generator) -> Case:
    """A partition on one rank, saved, edited, and used by an app."""
    number = int(random.integers(GRAPHS))
    graph = random_graph(np.random.default_rng(number), 40, 120, 1)
    name = str(random.choice(["bfs", "sssp"]))
    steps = edits(random)

    def make(folder: Path) -> None:
        shutil.copytree(_saved(number, graph), folder / "parts")

    def run(folder: Path) -> int:
        return programs.app(name, folder / "parts", "--source", 0, "--output", folder / "out.h5")

    def check(folder: Path) -> str:
        read = as_stored(folder / "parts", name == "sssp")
        if isinstance(read, str):
            return read
        with h5py.File(folder / "out.h5") as file:
            answer = file["hops" if name == "bfs" else "distance"][...]
        expected = (graphs.serial_hops if name == "bfs" else graphs.serial_distances)(read, 0)
        return "" if np.array_equal(answer, expected) else f"{name} gave {answer[:8]}, expected {expected[:8]}"

    return Case(make, steps, run, check, f"saved {name}")


def save(graph: Path, folder: Path) -> None:
    """Save a partition; for as many ranks as the cases have."""
    programs.rehearse(lambda: programs.command("cusp", graph, "--save", folder))


def _saved(number: int, graph: graphs.Graph) -> Path:
    """The folder of a partition without a fault, made once; its graph file stays where it is."""
    folder = Path(KEPT.name) / str(number)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of processes that want it at the same time, one makes it
        if not folder.exists():
            folder.mkdir()
            graphs.write_here(folder / "g.h5", graph)
            save(folder / "g.h5", folder / "parts")
    return folder / "parts"


def as_stored(folder: Path, weighted: bool) -> graphs.Graph | str:
    """The graph of the parts in a folder, read without our code; or why there is none."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        masters, edges, weights = [], [], []
        for name in manifest["parts"]:
            with h5py.File(folder / name) as file:
                gids, offsets, targets = (file[key][...].astype(np.int64) for key in ("gids", "offsets", "targets"))
                masters += gids[: int(file["mirror_starts"][0])].tolist()
                has_weights = weighted and "weights" in file
                weights.append(file["weights"][...] if has_weights else np.ones(targets.size, np.int64))
                sources = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
                edges.append(np.stack([gids[sources], gids[targets]], axis=1))
        if sorted(masters) != list(range(int(manifest["num_nodes"]))):
            return "the masters are not the nodes, but the parts were accepted"
        return graphs.make(len(masters), np.concatenate(edges), np.concatenate(weights))
    except Exception as error:
        return f"the parts do not hold a graph ({type(error).__name__}), but they were accepted"


def edits(random: np.random.Generator) -> list[Step]:
    """One or two edits of the folder ``parts``."""
    kinds = (_array, _array, _array, _manifest, _manifest, _number, _file, _bytes)
    steps = [kinds[random.integers(len(kinds))](random) for _ in range(random.integers(1, 3))]
    return sorted(steps, key=lambda step: step[0].startswith(("files", "bits")))  # h5py edits HDF5 files only


def _part(folder: Path, place: float) -> Path | None:
    """One of the parts that are there."""
    found = sorted((folder / "parts").glob("part-*.h5"))
    return found[int(place * len(found))] if found else None


def _in_part(name: str, place: float, change: Callable[[h5py.File], None]) -> Step:
    def step(folder: Path) -> None:
        part = _part(folder, place)
        with contextlib.suppress(OSError, KeyError):  # an earlier step damaged the file
            if part:
                with h5py.File(part, "r+") as file:
                    change(file)

    return f"part {place:.2f}: {name}", step


def _array(random: np.random.Generator) -> Step:
    name, how, seed = str(random.choice(ARRAYS)), int(random.integers(8)), int(random.integers(1 << 30))

    def change(file: h5py.File) -> None:
        dice = np.random.default_rng(seed)
        values = file[name][...]
        attributes = dict(file[name].attrs)
        at = int(dice.integers(max(values.size, 1)))
        if how in (0, 1, 5) and values.size == 0:
            values = np.zeros(1, values.dtype)  # longer is the only way in which it can be wrong
        if how == 0:
            values[at] = dice.choice(np.array([-1, 0, 1, 40, 2**30])).astype(values.dtype)
        elif how == 1:
            values[at] = values[int(dice.integers(values.size))]
        elif how == 2:
            values = dice.permutation(values)
        elif how == 3:
            values = values[:-1]
        elif how == 4:
            values = np.append(values, values[-1:])
        elif how == 5:
            values = values.astype(np.float64)
            values[at] = np.nan
        elif how == 6:
            values = values[::-1].copy()
        else:
            values = values.astype(dice.choice(["i2", "f4", "u8", "S3"]))
        del file[name]
        dataset = file.create_dataset(name, data=values)
        dataset.attrs.update(attributes)
        if values.dtype.kind in "iufb":
            dataset.attrs["checksum"] = np.uint64(checksum(values))

    return _in_part(f"{name} edited, way {how}, seed {seed}", float(random.random()), change)


def _number(random: np.random.Generator) -> Step:
    value = ODD[random.integers(len(ODD))]
    place = float(random.random())

    def change(file: h5py.File) -> None:
        names = sorted(file.attrs)
        name = names[int(place * len(names))]
        file.attrs[name] = "none" if value is None else str(value) if isinstance(value, dict | list) else value

    return _in_part(f"attribute {place:.2f} = {value!r}", float(random.random()), change)


def _manifest(random: np.random.Generator) -> Step:
    place, value, drop = float(random.random()), ODD[random.integers(len(ODD))], random.integers(5) == 0

    def step(folder: Path) -> None:
        try:
            path = folder / "parts" / "manifest.json"
            content = json.loads(path.read_text())
            names = sorted(content)
            name = names[int(place * len(names))]
            if drop:
                del content[name]
            elif isinstance(content[name], list) and isinstance(value, str):
                content[name][0] = value
            else:
                content[name] = value
            path.write_text(json.dumps(content))
        except (OSError, ValueError, AttributeError, TypeError):  # an earlier step left no object of JSON
            return

    return f"manifest entry {place:.2f} {'dropped' if drop else f'= {value!r}'}", step


def _file(random: np.random.Generator) -> Step:
    how, place = int(random.integers(4)), float(random.random())

    def step(folder: Path) -> None:
        parts, part = folder / "parts", _part(folder, place)
        if how == 0 and part:
            part.unlink()
        elif how == 1:
            (parts / "manifest.json").write_text("{")
        elif how == 2:
            (parts / "manifest.json").write_bytes(b"\xff\xfe[]")
        elif part:
            part.write_bytes(part.read_bytes()[:1000])

    return f"files damaged at {place:.2f}, way {how}", step


def _bytes(random: np.random.Generator) -> Step:
    seed, place = int(random.integers(1 << 30)), float(random.random())

    def step(folder: Path) -> None:
        if part := _part(folder, place):
            change_bytes(part, np.random.default_rng(seed), how=1)

    return f"bits flipped in part {place:.2f}, seed {seed}", step
