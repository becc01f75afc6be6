"""Without rounds: the answers of rounds, also where messages are late; and what cannot do without them."""

import numpy as np
import parts
import pytest
from fuzz import delays
from fuzz.differential import rehearsed_once
from graphs import HARD
from spawn import mpirun

from cusp.apps import library
from cusp.apps.edge_operator import EdgeOperator
from cusp.errors import OptionError
from gluon.label import Label
from gluon.reduction import MIN
from gluon.sync import Sync

OPTIONS = {
    "bfs": {"source": 0, "parents": True},
    "sssp": {"source": 0},
    "widest": {"source": 0},
    "forest": {"roots": [0]},
    "cc": {},
    "kcore": {},
    "pagerank": {"algorithm": "push-residual", "unweighted": True},
}
PAIRS = [("random", "cvc"), ("path", "oec"), ("loops_and_doubles", "iec")]


def library_graph(name: str, policy: str):
    """A hard graph, divided among the ranks."""
    graph = HARD[name]()
    edges = graph.sources, graph.targets, graph.weights
    return library.partition_graph(
        edges, policy=policy, num_nodes=graph.num_nodes, share=True, device=parts.DEVICE, threads=1
    )


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
@pytest.mark.parametrize("app", OPTIONS)
def test_answers_are_those_of_rounds(app):
    """By every way to divide the graph that has other lists: mirrors that are written, read, both."""
    for name, policy in PAIRS:
        graph, function = library_graph(name, policy), getattr(library, app)
        right = function(graph, execution="bulk", verify=True, **OPTIONS[app])
        found = function(graph, execution="async", verify=True, **OPTIONS[app])
        for label in right.values:
            if label == "pagerank":
                assert np.abs(right.pagerank - found.pagerank).sum() < 2e-5
            elif label != "parents":  # verified: they are parents
                np.testing.assert_array_equal(right.values[label], found.values[label], f"{label} {name} {policy}")


@pytest.mark.mpi(min_size=2)
def test_an_operator_of_the_users():
    """Shortest paths by a text, from each rank's own pace."""
    graph = library_graph("random", "cvc")
    relax, distances = EdgeOperator("src.distance + weight", into="dst.distance"), []
    for execution in ("bulk", "async"):
        distance = Label(graph.part, np.int64, 2**63 - 1, MIN)
        distance.write(0, 0)
        relax.until_quiet(graph.part, Sync(graph.plan, graph.comm, execution=execution), distance=distance)
        distances.append(distance.masters().tolist())
    assert distances[0] == distances[1]


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
def test_late_messages(comm):
    """The end is not found too early, and it is found, however late messages are."""
    if parts.DEVICE != "cpu":
        pytest.skip("runs of a few microseconds")
    asked = 0
    with rehearsed_once(), delays.delays(comm, 1) as late:
        for number in range(3):
            for what, why in delays.case(1, number, late):
                assert not why, f"--seed 1 --case {number}: {what}: {why}"
                asked += 1
    assert asked == 3 * 3 * delays.RUNS_OF_A_GRAPH


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("app", "options"),
    [("triangles", {}), ("betweenness", {}), ("pagerank", {}), ("bfs", {"source": 0, "direction": "pull"})],
)
def test_what_needs_rounds_says_so(app, options):
    with pytest.raises(OptionError, match=rf"--execution async: {app} cannot do without rounds: .*; use --execution"):
        getattr(library, app)(library_graph("path", "oec"), execution="async", **options)


@pytest.mark.mpi
def test_an_unknown_way():
    with pytest.raises(OptionError, match=r"execution='rounds': choose one of auto, bulk, async"):
        library.cc(library_graph("path", "oec"), execution="rounds")


def test_the_command_line_refuses_on_every_rank():
    done = mpirun(2, "-m", "cusp.apps.triangles", "--execution", "async")
    assert done.returncode == 1
    assert done.stderr.count("cannot do without rounds") == 1
