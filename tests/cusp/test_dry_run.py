"""Dry runs: estimates from a sample compared with what is built, and bounds that hold (cusp/estimates)."""

import graphs
import h5py
import numpy as np
import pytest
import ranks

from cusp.__main__ import main
from cusp.commands.convert import main as convert
from cusp.commands.generate import main as generate
from cusp.errors import GraphFileError, OptionError
from cusp.estimates.dry_run import bounds_of, dry_run
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import Quality
from cusp.estimates.sample import read_sample
from cusp.estimates.sampled_estimate import why_not
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import read_header
from cusp.policies import load_policy
from cusp.policies.compile_rules import compile_policy

SIZE = ranks.COMM.size
STATELESS = ["oec", "iec", "cvc", "hvc", "dbh", "random", "random2d"]
SHARE = 5  # one in this many bytes of a graph file is read


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Function (name) -> path of a generated graph file, made once. On one rank."""
    folder = tmp_path_factory.mktemp("graphs")
    rmat = ["rmat", "--scale", "15", "--drop-loops", "--dedup"]
    how = {
        "kron": [*rmat, "--symmetrize"],
        "directed": rmat,
        "transposed": [*rmat, "--transpose"],
        "road": ["road", "--width", "400", "--height", "300"],
    }

    def graph(name: str) -> str:
        path = folder / f"{name}.h5"
        if not path.exists():
            assert generate(ranks.MPI.COMM_SELF, [*how[name], "--output", str(path)]) == 0
        return str(path)

    return graph


def truth(path: str, policy: str, parts: int) -> Quality:
    """What compare computes."""
    edges = read_slice(path, ranks.MPI.COMM_SELF, weights=False)
    return estimate(edges, load_policy(policy), parts, "edges", ranks.MPI.COMM_SELF).quality


def size_of(path: str) -> int:
    """Bytes of offsets and targets."""
    header = read_header(path)
    return 8 * header.num_nodes + header.num_edges * header.index_dtype.itemsize


@pytest.mark.parametrize("policy", STATELESS)
@pytest.mark.parametrize(
    ("name", "parts", "within", "traffic_within", "memory_within"),
    [
        ("kron", 64, 0.05, 0.1, 0.25),
        ("transposed", 4, 0.05, 0.1, 0.25),
        ("road", 64, 0.05, 0.25, 0.25),
        ("directed", 4, 0.25, 0.5, 0.35),
    ],
)
def test_estimate_beside_the_truth(made, name, within, traffic_within, memory_within, policy, parts):
    """From a fifth of the file: close where in-edges are read, within a quarter where they are guessed."""
    path = made(name)
    header, chosen = read_header(path), load_policy(policy)
    limit = size_of(path) // SHARE
    if policy in ("hvc", "dbh"):  # all degrees have to fit into half of it
        limit = max(limit, 17 * header.num_nodes)
    found = dry_run(header, chosen, parts, "edges", limit, ranks.MPI.COMM_SELF)
    expected = truth(path, policy, parts)
    assert "estimated from" in found.source and found.quality is not None
    assert found.quality.replication == pytest.approx(expected.replication, rel=within)
    assert found.quality.mb_a_round == pytest.approx(expected.mb_a_round, rel=traffic_within)
    assert found.figure("memory_mb") == pytest.approx(expected.memory_mb(), rel=memory_within)
    assert found.low <= found.quality.replication <= found.high
    slack = 0.02 * expected.replication
    assert found.low - slack <= expected.replication <= found.high + slack
    assert 1 <= found.low and found.high <= found.bounds.replication


@pytest.mark.parametrize("policy", [*STATELESS, "fec", "hdrf", "ldg"])
@pytest.mark.parametrize("name", ["star", "complete", "no_edges", "loops_and_doubles", "three_nodes", "random"])
@pytest.mark.parametrize("parts", [3, 64])
def test_bounds_hold(tmp_path, name, policy, parts):
    """Replication and traffic for any policy, memory for one that balances the edges."""
    graph = graphs.HARD[name]()
    path = str(tmp_path / "g.h5")
    graphs.write_here(path, graph)
    bounds, found = bounds_of(read_header(path), parts), truth(path, policy, parts)
    assert found.replication <= bounds.replication + 1e-9
    assert found.mb_a_round <= bounds.mb_a_round + 1e-9
    even = -(-graph.num_edges // parts)
    masters = -(-graph.num_nodes // parts)
    if found.edges.max() <= even and found.masters.max() <= masters:
        assert found.memory_mb() <= bounds.memory_mb


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "fec"])
def test_small_graph_is_computed(comm, shared_tmp, policy):
    """What fits into the limit is computed, not estimated, also for rules with state."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(300, 3000))
    found = dry_run(read_header(path), load_policy(policy), SIZE, "edges", 10**6, comm)
    expected = estimate(read_slice(path, comm), load_policy(policy), SIZE, "edges", comm).quality
    assert found.source.startswith("computed from all edges") and "state" not in found.source
    assert found.quality.summary() == expected.summary()
    assert found.low == found.high == expected.replication
    more = dry_run(read_header(path), load_policy(policy), SIZE + 1, "edges", 10**6, comm)
    assert ("rules with state" in more.source) == (policy == "fec")


def test_sample_keeps_to_its_limit(made):
    """No more bytes than allowed, rows as in the file; the same sample for the same seed, another for another."""
    path = made("kron")
    header = read_header(path)
    with h5py.File(path) as file:
        indptr, targets = file["indptr"][...], file["indices"][...]
    for limit in (2_000, 60_000, 300_000, 1_000_000):
        sample = read_sample(header, limit)
        assert 0 < sample.num_bytes <= limit
        assert (sample.offsets is None) == (8 * indptr.size > limit // 2)
        for block in sample.blocks:
            first, last = indptr[block.first_node], indptr[block.first_node + block.out.indptr.size - 1]
            assert np.array_equal(block.out.ends, targets[first:last][: block.out.ends.size])
    assert sum(b.nodes * (b.out.indptr.size - 1) for b in sample.blocks) == pytest.approx(header.num_nodes)
    assert sum(b.edges * b.out.ends.size for b in sample.blocks) == pytest.approx(header.num_edges, rel=0.02)
    firsts = [[b.first_node for b in read_sample(header, limit, seed).blocks] for seed in (1, 1, 2)]
    assert firsts[0] == firsts[1] != firsts[2]


def test_hub_is_cut(tmp_path):
    """A row longer than the limit: a part of it is read, and counts for the whole."""
    graph = graphs.make(50_000, [(7, target) for target in range(50_000)])
    graphs.write_here(tmp_path / "g.h5", graph)
    header = read_header(str(tmp_path / "g.h5"))
    found = dry_run(header, load_policy("random2d"), 16, "edges", 60_000, ranks.MPI.COMM_SELF)
    assert found.quality.edges.sum() in (0, pytest.approx(50_000, rel=0.01))
    assert read_sample(header, 60_000).num_bytes <= 60_000


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("fec", "its rules have state"),
        ("hdrf", "its rules have state"),
        ("dbh", "its edge rule asks for degrees"),
        ("asks_rank.py", "prop.in_degree"),
        ("by_degree.py", "only the reader"),
    ],
)
def test_no_guess_without_grounds(made, tmp_path, policy, reason):
    """Rules that a sample cannot answer get bounds and the reason, not a number."""
    edge = "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n    return prop.in_degree(src) % 2\n"
    node = "def get_master(prop, node, mstate, masters):\n    return prop.out_degree(node) % prop.num_parts\n"
    (tmp_path / "asks_rank.py").write_text(edge)
    (tmp_path / "by_degree.py").write_text(node)
    chosen = load_policy(str(tmp_path / policy) if policy.endswith(".py") else policy)
    header = read_header(made("kron"))
    limit = 12 * header.num_nodes  # not enough for all degrees
    assert reason in why_not(compile_policy(chosen), read_sample(header, limit))
    found = dry_run(header, chosen, 4, "edges", limit, ranks.MPI.COMM_SELF)
    assert found.quality is None and reason in found.source and "compare" in found.source


@pytest.mark.mpi
def test_command(comm, shared_tmp, capsys):
    """The table: an estimate with its bound beside it for any number of ranks; dashes where nothing was read."""
    path = str(shared_tmp / "g.h5")
    assert generate(comm, ["rmat", "--scale", "12", "--symmetrize", "--dedup", "--output", path]) == 0
    capsys.readouterr()
    for sample in ("0.2", "0", "64"):
        assert main(comm, [path, "--policy", "cvc", "--dry-run", "--ranks", "16", "--sample", sample]) == 0
        text = capsys.readouterr().out
        if comm.rank > 0:
            assert text == ""
            continue
        rows = {line[:31].strip(): line[31:].split() for line in text.splitlines()[3:-1] if len(line[31:].split()) == 2}
        assert "policy cvc on 16 ranks" in text and len(rows) == 5
        for name, (value, bound) in rows.items():
            assert (value == "-") == (sample == "0"), name
            assert sample == "0" or 0 < float(value) <= float(bound), name
        assert ("is likely between" in text) == (sample == "0.2")
    with pytest.raises(OptionError, match="only with --dry-run"):
        main(comm, [path, "--ranks", "16"])


def test_damaged_target(made, tmp_path):
    """A node that does not exist is named, though only a part of the file is read."""
    path = tmp_path / "g.h5"
    assert convert(ranks.MPI.COMM_SELF, [made("directed"), "-o", str(path)]) == 0
    with h5py.File(path, "r+") as file:
        file["indices"][:] = 1 << 20
    with pytest.raises(GraphFileError, match="has the entry 1,048,576"):
        read_sample(read_header(str(path)), 100_000)
