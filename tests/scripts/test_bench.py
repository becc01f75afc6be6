"""The benchmarks themselves, on tiny graphs: rows that say what was measured, tables that show them."""

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import graphs
import parts
import pytest
import ranks

from cusp.commands.generate import main as generate
from scripts.bench import __main__ as bench
from scripts.bench import algorithms, cores, cpu
from scripts.bench.clusters import hosts, pays
from scripts.bench.shared.rows import call, read_rows, table
from scripts.hosts import Hosts, HostsError


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
    """Every run is a row, and the table shows all of it."""
    monkeypatch.setattr(cpu, "WHAT", cpu.WHAT | {"policies": "cvc", "apps": "pagerank32"})
    rows = tmp_path / "rows.jsonl"
    run(monkeypatch, "cpu", "--scale", "7", "--repeat", "1", "--data", tmp_path, "--rows", rows)
    found = [(row["name"], row["policy"], row["ranks"], row["threads"]) for row in read_rows(rows)]
    ways = [(1, 1), (1, 2), (2, 2)]
    what = [("partition", "cvc"), ("pagerank32", "oec")]
    assert found == [(*which, *way) for which in what for way in ways]
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("kron7 ", "convert"))]
    assert [line[1:3] for line in shown[:-1:3]] == [[*which] for which in what] and shown[-1][0] == "convert:"
    assert all(float(line[5]) > 0 for line in shown[:-1])


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
    sizes = (
        "--graphs",
        "kron7",
        "--threads",
        "1",
        "--ranks",
        "1",
        "--policies",
        "cvc",
        "--apps",
        "bfs",
        "--sources",
        "2",
        "--repeat",
        "2",
    )
    run(monkeypatch, "compare-trees", tmp_path / "other", *sizes, "--data", tmp_path, "--rows", rows)
    found = read_rows(rows)
    others = [(row["app"], row["trial"], row["seconds"]) for row in found if row["tree"] == "other"]
    assert others == [("partition", 0, 5000), ("bfs", 0, 4000), ("partition", 1, 5000), ("bfs", 1, 4000)]
    assert len(found) == 8 and all(0 < row["seconds"] < 100 for row in found if row["tree"] != "other")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert [line[:5] + line[6:7] for line in lines] == [
        ["kron7", "partition", "cvc", "1", "1", "5000000.0"], ["kron7", "bfs", "oec", "1", "1", "4000000.0"],
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.limit(300)
def test_start(monkeypatch, tmp_path, capsys):
    """The first command compiles, the next do not; the parts that it tells of are within the whole."""
    rows = tmp_path / "rows.jsonl"
    what = ("--graphs", "kron7", "--apps", "bfs", "--repeat", "2", "--libraries", "scipy", "--warm-up", "bfs")
    run(monkeypatch, "start", *what, "--data", tmp_path, "--rows", rows)
    warm_up, ours, scipy = read_rows(rows)
    assert (ours["program"], scipy["program"]) == ("ours", "scipy") and scipy["again"] > 0
    assert ours["first"] > ours["again"] + 1 > 1 and ours["first"] > ours["warmed"] + 1 and warm_up["first"] > 1
    assert 0 < sum(ours[part] for part in ("startup", "partition", "run")) < ours["again"]
    assert [line.split()[:4] for line in capsys.readouterr().out.splitlines()[-2:]] == [
        ["kron7", "bfs", "cpu", "ours"], ["kron7", "bfs", "cpu", "scipy"],
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.limit(300)
def test_cores(monkeypatch, tmp_path, capsys):
    """Threads, ranks and another program beside them are columns; growth is a table of its own."""
    monkeypatch.setattr(cores, "ENTRIES", 1 << 12)
    rows = tmp_path / "rows.jsonl"
    few = ("--apps", "bfs", "--trials", "1", "--sources", "2", "--data", tmp_path, "--rows", rows)
    late = "test -s {graph} -a -s {stem}.sg; echo from {source} in 0; expr 1000 \\* $OMP_NUM_THREADS"
    few += ("--other", f"late:bfs={late}")
    run(monkeypatch, "cores", "--graphs", "kron7,kron8", "--threads", "1,2", "--ranks", "2", *few)
    found = {cores.key(row): row for row in read_rows(rows)}
    ways = {(None, 1, 1), (None, 1, 2), (None, 2, 1), ("late", 1, 1), ("late", 1, 2)}
    assert {key[2:] for key in found if key[0] == "kron8"} == ways
    assert found["kron8", "bfs", "late", 1, 2]["all_ms"] == [2e6, 2e6]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["1", "2", "efficiency", "2", "ranks", "late", "1", "late", "2"]
    [bfs] = [line for line in lines if line[:2] == ["kron8", "bfs"]]
    one, two = (found["kron8", "bfs", None, 1, threads]["ms"] for threads in (1, 2))
    assert bfs[4] == f"{one / two / 2:.0%}" and bfs[-2:] == ["1e+06", "2e+06"]
    ours = found["kron7", "bfs", None, 1, 2]
    assert lines[-1][1:3] == [f"{ours['ms'] * 1e6 / ours['edges']:.3g};", f"{ours['peak_mb']:,.0f}"]


@pytest.mark.slow
@pytest.mark.limit(300)
def test_pays(monkeypatch, tmp_path, capsys):
    """A row for each policy and algorithm, with a prediction; a cell says what auto takes, and the picture is drawn."""
    rows = tmp_path / "rows.jsonl"
    common = ("pays", "--data", tmp_path, "--rows", rows)
    few = ("--policies", "oec,dbh,hep", "--apps", "bfs,cc", "--trials", "1", "--sources", "1")
    run(monkeypatch, *common, "--graphs", "kron8", "--ranks", "2", *few)
    found = {(row["app"], row["policy"]): row for row in read_rows(rows)}
    assert found.keys() == {(app, policy) for app in ("bfs", "cc") for policy in ("oec", "dbh", "hep")}
    assert all(row["predicted_ms"] > 0 and row["link"] is None and row["ranks"] == 2 for row in found.values())
    out = capsys.readouterr().out
    for app in ("bfs", "cc"):
        [cell] = [line.split() for line in out.splitlines() if line.split()[:4] == ["kron8", "2", "memory", app]]
        taken, over = cell[-2:]
        assert taken in ("oec", "dbh")  # hep is none of the candidates
        best = min(found[app, policy]["ms"] for policy in ("oec", "dbh"))
        assert float(over) == pytest.approx(found[app, taken]["ms"] / best, abs=0.01)
    monkeypatch.setattr(pays, "PICTURE", tmp_path / "pays.svg")
    run(monkeypatch, *common, "--show")
    assert "kron8, one host" in (tmp_path / "pays.svg").read_text()


@pytest.mark.slow
@pytest.mark.limit(300)
def test_plans(monkeypatch, tmp_path, capsys):
    """What rows took and sent over what the command predicts with a run: here known numbers of times as much."""
    graph, run_on_two, plan = (tmp_path / name for name in ("kron8.h5", "run.json", "plan.json"))
    assert (
        generate(ranks.COMM, ["rmat", "--scale", "8", "--symmetrize", "--weights", "1:9", "--output", str(graph)]) == 0
    )
    call(2, "apps.sssp", graph, "--policy", "cvc", "--threads", "1", "--execution", "bulk", "--json", run_on_two)
    machine = tmp_path / "machine.toml"
    machine.write_text('ranks = 1\ncores = 1\nmemory = "1GB"\nlink = "1gbit"\nlatency = "10us"\n')
    words = ("--for", "sssp", "--run", run_on_two, "--machine", machine, "--policies", "oec,cvc", "--json", plan)
    call(1, "cusp.commands.plan", graph, "--ranks", "2,4", *words)
    told, said = json.loads(run_on_two.read_text()), json.loads(plan.read_text())
    predicted = {(row["hosts"], row["policy"]): row["predicted_ms"] for row in said}
    rows = []
    for row in said:
        base = {"graph": "kron8", "policy": row["policy"], "ranks": row["hosts"], "hosts": row["hosts"], "threads": 1}
        base |= {"transport": "mpi", "link": "1gbit", "commit": "c", "hardware": "h"}
        sent = told["trials"][0]["mb_sent"] * row["mb_a_round"] / told["mb_a_round"]
        took = 2 * predicted[row["hosts"], "cvc"] * (5 if row["policy"] == "oec" else 1)
        rows.append(base | {"app": "partition", "peak_mb": 4 * row["host_mb"]})
        rows.append(base | {"app": "sssp", "ms": took, "network_mb": 3 * sent})
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    run(monkeypatch, "plans", graph, "--runs", run_on_two, "--measured", file, "--rows", tmp_path / "plans.jsonl")
    shown = capsys.readouterr().out.splitlines()
    for number, line in zip((2, 4), shown[1:3], strict=True):
        assert line.split()[:4] == ["sssp", "2", "1gbit", str(number)]
        assert "2.00 (2.00 to 2.00), 100% off" in line and "3.00 (3.00 to 3.00), 200% off" in line
        assert "4.00 (4.00 to 4.00), 300% off" in line
        assert line.split()[-1] == ("5.00" if predicted[number, "oec"] <= predicted[number, "cvc"] else "1.00")
    assert [row["hosts"] for row in read_rows(tmp_path / "plans.jsonl")] == [2, 4]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows if row["app"] != "partition"))
    run(monkeypatch, "plans", graph, "--runs", run_on_two, "--measured", file, "--rows", tmp_path / "plans.jsonl")
    assert [row["memory"] is None for row in read_rows(tmp_path / "plans.jsonl")] == [False, False, True, True]
    with pytest.raises(SystemExit, match="no rows of such runs of kron8 with --each 3"):
        run(monkeypatch, "plans", graph, "--runs", run_on_two, "--measured", file, "--each", "3")


@pytest.mark.slow
@pytest.mark.limit(300)
def test_quality(monkeypatch, tmp_path, capsys):
    """A row for each policy and number of parts; the later of two rows is shown; real graphs need not be there."""
    monkeypatch.setenv("CUSP_TEST_GRAPHS", str(tmp_path))
    rows = tmp_path / "rows.jsonl"
    road = ["road", "--width", "40", "--height", "40", "--output", str(tmp_path / "kron9.h5")]
    assert generate(ranks.COMM, road) == 0
    common = ("quality", "--graphs", "rome99,kron9", "--data", tmp_path, "--rows", rows, "--parts", "4,8")
    run(monkeypatch, *common, "--policies", "random,fec", "--passes", "3")
    assert "rome99 is left out" in capsys.readouterr().err
    found = {(row["offline"], row["policy"], row["passes"], row["parts"]): row for row in read_rows(rows)}
    expected = {(None, "random", 1), (None, "fec", 1), (None, "fec", 3)}
    if importlib.util.find_spec("pymetis"):
        expected.add(("METIS", "map", 1))
        for number in (4, 8):
            metis, hashed = found["METIS", "map", 1, number], found[None, "random", 1, number]
            assert metis["replication"] < 0.6 * hashed["replication"] and metis["edge_balance"] < 1.2
    assert found.keys() == {(*key, parts) for key in expected for parts in (4, 8)}
    assert all(1 <= row["replication"] <= row["parts"] and row["seconds"] > 0 for row in found.values())
    with rows.open("a") as file:
        file.write(json.dumps(found[None, "random", 1, 4] | {"replication": 77.7}) + "\n")
    run(monkeypatch, *common, "--show", "--markdown")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| policy | kron9, 4 parts | 8 | s, kron9 |" and lines[2].startswith("| random | 77.70 ")
    assert any(line.startswith("| fec, 3 passes | ") for line in lines)


@pytest.mark.mpi
def test_algorithms(comm, shared_tmp, capsys):
    """A row for each graph, policy and app, with the same fingerprint of its answers under each policy."""
    path = graphs.write(shared_tmp / "random.h5", graphs.HARD["random"]())
    rows = shared_tmp / "rows.jsonl"
    apps = "bfs,cc,forest,semiring,pagerank"
    command = [path, path, "--policies", "oec,cvc", "--apps", apps, "--trials", "1", "--device", parts.WANTED]
    assert algorithms.main(comm, [*command, "--set", "iterations=3", "--verify", "--rows", str(rows)]) == 0
    shown = capsys.readouterr().out
    if comm.rank > 0:
        return
    found = read_rows(rows)
    expected = Counter((policy, app) for policy in ("oec", "cvc") for app in ["partition", *apps.split(",")] * 2)
    assert Counter((row["policy"], row["app"]) for row in found) == expected
    assert all(row["ranks"] == comm.size and row["ms"] > 0 for row in found)
    for app in apps.split(","):
        assert len({row["answers"] for row in found if row["app"] == app}) == 1
    assert found[-1]["rounds"] == [3] and found[-1]["verified"] and len(found[1]["all_ms"]) == 4
    assert shown.count("all 2 graphs, ") == len(expected)


@pytest.mark.slow
@pytest.mark.limit(300)
def test_hosts(monkeypatch, tmp_path, capsys):
    """A row for each transport and algorithm; the table has a line for each algorithm, and rows of both beside it."""
    try:
        with Hosts(1):
            pass
    except HostsError as error:
        pytest.skip(f"no hosts can be made here: {error}")
    rows = tmp_path / "rows.jsonl"
    few = "--hosts 2 --rates 1gbit --policies cvc --apps bfs,cc --trials 1 --sources 1".split()
    run(monkeypatch, "hosts", "--data", tmp_path, "--rows", rows, "--graphs", "kron8", *few)
    found = {(row["transport"], row["app"]): row for row in read_rows(rows)}
    assert found.keys() == {(transport, app) for transport in ("mpi", "hosts") for app in ("partition", "bfs", "cc")}
    assert all(row["hosts"] == 2 and row["ranks"] == 4 and row["cpu_ms"] > 0 for row in found.values())
    for app in ("bfs", "cc"):
        assert found["hosts", app]["answers"] == found["mpi", app]["answers"]
        assert 0 < found["hosts", app]["packets"] < found["mpi", app]["packets"]
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    for app in ("bfs", "cc"):
        [line] = [line for line in shown if line[:6] == ["kron8", "2", "4", "1gbit", "cvc", app]]
        assert len(line) == 7 + 2 * len(hosts.COLUMNS)
