"""Graphs in memory: from matrices, NetworkX, data frames and arrays, on all ranks, on one, or in shares."""

from typing import Any

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import parts
import pytest
import ranks
import scipy.sparse as sp

from cusp.convert.memory_input import named_slice
from cusp.errors import InputError
from cusp.formats.in_memory import GraphError, edge_list_of
from cusp.partitioner import partition_graph

GRAPH = graphs.random_directed(40, 150, seed=5)  # with loops, parallel edges and nodes without edges
RANK, SIZE = ranks.COMM.rank, ranks.COMM.size


def as_tuple(graph: graphs.Graph) -> tuple[np.ndarray, ...]:
    """Sources, targets and weights."""
    return graph.sources, graph.targets, graph.weights


def as_networkx(graph: graphs.Graph) -> Any:
    """With the nodes in order, so that their numbers are the same."""
    made = nx.MultiDiGraph()
    made.add_nodes_from(range(graph.num_nodes))
    made.add_weighted_edges_from(zip(*(array.tolist() for array in as_tuple(graph))))
    return made


FORMS = {
    "arrays": as_tuple,
    "objects": lambda g: pd.DataFrame(dict(zip(("source", "target", "weight"), as_tuple(g)))).astype(
        {"source": object}
    ),
    "frame": lambda g: pd.DataFrame({"weight": g.weights, "target": g.targets, "source": g.sources}),
    "coo": lambda g: sp.coo_matrix((g.weights, (g.sources, g.targets)), (g.num_nodes, g.num_nodes)),
    "csr": lambda g: sp.csr_array((g.weights, g.targets, g.indptr), (g.num_nodes, g.num_nodes)),
    "networkx": as_networkx,
}


@pytest.mark.mpi
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["everywhere", "on the last rank"])
def test_every_form_gives_the_graph(comm, form, where):
    mine = FORMS[form](GRAPH) if where == "everywhere" or RANK == SIZE - 1 else None
    edges = named_slice(mine, comm, num_nodes=GRAPH.num_nodes).edges
    assert not edges.symmetric
    part = partition_graph(edges, "cvc", comm)
    parts.check_partition(part, GRAPH)


@pytest.mark.mpi
def test_ranks_bring_shares(comm):
    """Each edge on one rank, none on rank 1, and weights of different types."""
    owner = np.arange(GRAPH.num_edges) % SIZE
    owner[owner == 1] = 0
    mine = [array[owner == RANK] for array in as_tuple(GRAPH)]
    mine[2] = mine[2].astype("i8" if RANK % 2 == 0 else "u2")
    edges = named_slice(tuple(mine) if RANK != 1 else None, comm, share=True, num_nodes=GRAPH.num_nodes).edges
    assert edges.weights.dtype == np.int64
    parts.check_partition(partition_graph(edges, "oec", comm), GRAPH)


@pytest.mark.mpi
def test_undirected_graphs_and_names(comm):
    """Nodes are numbered in the order of G.nodes; a missing weight is 1; rank 0's names reach all ranks."""
    graph = nx.Graph([("b", "a", {"weight": 2.5}), ("a", "c"), ("c", "c")])
    mine = graph if RANK == 0 else None
    edges, names, *_ = named_slice(mine, comm)
    assert edges.symmetric
    assert list(names) == ["b", "a", "c"]
    assert named_slice(as_tuple(GRAPH), comm)[1] is None
    expected = graphs.make(3, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)], [2.5, 2.5, 1, 1, 1])
    parts.check_partition(partition_graph(edges, "cvc", comm), expected)


@pytest.mark.mpi
def test_what_is_symmetric_is_found_out(comm):
    """Matrices and lists do not say whether they are symmetric."""
    both = graphs.both_ways(GRAPH)
    assert named_slice(as_tuple(both), comm).edges.symmetric
    assert named_slice(sp.eye_array(5, format="dia"), comm).edges.symmetric
    edges = named_slice(as_tuple(GRAPH), comm, symmetrize=True).edges
    assert edges.symmetric
    expected = both.num_edges - int((GRAPH.sources == GRAPH.targets).sum())  # a loop is its own reverse
    assert edges.num_edges == expected


@pytest.mark.mpi
def test_without_weights_and_with_entries_that_are_bool(comm):
    assert named_slice(as_tuple(GRAPH), comm, weights=False).edges.weights is None
    pattern = FORMS["csr"](GRAPH).astype(bool)
    assert named_slice(pattern, comm).edges.weights is None
    half = (GRAPH.sources, GRAPH.targets, GRAPH.weights.astype(np.float16))
    assert named_slice(half, comm).edges.weights.dtype == np.float32
    empty = named_slice(([], []), comm, num_nodes=3).edges
    assert (empty.num_nodes, empty.num_edges) == (3, 0)


@pytest.mark.mpi
def test_partition_graph_takes_a_graph_and_the_name_of_a_policy(comm, tmp_path):
    """Also of rules that ask for in-degrees, which are counted."""
    policy = tmp_path / "by_in_degree.py"
    head = "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n"
    policy.write_text(head + "    return (prop.in_degree(src) * 2 + prop.in_degree(dst)) % prop.num_parts\n")
    part = partition_graph(FORMS["csr"](GRAPH), str(policy), comm)
    in_degrees = np.bincount(GRAPH.targets, minlength=GRAPH.num_nodes)
    for p in parts.check_partition(part, GRAPH):
        assert ((in_degrees[p.sources] * 2 + in_degrees[p.targets]) % SIZE == p.rank).all()


WRONG = {
    "not a graph": (np.zeros((3, 3)), "this is of type ndarray"),
    "negative": (([0, 1, -4], [1, 2, 0]), "edge 2 goes from node -4 to node 0.* are 0 to 4"),
    "too large": (([0, 1], [1, 7]), "edge 1 goes from node 1 to node 7.* are 0 to 4"),
    "real": (([0.0, 1.0], [1.0, 2.0]), "sources: .*float64; ids of nodes are integers"),
    "huge objects": (pd.DataFrame({"source": [1, 2**70], "target": [2, 3]}), "num_nodes is 5, but nodes have names"),
    "mixed": (pd.DataFrame({"source": [1, "1"], "target": ["a", "b"]}), "ids of several types, such as 1 and '1'"),
    "mixed list": (([1, "1"], ["a", "b"]), "ids of several types, such as 1 and '1'"),
    "mixed columns": (([1, 2], ["1", "b"]), "'sources' holds int64, but 'targets' string: 1 and '1' would be one"),
    "masked": ((np.ma.array([1, 2], mask=[0, 1]), [2, 3]), "sources: entry 1 is masked"),
    "masked weights": (([1, 2], [2, 3], np.ma.array([1, 2], mask=[0, 1])), "weights: entry 1 is masked"),
    "no name": ((np.array(["a", None], object), ["b", "c"]), "sources: that of edge 1 is missing"),
    "names of other lengths": ((["a", "b"], ["c"]), "2 sources, but 1 targets"),
    "names and num_nodes": (pd.DataFrame({"source": ["a"], "target": ["b"]}), "nodes have names"),
    "empty name": (pd.DataFrame({"source": ["a"], "target": [""]}), "a name is empty"),
    "missing name": (pd.DataFrame({"source": ["a", "b"], "target": ["b", None]}), "target: that of edge 1 is missing"),
    "lengths": (([0, 1], [1]), "2 sources, but 1 targets"),
    "weights": (([0, 1], [1, 2], [5]), r"shape \(1,\), but there are 2 edges"),
    "nan": (([0, 1], [1, 2], [5, np.nan]), "weight of edge 1 is not a number"),
    "complex": (([0, 1], [1, 2], [5, 1j]), "weights of type complex128"),
    "columns": (pd.DataFrame({"this": [1], "that": [2]}), "the columns this, that; name those .* columns= in Python"),
    "oblong": (sp.csr_matrix((3, 5)), r"shape \(3, 5\)"),
    "other size": (sp.csr_matrix((3, 3)), "num_nodes is 5, but the graph has 3"),
    "nothing": (None, "no rank brings a graph"),
}


@pytest.mark.mpi
@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_on_every_rank(comm, name):
    graph, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        named_slice(graph, comm, num_nodes=5)


@pytest.mark.mpi
def test_graphs_without_nodes(comm):
    with pytest.raises(GraphError, match="node 0 to node -1, but the ids of nodes are 0 and above"):
        named_slice(([0], [-1]), comm, ids="numbers")
    for graph in (([], []), nx.Graph(), sp.csr_matrix((0, 0))):
        with pytest.raises(GraphError, match="no nodes"):
            named_slice(graph, comm)


@pytest.mark.mpi(min_size=2)
def test_ranks_that_disagree(comm):
    """No mistake may leave a rank waiting."""
    list_of_rank = ([0] * (RANK + 1), [1] * (RANK + 1))
    with pytest.raises(GraphError, match=r"ranks 0 and 1 bring different graphs \(1 and 2 edges\)"):
        named_slice(list_of_rank, comm)
    weighted = ([0], [1], [2]) if RANK == 0 else ([0], [1])
    with pytest.raises(GraphError, match="some ranks bring edges with weights"):
        named_slice(weighted, comm, share=True)
    with pytest.raises(GraphError, match="share=True is for"):
        named_slice(FORMS["csr"](GRAPH), comm, share=True)
    with pytest.raises(GraphError, match="rank 0 names a file, rank 1 does not"):
        partition_graph("graph.h5" if RANK == 0 else None, "oec", comm)


@pytest.mark.mpi(min_size=3)
def test_some_ranks_without_a_graph(comm):
    with pytest.raises(GraphError, match="only the ranks 0, 1 bring"):
        named_slice(as_tuple(GRAPH) if RANK < 2 else None, comm)


@pytest.mark.mpi
def test_no_memory_limit_for_what_is_in_memory(comm):
    with pytest.raises(InputError, match="this graph is in memory"):
        partition_graph(as_tuple(GRAPH), "oec", comm, memory_limit=10**8)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2"])
def test_weights_keep_their_type_without_edges(kind):
    """Infinity of the type of the weights means "not reached"."""
    nothing = np.empty(0, np.int64)
    assert edge_list_of((nothing, nothing, nothing.astype(kind)), num_nodes=3).weight_dtype == kind
