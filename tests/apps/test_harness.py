"""The command line of the apps: sources, trials, rows, answers in files, the run without arguments, the cache."""

import dataclasses
import json
import os
from pathlib import Path

import graphs
import h5py
import numpy as np
import parts
import pytest
import spawn

from cusp.apps import bfs, communities, sssp, triangles
from cusp.apps.harness import main
from cusp.apps.verify import VerificationError
from cusp.errors import OptionError

RUN = {"bfs": bfs.APP, "sssp": sssp.APP}
KEYS = {
    "app", "graph", "nodes", "edges", "policy", "ranks", "device", "transport", "source", "trial", "seconds",
    "partition_seconds", "phases", "rounds", "messages", "mb_sent", "replication", "edge_balance", "peak_mb",
    "verified", "commit",
}  # fmt: skip
PHASES = {"read", "assign_masters", "assign_edges", "allocate", "construct", "plan", "prepare"}


@pytest.fixture
def run(comm, shared_tmp):
    """Function (app, graph, arguments) -> rows of a run on all ranks."""
    count = iter(range(100))

    def rows(app: str, graph: graphs.Graph, *arguments) -> list[dict]:
        name = f"{next(count)}"
        path = graphs.write(shared_tmp / "my_graph.h5", graph)
        assert main(RUN[app], comm, [path, *map(str, arguments), "--rows", str(shared_tmp / name)]) == 0
        comm.Barrier()
        return [json.loads(line) for line in (shared_tmp / name).read_text().splitlines()]

    return rows


@pytest.mark.mpi
@pytest.mark.parametrize("app", list(RUN))
def test_rows(run, comm, app):
    """A row a trial with all keys, true to the graph and the run."""
    graph = graphs.random_directed()
    rows = run(app, graph, "--policy", "iec", "--sources", 3, "--trials", 2, "--verify")
    assert len(rows) == 6
    for place, row in enumerate(rows):
        assert row.keys() >= KEYS
        assert row["phases"].keys() == PHASES
        assert (row["app"], row["graph"], row["policy"], row["ranks"], row["device"]) == (
            app, "my_graph", "iec", comm.size, parts.PLACEMENT.name,
        )  # fmt: skip
        assert (row["nodes"], row["edges"], row["trial"]) == (graph.num_nodes, graph.num_edges, place % 2)
        assert row["verified"] is (True if row["trial"] == 0 else None)
        assert row["source"] == rows[place // 2 * 2]["source"]
        assert 0 < row["seconds"] < 60 and 0 < row["partition_seconds"] < 60
        assert sum(row["phases"].values()) > 0 and min(row["phases"].values()) >= 0
        assert row["replication"] >= 1 and row["edge_balance"] >= 1 and row["peak_mb"] > 10
        assert row["rounds"] >= 1
        assert (row["messages"] > 0) == (row["mb_sent"] > 0) == (comm.size > 1)
        reached = graphs.serial_hops(graph, row["source"]) >= 0
        assert row["reached"] == np.count_nonzero(reached)
        assert row["traversed_edges"] == graph.degrees[reached].sum()
    assert len({row["source"] for row in rows}) == 3


@pytest.mark.mpi
@pytest.mark.parametrize("app", [triangles.APP, communities.APP])
def test_messages_that_are_no_labels_count(comm, shared_tmp, app):
    """Rows of neighbours, and what communities tell each other."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    main(app, comm, [path, "--rows", str(shared_tmp / "rows")])
    comm.Barrier()
    row = json.loads((shared_tmp / "rows").read_text())
    assert (row["messages"] > 0) == (row["mb_sent"] > row["mb_reduced"] + row["mb_broadcast"]) == (comm.size > 1)


@pytest.mark.mpi
def test_rows_are_appended(comm, shared_tmp):
    """An older row stays, and each is a line."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["star"]())
    for _ in range(2):
        main(RUN["bfs"], comm, [path, "--source", "0", "--rows", str(shared_tmp / "rows")])
    comm.Barrier()
    assert [json.loads(line)["source"] for line in (shared_tmp / "rows").read_text().splitlines()] == [0, 0]


@pytest.mark.mpi
def test_sources_do_not_depend_on_the_partition(run):
    """Seeded nodes with out-edges: the same for any policy and order, and at any number of ranks."""
    graph = graphs.HARD["first_isolated"]()
    drawn = {}
    for policy, order in (("oec", "degree"), ("oec", "natural"), ("iec", "degree"), ("random", "natural")):
        rows = run("bfs", graph, "--policy", policy, "--order", order, "--sources", 5)
        drawn[policy, order] = [row["source"] for row in rows]
    first = drawn["oec", "degree"]
    assert all(sources == first for sources in drawn.values())
    assert first == [68, 67, 62, 56, 52]  # found on one rank; any other number of ranks must draw these
    assert (graph.degrees[first] > 0).all()
    other = [row["source"] for row in run("bfs", graph, "--sources", 5, "--seed", 2)]
    assert other != first and (graph.degrees[other] > 0).all()


@pytest.mark.mpi
def test_fewer_sources_than_asked_for(run, comm, capfd):
    """As many as there are, with a warning."""
    rows = run("bfs", graphs.HARD["star"](), "--sources", 4)
    assert [row["source"] for row in rows] == [0]
    assert ("warning: --sources 4" in capfd.readouterr().err) == (comm.rank == 0)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "policy"),
    [("random", policy) for policy in ("oec", "iec", "hvc", "random2d", str(parts.FOLDER / "helper.py"))]
    + [(name, "cvc") for name in ("random", "last_isolated", "two_nodes", "one_node")],
    ids=os.path.basename,
)
def test_output(comm, shared_tmp, name, policy):
    """Entry v of each dataset is the answer for node v."""
    graph = graphs.HARD[name]()
    path, answer = graphs.write(shared_tmp / "g.h5", graph), shared_tmp / "answer.h5"
    source = int(graph.degrees.argmax())
    common = [path, "--policy", policy, "--source", str(source), "--output", str(answer), "--verify"]
    main(RUN["bfs"], comm, [*common, "--parents"])
    comm.Barrier()
    with h5py.File(answer) as file:
        assert set(file) == {"hops", "parents"}
        hops, parents = file["hops"][...], file["parents"][...]
    comm.Barrier()
    assert (hops.dtype, parents.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(hops, graphs.serial_hops(graph, source))
    np.testing.assert_array_equal(parents < 0, hops < 0)
    main(RUN["sssp"], comm, common)
    comm.Barrier()
    with h5py.File(answer) as file:
        assert set(file) == {"distance"}
        distances = file["distance"][...]
    assert distances.dtype == np.int64
    np.testing.assert_array_equal(distances, graphs.serial_distances(graph, source))
    assert sorted(os.listdir(shared_tmp)) == ["answer.h5", "g.h5"]


@pytest.mark.mpi
@pytest.mark.parametrize("app", list(RUN))
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "hvc", "fec", "dbh", "hdrf"])
def test_every_policy_is_verified(run, app, policy):
    """Each built-in policy by its name, from the command line."""
    rows = run(app, graphs.HARD["hub"](), "--policy", policy, "--threshold", 2, "--verify", "--sources", 2)
    assert [row["verified"] for row in rows] == [True, True]


@pytest.mark.mpi
def test_a_wrong_answer_ends_the_run(comm, shared_tmp):
    """On every rank, and no row is written."""

    def damaged(part, sync, source, prepared, options):
        answer = bfs.APP.run(part, sync, source, prepared, options)
        if part.num_nodes == 60:  # not in the warm-up
            answer.labels["hops"][part.gids[: part.num_masters] == 17] += 1
        return answer

    path, rows = graphs.write(shared_tmp / "g.h5", graphs.random_directed()), shared_tmp / "rows"
    app = dataclasses.replace(bfs.APP, run=damaged)
    with pytest.raises(VerificationError, match="the answer is wrong: hops"):
        main(app, comm, [path, "--source", "3", "--verify", "--rows", str(rows)])
    assert not rows.exists()


@pytest.mark.mpi
def test_what_is_printed(comm, shared_tmp, capfd):
    """Rank 0 alone shows the graph, the table of ranks and each trial."""
    path = graphs.write(shared_tmp / "road.h5", graphs.random_directed())
    main(RUN["bfs"], comm, [path, "--sources", "2", "--verify"])
    out, err = capfd.readouterr()
    if comm.rank > 0:
        assert out == ""
    else:
        assert "graph road: 60 nodes, 300 edges, directed" in out
        assert "replication factor" in out and out.count("bfs from") == 2 and out.count(", verified") == 2
    assert err == ""


@pytest.mark.parametrize(("app", "ranks"), [("bfs", 1), ("sssp", 1), ("bfs", 2)])
def test_without_arguments(app, ranks):
    """A newcomer's first command."""
    done = spawn.mpirun(ranks, "-m", f"cusp.apps.{app}", "--verify", launcher=ranks > 1, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout and f"device: {parts.DEVICE}" in done.stdout and done.stderr == ""
    assert done.stdout.startswith("no graph was named: this is rmat16, a random one, made for this run\n")


@pytest.mark.mpi
def test_a_name_without_a_graph(comm):
    """A node of the user's own graph, which was forgotten, is not looked for in a random one."""
    with pytest.raises(OptionError, match="--source Zürich: the graph has the nodes 0 to 65535, and they have no"):
        main(RUN["bfs"], comm, ["--source", "Zürich", "--device", parts.WANTED])


@pytest.mark.parametrize("app", list(RUN))
def test_help(app):
    """--help names every option, also without a graph, and starts nothing."""
    done = spawn.mpirun(1, "-m", f"cusp.apps.{app}", "--help", launcher=False, timeout=30)
    assert done.returncode == 0 and done.stderr == ""
    for option in ("--policy", "--grid", "--source", "--trials", "--verify", "--output", "--rows"):
        assert option in done.stdout


def compiled(folder: Path) -> dict[str, float]:
    """Files of machine code for the CPU and for the GPU, with the time of their last change."""
    files = [path for form in ("*.nb*", "*.cubin", "*.so") for path in folder.rglob(form)]
    return {str(path): path.stat().st_mtime_ns for path in files}


@pytest.mark.limit(200)
def test_a_second_run_compiles_nothing(tmp_path):
    """The first run keeps all that it compiled, the rules too; the second, on another graph, adds nothing.

    test_cache.py has two processes that compile at once.
    """
    cache = tmp_path / "cache"
    env = {"CUSP_CACHE": cache, "NUMBA_CACHE_DIR": cache / "numba", "CUPY_CACHE_DIR": cache / "kernels"}
    seen = []
    for seed in (1, 2):
        graphs.write_here(tmp_path / "g.h5", graphs.random_directed(500, 4000, seed))
        policy = parts.FOLDER / "helper.py"
        arguments = [
            "-m",
            "cusp.apps.cc",  # fewer loops than bfs
            tmp_path / "g.h5",
            "--policy",
            policy,
            "--verify",
            "--output",
            tmp_path / "h.h5",
        ]
        done = spawn.mpirun(1, *arguments, env={key: str(path) for key, path in env.items()}, timeout=150)
        assert done.returncode == 0, done.stderr
        assert parts.DEVICE == "gpu" or (" s to compile " in done.stdout) == (seed == 1)
        seen.append(compiled(cache))
    assert len(seen[0]) > 10
    assert (parts.DEVICE == "gpu") == any(".nb" not in path for path in seen[0])
    assert seen[1] == seen[0]
