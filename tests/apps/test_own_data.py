"""Files whose node ids are names, through the algorithms: the answers are those of NetworkX, by name."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import networkx as nx
import numpy as np
import parts
import pytest
import ranks

from cusp.apps import library
from cusp.apps.harness import main
from cusp.apps.library import app_of, partition_graph
from cusp.commands.convert import main as convert
from cusp.errors import InputError, OptionError

pandas = pytest.importorskip("pandas")


class Case(NamedTuple):
    """A graph, the node to start from, and another one."""

    graph: nx.Graph
    source: str
    target: str


def trips() -> nx.DiGraph:
    """A directed graph whose names have blanks, signs and letters of all kinds."""
    random, graph = np.random.default_rng(2), nx.DiGraph()
    cities = ["Zürich", "San José", "NA", "東京", "C#", "O'Fallon, MO", '"The Hague"', *map(str, range(30))]
    for _ in range(120):
        start, end = random.choice(len(cities), 2, replace=False)
        graph.add_edge(cities[start], cities[end], weight=int(random.integers(1, 90)))
    return graph


CASES = {
    "characters.csv": Case(nx.les_miserables_graph(), "Valjean", "Gribier"),
    "club.parquet": Case(nx.davis_southern_women_graph(), "Olivia Carleton", "Flora Price"),
    "trips.csv.gz": Case(trips(), "Zürich", "NA"),
}


def write(folder: Path, name: str) -> str:
    """The edges as a table, from rank 0. Collective."""
    path, graph = folder / name, CASES[name].graph
    if ranks.COMM.rank == 0:
        columns = ["From", "To", "km"] if graph.is_directed() else ["source", "target", "weight"]
        table = pandas.DataFrame([(u, v, data.get("weight", 1)) for u, v, data in graph.edges(data=True)])
        table = table.set_axis(columns, axis=1).assign(note="é")
        if name.endswith("parquet"):
            table.to_parquet(path, row_group_size=30)
        else:
            table.to_csv(path, index=False)
    ranks.COMM.Barrier()
    return str(path)


def groups(labels: dict[str, str]) -> set[frozenset]:
    """Nodes by the name of their group, which is that of the smallest member."""
    found: dict[str, set] = {}
    for node, name in labels.items():
        found.setdefault(name, set()).add(node)
    assert all(min(members) == name for name, members in found.items())
    return set(map(frozenset, found.values()))


def same(found: dict, expected: dict, missing: Any = None) -> None:
    """The same numbers for all nodes, up to rounding; ``missing`` for those that are not expected."""
    assert found == pytest.approx({node: expected.get(node, missing) for node in found}, abs=1e-9)


@pytest.mark.mpi
@pytest.mark.parametrize("name", parts.share(CASES))
def test_answers_by_name(comm, shared_tmp, name):
    graph, source, target = CASES[name]
    path, both = write(shared_tmp, name), graph.to_undirected()
    where = {"policy": "cvc", "device": parts.WANTED, "comm": comm, "symmetrize": not graph.is_directed()}
    part, plain = partition_graph(path, **where), partition_graph(path, weights=False, **where)
    assert list(part.names) == sorted(graph)

    def run(name: str, given: Any = part, **options: Any) -> Any:
        return getattr(library, name)(given, **options)

    hops, far = nx.single_source_shortest_path_length(graph, source), run("bfs", source=source, parents=True)
    same(far.to_dict(), hops, -1)
    parents = far.to_dict("parents")
    assert all(parents[node] == node or hops[parents[node]] == hops[node] - 1 for node in hops)
    lengths = nx.single_source_dijkstra_path_length(graph, source)
    same(run("sssp", source=source).to_dict(), lengths, -1)
    way = run("path", source=source).path(target)
    assert (way[0], way[-1]) == (source, target)
    assert sum(graph.edges[edge].get("weight", 1) for edge in zip(way[:-1], way[1:])) == lengths[target]
    trees, back = run("forest", roots=[source, target]), nx.single_source_shortest_path_length(graph, target)
    same(trees.to_dict(), {node: min(hops.get(node, math.inf), back.get(node, math.inf)) for node in hops | back}, -1)
    assert {*trees.to_dict("root").values()} - {None} == {source, target}
    assert groups(run("cc").to_dict()) == set(map(frozenset, nx.connected_components(both)))
    strong = nx.strongly_connected_components(graph.to_directed())
    assert groups(run("scc").to_dict()) == set(map(frozenset, strong))
    same(run("kcore").to_dict(), nx.core_number(both))
    found = run("triangles", per_node=True)
    same(found.to_dict("node_triangles"), nx.triangles(both))
    same(found.to_dict("clustering"), nx.clustering(both))
    assert found.triangles * 3 == sum(nx.triangles(both).values())
    same(run("pagerank", plain, tolerance=1e-12).to_dict(), nx.pagerank(graph, weight=None, tol=1e-13, max_iter=1000))
    shares = nx.betweenness_centrality(graph)
    same(run("betweenness", sources="all", normalized=True).to_dict(), shares)
    louvain = run("communities", plain)
    assert louvain.modularity == pytest.approx(nx.community.modularity(both, groups(louvain.to_dict()), weight=None))


@pytest.mark.mpi
def test_from_the_command_line(comm, shared_tmp, capsys):
    """A table and the graph file made of it; names in options, in what is printed, in the output, in mistakes."""
    table, graph = write(shared_tmp, "characters.csv"), str(shared_tmp / "g.h5")
    assert convert(comm, [table, "--symmetrize", "-o", graph]) == 0
    names = sorted(CASES["characters.csv"].graph)
    run = [*("--device", parts.WANTED), "--source", "Valjean", "--verify"]
    for given in ([table, "--symmetrize"], [graph]):
        output = str(shared_tmp / "hops.h5")
        assert main(app_of("path"), comm, [*given, *run, "--targets", "Gribier,Myriel", "--output", output]) == 0
        printed = capsys.readouterr().out
        if comm.rank == 0:
            assert "77 nodes with names" in printed and "path from Valjean:" in printed
            assert "distance 5: Valjean -> Myriel" in printed
            assert ("csv, read edge by edge" in printed) == (given != [graph])
            with h5py.File(output) as file:
                ends, text = file["names/offsets"][:], file["names/bytes"][:].tobytes()
                assert [text[a:b].decode() for a, b in zip(ends, ends[1:])] == names
                assert file["distance"].size == len(names)
    for options, message in (
        (["--source", "Valjaen"], "--source 'Valjaen': no node of the graph has this name; similar: Valjean"),
        (["--source", "7"], "--source '7': no node"),
        (["--source", "Myriel", "--targets", "Gribier,gribier"], "--targets 'gribier'.*similar: Gribier"),
        (["--symmetrize"], "--symmetrize: for files of other formats"),
    ):
        with pytest.raises(OptionError, match=message):
            main(app_of("path"), comm, [graph, *options])
    with pytest.raises(OptionError, match="--columns source: expected SOURCE,TARGET"):
        partition_graph(table, columns="source", comm=comm)
    for options, message in (
        (["--memory-limit", "1M"], "--memory-limit: needs a graph file"),
        (["--columns", "source,to"], "has the columns source, target, weight, note"),
    ):
        with pytest.raises(InputError, match=message):
            main(app_of("bfs"), comm, [table, *options])


@pytest.mark.mpi
def test_saved_partitions_keep_names(comm, shared_tmp):
    """They are those of the graph file."""
    from cusp.__main__ import main as partition

    table, graph, folder = write(shared_tmp, "club.parquet"), str(shared_tmp / "g.h5"), str(shared_tmp / "parts")
    convert(comm, [table, "--symmetrize", "-o", graph])
    partition(comm, [graph, "--save", folder, "--device", "cpu"])
    part = partition_graph(folder, comm=comm)
    hops = nx.single_source_shortest_path_length(CASES["club.parquet"].graph, "Flora Price")
    same(library.bfs(part, "Flora Price").to_dict(), hops)


class Relation:
    """What only Arrow's interface can read."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(schema)


class Lazy(NamedTuple):
    """Stands for a LazyFrame of Polars: a table once it is collected."""

    table: Any

    def collect_schema(self) -> Any:
        return self.table.columns

    def collect(self) -> Any:
        return self.table


@pytest.mark.mpi
def test_tables_in_memory(comm):
    """pandas, Arrow and what turns into Arrow; columns by any name; on one rank or shared."""
    pyarrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"to": ["b", "c", "a"], "from": ["a", "b", "c"], "km": [1.5, 2.0, 4.0], "x": [0, 0, 0]})
    table = pyarrow.table(frame)
    for graph in (frame, table, Relation(table), Lazy(frame), frame.astype({"to": "category"})):
        mine = graph if comm.rank == comm.size - 1 else None
        found = library.sssp(partition_graph(mine, comm=comm), "b")
        assert found.to_dict() == {"a": 6.0, "b": 0.0, "c": 2.0}
        assert found.to_arrow().to_pydict() == {"node": ["a", "b", "c"], "distance": [6.0, 0.0, 2.0]}
    shares = frame[comm.rank :: comm.size] if comm.rank < 3 else None
    assert list(partition_graph(shares, share=True, comm=comm).names) == ["a", "b", "c"]
    reverse = partition_graph(frame, columns=["to", "from"], comm=comm)
    assert library.bfs(reverse, "b", parents=True).to_dict("parents") == {"a": "b", "b": "b", "c": "a"}
    mixed = library.bfs(partition_graph(nx.Graph([(1, "one"), ((2, 3), 1)]), comm=comm), "one")
    assert mixed.to_dict() == {1: 1, "one": 0, (2, 3): 2}
    assert mixed.to_arrow()["node"].to_pylist() == ["1", "one", "(2, 3)"]


def walks() -> dict[str, Any]:
    """What a newcomer brings, of one graph whose lengths are in a column or attribute that is named."""
    graph = nx.Graph()
    for u, v, data in nx.les_miserables_graph().edges(data=True):
        graph.add_edge(u, v, steps=data["weight"])
    numbered = {name: 100_000 + 37 * place for place, name in enumerate(sorted(graph))}
    return {"names": graph, "gaps": nx.relabel_nodes(graph, numbered)}


def write_walk(path: Path, graph: nx.Graph) -> None:
    """A graph as its suffix says; ``;`` and Latin-1 in .csv.gz."""
    table = pandas.DataFrame([(u, v, data["steps"]) for u, v, data in graph.edges(data=True)])
    table = table.set_axis(["origin", "destination", "steps"], axis=1)
    writers = {
        ".csv": lambda: table.to_csv(path, index=False),
        ".gz": lambda: table.to_csv(path, index=False, sep=";", encoding="latin1"),
        ".parquet": lambda: table.to_parquet(path),
        ".feather": lambda: table.to_feather(path),
        ".graphml": lambda: nx.write_graphml(graph, path),
        ".gexf": lambda: nx.write_gexf(graph, path),
        ".gml": lambda: nx.write_gml(graph, path),
        ".edgelist": lambda: nx.write_edgelist(nx.relabel_nodes(graph, lambda name: name.replace(" ", "_")), path),
    }
    writers[path.suffix]()


WALKS = [
    *(("gaps", kind) for kind in ("table.csv", "table.parquet", "frame", "polars", "arrays", "networkx")),
    *(("names", kind) for kind in ("table.csv", "table.csv.gz", "table.feather", "frame", "igraph", "scipy")),
    *(("names", f"graph.{kind}") for kind in ("graphml", "gml", "gexf", "edgelist")),
]


@pytest.mark.mpi
@pytest.mark.limit(300)
@pytest.mark.parametrize(("ids", "kind"), parts.share(WALKS))
def test_own_data_to_right_answers(comm, shared_tmp, ids, kind):
    """The components, shares and distances are those of NetworkX, by name, whatever the graph came in."""
    graph = walks()[ids]
    table = pandas.DataFrame([(u, v, data["steps"]) for u, v, data in graph.edges(data=True)])
    table = table.set_axis(["origin", "destination", "steps"], axis=1)
    options: dict[str, Any] = {"symmetrize": True, "columns": "origin,destination,steps"}
    given: Any = str(shared_tmp / kind)
    if "." in kind:
        if comm.rank == 0:
            write_walk(Path(given), graph)
        comm.Barrier()
        if kind.startswith("graph"):
            options = {"columns": "steps", "symmetrize": kind.endswith("edgelist")}
    elif kind == "polars":
        given = pytest.importorskip("polars").from_pandas(table)
    elif kind == "arrays":
        given, options = tuple(table[name].to_numpy() for name in table), {"symmetrize": True}
    elif kind == "igraph":
        given = pytest.importorskip("igraph").Graph.TupleList(table.itertuples(index=False), edge_attrs=["steps"])
        options = {"columns": "steps"}
    elif kind == "scipy":
        given, options = nx.to_scipy_sparse_array(graph, weight="steps", format="csr"), {}
        graph = nx.convert_node_labels_to_integers(graph)
    else:
        given, options = (table, options) if kind == "frame" else (graph, {"columns": "steps"})
    if kind == "graph.edgelist":
        graph = nx.relabel_nodes(graph, lambda name: name.replace(" ", "_"))
    part = partition_graph(given, comm=comm, device=parts.DEVICE, **options)
    source = next(iter(graph))
    same(library.bfs(part, source).to_dict(), nx.single_source_shortest_path_length(graph, source))
    same(library.sssp(part, source).to_dict(), nx.single_source_dijkstra_path_length(graph, source, weight="steps"))
    same(
        library.pagerank(part, tolerance=1e-12).to_dict(), nx.pagerank(graph, weight="steps", tol=1e-13, max_iter=1000)
    )
    found: dict[Any, set] = {}
    for node, label in library.cc(part).to_dict().items():
        found.setdefault(label, set()).add(node)
    assert [*map(frozenset, found.values())] == [*map(frozenset, nx.connected_components(graph))]


ROUTES = "origin,destination,distance_km\nBern,Basel,95\n"


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_weights_are_asked_for(comm, shared_tmp, capfd):
    """A column of numbers that nobody named is no length of 1: on the command line and in Python."""
    from cusp.__main__ import main as cusp

    path = str(shared_tmp / "routes.csv")
    if comm.rank == 0:
        Path(path).write_text(ROUTES)
    comm.Barrier()
    run = [path, "--device", parts.WANTED, "--source", "Bern"]
    with pytest.raises(OptionError, match="there is distance_km; say --columns origin,destination,distance_km, or"):
        main(app_of("sssp"), comm, run)
    for more, length in ((["--weights", "none"], 1), (["--columns", "origin,destination,distance_km"], 95)):
        output = str(shared_tmp / "found.h5")
        assert main(app_of("sssp"), comm, [*run, *more, "--output", output]) == 0
        with h5py.File(output) as file:
            assert file["distance"][:].max() == length
        comm.Barrier()
    graph = partition_graph(path, comm=comm, device=parts.DEVICE)
    assert library.bfs(graph, "Bern").to_dict() == {"Basel": 1, "Bern": 0}
    with pytest.raises(OptionError, match="columns='origin,destination,distance_km'"):
        library.sssp(graph, "Bern")
    plain = partition_graph(path, comm=comm, weights=False, device=parts.DEVICE)
    assert library.sssp(plain, "Bern").to_dict() == {"Basel": 1, "Bern": 0}
    capfd.readouterr()
    assert cusp(comm, [path, "--device", parts.WANTED]) == 0 and cusp(comm, ["compare", path, "--policies", "oec"]) == 0
    assert convert(comm, [path, "-o", str(shared_tmp / "routes.h5")]) == 0
    printed = capfd.readouterr().out
    if comm.rank == 0:
        assert "2 nodes with names, 1 edges" in printed and "oec" in printed
        assert "distance_km was not taken; --columns origin,destination,distance_km takes it" in printed
    for option in ("--dry-run", "--save=parts"):
        with pytest.raises(OptionError, match="needs a graph file; cusp convert makes one"):
            cusp(comm, [path, option])
    tolls = nx.Graph([(1, 2, {"cost": 3})])
    with pytest.raises(InputError, match="columns price: .* there are cost"):
        partition_graph(tolls, columns="price", comm=comm, device=parts.DEVICE)
    igraph = pytest.importorskip("igraph").Graph.from_networkx(tolls)
    for given in tolls, igraph:
        asks = partition_graph(given, comm=comm, device=parts.DEVICE)
        with pytest.raises(OptionError, match="columns='cost'"):
            library.sssp(asks, 0 if given is igraph else 1)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", [list, tuple, set, np.array, pandas.Series, pandas.Index])
def test_lists_of_nodes(comm, kind):
    """Of any kind, by name, wherever nodes are taken."""
    graph = partition_graph(pandas.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"]}), comm=comm)
    nodes = kind(["a", "c"])
    assert library.forest(graph, roots=nodes).to_dict() == {"a": 0, "b": 1, "c": 0, "d": 1}
    assert library.betweenness(graph, source=nodes).to_dict() == {"a": 0.0, "b": 2.0, "c": 1.0, "d": 0.0}
    by_name = library.pagerank(graph, personalize=nodes, tolerance=1e-9).to_dict()
    by_weight = library.pagerank(graph, personalize={"c": 2, "a": 2.0}, tolerance=1e-9).to_dict()
    assert by_name == by_weight and by_name["a"] < by_name["c"]
    with pytest.raises(OptionError, match="no node of the graph has this name; similar: a"):
        library.betweenness(graph, source=kind(["a", "aa"]))


@pytest.mark.mpi
def test_a_rank_for_each_name(comm, shared_tmp):
    """A node map by names, for a table in a file and in memory, and for a graph file; what it lacks is named."""
    path, file = write(shared_tmp, "trips.csv.gz"), str(shared_tmp / "trips.h5")
    assert convert(comm, [path, "-o", file, "--columns", "From,To,km"]) == 0
    graph = CASES["trips.csv.gz"].graph
    wanted = {name: place % comm.size for place, name in enumerate(graph)}
    lines = [f"{name} {rank}" if rank else f"{name}, {rank}" for name, rank in wanted.items()]
    texts = {
        "whole.txt": lines,
        "short.txt": lines[1:],
        "twice.txt": [*lines, lines[2]],
        "strange.txt": [*lines[:3], "Atlantis 0"],
        "bare.txt": [*lines[:3], "Atlantis"],
    }
    if comm.rank == 0:
        for name, some in texts.items():
            (shared_tmp / name).write_text("\n".join(some) + "\n")
    comm.Barrier()
    options = {"policy": "map", "comm": comm, "device": parts.DEVICE}
    frame = pandas.DataFrame([(*ends, 1) for ends in graph.edges], columns=["source", "target", "weight"])
    for given in (path, file, frame):
        columns = "From,To,km" if given is path else None
        part = partition_graph(given, node_map=str(shared_tmp / "whole.txt"), columns=columns, **options)
        own = part.part.gids[: part.part.num_masters]
        assert {wanted[part.names[int(gid)]] for gid in own} <= {comm.rank}
        assert comm.allreduce(own.size) == len(graph)
    first, other = next(iter(wanted)), "no node of the graph has this name"
    for name, message in {
        "short.txt": f"no rank for {first}, and 0 others",
        "twice.txt": f"line {len(lines) + 1}: .* has a rank already",
        "strange.txt": f"line 4: 'Atlantis': {other}",
        "bare.txt": "line 4: expected the name of a node and its rank, found 'Atlantis'",
    }.items():
        with pytest.raises(InputError, match=message):
            partition_graph(file, node_map=str(shared_tmp / name), **options)


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_whole_numbers_with_gaps_in_tables(comm, shared_tmp):
    """Answers and edges are written with the ids of the user's table, as numbers."""
    from cusp.convert.conversion import Request, convert

    path, found, edges = (str(shared_tmp / name) for name in ("gaps.csv", "found.parquet", "edges.csv"))
    if comm.rank == 0:
        Path(path).write_text("source,target,km\n900777,-4,5\n-4,1000000000000000000,3\n")
    comm.Barrier()
    run = [path, "--device", parts.WANTED, "--source", "900777", "--output", found]
    assert main(app_of("sssp"), comm, run) == 0
    convert(comm, Request(path), edges)
    comm.Barrier()
    table = pandas.read_parquet(found)
    assert dict(zip(table["node"], table["distance"])) == {900777: 0, -4: 5, 10**18: 8}
    rows = pandas.read_csv(edges).sort_values("source").to_numpy().tolist()
    assert rows == [[-4, 10**18, 3], [900777, -4, 5]]
