"""The algorithms as functions: graphs in memory and in files, results by global id, keywords, what is kept."""

import argparse
import inspect
from dataclasses import replace

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import parts
import pytest
import ranks
from spawn import ONCE, mpirun

from cusp.apps import library
from cusp.apps.bfs import APP as BFS
from cusp.apps.harness import Answer, App
from cusp.apps.library import bfs, function_of, partition_graph, sssp
from cusp.apps.run import partitioned_graph
from cusp.apps.verify.check import VerificationError
from cusp.errors import InputError, OptionError
from cusp.runtime.mpi import MPI

GRAPH = graphs.random_directed(50, 200, seed=4)
EDGES = (GRAPH.sources, GRAPH.targets, GRAPH.weights)


def divide(graph=EDGES, policy="cvc", **options):
    """A partition on the device under test. Collective."""
    return partition_graph(graph, policy, comm=ranks.COMM, device=parts.WANTED, **options)


@pytest.mark.mpi
def test_answers_by_global_id(comm, shared_tmp):
    """From arrays and from a file, gathered and not, with a transpose that bfs asks for when it is needed."""
    path = graphs.write(shared_tmp / "g.h5", GRAPH)
    for part in (divide(num_nodes=50), divide(path, "oec", order="natural")):
        found = bfs(part, source=3, parents=True, verify=True)
        np.testing.assert_array_equal(found.hops, graphs.serial_hops(GRAPH, 3))
        assert found.parents[3] == 3
        assert found.rounds > 0 and found.seconds > 0
        np.testing.assert_array_equal(sssp(part, 3, delta=4).distance, graphs.serial_distances(GRAPH, 3))
        alone = bfs(part, 3, gather=False, direction="push")
        assert alone.values == {} and alone.local["hops"].size == part.part.num_masters
        np.testing.assert_array_equal(alone.local["hops"], found.hops[alone.local["node"]])
        with pytest.raises(AttributeError, match="not gathered"):
            alone.hops  # noqa: B018


@pytest.mark.mpi
def test_nodes_with_names(comm, shared_tmp):
    """Sources and tables use the names of a NetworkX graph, which only the last rank has."""
    graph = nx.Graph([("x", "y"), ("y", "z"), ("u", "v")])
    part = divide(graph if comm.rank == comm.size - 1 else None)
    found = bfs(part, source="z")
    frame = found.to_pandas()
    assert dict(zip(frame["node"], frame["hops"])) == {"x": 2, "y": 1, "z": 0, "u": -1, "v": -1}
    found.to_parquet(shared_tmp / "hops.parquet")
    comm.Barrier()
    pd.testing.assert_frame_equal(pd.read_parquet(shared_tmp / "hops.parquet"), frame)
    bfs(part, source="z", gather=False).to_parquet(str(shared_tmp / "piece.parquet"))
    comm.Barrier()
    pieces = pd.concat([pd.read_parquet(shared_tmp / f"piece.{rank}.parquet") for rank in range(comm.size)])
    assert sorted(zip(pieces["node"], pieces["hops"])) == sorted(zip(frame["node"], frame["hops"]))
    roots = library.forest(part, roots=["x", "v"])
    assert dict(zip("xyzuv", roots.hops)) == {"x": 0, "y": 1, "z": 2, "u": 1, "v": 0}
    tree = bfs(part, source="z", parents=True)
    assert (tree.path("x"), tree.path("z"), tree.path("u")) == (["z", "y", "x"], ["z"], [])
    with pytest.raises(OptionError, match="node 'w': no node"):
        bfs(part, source="w")
    with pytest.raises(InputError, match="cannot be written"):
        found.to_parquet(str(shared_tmp / "missing" / "hops.parquet"))


@pytest.mark.mpi
def test_what_is_prepared_is_kept_until_options_change(comm):
    made = []

    def prepare(part, sync, options):
        made.append(options.direction)
        return BFS.prepare(part, sync, options)

    counted, part = function_of(replace(BFS, prepare=prepare)), divide()
    counted(part, 0)
    made.clear()  # and those of the warm-up
    counted(part, 1)
    assert made == []
    counted(part, 1, direction="pull")
    counted(part, 2, direction="pull")
    assert made == ["pull"]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--some", type=float, nargs="*")
    parser.add_argument("--top-share", type=float, default=0.5, help="at most 100 %%")


def _refuse(*arguments) -> None:
    raise VerificationError("the answer is wrong")


WHOLE = App(
    name="whole",
    summary="an app without a source",
    run=lambda part, sync, source, prepared, options: Answer(
        {}, None, 1, {"edges": part.num_edges, "options": [options.count, options.some, options.top_share, source]}
    ),
    verify=_refuse,
    add_options=_add_options,
    needs_source=False,
)
UNCHECKED = App("anything", "any", run=lambda *arguments: Answer({}, None, 1), needs_source=False)


@pytest.mark.mpi
def test_rehearsed_once(comm, monkeypatch):
    """Another graph of the same types starts at once; other options and other communicators do not."""
    calls = []
    monkeypatch.setattr(partitioned_graph, "rehearse", lambda app, *rest: calls.append(app.name))

    def rehearsals(ranks: MPI.Intracomm, **options: bool) -> int:
        calls.clear()
        bfs(partition_graph(EDGES, comm=ranks, device=parts.WANTED), 0, **options)
        return len(calls)

    own, first = comm.Dup(), 2 if comm.size > 2 and comm.rank < 2 else 1  # few ranks before all
    assert [rehearsals(own), rehearsals(own)] == [first, 0]
    assert [rehearsals(own, parents=True), rehearsals(own, parents=True), rehearsals(own)] == [first, 0, 0]
    assert rehearsals(comm.Dup()) == first


@pytest.mark.mpi
def test_any_app_becomes_a_function(comm):
    """Without a source, with figures alone, with every kind of option; and its answer can be refused."""
    whole, part = function_of(WHOLE), divide()
    assert whole(part).figures == {"edges": 200, "options": [2, None, 0.5, None]}
    found = whole(part, count=np.int64(-3), some=[1, 2.5], top_share=1e-9)
    assert found.figures["options"] == [-3, [1.0, 2.5], 1e-9, None]
    assert list(found.to_pandas().columns) == ["node"]
    assert str(inspect.signature(whole)).startswith("(part: ")
    assert all(one in str(inspect.signature(whole)) for one in ("count: int = 2, ", "top_share: float = 0.5"))
    assert "top_share : at most 100 %" in whole.__doc__
    with pytest.raises(VerificationError):
        whole(part, verify=True)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda part: bfs(part, 0, direction="up"), "bfs: argument --direction: invalid choice: 'up'"),
        (lambda part: bfs(part, 0, wide=True), "bfs: no option wide; there are direction, parents"),
        (lambda part: bfs(part, 0, parents=1), "parents=1: expected True or False"),
        (lambda part: sssp(part, 0, delta=-1), "--delta -1: the width of a bucket must be above 0"),
        (lambda part: bfs(part, 50), "node 50: the graph has the nodes 0 to 49"),
        (lambda part: bfs(part, 1.5), "1.5: nodes are integers"),
        (lambda part: divide(policy="best"), "unknown; choose one of oec"),
        (lambda part: divide(grid=(3, 7)), "--grid 3x7 is for 21 ranks"),
        (lambda part: divide(memory_limit="1G"), "this graph is in memory"),
        (lambda part: divide("g.h5"), "g.h5"),
        (
            lambda part: bfs(part.part, 0),
            r"bfs takes what partition_graph returned, not Partition; call bfs\(partition_",
        ),
        (lambda part: function_of(UNCHECKED)(part, verify=True), "--verify: anything has no verifier"),
    ],
)
def test_mistakes(comm, call, message):
    part = divide(num_nodes=50)
    with pytest.raises(InputError, match=message):
        call(part)


def test_every_app_is_a_function():
    """APPS is the one table of them."""
    for name in library.APPS:
        assert getattr(library, name).__name__ == library.app_of(name).name == name
        assert name in dir(library)
    with pytest.raises(AttributeError, match="the algorithms are bfs"):
        library.unheard_of  # noqa: B018


@pytest.mark.parametrize("n", [1, 2])
def test_a_script(tmp_path, n):
    """As a user starts it: without mpirun, and on two ranks, which are found without being named."""
    script = tmp_path / "script.py"
    script.write_text(
        f"{ONCE}"
        "from cusp.apps.library import bfs, partition_graph\n"
        "part = partition_graph(([0, 1, 2], [1, 2, 3]), 'oec')\n"
        "result = bfs(part, 0)\n"
        "if part.comm.rank == part.comm.size - 1:\n"
        "    print(part.comm.size, result.hops.tolist())\n"
    )
    done = mpirun(n, script, launcher=n > 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{n} [0, 1, 2, 3]\n"
