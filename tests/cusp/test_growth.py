"""Edges are added to saved partitions and graph files (cusp/growth): what is made has the invariants of a new one."""

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.apps.bfs import bfs
from cusp.apps.harness import main as run_app
from cusp.apps.sssp import APP as SSSP
from cusp.commands import add
from cusp.commands.convert import main as convert
from cusp.errors import GraphFileError, InputError, OptionError, PolicyError, together
from cusp.input.edge_slice import read_slice
from cusp.output.manifest import SavedError, read_manifest
from cusp.output.saved import load_partition, save_partition
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.policies.policy import is_built_in

# Rules that look at degrees before and after, at masters of neighbours, at state; masters by hash; of a user.
POLICIES = {1: ("oec",), 2: ("fec", "random"), 3: ("hvc-2", "dbh", "2ps"), 4: ("cvc", "hdrf", "mixed", "hep")}
HERE = POLICIES.get(ranks.COMM.size, ("cvc",))
GROWING = [name for name in graphs.HARD if graphs.before_and_added(graphs.HARD[name]())[1].num_edges]
CASES = [  # `make check` takes one policy for each graph, in turn
    pytest.param(name, policy, marks=[] if number % len(HERE) == turn else pytest.mark.slow)
    for turn, policy in enumerate(HERE)
    for number, name in enumerate(GROWING)
]


def save(comm, folder, graph: graphs.Graph, policy: str, symmetric: bool = False, **how) -> str:
    """The folder of a saved partition of a graph. Collective."""
    path = graphs.write(folder / "g.h5", graph, symmetric=symmetric, **how)
    kind, parameters = parts.POLICIES[policy]
    part = partition_graph(path, load_policy(kind, **parameters), comm)
    save_partition(
        str(folder / "parts"), part, comm, graph=path, policy=kind, parameters=parameters, order="degree",
        split="edges",
    )  # fmt: skip
    return str(folder / "parts")


def write_edges(comm, path, graph: graphs.Graph, weights: bool = True) -> str:
    """A text file with the edges of a graph. Collective."""
    with together(comm):
        if comm.rank == 0:
            columns = [graph.sources, graph.targets, *([graph.weights] if weights else [])]
            np.savetxt(path, np.stack(columns, axis=1), fmt="%d")
    return str(path)


def grown(before: graphs.Graph, added: graphs.Graph) -> graphs.Graph:
    """Both together, with the nodes that edges name."""
    size = max(before.num_nodes, int(max(added.sources.max(), added.targets.max())) + 1)
    sources, targets, weights = (np.concatenate(both) for both in zip(before[1:], added[1:]))
    return graphs.make(size, np.stack([sources, targets], axis=1), weights)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), CASES)
def test_a_partition_that_grows(comm, shared_tmp, name, policy):
    """Twice: masters stay, and so do edges; what was added is there, and searches find their way through it."""
    graph, symmetric = graphs.HARD[name](), name in graphs.SYMMETRIC
    before, added = graphs.before_and_added(graph)
    folder = save(comm, shared_tmp, before, policy, symmetric)
    first, kind = load_partition(folder, comm), parts.POLICIES[policy][0]
    arguments = [folder, write_edges(comm, shared_tmp / "new.txt", added)]
    arguments += [] if is_built_in(kind) else ["--policy", kind]
    whole = before
    for times in range(2):
        assert add.main(comm, arguments) == 0
        part, whole = load_partition(folder, comm), grown(whole, added)
        parts.check_partition(part, whole)
        assert part.symmetric == symmetric
        assert {*first.gids[: first.num_masters].tolist()} <= {*part.gids[: part.num_masters].tolist()}
        stayed, now = ({*zip(*map(np.ndarray.tolist, parts.edges_of(each)))} for each in (first, part))
        assert stayed <= now
        answer = bfs(part, parts.make_sync(part), 0)
        assert np.array_equal(parts.gather(part, answer.labels["hops"]), graphs.serial_hops(whole, 0))
        manifest = read_manifest(folder)
        assert manifest.added == {
            "nodes": whole.num_nodes - before.num_nodes, "edges": added.num_edges * (times + 1)
        }  # fmt: skip
    assert run_app(SSSP, comm, [folder, "--source", "0", "--verify", "--device", "cpu"]) == 0


@pytest.mark.mpi
def test_edges_go_where_a_new_partition_has_them(comm, shared_tmp):
    """By rules that look at nothing but nodes."""
    before, added = graphs.before_and_added(graphs.random_directed())
    folder = save(comm, shared_tmp, before, "random2d")
    add.main(comm, [folder, write_edges(comm, shared_tmp / "new.txt", added)])
    part = load_partition(folder, comm)
    path = graphs.write(shared_tmp / "grown.h5", grown(before, added))
    new = partition_graph(path, load_policy("random2d"), comm)
    assert sorted(parts.triples(*parts.edges_of(part))) == sorted(parts.triples(*parts.edges_of(new)))
    for name in ("gids", "mirror_starts", "offsets", "degrees", "has_in"):
        assert np.array_equal(getattr(part, name), getattr(new, name)), name


@pytest.mark.mpi
@pytest.mark.parametrize("name", parts.share(["random", "random_symmetric", "path"]))
def test_a_graph_file_that_grows(comm, shared_tmp, name):
    """In place or not, with a transpose and 16-bit weights, which stay."""
    before, added = graphs.before_and_added(graphs.HARD[name]())
    path = graphs.write(shared_tmp / "g.h5", before, symmetric=name in graphs.SYMMETRIC, weight=np.int16, sums=True)
    new, output = write_edges(comm, shared_tmp / "new.txt", added), str(shared_tmp / "grown.h5")
    for arguments, file in (([path, new, "--output", output], output), ([path, new], path)):
        assert add.main(comm, arguments) == 0
        edges = read_slice(file, comm)
        assert (edges.weights.dtype, edges.symmetric) == (np.int16, name in graphs.SYMMETRIC)
        parts.check_partition(partition_graph(file, "cvc", comm), grown(before, added))


NAMES = ("from,to,km\nb,d,1\nd,f,2\nh,f,3\n", "from,to,km\nb,h,4\na,b,5\nc,d,6\nf,c,7\n")


def write_named(comm, folder) -> tuple[str, str]:
    """A graph file whose nodes have names, and a file of edges with names between these. Collective."""
    with together(comm):
        for number, text in enumerate(NAMES if comm.rank == 0 else ()):
            (folder / f"{number}.csv").write_text(text)
    assert convert(comm, [str(folder / "0.csv"), "-o", str(folder / "g.h5")]) == 0
    return str(folder / "g.h5"), str(folder / "1.csv")


@pytest.mark.mpi
def test_names(comm, shared_tmp):
    """New names come between the others, in a graph file and then in a partition of it; distances are by name."""
    path, new = write_named(comm, shared_tmp)
    part = partition_graph(path, "oec", comm)
    folder, output = str(shared_tmp / "parts"), str(shared_tmp / "grown.h5")
    save_partition(folder, part, comm, graph=path, policy="oec", parameters={}, order="degree", split="edges")
    with pytest.raises(OptionError, match=r"has names of new nodes.* with --graph GROWN.h5"):
        add.main(comm, [folder, new])
    assert add.main(comm, [path, new, "--output", output]) == 0
    with pytest.raises(OptionError, match="--graph .*g.h5: has 4 nodes, and the grown partition 6"):
        add.main(comm, [folder, new, "--graph", path])
    assert add.main(comm, [folder, new, "--graph", output]) == 0
    assert not read_manifest(folder).added
    for graph in (folder, output):
        answer = str(shared_tmp / "distance.csv")
        assert run_app(SSSP, comm, [graph, "--source", "a", "--verify", "--output", answer, "--device", "cpu"]) == 0
        lines = (shared_tmp / "distance.csv").read_text().replace('"', "").split()
        assert lines == ["node,distance", "a,0", "b,5", "c,15", "d,6", "f,8", "h,9"]
        comm.Barrier()


@pytest.mark.mpi
def test_what_does_not_fit_is_refused(comm, shared_tmp):
    """Weights that are missing, too many or too large; names; other ranks; policies of others; and nothing changes."""
    before, added = graphs.before_and_added(graphs.random_directed())
    folder = save(comm, shared_tmp, before, "one_rank", weight=np.int8)
    path, mine = str(shared_tmp / "g.h5"), parts.POLICIES["one_rank"][0]
    new, unweighted = (write_edges(comm, shared_tmp / f"{some}.txt", added, some) for some in (True, False))
    heavy = write_edges(comm, shared_tmp / "heavy.txt", added._replace(weights=added.weights + 1000))
    named = str(shared_tmp / "named.csv")
    with together(comm):
        if comm.rank == 0:
            (shared_tmp / "named.csv").write_text(NAMES[1])
    plain = graphs.write(shared_tmp / "plain.h5", before, weight=None)
    content = read_manifest(folder)
    for arguments, error, message in (
        ([path, unweighted], OptionError, "has no weights, and .*g.h5 has some"),
        ([plain, new], OptionError, "has weights, and .*plain.h5 has none; --weights none"),
        ([path, heavy], GraphFileError, "the weight 10.. does not fit into the int8"),
        ([path, named], InputError, "named.csv"),
        ([path, new, "--graph", plain], OptionError, "--graph: for saved partitions"),
        ([folder, new], PolicyError, "if you trust it, add --policy"),
        ([folder, unweighted, "--policy", mine], OptionError, "has no weights"),
        ([folder, new, "--policy", mine, "--graph", plain], OptionError, "and the grown partition"),
        ([path, str(shared_tmp / "nothing.txt")], GraphFileError, "nothing.txt"),
        ([str(shared_tmp / "missing"), new], GraphFileError, "missing: no such file"),
    ):
        with pytest.raises(error, match=message):
            add.main(comm, arguments)
    assert read_manifest(folder) == content
    parts.check_partition(load_partition(folder, comm), before)
    assert add.main(comm, [folder, new, "--policy", mine, "--output", str(shared_tmp / "other")]) == 0
    parts.check_partition(load_partition(folder, comm), before)
    parts.check_partition(load_partition(str(shared_tmp / "other"), comm), grown(before, added))


@pytest.mark.mpi(min_size=2)
def test_on_other_ranks(comm, shared_tmp):
    """A partition that has grown is not divided anew, since its graph file lacks edges; nor are some parts grown."""
    before, added = graphs.before_and_added(graphs.random_directed())
    folder, new = save(comm, shared_tmp, before, "iec"), write_edges(comm, shared_tmp / "new.txt", added)
    assert add.main(comm, [folder, new]) == 0
    alone = comm.Split(comm.rank)
    if comm.rank == 0:
        with pytest.raises(SavedError, match="has edges that its graph .* lacks"):
            run_app(SSSP, alone, [folder, "--source", "0", "--device", "cpu"])
        with pytest.raises(SavedError, match="made for"):
            add.main(alone, [folder, new])
    alone.Free()


@pytest.mark.mpi
def test_one_way_edges_end_a_symmetry(comm, shared_tmp, capfd):
    """Which is said, with what can be done; with --symmetrize it stays."""
    graph = graphs.HARD["random_symmetric"]()
    folder = save(comm, shared_tmp, graph, "oec", symmetric=True)
    new = write_edges(comm, shared_tmp / "new.txt", graphs.make(50, [(3, 49), (7, 20)]))
    assert add.main(comm, [folder, new, "--symmetrize"]) == 0
    assert load_partition(folder, comm).symmetric
    assert add.main(comm, [folder, new]) == 0
    assert not load_partition(folder, comm).symmetric
    assert comm.rank > 0 or "is no longer symmetric" in capfd.readouterr().out
