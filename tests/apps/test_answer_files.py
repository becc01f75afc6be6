"""Answers, exports and edges in the formats that suffixes name; values by node; figures as JSON."""

import json
import math

import graphs
import h5py
import numpy as np
import pandas
import parts
import pytest
from spawn import ONCE, mpirun

from cusp.__main__ import main as partition
from cusp.apps import library
from cusp.apps.harness import main
from cusp.apps.library import app_of, bfs, partition_graph
from cusp.commands.convert import main as convert
from cusp.errors import InputError, OptionError
from cusp.output import tables

ROUTES = [("Zürich", "Bern", 2.5), ("Bern", 'Thun, "BE"', 1.5), ("Zürich", "Chur", 0.5), ("Basel", "Basel", 1.0)]
FAR = {"Zürich": 0, "Bern": 2.5, 'Thun, "BE"': 4, "Chur": 0.5, "Basel": math.inf}
READ = {
    "csv": pandas.read_csv,
    "TSV": lambda path: pandas.read_csv(path, sep="\t"),
    "json": lambda path: pandas.read_json(path, dtype=False).fillna(math.inf),
    "parquet": pandas.read_parquet,
}


@pytest.fixture
def routes(comm, shared_tmp):
    """A table, from rank 0."""
    path = shared_tmp / "routes.csv"
    if comm.rank == 0:
        pandas.DataFrame(ROUTES, columns=["source", "target", "weight"]).to_csv(path, index=False)
    comm.Barrier()
    return str(path)


@pytest.mark.mpi
@pytest.mark.parametrize("suffix", READ)
def test_answers_by_suffix(comm, shared_tmp, routes, suffix, monkeypatch):
    """With names, a few rows at a time; the figures as JSON."""
    monkeypatch.setattr(tables, "AT_ONCE", 2)
    output, figures = shared_tmp / f"far.{suffix}", shared_tmp / "figures.json"
    run = [routes, "--source", "Zürich", "--device", parts.WANTED, "--trials", "2"]
    assert main(app_of("sssp"), comm, [*run, "--output", str(output), "--json", str(figures)]) == 0
    frame = READ[suffix](output)
    assert dict(zip(frame["node"], frame["distance"])) == FAR
    if suffix == "json":
        assert {row["node"]: row["distance"] for row in json.loads(output.read_text())} == FAR | {"Basel": None}
    found = json.loads(figures.read_text())
    assert found["parts"] == comm.size and found["app"] == "sssp" and found["partition_seconds"] > 0
    assert [trial["reached"] for trial in found["trials"]] == [4, 4]
    assert main(app_of("bfs"), comm, [*run[:-2], "--output", str(output)]) == 0  # without parents, which are nodes
    assert list(READ[suffix](output).columns) == ["node", "hops"]
    assert main(app_of("cc"), comm, [routes, "--device", parts.WANTED, "--output", str(output)]) == 0
    frame = READ[suffix](output)
    assert set(frame[frame["node"] != "Basel"]["component"]) == {"Bern"}


@pytest.mark.mpi
def test_answers_without_names(comm, shared_tmp):
    """Numbers; more ranks than rows; no nodes is not asked for. HDF5 stays as it is."""
    graph = graphs.random_directed(40, 90, seed=3)
    path, hops = graphs.write(shared_tmp / "g.h5", graph), graphs.serial_hops(graph, 3)
    for name in ("hops.csv", "hops.hdf5"):
        run = [path, "--source", "3", "--parents", "--device", parts.WANTED, "--output", str(shared_tmp / name)]
        assert main(app_of("bfs"), comm, run) == 0
    frame = pandas.read_csv(shared_tmp / "hops.csv")
    assert list(frame.columns) == ["node", "hops", "parents"] and frame["node"].tolist() == list(range(40))
    np.testing.assert_array_equal(frame["hops"], hops)
    with h5py.File(shared_tmp / "hops.hdf5") as file:
        np.testing.assert_array_equal(file["parents"][:], frame["parents"])


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["far.txt", "far", "far.csv.gz"])
def test_other_suffixes_are_refused(comm, shared_tmp, routes, name):
    """Before the run, with the list; also by convert."""
    known = r"use one of .*\.csv, \.tsv, \.json, \.parquet"
    with pytest.raises(InputError, match=f"--output .*{name}: the suffix .*{known}, .h5, .hdf5"):
        main(app_of("bfs"), comm, ["no such graph", "--output", str(shared_tmp / name)])
    with pytest.raises(InputError, match=f"--output .*{name}: the suffix .*{known}"):
        convert(comm, [routes, "-o", str(shared_tmp / name)])
    with pytest.raises(OptionError, match="--transpose: is for graph files"):
        convert(comm, [routes, "--transpose", "-o", str(shared_tmp / "g.csv")])
    assert not list(shared_tmp.glob("far*"))


@pytest.mark.mpi
def test_nothing_half_written(comm, shared_tmp, routes, monkeypatch):
    """A rank that fails in the middle fails all, and the file is as it was."""
    output = shared_tmp / "far.csv"
    if comm.rank == 0:
        output.write_text("before")
    monkeypatch.setattr(tables, "AT_ONCE", 1)
    calls, real = [], tables.named_columns

    def failing(*arguments):
        calls.append(0)
        if comm.rank == comm.size - 1 and len(calls) == 2:
            raise OptionError("in the middle")
        return real(*arguments)

    monkeypatch.setattr(tables, "named_columns", failing)
    columns = {"node": np.arange(3) + 3 * comm.rank}
    with pytest.raises(OptionError, match="in the middle"):
        tables.write_columns(output, columns, None, ["node"], comm)
    assert output.read_text() == "before" and len(list(shared_tmp.iterdir())) == 2


@pytest.mark.mpi
def test_edges_and_back(comm, shared_tmp, routes):
    """A graph file becomes a table with names, which gives the same graph."""
    for given, made in ((routes, "g.h5"), (str(shared_tmp / "g.h5"), "back.csv")):
        assert convert(comm, [given, "-o", str(shared_tmp / made)]) == 0
    frame = pandas.read_csv(shared_tmp / "back.csv")
    assert sorted(frame.itertuples(index=False, name=None)) == sorted(ROUTES)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("form", "to", "made"),
    [("csv", "m.csv", "m.csv"), ("parquet", "m", "m.parquet"), ("metis", "m.part.{}", "m.part.{}"),
     ("distdgl", "m.json", "m.json")],
)  # fmt: skip
def test_exports(comm, shared_tmp, routes, form, to, made, capsys):
    """Tables keep names; a suffix that is there is not added again."""
    graph, to, made = str(shared_tmp / "g.h5"), to.format(comm.size), made.format(comm.size)
    convert(comm, [routes, "-o", graph])
    capsys.readouterr()
    assert partition(comm, [graph, "--export", form, "--export-to", str(shared_tmp / to)]) == 0
    if comm.rank == 0:
        printed = capsys.readouterr().out
        assert f"wrote {shared_tmp / made}" in printed
        assert ("--export csv has names" in printed) == (form in ("metis", "distdgl"))
    if form in ("csv", "parquet"):
        frame = READ[form](shared_tmp / made)
        assert set(frame["node"]) == set(FAR) and set(frame["rank"]) <= set(range(comm.size))


@pytest.mark.mpi
def test_values_by_node(comm, shared_tmp, routes):
    """By name, or by number without names; brackets are for nodes, not for labels."""
    part = partition_graph(routes, comm=comm, device=parts.WANTED)
    far, groups = library.sssp(part, source="Zürich"), library.cc(part)
    assert {node: far[node] for node in FAR} == FAR and type(far["Chur"]) is float
    assert groups['Thun, "BE"'] == "Bern" and groups["Basel"] == "Basel"
    with pytest.raises(OptionError, match="node 'Zurich': no node .*similar: Zürich"):
        far["Zurich"]
    with pytest.raises(OptionError, match="'component': no node.*; all values .* are result.component"):
        groups["component"]
    with pytest.raises(TypeError):
        list(far)
    own = library.sssp(part, source="Zürich", gather=False)
    for place, node in enumerate(own.columns()["node"]):
        assert own[node] == own.local["distance"][place]
    if comm.size > 1 and "Bern" not in own.columns()["node"]:
        with pytest.raises(OptionError, match="another rank has this node"):
            own["Bern"]
    numbers = bfs(partition_graph(([0, 1], [1, 2]), comm=comm, device=parts.WANTED), source=0)
    assert (numbers[2], numbers[np.int64(1)]) == (2, 1)
    for wrong, message in ((3, "node 3: the graph has the nodes 0 to 2"), (-1, "node -1"), ("a", "'a': nodes are")):
        with pytest.raises(OptionError, match=message):
            numbers[wrong]
    with pytest.raises(OptionError, match="the result has figures only: triangles"):
        library.triangles(part)["Bern"]


@pytest.mark.mpi
def test_files_of_a_result(comm, shared_tmp, routes):
    """The same tables as of --output, of all ranks or of each."""
    part = partition_graph(routes, comm=comm, device=parts.WANTED)
    for gather in (True, False):
        far = library.sssp(part, source="Zürich", gather=gather)
        far.to_csv(shared_tmp / "r.csv")
        far.to_csv(shared_tmp / "r.TSV")
        far.to_json(shared_tmp / "r.json")
        comm.Barrier()
        for suffix in ("csv", "TSV", "json"):
            names = [f"r.{rank}.{suffix}" for rank in range(comm.size)] if not gather else [f"r.{suffix}"]
            frame = pandas.concat([READ[suffix](shared_tmp / name) for name in names if (shared_tmp / name).exists()])
            assert dict(zip(frame["node"], frame["distance"])) == FAR
        with pytest.raises(InputError, match="r.parquet: would be written as CSV; end the name with .csv"):
            far.to_csv(shared_tmp / "r.parquet")
    assert not list(shared_tmp.glob("*.parquet"))


@pytest.mark.mpi
def test_what_a_graph_knows(comm, shared_tmp, routes):
    """Sizes, degrees and neighbours, the same on every rank."""
    part = partition_graph(routes, policy="cvc", comm=comm, device=parts.WANTED)
    assert (part.num_nodes, part.num_edges) == (5, 4)
    assert part.neighbors("Zürich") == ["Bern", "Chur"] and part.neighbors("Chur") == []
    assert (part.out_degree("Zürich"), part.out_degree("Chur")) == (2, 0)
    with pytest.raises(OptionError, match="node 'Genf': no node"):
        part.neighbors("Genf")
    graph = graphs.random_directed(50, 400, seed=4)  # with parallel edges
    part = partition_graph((graph.sources, graph.targets), "cvc", num_nodes=50, comm=comm, device=parts.WANTED)
    np.testing.assert_array_equal(part.degrees, np.bincount(graph.sources, minlength=50))
    for node in range(50):
        assert part.neighbors(node) == sorted(set(graph.targets[graph.sources == node].tolist()))
        assert part.out_degree(node) == part.degrees[node]


FIRST_RUN = """
from cusp import partition_graph
from cusp.apps.run import function
from cusp.runtime.compiled_code import CodeFiles
import cusp, numpy as np

loaded, real, load = [], function.timed_run, CodeFiles.load

def timed(*arguments, **options):
    before = len(loaded)
    found = real(*arguments, **options)
    assert len(loaded) == before, loaded[before:]
    return found

def counted(self, key):
    loaded.append(self._index_name)
    return load(self, key)

function.timed_run, CodeFiles.load = timed, counted
random = np.random.default_rng(1)
edges = random.integers(0, 3000, (2, {edges}))
graph = partition_graph((*edges, random.integers(1, 255, {edges})), threads=2)
for app in (cusp.sssp, cusp.bfs, cusp.widest):
    app(graph, source=int(edges[0, 0]))
cusp.cc(partition_graph((*edges,), symmetrize=True, threads=2))
assert len(loaded) > 10
"""


@pytest.mark.limit(300)
@pytest.mark.parametrize(
    ("n", "edges"),
    [*(pytest.param(1, edges, marks=pytest.mark.slow) for edges in (20_000, 60_000)), (2, 20_000)],
)
def test_first_run_loads_no_code(tmp_path, n, edges):
    """Whether arrays are small or large: all code of a run was loaded by the rehearsal."""
    (tmp_path / "first.py").write_text(ONCE + FIRST_RUN.format(edges=edges))
    done = mpirun(n, tmp_path / "first.py", launcher=n > 1)
    assert done.returncode == 0, done.stderr
