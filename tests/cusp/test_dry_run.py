"""Dry runs: the figures of a partition that is not built, and bounds that hold (cusp/estimates)."""

import re

import graphs
import pytest
import ranks

from cusp.__main__ import main
from cusp.commands.generate import main as generate
from cusp.errors import OptionError
from cusp.estimates.dry_run import bounds_of, dry_run
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import Quality
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import read_header
from cusp.policies import load_policy

SIZE = ranks.COMM.size
ON_RANK_0 = r"before, rank 0 collects ([\d,]+) edges with --threshold (\d+), which take at most ([\d.]+) MB"
STATELESS = ["oec", "iec", "cvc", "hvc", "dbh", "random", "random2d"]


def truth(path: str, policy: str, parts: int) -> Quality:
    """What compare computes."""
    edges = read_slice(path, ranks.MPI.COMM_SELF, weights=False)
    return estimate(edges, load_policy(policy), parts, "edges", ranks.MPI.COMM_SELF).quality


@pytest.mark.parametrize("policy", [*STATELESS, "fec", "hdrf", "ldg"])
@pytest.mark.parametrize("name", ["star", "complete", "no_edges", "loops_and_doubles", "three_nodes", "random"])
@pytest.mark.parametrize("parts", [3, 64])
def test_bounds_hold(tmp_path, name, policy, parts):
    """Replication and traffic for any policy, memory for one that balances the edges."""
    graph = graphs.HARD[name]()
    path = str(tmp_path / "g.h5")
    graphs.write_here(path, graph)
    bounds, found = bounds_of(read_header(path), parts), truth(path, policy, parts)
    assert found.replication <= bounds["replication"] + 1e-9
    assert found.mb_a_round <= bounds["mb_a_round"] + 1e-9
    even = -(-graph.num_edges // parts)
    masters = -(-graph.num_nodes // parts)
    if found.edges.max() <= even and found.masters.max() <= masters:
        assert found.memory_mb() <= bounds["memory_mb"]


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "fec"])
def test_figures(comm, shared_tmp, policy):
    """Those of compare; rules with state that ran on another number of ranks are said to."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(300, 3000))
    found = dry_run(read_header(path), load_policy(policy), SIZE, "edges", comm)
    expected = estimate(read_slice(path, comm), load_policy(policy), SIZE, "edges", comm).quality
    assert found.note == "" and found.quality.summary() == expected.summary()
    more = dry_run(read_header(path), load_policy(policy), SIZE + 1, "edges", comm)
    assert ("rules with state" in more.note) == (policy == "fec")


@pytest.mark.mpi
def test_command(comm, shared_tmp, capsys):
    """The table: a figure with its bound beside it for any number of ranks."""
    path = str(shared_tmp / "g.h5")
    assert generate(comm, ["rmat", "--scale", "12", "--symmetrize", "--dedup", "--output", path]) == 0
    capsys.readouterr()
    assert main(comm, [path, "--policy", "cvc", "--dry-run", "--ranks", "16"]) == 0
    text = capsys.readouterr().out
    rows = {line[:31].strip(): line[31:].split() for line in text.splitlines()[3:-1]}
    if comm.rank == 0:
        assert "policy cvc on 16 ranks" in text and len(rows) == 5
        assert all(0 < float(value) <= float(bound) for value, bound in rows.values())
    else:
        assert text == ""
    assert "rank 0 collects" not in text
    with pytest.raises(OptionError, match="only with --dry-run"):
        main(comm, [path, "--ranks", "16"])


@pytest.mark.mpi
def test_memory_of_rank_0(comm, shared_tmp, capsys):
    """What hep collects there, with the threshold of a limit, and with that of the user."""
    path = str(shared_tmp / "g.h5")
    assert generate(comm, ["rmat", "--scale", "12", "--symmetrize", "--dedup", "--output", path]) == 0
    for options in (["--memory-limit", "1M"], ["--threshold", "30"], []):
        capsys.readouterr()
        assert main(comm, [path, "--policy", "hep", "--dry-run", "--ranks", "70", *options]) == 0
        text = capsys.readouterr().out
        if comm.rank == 0:
            edges, threshold, megabytes = re.search(ON_RANK_0, text).groups()
            assert 0 < int(edges.replace(",", "")) < 50_000
            if "--memory-limit" in options:
                assert 0.95 < float(megabytes) <= 1.05
            if "--threshold" in options:
                assert threshold == "30"
    with pytest.raises(OptionError, match="200,000 bytes are not enough for policy hep, .* at least 360,448 besides"):
        main(comm, [path, "--policy", "hep", "--dry-run", "--ranks", "70", "--memory-limit", "200000"])
