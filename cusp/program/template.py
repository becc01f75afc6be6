"""The files written by ``cusp new-policy``: a commented policy and its test."""

from pathlib import Path

from cusp.errors import OptionError

POLICY = '''"""NAME: say in one line what this policy does."""

from collections import namedtuple

import numpy as np

# State of get_master: arrays of any shape. Ranks combine them --state-rounds times on their way through the
# nodes, by "add" (the default), "max" or "min"; what is "local" stays with its rank.
MState = namedtuple("MState", "nodes")
combine = {"nodes": "add"}


def make_mstate(prop):
    """Number of nodes of which each rank is the master so far."""
    return MState(np.zeros(prop.num_parts, np.int64))


def get_master(prop, node, mstate, masters):
    """The rank with most neighbours of a node among those that are not full. Called once per node.

    prop: num_nodes, num_edges, num_parts, rank, rows, columns, threshold, slack; out_degree(n) and
    out_neighbors(n) of nodes of this slice; neighbor_degree(n), in_degree(n) of their neighbours too; reader(n) of
    any node.
    masters[n]: master of a neighbour, -1 if not known yet.
    A rule that uses neither mstate nor masters costs no communication.
    """
    capacity = 1.05 * prop.num_nodes / prop.num_parts
    best, best_score = node % prop.num_parts, -1
    for rank in range(prop.num_parts):
        score = 0
        for neighbor in prop.out_neighbors(node):
            if masters[neighbor] == rank:
                score += 1
        if mstate.nodes[rank] < capacity and score > best_score:
            best, best_score = rank, score
    mstate.nodes[best] += 1
    return best


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    """The rank that stores an edge. Called once per edge; here the master of its source: an outgoing edge-cut."""
    return src_master
'''
TEST = '''"""Run it with: mpirun -n 3 python test_NAME.py"""

from pathlib import Path

import numpy as np

from cusp.edge_lists.generators import generate
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.runtime.mpi import MPI

comm = MPI.COMM_WORLD
graph = str(Path(__file__).with_name("test_NAME.h5"))
generate("rmat", comm, scale=10, symmetrize=True, dedup=True).write(graph)
part = partition_graph(graph, load_policy(str(Path(__file__).with_name("NAME.py"))), comm)
masters = comm.allreduce(part.num_masters)
edges = comm.allreduce(part.num_local_edges)
gids = np.concatenate(comm.allgather(part.gids[: part.num_masters]))
comm.Barrier()
if comm.rank == 0:
    Path(graph).unlink()
    assert masters == part.num_nodes and np.unique(gids).size == part.num_nodes, "one master per node"
    assert edges == part.num_edges, "each edge on one rank"
    print(f"ok: {masters} nodes and {edges} edges on {comm.size} ranks")
'''


def write_template(name: str) -> list[str]:
    """Write ``NAME.py`` and ``test_NAME.py`` into the current folder; returns lines to print.

    Raises
    ------
    OptionError
        The name is not a Python name, or one of the files exists.
    """
    if not name.isidentifier():
        raise OptionError(f"{name}: not a name for a Python file; use letters, digits and _")
    files = {Path(f"{name}.py"): POLICY, Path(f"test_{name}.py"): TEST}
    for path in files:
        if path.exists():
            raise OptionError(f"{path}: exists already; choose another name")
    for path, text in files.items():
        path.write_text(text.replace("NAME", name))
    return [f"wrote {', '.join(map(str, files))}", f"try: mpirun -n 3 python test_{name}.py",
            f"then: mpirun -n 4 python -m apps.bfs graph.h5 --policy {name}.py"]  # fmt: skip
