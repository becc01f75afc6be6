"""Names of nodes: sorted, numbered and looked up, read from text and tables, kept in graph files."""

import gzip
from pathlib import Path

import h5py
import pytest
import ranks
from hypothesis import given
from hypothesis import strategies as st

from cusp.convert.conversion import Request, convert
from cusp.errors import GraphFileError, InputError, OptionError
from cusp.formats import open_edges
from cusp.formats.columns import choose_columns
from cusp.formats.source import Asked
from cusp.names.dictionary import Dictionary
from cusp.names.graph_names import read_names
from cusp.names.names import ListedNames, SortedNames
from cusp.names.numbering import names_of, number_names
from cusp.names.packed import Packed, sort_names

TEXTS = st.lists(st.text(st.sampled_from("ab\0é漢") | st.characters(codec="utf-8"), max_size=20), max_size=60)


@given(TEXTS)
def test_sorted_as_python_sorts(texts):
    order, first = sort_names(Packed.of(texts))
    found = [texts[place] for place in order]
    assert found == sorted(texts)
    assert [name for name, new in zip(found, first) if new] == sorted({*texts})


@given(TEXTS)
def test_dictionary(texts):
    names = Dictionary()
    numbers = [*names.number(Packed.of(texts[:20])), *names.number(Packed.of(texts[20:]))]
    assert names.known().strings() == list(dict.fromkeys(texts))
    assert [names.known().strings()[number] for number in numbers] == texts


def test_dictionary_grows_to_its_limit():
    names, many = Dictionary(), [f"node {i}" for i in range(50_000)]
    assert names.number(Packed.of(many)).tolist() == list(range(50_000))
    names.limit = 1 << 20
    with pytest.raises(GraphFileError, match="more than 5.,... nodes take .* MB of one rank; its limit leaves 1 MB"):
        names.number(Packed.of(f"more {i}" for i in range(50_000)))


@pytest.mark.mpi
@given(TEXTS)
def test_numbers_do_not_depend_on_ranks(texts):
    """Some names on several ranks, some on none."""
    comm = ranks.COMM
    mine = list(dict.fromkeys(texts[comm.rank :: max(comm.size - 1, 1)]))
    numbers, slab = number_names(Packed.of(mine), comm)
    known = names_of(slab, comm)
    assert list(known) == sorted({*texts}) and slab.num_nodes == len(known)
    assert known.of(numbers) == mine
    assert [known.find(name) for name in mine] == numbers.tolist()
    assert known.find("not there") is None and known.find(3) is None


def test_similar_names():
    for names in (
        SortedNames(Packed.of(["Cosette", "Javert", "Valjean"])),
        ListedNames(["Valjean", "Javert", "Cosette"]),
    ):
        with pytest.raises(
            OptionError, match="--source 'Valjaen': no node of the graph has this name; similar: Valjean"
        ):
            names.gid("Valjaen", "--source")


LINES = "a x\tb\t2\nb\tc\t3\nc\ta x\t4\nb\tc\t3\n"
WAYS = {
    "tab.txt": "# nodes\n" + LINES,
    "comma.txt": LINES.replace("\t", " , ").replace("\n", "\r\n"),
    "table.csv": "source,target,weight\n" + LINES.replace("\t", ","),
    "other.csv": "# note\nkm, TO ,FromNode\n" + "".join(
        ",".join(reversed(line.split("\t"))) + "\n" for line in LINES.splitlines()),
    "table.tsv.gz": "u\tv\tw\n" + LINES,
}  # fmt: skip


def write(path: Path, content: str) -> str:
    """A file from rank 0, packed if its name says so. Collective."""
    if ranks.COMM.rank == 0:
        path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    ranks.COMM.Barrier()
    return str(path)


@pytest.mark.mpi
def test_every_way_to_write_them_gives_the_same_file(comm, shared_tmp):
    """Byte for byte, also made again from the graph file."""
    found = set()
    for name, content in WAYS.items():
        output = str(shared_tmp / "g.h5")
        assert convert(comm, Request(write(shared_tmp / name, content), dedup=True), output, True) == (3, 3)
        found.add(Path(output).read_bytes())
        comm.Barrier()
    convert(comm, Request(output), str(shared_tmp / "again.h5"), True)
    assert {Path(shared_tmp / "again.h5").read_bytes()} == found
    names = read_names(output, comm, 3)
    assert names is not None and list(names) == ["a x", "b", "c"]
    blanks = write(shared_tmp / "blanks.txt", LINES.replace("a x", "a").replace("\t", "  "))
    assert convert(comm, Request(blanks, memory_limit=1 << 22), str(shared_tmp / "b.h5")) == (3, 4)


@pytest.mark.mpi
def test_numbers_as_names(comm, shared_tmp):
    """On request, where they are far apart; all the same where the first lines are whole numbers."""
    path = write(shared_tmp / "a.txt", "7 200000000\n200000000 x\n")
    assert convert(comm, Request(path, ids="names"), str(shared_tmp / "g.h5")) == (3, 2)
    assert list(read_names(str(shared_tmp / "g.h5"), comm, 3) or ()) == ["200000000", "7", "x"]
    with pytest.raises(GraphFileError, match="line 2: expected 'source target', .* say so with --ids names"):
        convert(comm, Request(write(shared_tmp / "b.txt", "7 8\n8 x\n")), str(shared_tmp / "g.h5"))
    far = write(shared_tmp / "far.txt", "7 200000000\n")
    with pytest.raises(GraphFileError, match="take ids as names with --ids names"):
        convert(comm, Request(far, ids="numbers"), str(shared_tmp / "g.h5"))


GAPS = {
    "100234 100777\n100777 100900\n": (3, "ids 100234 ... 100900: 3 of 100,901 occur, so they are taken as names"),
    "-4 1000000000000000000\n": (2, "ids -4 ... 1000000000000000000: some are negative, so they"),
    "7 99999999999999999999\n": (2, None),
    "# Nodes: 3 Edges: 2\n0 1\n1 9\n": (3, "ids 0 ... 9: 3 of 10 occur"),
    "0 1\n1 3\n": (4, None),
    "1 2\n": (3, None),
}


@pytest.mark.mpi
@pytest.mark.parametrize("content", GAPS)
@pytest.mark.parametrize("suffix", [".txt", ".csv"])
def test_ids_with_gaps_are_names(comm, shared_tmp, content, suffix):
    """Whether they are is decided by all ids, the same on every rank; options say otherwise; the file keeps it."""
    nodes, note = GAPS[content]
    if suffix == ".csv":
        content = "source,target\n" + content.partition("\n")[2].replace(" ", ",") if content[0] == "#" else (
            "source,target\n" + content.replace(" ", ","))  # fmt: skip
    path, output, notes = write(shared_tmp / f"a{suffix}", content), str(shared_tmp / "g.h5"), []
    assert convert(comm, Request(path), output, notes=notes)[0] == nodes
    assert [line for line in notes if note and note in line] == notes and len(notes) == (note is not None)
    names = read_names(output, comm, nodes)
    assert (names is not None) == (note is not None or "9999" in content)
    if note:
        assert names is not None and {*map(type, names)} == {int} and names.find(names[0]) == 0
        again = str(shared_tmp / "again.h5")
        convert(comm, Request(output), again)
        assert list(read_names(again, comm, nodes) or ()) == list(names)
    largest = max(int(word) for word in content.replace(",", " ").split() if word.lstrip("-").isdecimal())
    if "-" not in content and largest < 200_000:
        assert convert(comm, Request(path, ids="numbers"), output)[0] == largest + 1
        assert convert(comm, Request(path, nodes=largest + 2), output)[0] == largest + 2


def test_latin1_and_other_separators(comm, tmp_path):
    """Spreadsheets' tables; bytes that are no UTF-8 far down; comments between rows."""
    rows = "von;nach;km\nGenève;Bern;1,5\n# Zürich;Bern\n"
    late = "source,target\n" + "a,b\n" * 300_000 + "Zürich,b\n"
    for content, columns, known in (
        (rows, ["von", "nach", "km"], ["Bern", "Genève"]),
        (late, None, ["Zürich", "a", "b"]),
    ):
        (tmp_path / "a.csv").write_bytes(content.encode("latin1"))
        notes: list[str] = []
        convert(comm, Request(str(tmp_path / "a.csv"), columns=columns), str(tmp_path / "g.h5"), notes=notes)
        assert "read as Latin-1" in notes[0]
        assert list(read_names(str(tmp_path / "g.h5"), comm, len(known)) or ()) == known
    (tmp_path / "a.csv").write_bytes(rows.encode("latin1"))
    source = open_edges(tmp_path / "a.csv", asked=Asked(columns=["von", "nach", "km"], latin1=True))
    assert [weights.tolist() for _, _, weights in source.chunks()] == [[1.5]]


WRONG = {
    "a.csv": ("source,target\na,b\na,\n", {}, "a value is missing in the columns source, target"),
    "b.csv": ("person,friend\na,b\n", {}, "has the columns person, friend; name those that are the source and target"),
    "c.csv": ("source,target,km,cost\na,b,1,2\n", {}, "name those that are its weight"),
    "d.csv": ("source,target\na,b\n", {"nodes": 9}, "--nodes 9: the nodes of .* have names"),
    "e.csv": ("source,target\na,b\n", {"weights": "1:9"}, "random weights depend on the numbers of nodes"),
    "f.txt": ("a\tb\nb\tc\td\n", {}, "line 2: expected 'source target'"),
    "g.txt": ("a,b,1\na,c,x\n", {}, "line 2: the weight is not a number, found 'a,c,x'"),
    "h.mtx": (
        "%%MatrixMarket matrix coordinate pattern general\n9 9 1\n1 2\n",
        {"ids": "names"},
        "ids are numbers from",
    ),
}


@pytest.mark.mpi
@pytest.mark.parametrize("name", WRONG)
def test_mistakes(comm, shared_tmp, name):
    content, options, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        convert(comm, Request(write(shared_tmp / name, content), **options), str(shared_tmp / "g.h5"))


def test_weights_that_turn_out_to_have_fractions(comm, tmp_path):
    path = write(tmp_path / "a.txt", "a\tb\t1\n" * 30_000 + "b\tc\t2.5\n")
    assert convert(comm, Request(path), str(tmp_path / "g.h5")) == (3, 30_001)
    source = open_edges(path, asked=Asked(real_weights=True))
    assert max(weights.max() for _, _, weights in source.chunks()) == 2.5


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("dataset", "values", "message"),
    [("offsets", [0, 2, 1, 3], "does not divide"), ("offsets", [0, 1, 2, 9], "does not divide"),
     ("bytes", b"bac", "the checksum of /names/bytes"), ("bytes", b"aab", "node 1 does not come after that of node 0"),
     (None, None, "is for 3 nodes, but the graph has 4")],
)  # fmt: skip
def test_damaged_names(comm, shared_tmp, dataset, values, message):
    path = str(shared_tmp / "g.h5")
    convert(comm, Request(write(shared_tmp / "a.txt", "a b\nb c\n")), path)
    if comm.rank == 0 and dataset:
        with h5py.File(path, "r+") as file:
            file[f"names/{dataset}"][...] = list(values)
            if "checksum" not in message:
                del file[f"names/{dataset}"].attrs["checksum"]
    comm.Barrier()
    with pytest.raises(GraphFileError, match=message):
        read_names(path, comm, 3 if dataset else 4)


@pytest.mark.parametrize(
    ("names", "wanted", "chosen"),
    [
        (["Source", "Target", "Weight"], None, ("Source", "Target", "Weight")),
        (["id", "FromNodeId", "ToNodeId"], None, ("FromNodeId", "ToNodeId")),
        (["city", "town", "km"], None, ("city", "town", "km")),
        (["src", "dst", "cost", "weight"], None, ("src", "dst", "weight")),
        (["x", "from", "to", "time"], ["", "", "time"], ("from", "to", "time")),
        (["x", "y", "z"], ["3", "x"], ("z", "x")),
        (["x", "y", "z"], None, None),
        (["from", "to", "source", "target"], None, None),
        (["x", "y", "z"], ["x", "w"], None),
    ],
)
def test_columns(names, wanted, chosen):
    if chosen is None:
        with pytest.raises(OptionError, match="--columns"):
            choose_columns("a.csv", names, wanted)
    else:
        assert choose_columns("a.csv", names, wanted) == chosen
