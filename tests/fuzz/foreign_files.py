"""Files of other formats with damage, through the converter."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fuzz import programs
from fuzz.case import Case, Step, change_bytes
from fuzz.isolate import attempt

TOKENS = (
    "-1", "1e400", "nan", "inf", "99999999999999999999", "9223372036854775808", "0x10", "1.5", "", "abc", "\x00", "é",
    "1e12", "%", "#", "-", "+3", "1_000", '"', "2147483648",
)  # fmt: skip


def _edges(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    size = int(random.integers(1, 40))
    return random.integers(0, 30, (size, 2)), random.integers(1, 9, size)


def _text(header: Callable[[int, int], str], line: str, first: int) -> Callable[[np.random.Generator], bytes]:
    def make(random: np.random.Generator) -> bytes:
        pairs, weights = _edges(random)
        lines = [line.format(u=u + first, v=v + first, w=w) for (u, v), w in zip(pairs.tolist(), weights.tolist())]
        return (header(31, len(lines)) + "\n".join(lines) + "\n").encode()

    return make


def _npy(random: np.random.Generator) -> bytes:
    pairs, weights = _edges(random)
    file = io.BytesIO()
    np.save(file, np.column_stack([pairs, weights]) if random.integers(2) else pairs)
    return file.getvalue()


def _npz(random: np.random.Generator) -> bytes:
    pairs, weights = _edges(random)
    file = io.BytesIO()
    if random.integers(2):
        import scipy.sparse

        matrix = scipy.sparse.coo_matrix((weights, (pairs[:, 0], pairs[:, 1])), shape=(31, 31)).tocsr()
        scipy.sparse.save_npz(file, matrix, compressed=bool(random.integers(2)))
    else:
        arrays = {"sources": pairs[:, 0], "targets": pairs[:, 1]}
        if random.integers(2):  # a number, a table or words where an array should be
            odd = [np.int64(1), pairs, np.array(["a"]), pairs[:0, 0], np.array([1j]), np.array(["2020-01-01"], "M8[D]")]
            name = str(random.choice([*arrays, "weights", "num_nodes", "shape", "indptr", "indices", "format"]))
            arrays[name] = odd[random.integers(len(odd))]
        np.savez(file, **arrays)
    return file.getvalue()


def _parquet(random: np.random.Generator) -> bytes:
    import pyarrow
    import pyarrow.parquet

    pairs, weights = _edges(random)
    file = io.BytesIO()
    columns = [pyarrow.array(pairs[:, 0]), pyarrow.array(pairs[:, 1]), pyarrow.array(weights)]
    names = ["source", "target", "weight"]
    if random.integers(3) == 0:  # two of one name, or something else in a column
        place, kinds = random.integers(3), [pyarrow.bool_(), pyarrow.timestamp("s"), pyarrow.decimal128(38, 2)]
        names[place] = names[random.integers(3)]
        columns[random.integers(3)] = columns[place].cast(kinds[random.integers(3)], safe=False)
    table = pyarrow.table(columns, names=names)
    pyarrow.parquet.write_table(table, file, compression=str(random.choice(["snappy", "gzip", "none"])))
    return file.getvalue()


def _metis(random: np.random.Generator) -> bytes:
    size = int(random.integers(2, 20))
    lines = [" ".join(str(v + 1) for v in ((u - 1) % size, (u + 1) % size)) for u in range(size)]
    return (f"{size} {size}\n" + "\n".join(lines) + "\n").encode()


def _galois(random: np.random.Generator) -> bytes:
    pairs, _ = _edges(random)
    degrees = np.bincount(pairs[:, 0], minlength=31)
    targets = pairs[np.argsort(pairs[:, 0], kind="stable"), 1].astype("<u4")
    header = np.array([1, 0, 31, len(pairs)], "<u8")
    return (
        header.tobytes() + np.cumsum(degrees).astype("<u8").tobytes() + targets.tobytes() + bytes(4 * (len(pairs) % 2))
    )


def _serialized(random: np.random.Generator) -> bytes:
    pairs, _ = _edges(random)
    degrees = np.bincount(pairs[:, 0], minlength=31)
    targets = pairs[np.argsort(pairs[:, 0], kind="stable"), 1].astype("<i4")
    sizes = np.array([len(pairs), 31], "<i8").tobytes()
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype("<i8").tobytes()
    return b"\x01" + sizes + (offsets + targets.tobytes()) * 2


FILES: dict[str, Callable[[np.random.Generator], bytes]] = {
    "edges.txt": _text(lambda nodes, edges: "# a comment\n", "{u} {v}", 0),
    "edges.wel": _text(lambda nodes, edges: "", "{u}\t{v}\t{w}", 0),
    "names.txt": _text(lambda nodes, edges: "", "n {u}\tn {v}\t{w}", 0),
    "names.csv": _text(lambda nodes, edges: "from,to\n", "n{u},n{v}", 0),
    "table.csv": _text(lambda nodes, edges: "source,target,weight\n", "{u},{v},{w}", 0),
    "table.tsv": _text(lambda nodes, edges: "source\ttarget\n", "{u}\t{v}", 0),
    "m.mtx": _text(lambda n, m: f"%%MatrixMarket matrix coordinate integer general\n{n} {n} {m}\n", "{u} {v} {w}", 1),
    "d.gr": _text(lambda nodes, edges: f"c x\np sp {nodes} {edges}\n", "a {u} {v} {w}", 1),
    "p.tw": _text(lambda nodes, edges: f"p tw {nodes} {edges}\n", "{u} {v}", 1),
    "m.graph": _metis,
    "a.npy": _npy,
    "a.npz": _npz,
    "t.parquet": _parquet,
    "g.gr": _galois,
    "g.sg": _serialized,
}


def make_case(random: np.random.Generator) -> Case:
    """One file of some format, damaged, and its conversion."""
    name = str(random.choice(sorted(FILES)))
    seed, packed = int(random.integers(1 << 30)), bool(random.integers(5) == 0) and name != "a.npz"
    file_name = name + (".gz" if packed else "")
    text = not name.endswith(("npy", "npz", "parquet", "sg")) and name != "g.gr"
    steps = [_damage(random, file_name, text and not packed) for _ in range(random.integers(1, 4))]
    more = [["--info"], ["--symmetrize", "--dedup"], [], ["--weights", "none"]][random.integers(4)]

    def make(folder: Path) -> None:
        content = FILES[name](np.random.default_rng(seed))
        (folder / file_name).write_bytes(gzip.compress(content) if packed else content)

    def run(folder: Path) -> int:
        out = [] if "--info" in more else ["-o", folder / "g.h5"]
        return programs.command("cusp.commands.convert", folder / file_name, *more, *out)

    def check(folder: Path) -> str:
        if "--info" in more:
            return ""
        again = attempt(lambda: programs.command("cusp.commands.convert", "--info", folder / "g.h5", "--check"), 20)
        return "" if again.kind == "done" else f"what was written cannot be read: {again.text}"

    return Case(make, steps, run, check, f"convert {name} {more}")


def _damage(random: np.random.Generator, name: str, text: bool) -> Step:
    how = int(random.integers(4 if text else 3))
    seed = int(random.integers(1 << 30))

    def step(folder: Path) -> None:
        dice, path = np.random.default_rng(seed), folder / name
        if how < 3:
            change_bytes(path, dice, how)
            return
        words = path.read_bytes().decode("latin-1").split(" ")
        words[int(dice.integers(len(words)))] = TOKENS[dice.integers(len(TOKENS))]
        path.write_bytes(" ".join(words).encode("utf-8", "surrogateescape"))

    return f"{name} damaged, way {how}, seed {seed}", step
