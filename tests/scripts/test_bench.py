"""The benchmarks themselves, on tiny graphs: rows that say what was measured, tables that show them."""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.commands.generate import main as generate
from cusp.partitioner import partition_graph
from cusp.policies import POLICIES, load_policy
from scripts.bench import __main__ as bench
from scripts.bench import cpu, many, quality, rounds, semiring, user_file
from scripts.bench.shared import offline
from scripts.bench.shared.rows import read_rows, table


def run(monkeypatch, *arguments: str | Path) -> None:
    """``python -m scripts.bench arguments``."""
    monkeypatch.setattr(sys, "argv", ["scripts.bench", *map(str, arguments)])
    assert bench.main() == 0


def test_table():
    """Columns as wide as their widest cell, the first one to the left; or markdown."""
    lines = [["policy", "s"], ["oec", "12.5"]]
    assert table(lines) == "policy     s\noec     12.5"
    assert table(lines, markdown=True) == "| policy | s |\n|---|---|\n| oec | 12.5 |"


@pytest.mark.slow
@pytest.mark.limit(300)
def test_cpu(monkeypatch, tmp_path, capsys):
    """Every trial is a row, each BFS under a policy times a partitioning, and the table shows all of it."""
    everything = cpu.runs(argparse.Namespace(sources=2, repeat=3))
    times = Counter((one.name, one.policy, one.ranks) for one in everything)
    assert {times["bfs", policy, 2] for policy in cpu.POLICIES} == {3}
    assert {times[name, "oec", ranks] for name in ("sssp", *cpu.WHOLE) for ranks in (1, 2)} == {1, 2}
    assert {(one.ranks, one.threads) for one in everything if one.name == "cc"} == {(1, 1), (1, 2), (2, 1)}
    few = [("bfs", "oec", 1), ("bfs", "cvc", 2), ("cc", "oec", 1)]
    chosen = [next(one for one in everything if (one.name, one.policy, one.ranks) == which) for which in few]
    monkeypatch.setattr(cpu, "runs", lambda options: chosen)
    rows = tmp_path / "rows.jsonl"
    run(monkeypatch, "cpu", "--scale", "7", "--data", tmp_path, "--rows", rows)
    found = [(row["app"], row["policy"], row["ranks"]) for row in read_rows(rows)]
    assert found == [few[0]] * 2 + [few[1]] * 2 + [few[2]] * 3
    shown = {line.split("  ")[0]: len(line.split()) for line in capsys.readouterr().out.splitlines() if line}
    words = dict.fromkeys(("bfs oec", "partition oec", "bfs cvc", "partition cvc", "cc oec"), 3) | {"convert": 2}
    assert shown.items() >= words.items()


@pytest.mark.slow
@pytest.mark.limit(300)
def test_semiring(monkeypatch, tmp_path, capsys):
    """A row for the app and one for the product of matrix and vector, from the same sources."""
    monkeypatch.setattr(semiring, "ALGORITHMS", ("bfs",))
    rows = tmp_path / "rows.jsonl"
    sizes = ("--scale", "7", "--ranks", "2", "--sources", "3", "--trials", "2")
    run(monkeypatch, "semiring", *sizes, "--data", tmp_path, "--rows", rows)
    native, product = read_rows(rows)
    assert (native["form"], product["form"]) == ("native", "semiring")
    assert native["sources"] == product["sources"] == 3 and native["rounds"] == product["rounds"] > 0
    ratio = f"{product['seconds'] / native['seconds']:.2f}"
    assert capsys.readouterr().out.splitlines()[-1].split()[-1] == ratio


OTHER_PROGRAM = """
import json, sys
option, figures = {"apps": ("--rows", {"seconds": 4000.0}), "cusp": ("--json", {"partition_seconds": 5000.0})}[NAME]
with open(sys.argv[sys.argv.index(option) + 1], "a") as file:
    file.write(json.dumps(figures) + "\\n")
"""


@pytest.mark.slow
@pytest.mark.limit(300)
def test_compare_trees(monkeypatch, tmp_path, capsys):
    """Programs of this checkout beside those of another, here ones that claim to take hours."""
    for package, module in (("apps", "bfs.py"), ("cusp", "__main__.py")):
        (tmp_path / "other" / package).mkdir(parents=True)
        (tmp_path / "other" / package / "__init__.py").touch()
        (tmp_path / "other" / package / module).write_text(f"NAME = {package!r}{OTHER_PROGRAM}")
    rows = tmp_path / "rows.jsonl"
    sizes = ("--scale", "7", "--ranks", "1", "--policies", "cvc", "--apps", "bfs", "--sources", "2", "--repeat", "2")
    run(monkeypatch, "compare-trees", tmp_path / "other", *sizes, "--data", tmp_path, "--rows", rows)
    found = read_rows(rows)
    others = [(row["app"], row["trial"], row["seconds"]) for row in found if row["tree"] == "other"]
    assert others == [("partition", 0, 5000), ("bfs", 0, 4000), ("partition", 1, 5000), ("bfs", 1, 4000)]
    assert len(found) == 8 and all(0 < row["seconds"] < 100 for row in found if row["tree"] != "other")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert [line[:3] + line[4:5] for line in lines] == [
        ["partition", "cvc", "1", "5000000.0"], ["bfs", "oec", "1", "4000000.0"],
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.limit(300)
def test_quality(monkeypatch, tmp_path, capsys):
    """A row for each policy and number of parts; the later of two rows is shown; real graphs need not be there."""
    monkeypatch.setenv("CUSP_TEST_GRAPHS", str(tmp_path))
    everything = quality.policies(2)
    assert {name for name, _, _ in everything} == set(POLICIES) - {"map"}
    few = {"oec", "fec"}
    monkeypatch.setattr(quality, "policies", lambda parts: [(p, parts, n) for p, _, n in everything if p in few])
    rows = tmp_path / "rows.jsonl"
    common = ("quality", "--graphs", "rome99,kron7", "--data", tmp_path, "--rows", rows, "--parts", "2,5")
    run(monkeypatch, *common, "--offline", "none")
    assert "rome99 is left out" in capsys.readouterr().err
    found = read_rows(rows)
    requested = {(name, passes, number) for number in (2, 5) for name, _, passes in quality.policies(number)}
    assert {(row["policy"], row["passes"], row["parts"]) for row in found} == requested
    assert {name for name, _, _ in requested} == few and len(found) == len(requested) == 6
    assert all(1 <= row["replication"] <= row["parts"] and row["seconds"] > 0 and row["hardware"] for row in found)
    with rows.open("a") as file:
        file.write(json.dumps(found[0] | {"replication": 77.7}) + "\n")
    run(monkeypatch, *common, "--show", "--markdown")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| policy | kron7, 2 parts | 5 | s, kron7 |" and lines[2].split()[1] == found[0]["policy"]
    assert sum("77.70" in line for line in lines) == 1
    assert any(line.startswith("| fec, 5 passes | ") for line in lines)


def test_offline_map_is_measured_as_ours(monkeypatch, tmp_path, capsys):
    """METIS's parts of a road graph replicate less than hashing; one that takes too long is said to."""
    pytest.importorskip("pymetis")
    monkeypatch.setattr(quality, "policies", lambda parts: [("random", parts, 1)])
    rows = tmp_path / "rows.jsonl"
    assert (
        generate(ranks.COMM, ["road", "--width", "40", "--height", "40", "--output", str(tmp_path / "kron9.h5")]) == 0
    )
    common = (
        "quality",
        "--graphs",
        "kron9",
        "--data",
        tmp_path,
        "--rows",
        rows,
        "--parts",
        "4,8",
        "--offline",
        "metis",
    )
    run(monkeypatch, *common)
    found = {(row["offline"], row["parts"]): row for row in read_rows(rows)}
    for number in (4, 8):
        assert found["METIS", number]["replication"] < 0.6 * found[None, number]["replication"]
        assert found["METIS", number]["edge_balance"] < 1.2
    run(monkeypatch, *common, "--offline", "metis", "--limit", "0.01")
    assert capsys.readouterr().out.count("over 0.01 s") == 2  # a table has both numbers of parts


def test_metis_file(tmp_path):
    """A line per node: its load, then its neighbours from 1."""
    path = tmp_path / "graph.metis"
    offline.write_metis(path, np.array([0, 2, 3, 4, 4]), np.array([1, 2, 0, 0], np.uint32), np.array([2, 1, 1, 1]))
    assert path.read_text() == "4 2 10\n2 2 3\n1 1\n1 1\n1\n"


@pytest.mark.slow
@pytest.mark.limit(300)
def test_rounds(monkeypatch, tmp_path, capsys):
    """A row for each policy, number of rounds and of ranks."""
    rows = tmp_path / "rows.jsonl"
    monkeypatch.setattr(rounds, "POLICIES", ("fec", "hdrf"))
    monkeypatch.setattr(rounds, "RANKS", (1, 2))
    monkeypatch.setattr(rounds, "ROUNDS", (1, 7))
    run(monkeypatch, "rounds", "--scale", "7", "--data", tmp_path, "--rows", rows)
    found = {(row["policy"], row["ranks"], row["rounds"]): row for row in read_rows(rows)}
    assert len(found) == 2 * 2 * 2 and all(row["parts"] == row["ranks"] for row in found.values())
    assert sum(line.startswith("hdrf") for line in capsys.readouterr().out.splitlines()) == 2


@pytest.mark.slow
@pytest.mark.limit(300)
def test_user_file(monkeypatch, tmp_path, capsys):
    """Built-in policies and files in turn, for each trial."""
    rows = tmp_path / "rows.jsonl"
    monkeypatch.setattr(user_file, "TWINS", {"hvc": user_file.TWINS["hvc"]})
    run(monkeypatch, "user-file", "--scale", "7", "--data", tmp_path, "--rows", rows, "--trials", "2")
    found = [(row["trial"], row["policy"]) for row in read_rows(rows)]
    assert found == [(trial, name) for trial in (0, 1) for pair in user_file.TWINS.items() for name in pair]
    assert "ratio" in capsys.readouterr().out


@pytest.mark.mpi
@pytest.mark.parametrize("name", list(user_file.TWINS))
def test_file_partitions_as_the_built_in(comm, shared_tmp, name):
    """Bit for bit: a policy in a user's folder gives every rank the arrays that the built-in one gives it."""
    path = str(shared_tmp / "graph.h5")
    assert generate(comm, ["rmat", "--scale", "9", "--weights", "1:9", "--output", path]) == 0
    file = user_file.FOLDER / user_file.TWINS[name]
    copy = parts.user_file(file.read_text(), file.name)
    built_in, own = (
        partition_graph(path, load_policy(policy, threshold=40), comm, csc=True) for policy in (name, copy)
    )
    for field in ("gids", "mirror_starts", "offsets", "targets", "weights", "has_in", "has_out", "degrees"):
        expected, found = getattr(built_in, field), getattr(own, field)
        assert expected.dtype == found.dtype and expected.tobytes() == found.tobytes(), field
    for expected, found in zip(vars(built_in.csc).values(), vars(own.csc).values(), strict=True):
        assert expected.tobytes() == found.tobytes()
    hubs = comm.allreduce(np.count_nonzero(built_in.degrees > 40))
    assert hubs > 0 and parts.SIZE == comm.size


@pytest.mark.mpi
def test_many_graphs(comm, shared_tmp, monkeypatch, capsys):
    """Each app on each graph; an answer that differs from that of another number of ranks is named."""
    graphs.write(shared_tmp / "complete.h5", graphs.HARD["complete"]())
    monkeypatch.setattr(many, "APPS", ("bfs", "cc"))
    rows = shared_tmp / "rows.jsonl"
    command = [str(shared_tmp), "--trials", "1", "--device", parts.WANTED, "--rows", str(rows)]
    assert many.main(comm, command) == 0
    shown = capsys.readouterr().out
    if comm.rank > 0:
        return
    found = read_rows(rows)
    assert Counter(row["app"] for row in found) == {"bfs": 4, "cc": 1}
    assert "1 graphs" in shown and "different" not in shown
    other = [row | {"ranks": 9, "components": -1} for row in found if row["app"] == "cc"]
    assert many.compare(found + other, {"complete"}).splitlines()[-1] == "different answers: cc complete"
