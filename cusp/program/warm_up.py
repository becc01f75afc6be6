"""Load all compiled code that a run will call, by calling it for a tiny graph of the same types."""

import math
import os
import time
from collections.abc import Callable, Hashable
from dataclasses import replace

import h5py
import numpy as np

from cusp.errors import forgiven, together
from cusp.input.graph_file import GraphHeader
from cusp.output.whole_file import explained
from cusp.policies.policy import Policy
from cusp.runtime import debugging
from cusp.runtime.exchange import kept
from cusp.runtime.leftovers import scratch_folder
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import LEAST, num_threads, ranges_of_any_size

NODES, TAIL = 256, 8
MOST_EDGES = 16  # per node
FAR_NODE = NODES - 1

Rehearsal = Callable[[MPI.Intracomm, str], object]


def warm_up(comm: MPI.Intracomm, header: GraphHeader, rehearse: Rehearsal, what: Hashable = None) -> None:
    """Call ``rehearse(comm, path)`` for a tiny graph file of the types of ``header``. Collective.

    Not again for the same communicator, types and ``what``, which is the same on all ranks, unless that is None. The
    first two ranks of each host go first: they compile what is not in the cache yet, and the others find it there.
    They are two so that the code that communicates is called too.
    """
    done: set[Hashable] = kept(comm, "rehearsed", set)
    large = header.num_nodes + header.num_edges >= 2 * LEAST
    key = (what, header.index_dtype.str, str(header.weight_dtype), header.symmetric,
           round(2 * _edges_per_node(header)), large)  # fmt: skip
    if what is not None and key in done:
        return
    done.add(key)
    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    first = comm.Split(0 if host.rank < 2 else MPI.UNDEFINED, comm.rank)
    if isinstance(first, MPI.Intracomm) and first != MPI.COMM_NULL:
        _run(first, header, rehearse)
        first.Free()
    waiting = host.Ibarrier()
    while not waiting.Test():  # a rank that spins would take a core from those that compile
        time.sleep(0.01)
    if comm.size > 2:
        _run(comm, header, rehearse)
    host.Free()


def tiny_policy(policy: Policy, path: str) -> Policy:
    """The policy with parameters that fit the tiny graph at ``path`` and any number of ranks."""
    node_map = path + ".map" if policy.node_map else None
    return replace(policy, grid=None, threshold=8, node_map=node_map, rounds=2, shares=None)


def _run(comm: MPI.Intracomm, header: GraphHeader, rehearse: Rehearsal) -> None:
    with scratch_folder() as folder:
        path = os.path.join(folder, "tiny.h5")
        with together(comm), explained(folder):
            write_tiny_graph(path, header)
            with open(path + ".map", "w") as file:
                file.writelines(f"{node % comm.size}\n" for node in range(NODES))
        with forgiven(comm):  # a rule or an option that does not fit the tiny graph; the real run will report it
            rehearse(comm, path)  # small arrays have other ways, of large graphs too
            if header.num_nodes + header.num_edges >= 2 * LEAST and comm.allreduce(num_threads(), MPI.MAX) > 1:
                with ranges_of_any_size():
                    rehearse(comm, path)
            debugging.agree(comm, "ends its rehearsal")


def _edges_per_node(header: GraphHeader) -> float:
    return min(header.num_edges / max(header.num_nodes, 1), MOST_EDGES)


def write_tiny_graph(path: str, header: GraphHeader) -> None:
    """A ring, a hub, a path that leads from ``FAR_NODE`` to it, far links, and a pair that is apart; the types are the
    real graph's.

    A traversal from there meets small and large frontiers, and components of several ranks a small one. There are so
    many far links that it has about as many edges per node as the real graph, on which some choices of an algorithm
    depend.
    """
    node = np.arange(NODES - TAIL)
    ring = np.stack([node, (node + 1) % node.size])
    tail = np.arange(NODES - TAIL, NODES)
    pairs = np.concatenate([ring, [node * 0, node], [tail, np.append(0, tail[:-1])]], axis=1)
    wanted = _edges_per_node(header) * NODES / (2 if header.symmetric else 1)
    far = np.concatenate([[node, node * step % node.size] for step in range(37, 37 + MOST_EDGES)], axis=1)
    pairs = np.concatenate([pairs, far[:, : max(math.ceil(wanted) - pairs.shape[1], 0)]], axis=1)
    apart = [[1], [NODES - TAIL - 1]]  # on the first rank and on the last
    pairs = np.concatenate([pairs[:, ~np.isin(pairs, apart).any(axis=0)], apart], axis=1)
    pairs = np.concatenate([pairs, pairs[::-1]], axis=1) if header.symmetric else pairs
    sources, targets = pairs[:, np.lexsort(pairs[::-1])]
    with h5py.File(path, "w", locking="best-effort") as file:
        file["indptr"] = np.searchsorted(sources, np.arange(NODES + 1))
        file["indices"] = targets.astype(header.index_dtype)
        if header.weight_dtype is not None:
            file["data"] = ((sources + targets) % 100 + 1).astype(header.weight_dtype)
        file.attrs["symmetric"] = header.symmetric
