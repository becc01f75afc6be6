"""Tables of distances, against searches one by one: by hops and weights, forward and backward, alone and together."""

from argparse import Namespace

import graphs
import h5py
import numpy as np
import pandas
import parts
import pytest

from cusp import partition_graph
from cusp.apps import library
from cusp.apps.harness import main
from cusp.apps.table import APP, prepare, table
from cusp.apps.verify.check import VerificationError
from cusp.errors import InputError, OptionError
from cusp.output.whole_file import OutputError


def check(part, graph: graphs.Graph, origins: list[int], destinations: list[int] | None, hops: bool) -> None:
    """Run, verify, and compare with serial searches. Collective."""
    sync, options = (
        parts.make_sync(part),
        Namespace(origins=origins, destinations=destinations, hops=hops, landmarks=None, strategy=None),
    )
    wanted, ends = prepare(part, sync, options), origins if destinations is None else destinations
    answer = table(sync, wanted, origins, ends)
    APP.check(part, sync, None, answer, wanted, options)
    search = graphs.serial_hops if hops else graphs.serial_distances
    expected = np.array([search(graph, origin)[ends] for origin in origins])
    found = answer.table["hops" if hops else "distance"]
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12 if found.dtype.kind == "f" else 0)
    assert answer.figures == {"searches": min(len(set(origins)), len(set(ends)))}


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_table(comm, shared_tmp, name, policy):
    """Hard graphs: from few nodes to many, some of them twice, and from many to few."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    few, many = [graph.num_nodes // 2, 0], [*range(graph.num_nodes), 0]
    for hops in (False, True):
        check(part, graph, few, many, hops)
        check(part, graph, many, few, hops)


@pytest.mark.mpi
@pytest.mark.parametrize(("small", "symmetric"), parts.share([(0, False), (1 << 23, False), (0, True)]))
def test_many_searches(comm, shared_tmp, monkeypatch, small, symmetric):
    """Two batches and a part of one, from all nodes to all; in copies of the graph, or together; weights are floats."""
    monkeypatch.setattr("cusp.apps.shared.graphs.whole_graph.SMALL", small)
    graph = graphs.random_directed(150, 500, seed=5)
    graph = graph._replace(weights=graph.weights / 7)
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, weight=np.float64, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    check(part, graph, list(range(150)), None, True)
    check(part, graph, list(range(0, 150, 20)), [3, 99, 140], False)


@pytest.mark.mpi
def test_weights_by_direction(comm, shared_tmp):
    """A symmetric graph whose weights are not: a search along in-edges takes those of the edge, not of its reverse."""
    graph = graphs.HARD["random_symmetric"]()
    graph.weights[:] = np.arange(graph.num_edges) % 17
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    check(parts.partition_graph(path, parts.policy_of("cvc"), comm), graph, [1, 2, 3, 5, 7], [11, 4], False)


@pytest.mark.mpi
def test_files(comm, shared_tmp):
    """Nodes from files, by name; a row for each pair, in the order of the files."""
    routes, shops, output = shared_tmp / "r.csv", shared_tmp / "shops.txt", shared_tmp / "t.csv"
    if comm.rank == 0:
        rows = [("Zürich", "Bern", 2.5), ("Bern", "Chur, Stadt", 1.5), ("Basel", "Basel", 1.0)]
        pandas.DataFrame(rows, columns=["source", "target", "weight"]).to_csv(routes, index=False)
        shops.write_text("# shops\nZürich\n\nBern\n")
    comm.Barrier()
    run = [str(routes), "--from", str(shops), "--to", "Chur, Stadt", "Basel", "Bern", "--device", parts.WANTED]
    assert main(APP, comm, [*run, "--verify", "--output", str(output)]) == 0
    expected = [
        ("Zürich", "Chur, Stadt", 4.0), ("Zürich", "Basel", np.inf), ("Zürich", "Bern", 2.5),
        ("Bern", "Chur, Stadt", 1.5), ("Bern", "Basel", np.inf), ("Bern", "Bern", 0.0),
    ]  # fmt: skip
    assert [*pandas.read_csv(output).itertuples(index=False, name=None)] == expected
    assert main(APP, comm, [*run, "--hops", "--output", str(shared_tmp / "t.h5")]) == 0
    with h5py.File(shared_tmp / "t.h5") as file:
        assert file["hops"][...].tolist() == [2, -1, 1, 1, -1, 0] and file["origin"].shape == (6,)
    with pytest.raises(OutputError, match="--output .*shops.txt"):
        main(APP, comm, [*run, "--output", str(shops)])
    graph = partition_graph(str(routes), comm=comm, device=parts.WANTED)
    found = library.table(graph, origins=str(shops), destinations=["Bern"], gather=False)
    assert found.distance.tolist() == [[2.5], [0.0]] and found.columns()["origin"] == ["Zürich", "Bern"]
    with pytest.raises(OptionError, match="the result has a table"):
        found["Bern"]
    with pytest.raises(AttributeError, match="which has a table"):
        found.to_dict()


@pytest.mark.mpi
def test_mistakes(comm, shared_tmp):
    """Nodes and files that are not there, an empty file; a wrong distance is found on every rank."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    if comm.rank == 0:
        (shared_tmp / "none.txt").write_text("\n")
        (shared_tmp / "bad.txt").write_text("3\n60\n")
    comm.Barrier()
    for given, message in {
        ("60",): "--from 60: the graph has the nodes 0 to 59", ("3", "x.txt"): "--from x.txt: the graph has",
        ("no.txt",): "nor is there such a file", (str(shared_tmp / "none.txt"),): "no node is in this file",
        (str(shared_tmp / "bad.txt"),): "bad.txt, line 2 60: the graph has the nodes",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=message):
            main(APP, comm, [path, "--from", *given, "--device", parts.WANTED])
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    sync, options = (
        parts.make_sync(part),
        Namespace(origins=[3, 4], destinations=[4, 5, 9], hops=False, landmarks=None, strategy=None),
    )
    wanted = prepare(part, sync, options)
    answer = table(sync, wanted, [3, 4], [4, 5, 9])
    answer.table["distance"][1, 2] += 1
    with pytest.raises(VerificationError, match="from 4 to 9, which are"):
        APP.check(part, sync, None, answer, wanted, options)
    with pytest.raises(OptionError, match="--from, --to 60: the graph has the nodes"):
        prepare(part, sync, Namespace(origins=[60], destinations=None, hops=True, landmarks=None, strategy=None))
