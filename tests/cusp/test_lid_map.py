"""From global to local ids by counting bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.kernels import build_cpu as build
from cusp.lid_map import LidMap, map_lids


def make(num_nodes: int, gids: np.ndarray) -> LidMap:
    """A map in which ``gids[lid]`` has the local id ``lid``."""
    index = np.zeros(2 * -(-num_nodes // 64), np.uint64)
    build.mark(index, gids)
    assert build.count_below(index) == gids.size
    ascending = np.empty(gids.size, np.int64)
    build.list_marked(index, ascending)
    np.testing.assert_array_equal(ascending, np.sort(gids))
    table = np.empty(gids.size, np.int32)
    table[np.searchsorted(ascending, gids)] = np.arange(gids.size)
    return LidMap(index, table)


@settings(max_examples=50)
@given(num_nodes=st.integers(1, 300), seed=st.integers(0, 1000), share=st.sampled_from([0, 0.02, 0.5, 1]))
def test_any_set(num_nodes, seed, share):
    """Every node that has a local id gets it; all others get -1."""
    rng = np.random.default_rng(seed)
    gids = rng.permutation(num_nodes)[: round(num_nodes * share)]
    expected = np.full(num_nodes, -1, np.int32)
    expected[gids] = np.arange(gids.size)
    for lid_map in (make(num_nodes, gids), map_lids(num_nodes, gids)):
        lids = lid_map.lids(np.arange(num_nodes))
        assert lids.dtype == np.int32
        np.testing.assert_array_equal(lids, expected)


@pytest.mark.parametrize("num_nodes", [1, 63, 64, 65, 128, 129])
@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint64, np.int32])
def test_edges_of_words(num_nodes, dtype):
    """First and last bits of words, ids of every type."""
    gids = np.array([gid for gid in (0, 62, 63, 64, 65, 127, 128) if gid < num_nodes][::-1])
    lid_map = make(num_nodes, gids)
    np.testing.assert_array_equal(lid_map.lids(gids.astype(dtype)), np.arange(gids.size))
    assert lid_map.lids(np.empty(0, dtype)).size == 0
    beyond = np.array([-(num_nodes // -64) * 64, 10**6, np.iinfo(dtype).max, np.iinfo(dtype).min or 10**9], dtype)
    np.testing.assert_array_equal(lid_map.lids(beyond), [-1] * 4)
