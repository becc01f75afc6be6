"""The benchmarks of the GPU code on tiny graphs: every answer is checked, every row says what was measured."""

import parts
import pytest

from scripts.bench import algorithms
from scripts.bench.__main__ import main as bench
from scripts.bench.shared.rows import read_rows

pytestmark = pytest.mark.skipif(parts.DEVICE != "gpu", reason="needs --device gpu")


@pytest.mark.limit(300)
def test_one_gpu(monkeypatch, tmp_path, capsys):
    """Searches, and an app without a source, with options of their own."""
    rows = tmp_path / "rows.jsonl"
    command = ["gpu", "--graphs", "ring24", "--apps", "pagerank,bfs,sssp,operators", "--sources", "2", "--verify"]
    command += ["--set", "tolerance=0,iterations=3,direction=pull,parents=True", "--rows", str(rows)]
    monkeypatch.setattr("sys.argv", ["scripts.bench", *command])
    assert bench() == 0
    found = read_rows(rows)
    assert [(row["app"], row["variant"].split()[0]) for row in found] == [
        ("pagerank", "tolerance=0,iterations=3"), ("bfs", "direction=pull,parents=True"), ("sssp", "default"),
        ("operators", "src.value"), ("operators", "src.value"), ("operators", "src.value"),
        ("operators", "min(src.value,"),
    ]  # fmt: skip
    assert all(row["nodes"] == 24 and row["edges"] == 48 and row["best_ms"] <= row["ms"] for row in found)
    assert found[0]["verified"] and found[0]["rounds"] == [3] and len(found[1]["all_ms"]) == 2
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_several_gpus(comm, shared_tmp):
    """A graph that a GPU makes, under each policy; answers of all ranks are those of one."""
    rows = shared_tmp / "rows.jsonl"
    command = [
        "ring24",
        "--policies",
        "oec,cvc",
        "--apps",
        "bfs,sssp",
        "--sources",
        "2",
        "--rows",
        str(rows),
        "--verify",
    ]
    assert algorithms.main(comm, [*command, "--device", "gpu", "--folder", str(shared_tmp)]) == 0
    comm.Barrier()
    found = read_rows(rows)
    expected = [(policy, app) for policy in ("oec", "cvc") for app in ("partition", "bfs", "sssp")]
    assert [(row["policy"], row["app"]) for row in found] == expected
    assert all(row["ranks"] == comm.size and row["ms"] > 0 and row["hardware"] for row in found)
    assert all(row["verified"] and len(row["all_ms"]) == 2 for row in found if row["app"] != "partition")
