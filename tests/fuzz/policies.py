"""Policy files and node maps as users get them wrong."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import graphs
import h5py
import numba
import numpy as np
from fuzz import programs
from fuzz.case import Case, Step, change_bytes, random_graph

VALUES = (
    "0", "-1", "prop.num_parts", "node", "node % prop.num_parts", "prop.reader(node)", "prop.reader(node + 10**6)",
    "prop.reader(-5)", "masters[node]", "masters[node + 10**7]", "masters[-3]", "prop.out_degree(node)",
    "prop.out_degree(10**12) + 1", "mstate.load[node]", "mstate.load[10**9]", "1 // (node - node)", "None", "'a'",
    "2.5", "np.int64(1) << 70", "len(prop.out_neighbors(node)) % prop.num_parts", "prop.out_neighbors(node)[10**6]",
    "prop.place(10**9) + 1", "prop.neighbor_degree(node)", "prop.in_degree(node) % prop.num_parts", "prop.missing",
    "[0][node]", "{}[node]", "open('/etc/passwd')", "exit()", "undefined", "int('x')", "max([])", "prop.mapped(node)",
    "LIST[0]", "COUNT", "TABLE[node * 10**6]", "TABLE[node + 10**12]", "TABLE[-node - 10**9]", "prop.bounds[10**9]",
    "prop.targets[10**10] * 0", "prop.neighbor_degree(-(10**12)) + 1", "prop.place(-3) + 1", "masters[-(10**12)] + 1",
    "prop.in_degree(10**15) + 1", "node / 2", "1.0", "True", "'a' * node", "exit(0)", "(lambda x: x)(0)",
    "sum([masters[n] for n in prop.out_neighbors(node)]) * 0", "helper(node)", "np.random.randint(0, prop.num_parts)",
    "raise_it()", "prop", "get_master(prop, node, mstate, masters)", "2**63", "-(2**63)", "0 if node else None",
)  # fmt: skip
STATES = (
    "", "def make_mstate(prop):\n    return State(np.zeros(prop.num_parts, np.int64))\n",
    "def make_mstate(prop):\n    return 3\n", "def make_mstate(prop):\n    return State(np.zeros(0))\n",
    "def make_mstate(prop):\n    raise KeyError('x')\n", "def make_mstate():\n    return State(np.zeros(9))\n",
    "def make_mstate(prop):\n    exit(0)\n", "make_mstate = 5\n",
    "def make_mstate(prop):\n    return State(np.array(['a']))\n",
    "def make_mstate(prop):\n    return State(np.zeros((2, 2))[:, ::2])\n",
    "def make_mstate(prop):\n    return State(np.zeros(10**13))\n",
    "combine = {'load': 'average'}\ndef make_mstate(prop):\n    return State(np.zeros(9))\n", "combine = 3\n",
)  # fmt: skip
HEAD = """from collections import namedtuple
import numpy as np
State = namedtuple("State", ["load"])
LIST = [0]
COUNT = 0
TABLE = np.zeros(7, np.int64)
def helper(node):
    return TABLE[node * 10**5]
def raise_it():
    raise SystemExit(0)
"""
PLAIN = "def get_master(prop, node, mstate, masters):\n    return node % prop.num_parts\n"
LINES = (
    "0.5", "4294967296", "-1", "x", "", "nan", "0 1", "1e0", "9" * 40, "\x00", "1", "32768", "2147483648", "0x0", "+0",
    "-0", " 0 ", "0,", "0\n0", "\u0663", "\u00b2", "#0", "1_0", "inf", "\ufeff0", "0\r", "9223372036854775808",
)  # fmt: skip
ARRAYS: tuple[Callable[[np.ndarray], object], ...] = (
    lambda ranks: ranks.astype(np.float64), lambda ranks: ranks.astype("S3"), lambda ranks: ranks.astype(object),
    lambda ranks: ranks.reshape(1, -1), lambda ranks: ranks[:-1], lambda ranks: np.append(ranks, 0),
    lambda ranks: ranks.astype(bool), lambda ranks: ranks - 1, lambda ranks: ranks + 1, lambda ranks: ranks + 2**31,
    lambda ranks: ranks + 2**62, lambda ranks: ranks.astype(np.uint64) + np.uint64(2**63), lambda ranks: np.int64(0),
    lambda ranks: ranks.astype(">i2"), lambda ranks: ranks.astype(np.int8),
    lambda ranks: ranks * 1j, lambda ranks: ranks.astype([("rank", "i8")]), lambda ranks: ranks.astype("M8[s]"),
    lambda ranks: ranks[:0], lambda ranks: np.asfortranarray(np.stack([ranks, ranks])),
)  # fmt: skip


def make_case(random: np.random.Generator) -> Case:
    """A policy file with one or two odd expressions; one rank."""
    graph = random_graph(random, 30, 60, 1)

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graph)
        (folder / "mine.py").write_text(PLAIN)

    def run(folder: Path) -> int:
        numba.config.OPT = 0  # a rule is compiled in a third of the time
        return _search(folder, folder / "mine.py")

    return Case(
        make, [_policy(random)], run, _check(graph), "policy", lambda folder: _search(folder, folder / "mine.py")
    )


def make_node_map(random: np.random.Generator) -> Case:
    """A file with the rank of each node, damaged once or twice; one rank."""
    graph = random_graph(random, 30, 60, 1)
    name = str(random.choice(["map.txt", "map.txt", "map.npy"]))

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graph)
        if name == "map.npy":
            np.save(folder / name, np.zeros(graph.num_nodes, np.int64))
        else:
            (folder / name).write_text("0\n" * graph.num_nodes)

    steps = [_node_map(random, name) for _ in range(random.integers(1, 3))]
    return Case(make, steps, lambda folder: _search(folder, "map", "--node-map", folder / name), _check(graph), name)


def _search(folder: Path, policy: object, *more: object) -> int:
    out = folder / "out.h5"
    return programs.app("bfs", folder / "g.h5", "--policy", policy, *more, "--source", 0, "--output", out)


def _check(graph: graphs.Graph) -> Callable[[Path], str]:
    def check(folder: Path) -> str:
        if not (folder / "out.h5").exists():
            return "exit code 0, but no answer"
        with h5py.File(folder / "out.h5") as file:
            same = np.array_equal(file["hops"][...], graphs.serial_hops(graph, 0))
        return "" if same else "wrong hops"

    return check


def _policy(random: np.random.Generator) -> Step:
    value, state = (
        VALUES[random.integers(len(VALUES))],
        STATES[random.integers(len(STATES)) if random.integers(2) else 0],
    )
    edge = random.integers(3) == 0
    if edge:
        value = value.replace("node", "dst").replace("mstate", "estate").replace("masters[", "LIST[")
        rule = f"def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n    return {value}\n"
        state = state.replace("mstate", "estate")
    else:
        rule = f"def get_master(prop, node, mstate, masters):\n    return {value}\n"
    text = HEAD + state + rule

    def step(folder: Path) -> None:
        (folder / "mine.py").write_text(text)

    return f"return {value}; state {state[:60]!r}", step


def _node_map(random: np.random.Generator, name: str) -> Step:
    how, at = int(random.integers(5)), float(random.random())
    place = int(random.integers(len(ARRAYS if name == "map.npy" else LINES)))
    seed = int(random.integers(1 << 30))

    def step(folder: Path) -> None:
        path = folder / name
        if path.is_symlink() or not path.is_file():
            return  # an earlier step took it away
        if how <= 2 and name == "map.npy":
            with contextlib.suppress(Exception):  # an earlier step left no such array, which raises anything
                np.save(path, ARRAYS[place](np.load(path)))  # type: ignore[arg-type]
        elif how <= 2:
            lines = path.read_bytes().split(b"\n")
            lines[int(at * len(lines))] = LINES[place].encode()
            path.write_bytes(b"\n".join(lines))
        elif how == 3:
            change_bytes(path, np.random.default_rng(seed))
        else:
            path.unlink()
            (path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(path), lambda: path.symlink_to("/dev/zero"),
             lambda: None)[place % 5]()  # fmt: skip

    what = "" if how > 2 else f", {place} at {at:.2f}"
    return f"{name} damaged, way {how}{what}, seed {seed}", step
