"""The predicted time of an algorithm, and ``--policy auto`` (cusp/estimates/cost.py, cusp/program/choose.py)."""

import json
from dataclasses import replace

import graphs
import numpy as np
import pytest
import ranks

from cusp import partition_graph
from cusp.__main__ import main
from cusp.apps.bfs import APP as BFS
from cusp.apps.graph500.__main__ import main as graph500
from cusp.apps.harness import main as run_app
from cusp.errors import OptionError, PolicyError
from cusp.estimates.cost import THREADS, Cluster, Prediction, predict
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import Quality
from cusp.input.edge_slice import read_slice
from cusp.output.manifest import read_manifest
from cusp.policies import load_policy
from cusp.program.choose import CANDIDATES, best_of
from cusp.program.cli import num_rate

SIZE = ranks.COMM.size
ONE_HOST = Cluster(1, 4, 1e9)


def quality(parts: int, edges: int = 10**6, mirrors: int = 10**4) -> Quality:
    """That of an even partition, whose parts all share so many mirrors with each other one."""
    one = np.ones(parts, np.int64)
    pairs = mirrors * (np.ones((parts, parts), np.int64) - np.eye(parts, dtype=np.int64))
    held = pairs.sum(axis=1)
    return Quality(10**5 * one, 10**5 + held, edges * one, pairs, held, 0 * one, 10**5 * parts)


def test_a_round():
    """Work by what each part and each host has; bytes over the link of the busiest host."""
    alone = predict(quality(4), "pagerank", ONE_HOST)
    assert alone.network == 0 and alone.work > alone.exchange > 0
    assert predict(quality(4, edges=2 * 10**6), "pagerank", ONE_HOST).work > 1.5 * alone.work
    assert predict(quality(4, mirrors=10**5), "pagerank", ONE_HOST).exchange > 5 * alone.exchange
    both_ways = replace(quality(4), mirrors_out=quality(4).mirrors_in)
    assert predict(both_ways, "pagerank", ONE_HOST).exchange == pytest.approx(2 * alone.exchange)
    few_cores = predict(quality(4), "pagerank", Cluster(1, 1, 1e9))
    assert few_cores.work == pytest.approx(4 * alone.work)
    many_cores = predict(quality(4), "pagerank", Cluster(1, 16, 1e9))
    assert many_cores.work == pytest.approx(alone.work / 4**THREADS)
    cards = predict(quality(4), "pagerank", Cluster(1, 16, 1e9, gpus=True))
    assert cards.work == pytest.approx(alone.work / 4)
    apart = predict(quality(4), "pagerank", Cluster(4, 1, 1e6))
    assert apart.network == pytest.approx(3 * 10**4 * 8 / 1e6)  # what a host sends, once
    assert predict(quality(4), "bfs", Cluster(4, 1, 1e6)).network < apart.network
    paired = predict(quality(4), "pagerank", Cluster(2, 2, 1e6))
    assert paired.network == pytest.approx(4 * 10**4 * 8 / 1e6)  # two parts of a host, each to two of the other
    assert predict(quality(4), "someones", ONE_HOST) == alone
    assert alone.rounds == predict(quality(8), "pagerank", ONE_HOST).rounds > cards.rounds > 0
    whole = predict(quality(1), "pagerank", ONE_HOST)
    assert whole.work > 0 and whole.rounds == whole.exchange == whole.network == 0
    assert "ms" in str(alone) and "network" not in str(alone)


def test_uneven_parts_count_by_the_largest():
    even = quality(4)
    uneven = replace(even, edges=np.array([1, 1, 1, 37]) * 10**5)
    assert predict(uneven, "sssp", ONE_HOST).work > 2 * predict(even, "sssp", ONE_HOST).work


def test_the_first_of_those_that_are_alike():
    assert best_of([1.0, 0.99, 1.2]) == 0
    assert best_of([1.0, 0.9, 0.89]) == 1
    assert best_of([1.0, 0.5, 0.4]) == 2


@pytest.mark.parametrize(("text", "rate"), [("1gbit", 125e6), ("100Mbit", 12.5e6), ("2.5gbit", 312.5e6)])
def test_rates(text, rate):
    assert num_rate(text) == rate


@pytest.mark.mpi
@pytest.mark.parametrize("policy", CANDIDATES)
def test_a_sample_of_the_nodes(comm, shared_tmp, policy):
    """Mirrors within what one node in four can say; edges and masters are those of all."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(20_000, 60_000))
    edges = read_slice(path, comm)
    whole = estimate(edges, load_policy(policy), 6, "edges", comm)
    some = estimate(edges, load_policy(policy), 6, "edges", comm, one_in=4)
    assert np.array_equal(some.quality.edges, whole.quality.edges)
    assert np.array_equal(some.quality.masters, whole.quality.masters)
    assert some.quality.replication == pytest.approx(whole.quality.replication, rel=0.02)
    assert some.quality.mirrors_in.sum() == pytest.approx(whole.quality.mirrors_in.sum(), rel=0.05)
    assert some.quality.mirrors == pytest.approx(whole.quality.mirrors, rel=0.2, abs=60)
    assert some.cut_edges == pytest.approx(whole.cut_edges, rel=0.05)


@pytest.fixture
def skewed(shared_tmp) -> str:
    """A graph without locality in which a few nodes have most edges: cutting them pays."""
    rng = np.random.default_rng(1)
    pairs = (20_000 * rng.random((60_000, 2)) ** 6).astype(int)
    scattered = rng.permutation(20_000)[pairs]
    return graphs.write(shared_tmp / "skewed.h5", graphs.both_ways(graphs.make(20_000, scattered)))


@pytest.fixture
def local(shared_tmp) -> str:
    """A lattice, in the order of its rows."""
    return graphs.write(shared_tmp / "local.h5", graphs.both_ways(graphs.make(10_000, graphs.lattice(10_000, 100))))


@pytest.mark.mpi(min_size=2)
def test_auto_partitions(comm, shared_tmp, skewed, local, capfd):
    """It takes what suits the graph, says why, and saves under the name of what it took."""
    for path, expected in ((skewed, "dbh"), (local, "oec")):
        folder = str(shared_tmp / f"{expected}-parts")
        main(comm, ["partition", path, "--policy", "auto", "--save", folder, "--device", "cpu"])
        comm.Barrier()
        if comm.rank == 0:
            out = capfd.readouterr().out
            assert f"policy auto: {expected}, with which all labels" in out
            assert f"policy {expected}: replication" in out
        assert read_manifest(folder).policy == expected


@pytest.mark.mpi
def test_auto_in_apps(comm, skewed, capfd):
    """As an option of a search, whose answer is right, and as a keyword for a graph in memory."""
    assert run_app(BFS, comm, [skewed, "--policy", "auto", "--verify", "--device", "cpu"]) == 0
    comm.Barrier()
    if comm.rank == 0:
        out = capfd.readouterr().out
        assert "one part is the same with any" in out if SIZE == 1 else "with which all labels of bfs" in out
    graph = partition_graph(read_slice(skewed, comm), "auto", comm=comm, device="cpu")
    assert graph.policy.name in (CANDIDATES if SIZE > 1 else CANDIDATES[:1])


@pytest.mark.mpi
def test_compare_for(comm, shared_tmp, skewed, capfd):
    """Sorted by the prediction, which a slow link changes; in the figures, too."""
    figures = str(shared_tmp / "figures.json")
    words = ["compare", skewed, "--policies", "oec,dbh,cvc", "--ranks", "8", "--for", "pagerank"]
    main(comm, [*words, "--hosts", "4", "--cores", "2", "--link", "100mbit", "--json", figures])
    comm.Barrier()
    if comm.rank == 0:
        out = capfd.readouterr().out
        assert "by the ms in which all labels of pagerank change once" in out
        with open(figures) as file:
            rows = json.load(file)
        listed = [line.split()[0] for line in out.splitlines() if line.startswith(("oec", "dbh", "cvc"))]
        assert listed == [row["policy"] for row in sorted(rows, key=lambda row: row["predicted_ms"])]
        for row in rows:
            assert row["predicted_ms"] == pytest.approx(sum(row[f"{part}_ms"] for part in Prediction._fields))
            assert row["network_ms"] > row["exchange_ms"] and row["hosts"] == 4


@pytest.mark.mpi
def test_compare_for_what_was_never_measured(comm, local, capfd):
    main(comm, ["compare", local, "--policies", "oec,cvc", "--for", "someones"])
    comm.Barrier()
    if comm.rank == 0:
        assert "--for someones: what it costs was never measured; predicted as pagerank" in capfd.readouterr().err


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("words", "said"),
    [(["compare", "--for", ""], "--for: expected an algorithm"),
     (["compare", "--hosts", "2"], "add --for APP"), (["compare", "--cores", "2"], "add --for APP"),
     (["compare", "--for", "cc", "--ranks", "4", "--hosts", "5"], "--hosts 5: more than 4 parts"),
     (["compare", "--policies", "oec,auto"], "--policy auto: is for cusp partition and for apps"),
     (["partition", "--policy", "auto", "--memory-limit", "1G"], "name a policy")],
)  # fmt: skip
def test_what_cannot_be_predicted(comm, local, words, said):
    with pytest.raises((OptionError, PolicyError)) as error:
        main(comm, [words[0], local, *words[1:]])
    assert said in str(error.value)


@pytest.mark.mpi
def test_auto_needs_a_graph(comm):
    with pytest.raises(PolicyError) as error:
        graph500(comm, ["--scale", "5", "--policy", "auto"])
    assert "name one here" in str(error.value)


def test_a_rate_that_is_none(capsys):
    with pytest.raises(SystemExit) as ending:
        main(ranks.MPI.COMM_SELF, ["compare", "g.h5", "--link", "fast"])
    assert ending.value.code == 2
    assert "fast: expected the rate of a network" in capsys.readouterr().err
