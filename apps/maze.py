"""The shortest path through a maze: breadth-first search on a grid with blocked cells, then back-tracking.

``mpirun -n 4 python -m apps.maze --width 60 --height 20 --blocked 0.3``, or ``python -m apps.maze maze.txt``

A maze in a file has one line per row: ``#`` is blocked, ``S`` the start, ``E`` the end, anything else is open.
"""

import argparse
import os
import zlib
from typing import NamedTuple

import numpy as np

from cusp import Answer, App, Partition, Sync, VerificationError, main, run_main
from cusp.apps.bfs import bfs
from cusp.apps.bfs import prepare as prepare_bfs
from cusp.apps.shared.tree import trace
from cusp.apps.verify.paths import verify_hops
from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.edge_lists.random_kernels import key_of, uniform_units
from cusp.errors import OptionError, check_same, together
from cusp.input.edge_slice import EdgeSlice
from cusp.program.cli import whole
from cusp.runtime.devices import to_host
from cusp.runtime.files import read_input
from cusp.runtime.mpi import MPI

DRAWN = 200  # cells: a wider or higher maze is not shown


class Maze(NamedTuple):
    """A grid of cells; cell ``y * width + x`` is a node, and open cells that share a side are neighbours.

    Attributes
    ----------
    cells : (height, width) bool
        True where a cell is open.
    start, end : int
        Nodes.
    """

    cells: np.ndarray
    start: int
    end: int


def read_maze(path: str) -> Maze:
    """A maze from a text file, see the head of this module.

    Raises
    ------
    OptionError
        The file cannot be read, its lines differ in length, or there is not one ``S`` and one ``E``.
    """
    lines = read_input(path, OptionError).replace(b"\r", b"").rstrip(b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        if len(line) != len(lines[0]) or not line:
            raise OptionError(f"{path}: line {number} has {len(line)} cells, line 1 has {len(lines[0])}")
    letters = np.frombuffer(b"".join(lines), np.uint8).reshape(len(lines), -1)
    ends = []
    for letter, name in (b"S", "start"), (b"E", "end"):
        places = np.flatnonzero(letters == letter[0])
        if places.size != 1:
            raise OptionError(f"{path}: {places.size} cells are marked {letter.decode()}, the {name}; mark one")
        ends.append(int(places[0]))
    return Maze(letters != ord("#"), *ends)


def random_maze(width: int, height: int, blocked: float, seed: int) -> Maze:
    """Each cell is blocked with a probability, but not near the start, top left, and the end, bottom right."""
    if not 0 <= blocked <= 1:
        raise OptionError(f"--blocked {blocked:g}: a probability is between 0 and 1")
    chance = np.empty(width * height)
    uniform_units(key_of(seed), 0, chance)
    cells = (chance >= blocked).reshape(height, width)
    cells[:2, :2] = cells[-2:, -2:] = True
    return Maze(cells, 0, width * height - 1)


def maze_of(options: argparse.Namespace) -> Maze:
    """The maze that the command line asks for."""
    if options.graph:
        return read_maze(options.graph)
    return random_maze(options.width, options.height, options.blocked, options.seed)


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> tuple[Maze, object]:
    """The maze, and what all searches of it share."""
    with together(sync.comm):
        maze = maze_of(options)
    check_same(sync.comm, "mazes", (maze.cells.shape, zlib.crc32(maze.cells.tobytes()), maze.start, maze.end))
    if maze.cells.size != part.num_nodes:  # the tiny graph on which the harness rehearses
        maze = Maze(np.ones((1, part.num_nodes), bool), 0, part.num_nodes - 1)
    return maze, prepare_bfs(part, sync)


def grid_of(maze: Maze, comm: MPI.Intracomm) -> EdgeSlice:
    """This rank's rows of the graph of a maze. Collective."""
    height, width = maze.cells.shape
    builder = CsrBuilder(comm, num_nodes=height * width, symmetrize=True)
    first, last = height * comm.rank // comm.size, height * (comm.rank + 1) // comm.size
    nodes = np.arange(first * width, last * width).reshape(-1, width)
    cells, below = maze.cells[first:last], maze.cells[first + 1 : last + 1]
    right = cells[:, :-1] & cells[:, 1:]
    down = cells[: len(below)] & below
    with together(comm):
        builder.add(nodes[:, :-1][right], nodes[:, 1:][right])
        builder.add(nodes[: len(below)][down], nodes[: len(below)][down] + width)
    return builder.build()


def find_way(part: Partition, sync: Sync, maze: Maze, prepared: object = None) -> Answer:
    """The shortest way through a maze. Collective.

    Returns
    -------
    Answer
        ``step`` (int64) of this rank's masters: 0 at the start, 1 at the next cell of the way, and so on; -1 for
        cells that are not on it. Figure ``steps``: their number, -1 if there is no way.
    """
    search = bfs(part, sync, maze.start, parents=True, prepared=prepared)
    (way,) = trace(part, sync.comm, search.labels["parents"], [maze.end])
    own, lids = part.masters_among(way)
    step = np.full(part.num_masters, -1, np.int64)
    step[lids] = own
    return Answer(search.labels | {"step": step}, search.unreached, search.rounds, {"steps": way.size - 1})


def way_of(part: Partition, comm: MPI.Intracomm, step: np.ndarray) -> np.ndarray:
    """Nodes of the way from its first to its last, on every rank. Collective."""
    gids, step = to_host(part.gids[: part.num_masters]), to_host(step)
    chosen = step >= 0
    pairs = np.concatenate(comm.allgather(np.stack([step[chosen], gids[chosen]])), axis=1)
    return pairs[1, np.argsort(pairs[0])]


def verify_way(part: Partition, sync: Sync, maze: Maze, answer: Answer) -> None:
    """Check the search, and that the way leads along open cells in as many steps as the end is hops away. Collective.

    Raises
    ------
    VerificationError
    """
    hops, parents, step = (answer.labels[name] for name in ("hops", "parents", "step"))
    verify_hops(part, sync, maze.start, hops, parents)
    way = way_of(part, sync.comm, step)
    y, x = np.divmod(way, maze.cells.shape[1])
    at_end = hops[part.gids[: part.num_masters] == maze.end]
    far = sync.comm.allreduce(int(at_end[0]) if at_end.size else -1, MPI.MAX)
    if way.size - 1 != far or way.size - 1 != answer.figures["steps"]:
        raise VerificationError(f"the answer is wrong: the path has {way.size - 1} steps, the end is {far} hops away")
    if way.size and (
        (way[0], way[-1]) != (maze.start, maze.end)
        or not maze.cells[y, x].all()
        or (abs(np.diff(y)) + abs(np.diff(x)) != 1).any()
    ):
        raise VerificationError("the answer is wrong: the path does not lead over open cells to the end")


def draw(part: Partition, sync: Sync, maze: Maze, answer: Answer) -> list[str]:
    """The maze with its way, one line per row, if it is not too large to look at. Collective."""
    height, width = maze.cells.shape
    way = way_of(part, sync.comm, answer.labels["step"])
    if not way.size:
        (y, x), (to_y, to_x) = divmod(maze.start, width), divmod(maze.end, width)
        return [f"there is no path from row {y + 1}, column {x + 1} to row {to_y + 1}, column {to_x + 1}"]
    if max(width, height) > DRAWN:
        return []
    letters = np.where(maze.cells, b" ", b"#").ravel()
    letters[way] = b"."
    letters[[maze.start, maze.end]] = b"S", b"E"
    return [row.tobytes().decode() for row in letters.reshape(height, width)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    side = whole(1, 10**5)
    parser.add_argument("--width", type=side, default=60, help="cells in a row of a random maze (default: 60)")
    parser.add_argument("--height", type=side, default=20, help="rows of a random maze (default: 20)")
    parser.add_argument("--blocked", type=float, default=0.3, help="fraction of blocked cells (default: 0.3)")


def generate(comm: MPI.Intracomm, options: argparse.Namespace) -> tuple[str, EdgeSlice]:
    """The graph of the maze that the command line asks for. Collective."""
    with together(comm):
        maze = maze_of(options)
    return os.path.splitext(os.path.basename(options.graph or "maze"))[0], grid_of(maze, comm)


APP = App(
    name="maze",
    summary="the shortest path through a maze, from a file or random",
    prepare=prepare,
    run=lambda part, sync, _, prepared, options: find_way(part, sync, *prepared),
    verify=lambda part, sync, _, answer, prepared, options: verify_way(part, sync, prepared[0], answer),
    show=lambda part, sync, _, answer, options, name_of: draw(part, sync, maze_of(options), answer),
    add_options=add_options,
    needs_source=False,
    generate=generate,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
