"""The benchmarks of the GPU code on tiny graphs: every answer is checked, every row says what was measured."""

import parts
import pytest

from cusp.commands.generate import main as generate
from scripts.bench import gpu_partition, gpus
from scripts.bench.__main__ import main as bench
from scripts.bench.shared.rows import read_rows

pytestmark = pytest.mark.skipif(parts.DEVICE != "gpu", reason="needs --device gpu")


@pytest.mark.limit(300)
def test_one_gpu(monkeypatch, tmp_path, capsys):
    """Searches in both directions, and an app without a source with an option of its own."""
    rows = tmp_path / "rows.jsonl"
    command = [
        "gpu",
        "--graphs",
        "ring24",
        "--apps",
        "bfs,sssp,operators,pagerank",
        "--set",
        "tolerance=0,iterations=3",
        "--verify",
    ]
    command += ["--directions", "push,pull", "--sources", "2", "--rows", str(rows)]
    monkeypatch.setattr("sys.argv", ["scripts.bench", *command])
    assert bench() == 0
    found = read_rows(rows)
    assert [(row["app"], row["variant"].split()[0]) for row in found] == [
        ("pagerank", "tolerance=0,iterations=3"), ("bfs", "push"), ("bfs", "pull"), ("sssp", "delta"),
        ("operators", "src.value"), ("operators", "src.value"), ("operators", "src.value"),
        ("operators", "min(src.value,"),
    ]  # fmt: skip
    assert all(row["nodes"] == 24 and row["edges"] == 48 and row["best_ms"] <= row["ms"] for row in found)
    assert found[0]["verified"] and found[0]["rounds"] == [3] * 5 and len(found[1]["all_ms"]) == 2
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_several_gpus(comm, shared_tmp):
    """Partitionings and searches under each policy; answers are those of one rank."""
    rows = shared_tmp / "rows.jsonl"
    command = ["--graphs", "ring24", "--policies", "oec,cvc", "--sources", "2", "--rows", str(rows)]
    assert gpus.main(comm, [*command, "--folder", str(shared_tmp)]) == 0
    comm.Barrier()
    found = read_rows(rows)
    expected = [(policy, app) for policy in ("oec", "cvc") for app in ("partition", "bfs", "sssp")]
    assert [(row["policy"], row["app"]) for row in found] == expected
    assert all(row["ranks"] == comm.size and row["ms"] > 0 and row["hardware"] for row in found)
    assert all(row["verified"] for row in found if row["app"] != "partition")
    assert (sum(row.get("mb_sent", 0) for row in found) > 0) == (comm.size > 1)


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_partition(comm, shared_tmp):
    """A row per policy, with what a rule that runs on the device costs and one that does not."""
    graph, rows = str(shared_tmp / "graph.h5"), shared_tmp / "rows.jsonl"
    assert generate(comm, ["rmat", "--scale", "7", "--weights", "1:9", "--output", graph]) == 0
    assert gpu_partition.main(comm, [graph, "--policies", "cvc,fec", "--repeats", "1", "--rows", str(rows)]) == 0
    comm.Barrier()
    cvc, fec = read_rows(rows)
    assert (cvc["policy"], cvc["where"], fec["policy"]) == ("cvc", "device", "fec")
    assert cvc["rule_rate"] > 0 and fec["rule_rate"] == 0 and fec["where"].startswith("host")
    assert all(row["seconds"] > 0 and row["peak_to_csr"] > 0 and row["ranks"] == comm.size for row in (cvc, fec))
