"""Mazes and back-tracking: ways against a serial search, files that are wrong, and what is drawn."""

from types import SimpleNamespace

import graphs
import numpy as np
import parts
import pytest

from cusp.apps import maze
from cusp.apps.bfs import bfs
from cusp.apps.shared.tree import trace
from cusp.errors import OptionError
from cusp.partitioner import partition_slice

DRAWING = "S.#...\n.##.#.\n....#E\n"
SOLVED = "S #...\n.##.#.\n....#E"


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_trace(comm, shared_tmp, policy):
    """From each node back to the source: as many steps as hops, over edges; nothing where there is no path."""
    for name in ("random", "path", "two_islands", "loops_and_doubles"):
        graph = graphs.HARD[name]()
        path = graphs.write(shared_tmp / "g.h5", graph)
        part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=True)
        parents = bfs(part, parts.make_sync(part), 0, parents=True).labels["parents"]
        hops, edges = graphs.serial_hops(graph, 0), set(zip(graph.sources.tolist(), graph.targets.tolist()))
        for target, way in enumerate(trace(part, comm, parents, list(range(graph.num_nodes)))):
            assert way.size == hops[target] + 1
            if way.size:
                assert (way[0], way[-1]) == (0, target)
                assert set(zip(way[:-1].tolist(), way[1:].tolist())) <= edges


def solve(comm, built: maze.Maze, policy: str):
    """Partition of a maze, its sync, and the verified answer. Collective."""
    part = partition_slice(maze.grid_of(built, comm), parts.policy_of(policy), comm, device=parts.DEVICE)
    answer = maze.find_way(part, parts.make_sync(part), built).on_host()
    maze.verify_way(part, parts.make_sync(part), built, answer.on(part.device))
    return part, answer


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1), (12, 17)])
def test_random_mazes(comm, shape, policy):
    """Open cells side by side are neighbours; the way is as long as a serial search says."""
    height, width = shape
    for seed in range(4):
        built = maze.random_maze(width, height, 0.35, seed)
        node = np.arange(height * width).reshape(shape)
        beside = np.concatenate([np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], 1),
                                 np.stack([node[:-1].ravel(), node[1:].ravel()], 1)])  # fmt: skip
        beside = beside[built.cells.ravel()[beside].all(axis=1)]
        graph = graphs.both_ways(graphs.make(node.size, beside))
        part, answer = solve(comm, built, policy)
        assert part.num_edges == graph.num_edges
        assert answer.figures["steps"] == graphs.serial_hops(graph, built.start)[built.end]


@pytest.mark.mpi
def test_file(comm, shared_tmp):
    """A maze in a file, solved and drawn; one without a way says so."""
    path = shared_tmp / "m.txt"
    for text, expected in ((DRAWING, None), (DRAWING.replace("S.", "S#").replace("\n.", "\n#", 1), "there is no path")):
        if comm.rank == 0:
            path.write_text(text)
        comm.Barrier()
        built = maze.read_maze(str(path))
        assert (built.start, built.end) == (0, 17)
        part, answer = solve(comm, built, "oec")
        lines = maze.draw(*parts.on_host(part), built, answer)
        assert lines[0].startswith(expected) if expected else "\n".join(lines) == SOLVED, lines
        comm.Barrier()


@pytest.mark.parametrize(
    ("text", "said"),
    [("S.\n.E.\n", "line 2 has 3 cells, line 1 has 2"), ("S.\n..\n", "0 cells are marked E"),
     ("SS\n.E\n", "2 cells are marked S"), ("", "line 1 has 0 cells"), (None, "no such file")],
)  # fmt: skip
def test_wrong_files(tmp_path, text, said):
    """What is wrong is said, with both numbers."""
    path = tmp_path / "m.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OptionError, match=said):
        maze.read_maze(str(path))


def test_wrong_share():
    options = SimpleNamespace(graph=None, width=3, height=3, blocked=1.5, seed=1)
    with pytest.raises(OptionError, match="--blocked 1.5: a probability is between 0 and 1"):
        maze.maze_of(options)
