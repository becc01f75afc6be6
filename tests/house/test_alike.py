"""Ranks that are given different things refuse them before they work: an answer would be made of both."""

import shutil

import graphs
import numpy as np
import pytest

from cusp import bfs, pagerank, partition_graph
from cusp.apps import maze
from cusp.apps.bfs import APP
from cusp.apps.harness import main
from cusp.errors import InputError, OptionError, check_same
from cusp.input.edge_slice import read_slice
from cusp.output.saved import load_partition, save_partition
from cusp.partitioner import partition_graph as partition
from cusp.policies import Policy
from cusp.policies.edge_rules import source as by_source

pytestmark = pytest.mark.mpi(min_size=2)


def edges_of(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """As many edges on every rank, of which rank 1 has others than the rest."""
    return np.arange(40), (np.arange(40) + 1 + (rank == 1)) % 40


@pytest.fixture
def differing(comm, shared_tmp) -> str:
    """The name of a graph file, for each rank its own, of one size."""
    sources, targets = edges_of(comm.rank)
    graph = graphs.make(40, list(zip(sources.tolist(), targets.tolist())))
    graphs.write_here(shared_tmp / f"g{comm.rank}.h5", graph)
    return str(shared_tmp / f"g{comm.rank}.h5")


def test_files_of_one_size(comm, differing):
    """Each rank would read its share of another graph."""
    with pytest.raises(OptionError, match="the ranks were given different graphs: '.*, sample .* here, '.*' on rank 0"):
        read_slice(differing, comm)
    with pytest.raises(OptionError, match="different graphs"):
        partition_graph(differing, comm=comm)


def test_copies_of_a_file_are_the_same(comm, shared_tmp):
    """Where hosts have no common file system; whenever they were made."""
    file = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    shutil.copyfile(file, shared_tmp / f"copy{comm.rank}.h5")
    assert read_slice(str(shared_tmp / f"copy{comm.rank}.h5"), comm).num_edges > 0


def test_files_of_different_kinds(comm, shared_tmp):
    """Of which one is a folder, and one a list of edges: they are read in different ways."""
    graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    (shared_tmp / "edges.txt").write_text("0 1\n")
    name = ["g.h5", "edges.txt"][comm.rank % 2]
    with pytest.raises(OptionError, match="different graphs"):
        partition_graph(shared_tmp / name, comm=comm)


def test_lists_of_edges_of_one_size(comm, shared_tmp):
    file = shared_tmp / f"edges{comm.rank}.txt"
    file.write_text("".join(f"{a} {b}\n" for a, b in zip(*edges_of(comm.rank))))
    with pytest.raises(OptionError, match="different graphs"):
        partition_graph(file, comm=comm)


def test_saved_partitions(comm, shared_tmp):
    graph = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    for policy in ("oec", "iec"):
        part = partition(graph, policy, comm)
        save_partition(shared_tmp / policy, part, comm, graph=graph, policy=policy, parameters={}, order="degree",
                       split="edges")  # fmt: skip
    with pytest.raises(OptionError, match="different partitions"):
        load_partition(str(shared_tmp / ["oec", "iec"][comm.rank % 2]), comm)


@pytest.mark.parametrize("weights", [None, 1.5])
def test_arrays_of_one_length(comm, weights):
    """Other edges, or other weights."""
    edges = edges_of(0 if weights else comm.rank)
    given = (*edges, np.full(40, weights + comm.rank)) if weights else edges
    with pytest.raises(InputError, match=r"ranks 0 and 1 bring different graphs \(40 edges each, but others\)"):
        partition_graph(given, comm=comm)


def test_names_of_one_number(comm):
    """And graphs of NetworkX whose nodes come in another order, as those of a set of texts do."""
    sources, targets = edges_of(comm.rank)
    named = [f"n{node}" for node in sources], [f"n{node}" for node in targets]
    with pytest.raises(InputError, match="different graphs"):
        partition_graph(named, comm=comm)
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from(["a", "b", "c"] if comm.rank != 1 else ["c", "b", "a"])
    graph.add_edge("a", "b")
    with pytest.raises(InputError, match="different graphs"):
        partition_graph(graph, comm=comm)


def turned(turn: int):
    """A rule that gives each node to another rank."""

    def rule(prop, node, mstate, masters):
        return (node + turn) % prop.num_parts

    return rule


def test_policies(comm, shared_tmp):
    """Another rule, file, number or map."""
    graph = ([0, 1, 2], [1, 2, 3])
    with pytest.raises(OptionError, match="different policies"):
        partition(graph, ["oec", "cvc"][comm.rank % 2], comm)
    with pytest.raises(OptionError, match="different policies"):
        partition(graph, Policy("mine", turned(comm.rank), by_source), comm)
    file = shared_tmp / f"p{comm.rank}.py"
    file.write_text(f"def get_master(prop, node, mstate, masters):\n    return (node + {comm.rank}) % prop.num_parts\n")
    with pytest.raises(OptionError, match="different policies"):
        partition_graph(graph, policy=str(file), comm=comm)
    with pytest.raises(OptionError, match="different options: .*threshold=6.* here, .*threshold=5.* on rank 0"):
        partition_graph(graph, threshold=5 + min(comm.rank, 1), comm=comm)
    ranks = shared_tmp / f"map{comm.rank}.txt"
    ranks.write_text("0\n0\n1\n1\n" if comm.rank != 1 else "1\n1\n0\n0\n")
    with pytest.raises(OptionError, match="different policies"):
        partition_graph(graph, policy="map", node_map=str(ranks), comm=comm)


def test_calls(comm):
    """Another source, number, algorithm or graph."""
    graph = partition_graph(([0, 1, 2], [1, 2, 3]), comm=comm)
    other = partition_graph(([0, 1], [1, 2]), comm=comm)
    with pytest.raises(OptionError, match="different calls: .*source=1.* here, .*source=0.* on rank 0"):
        bfs(graph, source=min(comm.rank, 1))
    with pytest.raises(OptionError, match="different calls"):
        pagerank(graph, damping=[0.85, 0.8][comm.rank % 2])
    with pytest.raises(OptionError, match="different calls: 'pagerank"):
        pagerank(graph) if comm.rank else bfs(graph, source=0)
    with pytest.raises(OptionError, match="different calls"):
        bfs([graph, other][comm.rank % 2], source=0)
    assert bfs(graph, source=0).hops.tolist() == [0, 1, 2, 3]


def test_mazes(comm, shared_tmp):
    (shared_tmp / f"m{comm.rank}.txt").write_text("S.\n.E\n" if comm.rank != 1 else "S#\n.E\n")
    with pytest.raises(OptionError, match="different (mazes|commands)"):
        main(maze.APP, comm, [str(shared_tmp / f"m{comm.rank}.txt")])


def test_a_personalization_in_files(comm, shared_tmp, monkeypatch):
    """Of one name, in the folders of different hosts."""
    from cusp.apps import pagerank as page

    graph = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    (shared_tmp / str(comm.rank)).mkdir()
    monkeypatch.chdir(shared_tmp / str(comm.rank))
    with open("near.txt", "w") as file:
        file.write(f"{comm.rank}\n")
    with pytest.raises(OptionError, match="different options"):
        main(page.APP, comm, [graph, "--personalize", "near.txt"])
    assert main(APP, comm, [graph, "--source", "0"]) == 0


def test_texts_that_differ_in_their_middle(comm):
    """What is shown of them is short, what is compared is not."""
    with pytest.raises(OptionError, match=r"different things: .* \(rank 1 of"):
        check_same(comm, "things", "a" * 1000 + str(comm.rank) + "\udc80" * 1000)
    check_same(comm, "things", "a" * 1000)
