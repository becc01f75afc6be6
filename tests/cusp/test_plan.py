"""``cusp plan`` (cusp/commands/plan.py): machine files, runs, what fits, the fastest and the cheapest."""

import json
from dataclasses import replace
from pathlib import Path

import graphs
import numpy as np
import pytest
import ranks
import spawn

from cusp.__main__ import main as cusp
from cusp.apps.harness import main as run_app
from cusp.apps.pagerank import APP as PAGERANK
from cusp.commands import plan
from cusp.errors import InputError, OptionError
from cusp.estimates.cost import DEMANDS, GPU_CORES, THREADS, Cluster, Prediction, predict, read_run
from cusp.estimates.dry_run import least_peak_mb
from cusp.estimates.quality import Quality
from cusp.input.graph_file import read_header
from cusp.program.compare import numbers_of_parts
from cusp.program.machine import Machine, best_by_parts, figures_of, hosts_needed, read_machine

SIZE = ranks.COMM.size
HOSTS = 'ranks = 4\ncores = 16\nmemory = "64GB"\nlink = "10gbit"\nlatency = "10us"\n'
MACHINE = Machine(4, 16, 2**36, 1.25e9, 10e-6)
TRIAL = {"nodes": 1000, "edges": 10**6, "threads": 4, "seconds": 0.02, "rounds": 10, "mb_sent": 0.16, "device": "cpu"}
RUN = {"app": "pagerank", "parts": 2, "replication": 1.5, "node_balance": 1.0, "edge_balance": 1.0, "mb_a_round": 0.002}


@pytest.fixture
def graph(shared_tmp) -> str:
    """A graph file without locality, with weights."""
    return graphs.write(shared_tmp / "g.h5", graphs.random_directed(3000, 30_000, seed=2))


def planned(comm, folder: Path, graph: str, *words: str) -> list[dict]:
    """The rows that a plan writes."""
    file = folder / "planned.json"
    assert plan.main(comm, [graph, "--json", str(file), *words]) == 0
    comm.Barrier()
    rows = json.loads(file.read_text())
    comm.Barrier()
    return rows


def best(rows: list[dict]) -> list[dict]:
    """Those in the table."""
    return [row for row in rows if "speed_up" in row]


def even(parts: int, edges: int = 10**9, nodes: int = 10**8) -> Quality:
    """The quality of an even partition, whose nodes have a mirror somewhere."""
    one = np.ones(parts, np.int64)
    pairs = nodes // parts // max(1, parts - 1) * (np.ones((parts, parts), np.int64) - np.eye(parts, dtype=np.int64))
    held = pairs.sum(axis=1)
    return Quality(nodes // parts * one, nodes // parts + held, edges // parts * one, pairs, held, held, nodes)


def test_numbers_of_parts():
    assert numbers_of_parts("4..64") == [4, 8, 16, 32, 64] and numbers_of_parts("5..9") == [8]
    assert numbers_of_parts("1..32767")[-1] == 16384 and numbers_of_parts("16,4,16") == [16, 4]
    for wrong in ("5..7", "8..4", "4..", "..", "1..2..3", "0..4", "4..99999", "4..x,2", ""):
        with pytest.raises(OptionError, match="--ranks"):
            numbers_of_parts(wrong)


def test_machine_file(tmp_path):
    file = tmp_path / "m.toml"
    file.write_text(HOSTS)
    assert read_machine(str(file)) == MACHINE
    file.write_text(HOSTS.replace("10us", "1.5 ms") + "gpus = 2\nprice = 3  # an hour\n")
    found = read_machine(str(file))
    assert found == replace(MACHINE, latency=1.5e-3, gpus=2, price=3.0)
    assert found.cluster(1) == Cluster(1, GPU_CORES, 1.25e9, True, 1.5e-3)  # a rank has one GPU
    assert found.cluster(9) == Cluster(3, 2 * GPU_CORES, 1.25e9, True, 1.5e-3)
    assert MACHINE.cluster(9) == Cluster(3, 16, 1.25e9, False, 10e-6)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [("", "rank = 3\n", "m.toml: rank is unknown; did you mean ranks?"),
     ("", "colour = 3\n", "colour is unknown; a machine file has ranks, cores, memory, link, latency, gpus, price"),
     ("ranks = 4\n", "", "m.toml: ranks is missing: ranks of a host, such as ranks = 4"),
     ('"64GB"', '"much"', "memory = 'much': expected bytes of a host"), ('"64GB"', "64", "memory = 64: expected"),
     ("16", "0", "cores = 0: expected cores of a host, such as cores = 16"), ("16", "true", "cores = True: expected"),
     ("10gbit", "fast", "link = 'fast': expected what a host can send"), ("10us", "soon", "latency = 'soon': expected"),
     ("10us", "-1us", "latency = '-1us': expected"), ("", "price = 0\n", "price = 0: expected"),
     ("", "price = nan\n", "price = nan: expected"), ("", "gpus = 1.5\n", "gpus = 1.5: expected GPUs of a host"),
     ("ranks = 4", "ranks 4", "m.toml: is not TOML"), ("ranks = 4", "\0", "m.toml: is not TOML")],
)  # fmt: skip
def test_machine_files_that_are_wrong(tmp_path, before, after, said):
    file = tmp_path / "m.toml"
    file.write_text(HOSTS.replace(before, after) if before else HOSTS + after)
    with pytest.raises(InputError) as error:
        read_machine(str(file))
    assert said in str(error.value)


def test_a_machine_sets_latency_between_hosts_only():
    slow = replace(MACHINE, latency=1.0)
    assert predict(even(8), "bfs", slow.cluster(8)).exchange > 2 * 8 * 7  # two exchanges of 8 rounds with 7 partners
    assert predict(even(4), "bfs", slow.cluster(4)) == predict(even(4), "bfs", MACHINE.cluster(4))


def test_a_graph_several_times_as_large():
    """Everything but the partners; so time is that many times as long, but for latency and rounds."""
    small, large = even(8), even(8).times(1000)
    assert np.array_equal(large.partners, small.partners) and large.replication == small.replication
    assert large.num_nodes == 1000 * small.num_nodes and large.edges.sum() == 1000 * small.edges.sum()
    once = replace(MACHINE, latency=0.0).cluster(8)
    much, little = (predict(quality, "sssp", once) for quality in (large, small))
    assert much.rounds == little.rounds > 0
    assert (much.seconds - much.rounds) / (little.seconds - little.rounds) == pytest.approx(1000)
    assert large.memory_mb() == pytest.approx(1000 * small.memory_mb())


def test_what_fits_and_what_would(graph):
    """As many hosts as are said to be needed have the memory, and one less has not."""
    header = replace(read_header(graph), num_nodes=10**8, num_edges=10**9, weight_dtype=None)
    tight = replace(MACHINE, memory=3 * 10**9)
    rows = best_by_parts([figures_of(even(parts), header, tight, "bfs", None) for parts in (4, 8)])
    assert not any(row["fits"] or row["fastest"] or row["cheapest"] for row in rows)
    needed = hosts_needed(rows[-1], header, tight)
    assert needed and needed > 2
    enough, few = (figures_of(even(4 * hosts), header, tight, "bfs", None) for hosts in (needed, needed - 1))
    assert enough["fits"] and not few["fits"]
    least = int(4e6 * least_peak_mb(header))  # of the four ranks of a host
    assert 8 * 10**8 < least < 9 * 10**8
    assert hosts_needed(rows[-1], header, replace(tight, memory=least)) is None
    assert hosts_needed(rows[-1], header, replace(tight, memory=least + 10**7))


def test_the_policy_that_fits_is_taken():
    """Then the fastest; the cheapest is by hosts and time."""
    rows = [
        {"policy": name, "parts": parts, "hosts": parts, "fits": fits, "predicted_ms": ms, "host_seconds": parts * ms,
         "mb_a_round": 1.0, "replication": 1.0}
        for name, parts, fits, ms in (("a", 2, False, 1.0), ("b", 2, True, 8.0), ("a", 4, True, 5.0), ("b", 4, True, 6))
    ]  # fmt: skip
    found = best_by_parts(rows)
    assert [(row["policy"], row["parts"]) for row in found] == [("b", 2), ("a", 4)]
    assert [row["cheapest"] for row in found] == [True, False] and [row["fastest"] for row in found] == [False, True]
    assert found[1]["speed_up"] == pytest.approx(1.6) and found[1]["efficiency"] == pytest.approx(0.8)


def write_run(path: Path, trial: dict, **figures: object) -> str:
    """A file as an app writes it."""
    path.write_text(json.dumps(RUN | {"trials": [TRIAL | trial]} | figures))
    return str(path)


def test_what_a_run_tells(tmp_path):
    """Rounds and bytes as they are; with the work that it tells, a run like it is predicted to take as long."""
    run = read_run(write_run(tmp_path / "run.json", {}), "pagerank", "cpu")
    assert (run.ranks, run.rounds, run.label_bytes) == (2, 10, 320)  # 80,000 bytes for each of 500 mirrors, both ways
    demand, usual = run.demand("pagerank"), DEMANDS["pagerank"]
    assert demand.edge_ns == pytest.approx(run.work * 10 * usual.edge_ns) and demand.rounds == 10
    pairs = 250 * (1 - np.eye(2))
    same = Quality(np.full(2, 500), np.full(2, 750), np.full(2, 500_000), pairs, np.full(2, 125), np.full(2, 125), 1000)
    assert predict(same, "pagerank", Cluster(1, 8, 1e9), demand).seconds == pytest.approx(0.02, rel=1e-3)
    wider = read_run(write_run(tmp_path / "wide.json", {"threads": 8}), "pagerank", "cpu").demand("pagerank")
    for threads, told in ((4, demand), (8, wider)):  # in the same time: with more threads there is more work
        assert predict(same, "pagerank", Cluster(1, 2 * threads, 1e9), told).seconds == pytest.approx(0.02, rel=1e-3)
    few, many = (predict(same, "pagerank", Cluster(1, cores, 1e9), wider) for cores in (8, 16))
    assert few.work / many.work == pytest.approx(2**THREADS) and few.rounds == many.rounds
    of_edges, of_rounds = (getattr(wider, part) / getattr(demand, part) for part in ("edge_ns", "round_ns"))
    assert 1.2 < of_edges < 2**THREADS and of_rounds == pytest.approx(of_edges)
    search = read_run(write_run(tmp_path / "bfs.json", {"mb_sent": 0.0}, app="bfs"), "bfs", "cpu").demand("bfs")
    assert search.label_bytes == DEMANDS["bfs"].label_bytes and search.rounds == 10


@pytest.mark.parametrize(
    ("figures", "trial", "said"),
    [({"app": "bfs"}, {}, "run.json: is of bfs; --for asks for pagerank"), ({"trials": []}, {}, "has no trials"),
     ({"trials": 3}, {}, "has no trials; expected what cusp pagerank graph.h5 --json FILE writes"),
     ({"replication": None}, {}, "run.json: replication is None; expected a number, at least 1"),
     ({}, {"rounds": 0}, "trial 0: rounds is 0; expected a number, at least 1: run it on two"),
     ({}, {"seconds": "3"}, "trial 0: seconds is 3; expected"), ({"parts": 2.5}, {}, "parts is 2.5; expected 2 to"),
     ({"parts": 1}, {}, "run.json: parts is 1; expected a number, at least 2: run it on two ranks"),
     ({"parts": 10**6}, {}, "parts is 1000000; expected 2 to 1024"), ({}, {"execution": "async"}, "without rounds"),
     ({}, {"rounds_before": 4}, "continued from a checkpoint"),
     ({}, {"device": "gpu"}, "trial 0: device is gpu, but the plan is for cpu")],
)  # fmt: skip
def test_runs_that_tell_nothing(tmp_path, figures, trial, said):
    with pytest.raises(InputError) as error:
        read_run(write_run(tmp_path / "run.json", trial, **figures), "pagerank", "cpu")
    assert said in str(error.value)


@pytest.mark.mpi
def test_a_plan(comm, shared_tmp, graph, capfd):
    """The best is that of compare; more ranks never need less memory in all; all is the same on one rank."""
    words = ["--policies", "oec,cvc,hvc", "--ranks", "1..16", "--for", "cc"]
    rows = planned(comm, shared_tmp, graph, *words)
    if comm.rank == 0:
        lines = capfd.readouterr().out.splitlines()
        listed = [line.split() for line in lines if line.split()[0] in ("1", "2", "4", "8", "16")]
        assert [line[:3] for line in listed] == [[str(r["parts"]), str(r["hosts"]), r["policy"]] for r in best(rows)]
        assert sum("fastest" in line for line in lines) == sum("cheapest" in line for line in lines) == 1
        alone = planned(ranks.MPI.COMM_SELF, shared_tmp, graph, *words)
        assert alone == rows and capfd.readouterr().out.splitlines() == lines
    comm.Barrier()
    assert len(rows) == 15 and all(row["fits"] and row["one_in"] == 1 for row in rows)
    for policy in ("oec", "cvc", "hvc"):
        some = [row["hosts"] * row["host_mb"] for row in rows if row["policy"] == policy]
        assert some == sorted(some)
    for row in best(rows):
        assert row["predicted_ms"] == pytest.approx(sum(row[f"{part}_ms"] for part in Prediction._fields))
        assert row["host_seconds"] == pytest.approx(row["hosts"] * row["predicted_ms"] / 1e3)
    compared = str(shared_tmp / "compared.json")
    cusp(comm, ["compare", graph, *words[:2], "--ranks", "8", "--for", "cc", "--hosts", "8", "--json", compared])
    comm.Barrier()
    found = min(json.loads(Path(compared).read_text()), key=lambda row: row["predicted_ms"])
    [chosen] = [row for row in best(rows) if row["parts"] == 8]
    assert chosen["policy"] == found["policy"]
    assert chosen["predicted_ms"] == pytest.approx(found["predicted_ms"]) and chosen["memory_mb"] == found["memory_mb"]


@pytest.mark.mpi
def test_plan_with_everything(comm, shared_tmp, graph, capfd, monkeypatch):
    """A machine, a run, a picture, a larger graph, a sample of its nodes."""
    machine, run, picture = (str(shared_tmp / name) for name in ("m.toml", "run.json", "plan.png"))
    if comm.rank == 0:
        Path(machine).write_text(HOSTS.replace("64GB", "2GB") + "price = 3.6\n")
        write_run(Path(run), {})
    if SIZE > 1:
        assert run_app(PAGERANK, comm, [graph, "--json", run, "--device", "cpu"]) == 0
    monkeypatch.setattr(plan, "MOST_BITS", 2 * 3000 * 4)
    words = ["--machine", machine, "--run", run, "--ranks", "16,4,8", "--policies", "oec,cvc", "--times", "1000"]
    rows = planned(comm, shared_tmp, graph, *words, "--plot", picture)
    assert [row["parts"] for row in rows] == [4, 4, 8, 8, 16, 16]
    assert [row["one_in"] for row in rows] == [1, 1, 2, 2, 4, 4]
    for row in rows:
        assert row["price"] == pytest.approx(row["host_seconds"] / 1000) and row["times"] == 1000
        assert row["fits"] == (row["host_mb"] * 1e6 <= 2**31)
    assert Path(picture).read_bytes().startswith(b"\x89PNG")
    if comm.rank == 0:
        out = capfd.readouterr().out
        assert "3,000,000 nodes, 30,000,000 edges, 1,000 times the file" in out
        assert "those of a sample of the nodes: one in 2 for 8 ranks, one in 4 for 16 ranks" in out
        assert f"as in {run} on {max(SIZE, 2)} ranks" in out and "price" in out


@pytest.mark.mpi
def test_nothing_fits(comm, shared_tmp, graph, capfd):
    """It is said, with how many hosts would do; or that none would."""
    machine = shared_tmp / "m.toml"
    for memory, said in (("2GB", "none fits: that takes at least "), ("500MB", "none fits, and no number of such")):
        comm.Barrier()
        if comm.rank == 0:
            machine.write_text(HOSTS.replace("64GB", memory))
        comm.Barrier()
        rows = planned(comm, shared_tmp, graph, "--machine", str(machine), "--times", "100000", "--ranks", "4,8")
        assert not any(row["fits"] or row.get("fastest") or row.get("cheapest") for row in rows)
        if comm.rank == 0:
            out = capfd.readouterr().out
            assert said in out and out.count("does not fit") == 2


@pytest.mark.mpi
@pytest.mark.parametrize("option", ["--machine", "--run"])
def test_a_file_that_is_not_there(comm, shared_tmp, graph, option):
    with pytest.raises(InputError, match="no such file"):
        plan.main(comm, [graph, option, str(shared_tmp / "nowhere")])


def test_an_error_ends_all_ranks_with_one_line(tmp_path):
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    (tmp_path / "m.toml").write_text(HOSTS.replace("64GB", "many"))
    words = ["-m", "cusp.commands.plan", tmp_path / "g.h5", "--machine", tmp_path / "m.toml"]
    done = spawn.mpirun(2, *words)
    assert done.returncode == 1 and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "m.toml: memory = 'many': expected bytes of a host or, with gpus, of all its cards, such as" in line
