"""Readers of graph files: every format against small files written here, and against real graphs."""

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusp.errors import GraphFileError, InputError, OptionError
from cusp.formats import FORMATS, open_edges, tables, text
from cusp.formats.source import Asked, EdgeSource

EDGES = [(0, 1), (0, 2), (2, 1), (3, 3), (2, 1)]  # a parallel edge, a loop, and node 4 has no edge
WEIGHTS = [7, 1, 250, 3, 9]


def collect(source: EdgeSource, size: int = 1) -> list[tuple]:
    """All edges of all shares as sorted tuples, with those for which they stand."""
    found = []
    for rank in range(size):
        for sources, targets, weights in source.chunks(rank, size):
            columns = [sources, targets] + ([] if weights is None else [weights])
            found += zip(*(column.tolist() for column in columns), strict=True)
    return both_ways(found) if source.symmetric and not source.reverse_stored else sorted(found)


def weighted() -> list[tuple[int, int, int]]:
    return sorted((u, v, w) for (u, v), w in zip(EDGES, WEIGHTS, strict=True))


def both_ways(edges: list[tuple]) -> list[tuple]:
    return sorted(edges + [(v, u, *rest) for u, v, *rest in edges if u != v])


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def galois(version: int, width: int) -> bytes:
    """Our five edges as a Galois file, with ``width`` bytes of weight each."""
    rows = sorted(range(5), key=lambda e: EDGES[e][0])
    ends = np.cumsum(np.bincount([u for u, _ in EDGES], minlength=5)).astype("<u8")
    targets = np.array([EDGES[e][1] for e in rows], "<u4" if version == 1 else "<u8").tobytes()
    padding = bytes(-len(targets) % 8)
    data = np.array([WEIGHTS[e] for e in rows], f"<u{width}").tobytes() if width else b""
    return struct.pack("<4Q", version, width, 5, 5) + ends.tobytes() + targets + padding + data


def gap(directed: bool, with_weights: bool) -> bytes:
    """Our five edges as a GAP graph; an undirected one stores both directions."""
    edges = weighted() if directed else both_ways(weighted())
    parts = [struct.pack("<Bqq", directed, len(edges), 5)]
    for rows in (edges, sorted((v, u, w) for u, v, w in edges))[: 1 + directed]:
        offsets = np.searchsorted([row[0] for row in rows], np.arange(6))
        pairs = np.array([row[1:] for row in rows], "<i4")
        parts += [offsets.astype("<i8").tobytes(), (pairs if with_weights else pairs[:, 0]).tobytes()]
    return b"".join(parts)


LINES = "".join(f"{u} {v}\n" for u, v in EDGES)
WEIGHTED_LINES = "".join(f"{u}\t{v}\t{w}\n" for (u, v), w in zip(EDGES, WEIGHTS, strict=True))
ONE_BASED = "".join(f"{u + 1} {v + 1}\n" for u, v in EDGES)
ONE_BASED_WEIGHTED = "".join(f"{u + 1} {v + 1} {w}\n" for (u, v), w in zip(EDGES, WEIGHTS, strict=True))
ARCS = "".join(f"a {line}\n" for line in ONE_BASED_WEIGHTED.splitlines())
MATRIX = "%%MatrixMarket matrix coordinate "

# file name, content, format, nodes stated, weighted, both directions
SMALL = [
    ("a.txt", "# Nodes: 5 Edges: 5\n" + LINES, "edges", None, False, False),
    ("a.el", LINES, "edges", None, False, False),
    ("a.wel", WEIGHTED_LINES, "edges", None, True, False),
    ("commas.csv", WEIGHTED_LINES.replace("\t", ","), "edges", None, True, False),
    ("long", "# a long comment\n" * 5000 + WEIGHTED_LINES, "edges", None, True, False),
    ("konect", "% asym\n" + LINES, "edges", None, False, False),
    ("m.mtx", MATRIX + "pattern general\n% note\n5 5 5\n" + ONE_BASED, "mtx", 5, False, False),
    ("w.mtx", MATRIX + "integer general\n5 5 5\n" + ONE_BASED_WEIGHTED, "mtx", 5, True, False),
    ("r.mtx", MATRIX + "real general\n5 5 5\n" + ONE_BASED_WEIGHTED, "mtx", 5, True, False),
    ("s.mtx", MATRIX + "integer symmetric\n5 5 5\n" + ONE_BASED_WEIGHTED, "mtx", 5, True, True),
    ("d.gr", "c Rome\np sp 5 5\n" + ARCS, "dimacs", 5, True, False),
    ("p.gr", "p tw 5 5\n" + ONE_BASED, "pace", 5, False, True),
    ("e.col", "p edge 5 5\n" + "".join(f"e {u + 1} {v + 1}\n" for u, v in EDGES), "dimacs", 5, False, True),
    ("v1.gr", galois(1, 4), "galois", 5, True, False),
    ("v1u.gr", galois(1, 0), "galois", 5, False, False),
    ("v1n.gr", galois(1, 0)[:-4], "galois", 5, False, False),
    ("v2.gr", galois(2, 8), "galois", 5, True, False),
    ("v2u.gr", galois(2, 0), "galois", 5, False, False),
    ("a.sg", gap(True, False), "sg", 5, False, False),
    ("u.sg", gap(False, False), "sg", 5, False, True),
    ("a.wsg", gap(True, True), "wsg", 5, True, False),
    ("u.wsg", gap(False, True), "wsg", 5, True, True),
]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("case", SMALL, ids=[case[0] for case in SMALL])
def test_small_file(tmp_path, case, packed):
    """Format, nodes, edges and weights; the shares of 1 and of 3 ranks make the same whole."""
    name, content, format, nodes, has_weights, symmetric = case
    path = write(tmp_path, name, content)
    if packed:
        path = write(tmp_path, name + ".gz", gzip.compress(path.read_bytes()))
    source = open_edges(path)
    expected = weighted() if has_weights else sorted(EDGES)
    expected = both_ways(expected) if symmetric else expected
    assert (source.format, source.num_nodes, source.weighted, source.symmetric) == (
        format, nodes, has_weights, symmetric,
    )  # fmt: skip
    assert collect(source) == expected
    source.check_complete(source.edges_read, [source.sums])
    assert collect(open_edges(path, format), 3) == expected


@pytest.mark.parametrize(
    ("header", "rows", "expected", "symmetric"),
    [
        ("4 3", ["2 3", "1", "1 4", "3"], [(0, 1), (0, 2), (2, 3)], True),
        ("4 3 001", ["2 5 3 6", "1 5", "1 6 4 7", "3 7"], [(0, 1, 5), (0, 2, 6), (2, 3, 7)], True),
        ("4 3 011 2", ["9 8 2 5 3 6", "9 9 1 5", "0 1 1 6 4 7", "1 1 3 7"],
         [(0, 1, 5), (0, 2, 6), (2, 3, 7)], True),
        ("4 3 10", ["9 2 3", "9 1", "0 1 4", "1 3"], [(0, 1), (0, 2), (2, 3)], True),
        ("4 3 100", ["9 2 3", "9 1", "7 1 4", "5 3"], [(0, 1), (0, 2), (2, 3)], True),
        ("5 1", ["", "3", "2", "", ""], [(1, 2)], True),
        ("3 4 100", ["2 2 3", "", "3"], [(0, 1), (0, 1), (0, 2), (2, 2)], False),
    ],
    ids=["plain", "weights", "node weights", "node weights only", "sizes", "isolated", "directed"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_metis(tmp_path, header, rows, expected, symmetric, end):
    path = write(tmp_path, "m.graph", end.join(["% note", header, rows[0], "% more 1 2", *rows[1:]]))
    source = open_edges(path)
    assert (source.format, source.num_nodes, source.symmetric) == ("metis", int(header.split()[0]), symmetric)
    assert collect(source) == (both_ways(expected) if symmetric else expected)


@pytest.mark.parametrize("block", [16, 17, 23, 64])
def test_blocks_cut_anywhere(tmp_path, monkeypatch, block):
    """Blocks of a few bytes give the edges that one block gives, in lines and in METIS rows."""
    lines = "".join(f"{u} {v} {u + v}\n" for u in range(60) for v in range(u % 7))
    rows = [sorted({(u + 1) % 40, (u - 1) % 40, (u + 7) % 40, (u - 7) % 40}) for u in range(40)]
    metis = "40 80 1\n" + "".join(" ".join(f"{v + 1} {u + v}" for v in row) + "\n" for u, row in enumerate(rows))
    monkeypatch.setattr(text, "BLOCK_BYTES", block)
    for size in (1, 2, 5):
        found = collect(open_edges(write(tmp_path, "a.wel", lines)), size)
        assert found == sorted((u, v, u + v) for u in range(60) for v in range(u % 7))
        found = collect(open_edges(write(tmp_path, "a.graph", metis)), size)
        assert found == sorted((u, v, u + v) for u, row in enumerate(rows) for v in row)


@pytest.mark.parametrize("kind", ["i4", "u4", "i8", "u2", "f8", ">i4"])
@pytest.mark.parametrize("columns", [2, 3])
def test_npy(tmp_path, kind, columns):
    table = np.array(weighted(), kind)[:, :columns]
    for order in "CF":
        np.save(tmp_path / "a.npy", np.asarray(table, order=order))
        packed = write(tmp_path, "b.npy.gz", gzip.compress((tmp_path / "a.npy").read_bytes()))
        for path in (tmp_path / "a.npy", packed):
            source = open_edges(path)
            assert source.weighted == (columns == 3)
            assert collect(source, 2) == [row[:columns] for row in weighted()]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_scipy_npz(tmp_path, kind):
    sparse = pytest.importorskip("scipy.sparse")
    rows = [row for row in weighted() if row[:2] != (2, 1)]  # scipy would add the parallel edges up
    u, v, w = np.array(rows).T
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array((w, (u, v)), (5, 5)).asformat(kind))
    source = open_edges(tmp_path / "a.npz")
    assert (source.num_nodes, collect(source)) == (5, rows)


def test_named_npz(tmp_path):
    u, v, w = np.array(weighted()).T
    np.savez(tmp_path / "a.npz", sources=u, targets=v, weights=w, num_nodes=5)
    source = open_edges(tmp_path / "a.npz")
    assert (source.num_nodes, collect(source)) == (5, weighted())
    np.savez(tmp_path / "b.npz", a=u, b=v, c=w)
    assert collect(open_edges(tmp_path / "b.npz", asked=Asked(columns=["b", "a"]))) == sorted((v, u) for u, v in EDGES)
    with pytest.raises(GraphFileError, match="arrays a, b, c"):
        open_edges(tmp_path / "b.npz")


@pytest.mark.parametrize(("format", "dtype"), [("pairs32", "<i4"), ("pairs64", "<i8")])
def test_pairs(tmp_path, format, dtype):
    path = write(tmp_path, "a.bin", np.array(EDGES, dtype).tobytes())
    assert collect(open_edges(path, format), 3) == sorted(EDGES)
    with pytest.raises(GraphFileError, match="--format"):
        open_edges(path)
    with pytest.raises(GraphFileError, match="not a whole number"):
        open_edges(write(tmp_path, "b.bin", bytes(33)), format)
    with pytest.raises(GraphFileError, match="-1"):
        collect(open_edges(write(tmp_path, "c.bin", np.array([0, -1], dtype).tobytes()), format))


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_table(tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    u, v, w = np.array(weighted()).T
    table = pandas.DataFrame({"src": u, "dst": v, "cost": w, "name": "x, y", "length": w / 4})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path, row_group_size=2)
    else:
        table.to_csv(path, sep="," if kind == "csv" else "\t", index=False)
    assert collect(open_edges(path, asked=Asked(columns=["src", "dst", "cost"])), 2) == weighted()
    with pytest.raises(OptionError, match="cost, name, length; name those that are its weight: --columns"):
        open_edges(path)
    assert collect(open_edges(path, asked=Asked(columns=["dst", "src"]))) == sorted((v, u) for u, v in EDGES)
    lengths = open_edges(path, asked=Asked(columns=["1", "2", "length"]))
    assert lengths.weight_dtype == np.float64
    assert collect(lengths) == sorted((u, v, w / 4) for u, v, w in weighted())
    with pytest.raises(OptionError, match="src, dst, cost"):
        open_edges(path, asked=Asked(columns=["src", "to"]))
    with pytest.raises(GraphFileError, match="name"):
        collect(open_edges(path, asked=Asked(columns=["src", "dst", "name"])))


@pytest.mark.parametrize(
    "content",
    [LINES, LINES.rstrip(), LINES.replace("\n", "\r\n"), LINES.replace("\n", "\n\n \n"),
     "# a\n" + LINES.replace("\n", "\n% c 1\n# 2\n", 2), LINES.replace(" ", "  \t "), LINES.replace(" ", ","),
     "  " + LINES.replace("\n", " \n ")],
    ids=["plain", "no last newline", "crlf", "blank lines", "comments", "blanks", "commas", "indented"],
)  # fmt: skip
def test_ways_to_write_an_edge_list(tmp_path, content):
    assert collect(open_edges(write(tmp_path, "a.txt", content))) == sorted(EDGES)


def test_columns_of_an_edge_list(tmp_path):
    path = write(tmp_path, "a.txt", "".join(f"{u} x {v} {w} {w}.5\n" for u, v, w in weighted()))
    assert collect(open_edges(path, asked=Asked(columns=["1", "3"]))) == sorted(EDGES)
    assert collect(open_edges(path, asked=Asked(columns=["1", "3", "4"]))) == weighted()
    halves = open_edges(path, asked=Asked(columns=["1", "3", "5"]))
    assert collect(halves) == [(u, v, w + 0.5) for u, v, w in weighted()]
    with pytest.raises(OptionError, match="columns 1 to 5"):
        open_edges(path, asked=Asked(columns=["1", "6"]))


def npy(shape: str, dtype: str) -> bytes:
    """A NumPy file of two pairs whose header says something else."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(32)


def npz(**members: bytes) -> bytes:
    """A NumPy archive of such files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return archive.getvalue()


WRONG = [
    ("a.txt", "0 1\n\n# c\n1 x\n", "line 4: expected 'source target', found '1 x'"),
    ("a.txt", "0 1\n1\n", "line 2: expected"),
    ("a.txt", "0 1\n1 2 3\n", "line 2: expected"),
    ("a.txt", "0 1\n1 2.0\n", "line 2: expected"),
    ("a.txt", "0 1\n1 99999999999999999999\n", "line 2: a number is too large"),
    ("a.txt", "0\n", "an edge needs source and target"),
    ("a.txt", "", "is empty"),
    ("a.wel", "0 1 1.5\n1 2 3.5.5\n", "line 2: the weight is not a number"),
    ("a.mtx", MATRIX + "pattern general\n3 3 2\n1 2\n0 1\n", "line 4: node ids must run from 1 to 3"),
    ("a.mtx", MATRIX + "pattern general\n3 3 2\n1 2\n4 1\n", "line 4: node ids must run from 1 to 3"),
    ("a.mtx", MATRIX + "pattern general\n3 3 2\n1 2\n", "states 2 edges but the file holds 1"),
    ("a.mtx", MATRIX + "pattern general\n3 4 2\n1 2\n", "square"),
    ("a.mtx", MATRIX + "real skew-symmetric\n3 3 1\n2 1 1\n", "skew-symmetric"),
    ("a.mtx", MATRIX + "complex general\n3 3 1\n2 1 1 1\n", "complex"),
    ("a.mtx", "%%MatrixMarket matrix array real general\n3 3\n", "array"),
    ("a.mtx", MATRIX + "pattern general\n", "the end of the file"),
    ("a.gr", "p sp 3 2\na 1 2 3\nb 1 2 3\n", "line 3: expected 'a source target weight'"),
    ("a.gr", "p sp 3 2\na 1 2 3\np sp 3 2\n", "line 3: expected"),
    ("a.gr", "p sp 3\na 1 2 3\n", "found 'p sp 3'"),
    ("a.gr", "p flow 3 3\n", "found 'p flow 3 3'"),
    ("a.graph", "3 2\n2\n1 3\n\n", "states 2 edges"),
    ("a.graph", "3 2\n2\n1 4\n2\n", "line 3: node ids"),
    ("a.graph", "3 2\n2\n1 3\n2\n1\n", "line 5: node ids"),
    ("a.graph", "3 2\n2\n1 z\n2\n", "line 3: expected whole numbers"),
    ("a.graph", "3 2\n2\n1 z 3", "line 3: expected whole numbers, found '1 z'"),
    ("a.graph", "3 2 7\n", "found '3 2 7'"),
    ("a.graph", "3 2 1\n2 1 3\n1 1 3 1\n2\n", "line 2: expected 'neighbour weight'"),
    ("a.gr", galois(1, 4)[:-4], "has 112 bytes where its header"),
    ("a.gr", galois(2, 8) + b"1", "is another format"),
    ("a.sg", gap(True, False)[:-1], "cut short"),
    ("a.sg", b"\x01\x02", "cut short"),
    ("a.sg", gap(False, False)[:-4] + b"\xff\xff\xff\x7f", "expected 0 to 4"),
    ("a.npy", b"\x93NUMPY\x01", "the NumPy array cannot be read"),
    ("a.npz", b"PK\x03\x04rubbish", "the .npz file cannot be read"),
    ("a.h5", b"\x89HDF\r\n\x1a\nrubbish", "a.h5"),
    ("a.parquet", b"PAR1rubbish", "the Parquet table cannot be read"),
    ("a.txt.gz", gzip.compress(b"0 1\n" * 1000)[:30], "damaged gzip"),
    ("a.wel", "0 1 1.5\n1 2 1e400\n", "line 2: the weight is beyond"),
    ("a.csv", "s,t,w\n0,1,1e400\n", "too large"),
    ("a.csv", "s,t\n0,1,2\n", "line 2: expected 2 columns, as in the first line, found 3"),
    ("a.csv", "s,t\n0,1.5\n", "line 2: column 't' holds '1.5', not a whole number; if node ids are names"),
    ("a.csv", "s,t,km\na,b,3\nb,c,abc\n", "line 3: column 'km' holds 'abc', a weight is a number"),
    ("a.csv.gz", gzip.compress(b'# c\n s ;t;w\n"a\nb";b;3,5\n\n# c\nb;c;3,x\n'), "line 7: column 'w' holds '3,x', a"),
    ("a.txt", "0 1 3\n1 2 abc\n", "line 2: the weight is not a number, found '1 2 abc'"),
    ("a.mtx", MATRIX + "pattern general\n" + "9" * 5000 + " 3 2\n1 2\n", "expected 'rows columns entries'"),
    ("a.npy", npy("(1000000000000, 2)", "<i8"), "takes 16,000,000,000,000 bytes"),
    ("a.npy", npy("(2, 2)", "|O"), "Python objects"),
    ("a.npz", npz(sources=npy("(1000000000000,)", "<i8"), targets=npy("(2,)", "<i8")), "bytes"),
    ("a.npz", npz(row=npy("(2,)", "|O"), col=npy("(2,)", "<i8")), "Python objects"),
    ("a.dat", b"\0\1\2\3" * 20, "cannot tell its format"),
    ("a.dat", "hello world\n", "cannot tell its format"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG, ids=[f"{i}-{w[0]}" for i, w in enumerate(WRONG)])
def test_wrong_file(tmp_path, name, content, message):
    """Every wrong file gives one error that names it and says what is wrong."""
    path = write(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        source = open_edges(path)
        collect(source)
        source.check_complete(source.edges_read, [source.sums])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_line_number_in_a_later_share_and_block(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 32)
    lines = ["1 2"] * 99 + ["1 ?"]
    for path in (
        write(tmp_path, "a.txt", "\n".join(lines)),
        write(tmp_path, "a.txt.gz", gzip.compress("\n".join(lines).encode())),
    ):
        with pytest.raises(GraphFileError, match=r"line 100: .*'1 \?'"):
            collect(open_edges(path), 3)
    monkeypatch.setattr(tables, "BLOCK_BYTES", 32)
    table = write(tmp_path, "a.csv", "s,t,w\n" + "1,2,0.5\n" * 98 + "1,2,?\n")
    with pytest.raises(GraphFileError, match=r"line 100: column 'w' holds '\?', a weight is a number"):
        collect(open_edges(table), 3)
    with pytest.raises(GraphFileError, match="longer than 32 bytes"):
        collect(open_edges(write(tmp_path, "b.txt", "1 " + "2" * 40)))


def test_fraction_after_many_integers(tmp_path):
    """The first lines say int64; the error is of a kind that tells the converter to read float64."""
    path = write(tmp_path, "a.wel", "0 1 5\n" * 20_000 + "1 2 6.5\n")
    with pytest.raises(text.FractionalWeightError, match="line 20,001: the weight is not an integer"):
        collect(open_edges(path))
    assert collect(open_edges(path, asked=Asked(real_weights=True)))[-1] == (1, 2, 6.5)


def test_wrong_options(tmp_path):
    path = write(tmp_path, "a.mtx", MATRIX + "pattern general\n1 1 0\n")
    for arguments, message in [
        ({"format": "elf"}, "expected one of edges"),
        ({"asked": Asked(columns=["1", "2"])}, "only edges"),
    ]:
        with pytest.raises(OptionError, match=message):
            open_edges(path, **arguments)
    for missing, message in [(tmp_path / "none.txt", "no such file"), (tmp_path, "is a folder")]:
        with pytest.raises(GraphFileError, match=message):
            open_edges(missing)


IDS = st.integers(0, 10**6)
REALS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda w: w == 0 or 1e-300 < abs(w) < 1e300)


@given(
    st.lists(st.tuples(IDS, IDS, REALS), min_size=1, max_size=30),
    st.sampled_from(["{!r}", "{:.3e}", "{:.17g}", "{:.20f}", "{:.25g}"]),
)
def test_real_weights_are_those_of_python(tmp_path_factory, edges, style):
    """Each weight is the float64 that Python reads from the same text, to the last bit."""
    folder = tmp_path_factory.mktemp("reals")
    lines = [(u, v, style.format(w)) for u, v, w in edges]
    path = write(folder, "a.wel", "".join(f"{u} {v} {w}\n" for u, v, w in lines))
    assert collect(open_edges(path, asked=Asked(real_weights=True))) == sorted((u, v, float(w)) for u, v, w in lines)


BLANK = st.sampled_from([" ", "\t", "  ", ",", " , ", "\t\t"])
NOISE = st.sampled_from(["", "", "", "# note 1 2\n", "\n", "%\n", " \t\n"])


@given(
    st.lists(st.tuples(IDS, IDS, st.integers(-(10**17), 10**17), BLANK, NOISE)),
    st.sampled_from(["\n", "\r\n"]),
)
def test_text_is_parsed_as_split_does(tmp_path_factory, rows, end):
    """Lines in any mixture of blanks, comments and empty lines give what ``str.split`` gives."""
    content = "".join(f"{noise}{u}{blank}{v}{blank}{w}{end}" for u, v, w, blank, noise in rows)
    path = write(tmp_path_factory.mktemp("lines"), "a.txt", content or "#\n")
    words = [line.replace(",", " ").split() for line in content.splitlines() if line[:1] not in ("#", "%")]
    assert collect(open_edges(path), 2) == sorted(tuple(map(int, row)) for row in words if row)


REAL = [
    ("usa-road-ny.gr.gz", "pace", "usa-road-ny"),
    ("usa-road-ny.mtx.gz", "mtx", "usa-road-ny"),
    ("cnr-2000.txt.gz", "edges", "cnr-2000"),
    ("wiki-Vote.txt.gz", "edges", "wiki-vote"),
    ("rome99.gr.gz", "dimacs", "rome99"),
    ("formats/rome99.galois-v1.gr", "galois", "rome99"),
    ("4elt.graph.gz", "metis", "mesh-4elt"),
]


@pytest.mark.parametrize(("name", "format", "reference"), REAL, ids=[case[0] for case in REAL])
def test_real_graph(real_graphs, name, format, reference):
    """Nodes and simple edges are those of the reference."""
    expected = json.loads((real_graphs / f"{reference}.reference.json").read_text())
    source = open_edges(real_graphs / name)
    assert (source.format, source.symmetric) == (format, not expected["directed"])
    pieces = [np.stack(chunk[:2]) for chunk in source.chunks()]
    if source.symmetric and not source.reverse_stored:
        pieces += [piece[::-1] for piece in pieces]
    sources, targets = np.concatenate(pieces, axis=1)
    nodes = max(source.num_nodes or source.min_nodes, int(max(sources.max(), targets.max())) + 1)
    keys = np.unique(sources.astype(np.int64) * nodes + targets)
    assert (nodes, len(keys)) == (expected["num_nodes"], expected["arcs"])


def test_two_formats_of_rome_agree(real_graphs):
    text_edges = collect(open_edges(real_graphs / "rome99.gr.gz"))
    assert text_edges == collect(open_edges(real_graphs / "formats" / "rome99.galois-v1.gr"))


def test_formats_of_the_gap_test_graph_agree(real_graphs):
    folder = real_graphs / "formats"
    plain = collect(open_edges(folder / "gapbs-4.el"))
    with_weights = collect(open_edges(folder / "gapbs-4.wel"))
    assert len(plain) == 256
    assert sorted(edge[:2] for edge in with_weights) == plain
    assert collect(open_edges(folder / "gapbs-4.mtx")) == plain
    assert collect(open_edges(folder / "gapbs-4.gr")) == with_weights
    simple = sorted({edge for edge in plain if edge[0] != edge[1]})
    assert collect(open_edges(folder / "gapbs-4.graph")) == simple


def test_table_of_formats_is_complete():
    """Every format names a function that exists."""
    from importlib import import_module

    for module, function, _, _ in FORMATS.values():
        assert callable(getattr(import_module(f"cusp.formats.{module}"), function))
