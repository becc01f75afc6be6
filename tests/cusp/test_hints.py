"""What is told to those who watch (cusp/program/hints.py)."""

from dataclasses import replace

import numpy as np
import pytest

from cusp.estimates.quality import Quality
from cusp.policies import load_policy
from cusp.program.hints import about_partition, about_run


def quality(ranks: int, replication: float = 1.5) -> Quality:
    """That of an even partition of 100 nodes for each rank."""
    one = np.ones(ranks, np.int64)
    proxies = (100 * replication * one).astype(np.int64)
    mirrors = np.ones((ranks, ranks), np.int64) - np.eye(ranks, dtype=np.int64)
    return Quality(100 * one, proxies, 1000 * one, mirrors, one, one, 100 * ranks)


@pytest.mark.parametrize(
    ("policy", "ranks", "words"),
    [("cvc", 5, "5 ranks make a grid of 5x1"), ("cvc", 7, "6 (3x2) or 8 (4x2)"), ("cvc", 6, ""), ("cvc", 3, ""),
     ("oec", 5, "")],
)  # fmt: skip
def test_grids_of_one_row(policy, ranks, words):
    """Only where a rule looks at the grid."""
    found = about_partition(load_policy(policy), quality(ranks))
    assert words in found[0] if words else found == []


def test_much_replication():
    assert "on 7.0 of 8 ranks" in about_partition(load_policy("oec"), quality(8, 7.0))[0]
    assert about_partition(load_policy("oec"), quality(8, 5.0)) == []


def test_neighbours_on_different_ranks():
    """Where a step along a path is a message: on sparse graphs of which most nodes are on several ranks."""
    spread = quality(2, 1.9)
    sparse = replace(spread, edges=np.full(2, 100))
    (found,) = about_partition(load_policy("random2d"), sparse)
    assert "policy random2d puts neighbours on different ranks" in found and "oec" in found
    assert about_partition(load_policy("random2d"), spread) == []
    assert about_partition(load_policy("oec"), replace(quality(2, 1.1), edges=np.full(2, 100))) == []


@pytest.mark.parametrize(
    ("ranks", "edges", "local", "cores", "words"),
    [(4, 10**9, 4, 2, "4 ranks share 2 cores"), (2, 10**5, 2, 2, "100,000 edges are few for 2 ranks"),
     (2, 10**7, 2, 2, ""), (1, 10, 1, 2, ""), (4, 10**5, 2, 2, "")],
)  # fmt: skip
def test_ranks_that_do_not_pay(ranks, edges, local, cores, words):
    """Too many for the cores, or for the graph; ranks on several hosts have their reasons."""
    found = about_run(quality(ranks), edges, local, cores)
    assert words in found[0] if words else found == []
