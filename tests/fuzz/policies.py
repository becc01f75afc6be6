"""Policy files and node maps as users get them wrong."""

from pathlib import Path

import graphs
import h5py
import numba
import numpy as np
from fuzz import programs
from fuzz.case import Case, random_graph

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
MAPS = ("0\n", "0.5\n", "4294967296\n", "-1\n", "x\n", "", "nan\n", "0 1\n", "1e0\n", "9" * 40 + "\n", "\x00\n")


def make_case(random: np.random.Generator) -> Case:
    """A policy file with one or two odd expressions, or a node map; one rank."""
    graph = random_graph(random, 30, 60, 1)
    mapped = random.integers(5) == 0
    steps = [(_node_map if mapped else _policy)(random, graph.num_nodes)]

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graph)

    def run(folder: Path) -> int:
        numba.config.OPT = 0  # a rule is compiled in a third of the time
        chosen = ["map", "--node-map", folder / "map.txt"] if mapped else [folder / "mine.py"]
        return programs.app("bfs", folder / "g.h5", "--policy", *chosen, "--source", 0, "--output", folder / "out.h5")

    def check(folder: Path) -> str:
        if not (folder / "out.h5").exists():
            return "exit code 0, but no answer"
        with h5py.File(folder / "out.h5") as file:
            same = np.array_equal(file["hops"][...], graphs.serial_hops(graph, 0))
        return "" if same else "wrong hops"

    return Case(make, steps, run, check)


def _policy(random: np.random.Generator, num_nodes: int) -> tuple:
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


def _node_map(random: np.random.Generator, num_nodes: int) -> tuple:
    lines = ["0\n"] * num_nodes
    odd = MAPS[random.integers(len(MAPS))]
    lines[int(random.integers(num_nodes))] = odd
    if random.integers(4) == 0:
        lines.pop()

    def step(folder: Path) -> None:
        (folder / "map.txt").write_text("".join(lines))

    return f"a line {odd!r}, {len(lines)} lines for {num_nodes} nodes", step
