"""The rungs of the ladder: every one of them finds the hops that a serial search finds, and counts what it looks at."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import graphs
import numpy as np
import parts
import pytest

from scripts.bench import __main__ as bench
from scripts.bench.ladder.bench import draw, tables
from scripts.bench.shared.rows import read_rows

WIDE = 3000  # leaves: more than a block's own queue holds, and than a block of the largest size has threads


def spread() -> graphs.Graph:
    """A path to a hub with many leaves, each with a leaf of its own, and one of these with a path again."""
    path = [(v, v + 1) for v in range(4)]
    leaves = [(4, 5 + v) for v in range(WIDE)] + [(5 + v, 5 + WIDE + v) for v in range(WIDE)]
    tail = [(4 + 2 * WIDE + v, 5 + 2 * WIDE + v) for v in range(6)]
    middling = [(2, 20 + v) for v in range(40)]  # a row for a warp
    return graphs.make(12 + 2 * WIDE, path + leaves + tail + middling)


def dense() -> graphs.Graph:
    """Most edges of a level lead back, so that a search in both directions pulls, and pushes again to a long tail."""
    rng = np.random.default_rng(3)
    tail = [(v, v + 1) for v in range(599, 620)]
    return graphs.make(630, [*rng.integers(0, 600, (6000, 2)).tolist(), *tail])


SHAPES = graphs.HARD | {
    "spread": spread,
    "dense": dense,
    "lattice": lambda: graphs.make(70 * 9, graphs.lattice(70 * 9, 9)),
}


@pytest.fixture
def measure():
    """The module that has the rungs."""
    if parts.DEVICE != "gpu":
        pytest.skip("needs --device gpu")
    from scripts.bench.ladder import measure

    return measure


def on_device(measure, graph: graphs.Graph):
    """A symmetric graph for the ladder."""
    import cupy as cp

    from scripts.bench.shared.gpu_graphs import partition_of

    keys = np.sort(graph.sources << 32 | graph.targets)
    return measure.graph_of(partition_of(cp.asarray(keys), graph.num_nodes))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rung_finds_the_hops_of_a_serial_search(measure, shape):
    graph = graphs.both_ways(SHAPES[shape]())
    there = on_device(measure, graph)
    gids = there.part.gids.get()
    for gid in {0, graph.num_nodes // 3, graph.num_nodes - 1}:
        expected = graphs.serial_hops(graph, gid)
        source = measure.Source(gid, int(np.flatnonzero(gids == gid)[0]))
        for name, rung in measure.RUNGS.items():
            found = rung.run(there, source)
            assert np.array_equal(found.hops.get(), expected[gids]), (name, gid)
            least = expected.max() + (name not in ("cusp bfs", "matrix products"))
            assert least <= found.levels <= expected.max() + 1, (name, gid)


def test_one_block_and_the_grid_take_turns(measure, monkeypatch):
    """Here frontiers of four nodes are too large for a block; small and large ones follow each other in every order."""
    monkeypatch.setattr("scripts.bench.ladder.rungs.MOST", 3)
    sizes = [1, 5, 2, 2, 6, 1, 7, 7, 3, 5, 5, 5, 1, 1, 1, 4, 2, 6]
    layers = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    pairs = [(u, v) for near, far in pairwise(layers) for u in near for v in far]
    there = on_device(measure, graphs.both_ways(graphs.make(sum(sizes), pairs)))
    gids = there.part.gids.get()
    found = measure.RUNGS["one block"].run(there, measure.Source(0, int(np.flatnonzero(gids == 0)[0])))
    assert np.array_equal(found.hops.get(), np.repeat(np.arange(len(sizes)), sizes)[gids])
    assert found.levels == len(sizes)


def counters_of(measure, monkeypatch, name: str, graph: graphs.Graph):
    """The three counters that a search reads after each level, and the degrees of the nodes that it finds."""
    there = on_device(measure, graph)
    ((source, hops),) = measure.choose_sources(there, 1).items()
    seen, found = [], type(there).found
    monkeypatch.setattr(type(there), "found", lambda *of: seen.append(found(*of)) or seen[-1])
    measure.RUNGS[name].run(there, source)
    degrees = there.part.degrees.get()
    return np.array(seen), degrees[hops.get() > 0], degrees[source.lid]


def test_each_row_is_in_the_bucket_of_its_degree(measure, monkeypatch):
    seen, degrees, first = counters_of(measure, monkeypatch, "buckets by degree", graphs.both_ways(spread()))
    sizes = np.histogram([*degrees, first], [0, 32, 1024, WIDE * 2])[0]
    assert seen.sum(axis=0).tolist() == sizes.tolist() and all(sizes)


def test_edges_of_a_frontier_are_counted_in_both_directions(measure, monkeypatch):
    seen, degrees, _ = counters_of(measure, monkeypatch, "either way", graphs.both_ways(dense()))
    assert seen.sum(axis=0).tolist() == [degrees.size, degrees.sum(), 0]


def test_a_counting_run_counts_each_edge_as_often_as_its_rung_looks_at_it(measure):
    """All edges in every level; those of the frontier once; where nodes pull, fewer than there are."""
    graph = graphs.both_ways(dense())
    there = on_device(measure, graph)
    expected = measure.choose_sources(there, 1)
    ((source, hops),) = expected.items()
    reached = int(there.part.degrees[hops >= 0].sum())
    levels = int(hops.max()) + 1
    seen = {name: measure.count(rung, there, source) for name, rung in measure.RUNGS.items() if rung.counts}
    assert seen["edge-centric"][0] == levels * graph.num_edges
    every = {"push by flags", "queue", "private queue", "warp per row", "buckets by degree", "gathered", "one block"}
    assert {seen[name][0] for name in every | {"compacted"}} == {reached}
    assert 0 < seen["either way"][0] < reached / 2
    assert all(moved >= 5 * inspected for inspected, moved in seen.values())


def test_a_wrong_answer_ends_it(measure):
    there = on_device(measure, graphs.both_ways(dense()))
    ((source, hops),) = measure.choose_sources(there, 1).items()
    found = measure.RUNGS["gathered"].run(there, source)
    found.hops[3] += 1
    with pytest.raises(SystemExit, match=f"^gathered: 1 wrong hops from node {source.gid}$"):
        measure.require_same("gathered", source, found, hops)


def test_the_program(measure, monkeypatch, tmp_path, capsys):
    """Rows of every rung on every graph, and the tables and the picture that are made of them."""
    rows, drawn = tmp_path / "rows.jsonl", tmp_path / "ladder.svg"
    command = ["scripts.bench", "ladder", "--rows", str(rows)]
    monkeypatch.setattr("sys.argv", [*command, "--graphs", "ring24,rand6", "--sources", "2"])
    assert bench.main() == 0
    found = read_rows(rows)
    assert [(row["graph"], row["rung"]) for row in found] == [
        (g, r) for g in ("ring24", "rand6") for r in measure.RUNGS
    ]
    assert all(row["best_ms"] <= row["ms"] and len(row["levels"]) == 2 for row in found)
    assert found[0]["inspected"] == 13 * 48 and found[0]["gb_s"] > 0
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", [*command, "--show", "--markdown", "--picture", str(drawn)])
    assert bench.main() == 0
    shown = capsys.readouterr().out
    assert shown.count("| edge-centric |") == 2 and "ring24: 24 nodes, 48 edges" in shown
    assert "ring24" in drawn.read_text()


def test_tables_and_picture(tmp_path):
    """Rungs in their order, each with its factor beside the one before; columns of what was not counted are empty."""
    base = {"graph": "road9", "nodes": 81, "edges": 200, "gpu": "some GPU", "gb_s": None, "inspected": None}
    rows = [
        base | {"rung": "b", "place": 1, "ms": 2.0, "levels": [8, 9, 9], "gb_s": 7.0, "inspected": 5},
        base | {"rung": "a", "place": 0, "ms": 1000.0, "levels": [9]},
    ]
    lines = [line.split("|")[1:-1] for line in tables(rows, markdown=True).splitlines() if line.startswith("|")][2:]
    assert [[cell.strip() for cell in line] for line in lines] == [
        ["a", "1,000", "9", "", "", ""],
        ["b", "2", "9", "5", "7", "500"],
    ]
    draw(rows, tmp_path / "drawn.svg")
    texts = [text.text for text in ElementTree.parse(tmp_path / "drawn.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {"road9", "a", "1,000", "b", "2"} <= {*texts}


def test_the_page_explains_every_rung_in_order(measure):
    page = (Path(bench.__file__).parents[2] / "docs" / "ladder.md").read_text()
    assert [name.lower() for name in re.findall(r"^\*\*(.+)\.\*\*", page, re.MULTILINE)] == [*measure.RUNGS]
