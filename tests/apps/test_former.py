"""``--from``: runs that go on from the answer on a smaller graph find what a run from the start finds."""

import warnings

import graphs
import h5py
import numpy as np
import parts
import pytest

from cusp.apps import bfs, cc, library, pagerank, sssp
from cusp.apps.harness import App, main
from cusp.apps.run.former import Former, FormerError
from cusp.apps.run.output import write_answer
from cusp.errors import GraphFileError, InputError, OptionError, together

APPS = {"bfs": bfs.APP, "sssp": sssp.APP, "cc": cc.APP, "pagerank": pagerank.APP}
LABELS = {"bfs": "hops", "sssp": "distance", "cc": "component", "pagerank": "pagerank"}


def run(app: App, part, source: int, comm, start: Former | None = None, **more):
    """A verified answer. Collective."""
    options, sync = parts.options_of(app, start=start, execution="auto", **more), parts.make_sync(part)
    prepared = app.prepare(part, sync, options)
    answer = app.run(part, sync, source, prepared, options)
    app.check(part, sync, source, answer, prepared, options)
    return answer.on_host()


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_the_answer_is_that_of_a_run_from_the_start(comm, shared_tmp, name, policy):
    """From a file, on a graph with more nodes and more edges; PageRank as exactly as asked for."""
    graph = graphs.HARD[name]()
    before, symmetric = graphs.before_and_added(graph)[0], name in graphs.SYMMETRIC
    some, all_of_it = (
        parts.partition_graph(
            graphs.write(shared_tmp / f"{number}.h5", each, symmetric=symmetric),
            parts.policy_of(policy),
            comm,
            csc=True,
        )
        for number, each in enumerate((before, graph))
    )
    for app in APPS.values():
        more = {"tolerance": 1e-12} if app.name == "pagerank" else {}
        former = str(shared_tmp / f"{app.name}.h5")
        write_answer(former, run(app, some, 0, comm, **more), some, comm)
        expected = run(app, all_of_it, 0, comm, **more).labels[LABELS[app.name]]
        found = run(app, all_of_it, 0, comm, Former(former, None), **more).labels[LABELS[app.name]]
        if app.name == "pagerank":
            np.testing.assert_allclose(found, expected, atol=1e-11)
        else:
            np.testing.assert_array_equal(found, expected)


NAMED = {  # edges by name before, and those that are added: new names come between the others, and before them
    "before": [("b", "d"), ("d", "f"), ("h", "f"), ("x", "y")],
    "added": [("b", "h"), ("a", "b"), ("c", "d"), ("f", "c"), ("y", "c")],
}


@pytest.mark.mpi
def test_nodes_are_found_by_name(comm):
    """Where new names come between the others, all nodes have other numbers; also in labels whose values are nodes."""
    import pandas as pd

    before, after = (
        library.partition_graph(pd.DataFrame(edges, columns=["source", "target"]), share=True, device=parts.WANTED)
        for edges in (NAMED["before"], NAMED["before"] + NAMED["added"])
    )
    for function, arguments in ((library.bfs, ("b",)), (library.sssp, ("b",)), (library.cc, ())):
        former = function(before, *arguments)
        found = function(after, *arguments, start=former, verify=True).to_dict()
        assert found == function(after, *arguments).to_dict()
    with pytest.raises(FormerError, match="has 8 nodes, and the graph has only 6"):
        library.bfs(before, "b", start=library.bfs(after, "b"))
    with pytest.raises(FormerError, match="the nodes of the graph have names, and those of the answer have none"):
        numbers = library.partition_graph(([0], [1]), share=True, device=parts.WANTED)
        library.cc(after, start=library.cc(numbers))
    with pytest.raises(FormerError, match="has no hops of all nodes"):
        library.bfs(after, "b", start=library.cc(before))


@pytest.mark.mpi
def test_wrong_answers_are_found(comm, shared_tmp):
    """Of another source, of a graph that is no part of this one, of other weights, damaged, or of no ranks."""
    graph = graphs.random_directed(60, 200, seed=3)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, csc=True)
    wrong = {
        "bfs": {"hops": np.where(np.arange(60) == 7, 0, -1).astype(np.int32)},
        "sssp": {"distance": np.full(60, 1e-3)},
        "cc": {"component": np.full(60, 60)},
        "pagerank": {"pagerank": np.full(60, -1.0)},
    }
    messages = {"bfs": "hops of node 7: 0 is less", "sssp": "weights of another kind", "cc": "are no nodes",
                "pagerank": "has no ranks"}  # fmt: skip
    for name, labels in wrong.items():
        with together(comm):
            if comm.rank == 0:
                with h5py.File(shared_tmp / "wrong.h5", "w") as file:
                    file.update(labels)
        with pytest.raises(FormerError, match=messages[name]):
            run(APPS[name], part, 3, comm, Former(str(shared_tmp / "wrong.h5"), None))
        comm.Barrier()
    with pytest.raises(InputError, match="no dataset /hops .*; name what --output wrote"):
        run(APPS["bfs"], part, 3, comm, Former(str(shared_tmp / "g.h5"), None))
    with pytest.raises(OptionError, match="--from: residuals"):
        run(APPS["pagerank"], part, 3, comm, Former("", None), algorithm="push-residual", unweighted=True)


@pytest.mark.mpi
def test_from_the_command_line(comm, shared_tmp, capfd):
    """An answer replaces the one that it goes on from; one from another source, or from many, is refused."""
    graph = graphs.random_directed()
    before, after = (
        graphs.write(shared_tmp / f"{number}.h5", each)
        for number, each in enumerate((graphs.before_and_added(graph)[0], graph))
    )
    output, device = str(shared_tmp / "hops.h5"), ["--device", parts.WANTED]
    assert main(bfs.APP, comm, [before, "--source", "1", "--output", output, *device]) == 0
    with warnings.catch_warnings(), pytest.raises(FormerError, match="less than any path"):
        main(bfs.APP, comm, [after, "--source", "2", "--from", output, *device])
    with pytest.raises(GraphFileError, match="none.h5: no such file"):
        main(bfs.APP, comm, [after, "--source", "1", "--from", str(shared_tmp / "none.h5"), *device])
    with pytest.raises(OptionError, match="--from: is an answer from one source"):
        main(bfs.APP, comm, [after, "--sources", "2", "--from", output, *device])
    again = ["--source", "1", "--from", output, "--output", output, "--verify", *device]
    assert main(bfs.APP, comm, [after, *again]) == 0
    with h5py.File(output) as file:
        assert np.array_equal(file["hops"], graphs.serial_hops(graph, 1))
