"""The programs of docs/how-to/learning.md: with PyG where it is installed, their loader also without."""

import json
import pickle
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.shared.learning.pyg_folders import write_pyg
from cusp.apps.shared.learning.sampler import Sampler
from cusp.errors import InputError

TIMES, RARE = 4000, 1e-3  # seeds are fixed
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "learning.md"
LOADER, TRAINING = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1:3]


def run(text: str, names: dict[str, Any]) -> dict[str, Any]:
    """What a program of the page defines."""
    exec(compile(text, PAGE, "exec"), names)
    return names


def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy in the place of torch."""
    torch = {"from_dlpack": np.from_dlpack, "stack": np.stack, "from_numpy": np.asarray}
    torch["save"] = lambda content, file: Path(file).write_bytes(pickle.dumps(content))
    for name, functions in (
        ("torch", torch), ("torch_geometric", {}),
        ("torch_geometric.data", {"Data": SimpleNamespace}),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        vars(sys.modules[name]).update(functions)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_loader(comm, monkeypatch, policy):
    """Each node is once a seed in an epoch, every rank has as many batches, and edges lead to who gets messages."""
    without_torch(monkeypatch)
    graph = graphs.random_directed(50, 400)
    edges = np.array(sorted(zip(graph.sources.tolist(), graph.targets.tolist())))
    part = parts.partitioner.partition_graph((graph.sources, graph.targets), parts.policy_of(policy), comm)
    features = np.arange(graph.num_nodes) * 2
    own = part.gids[: part.num_masters]
    batches = run(LOADER, {})["Batches"](SimpleNamespace(part=part, comm=comm), own, features, -features, (3, 2), 4)
    orders = []
    for _ in range(2):
        seeds, drawn = [], 0
        for data in batches:
            drawn += 1
            seeds += data.n_id[: data.batch_size].tolist()
            assert np.array_equal(data.x, data.n_id * 2) and np.array_equal(data.y, -data.x)
            assert np.array_equal(data.n_id[data.edge_index].T, edges[data.e_id])
            assert sum(data.num_sampled_nodes) == data.n_id.size and sum(data.num_sampled_edges) == data.e_id.size
        assert sorted(seeds) == sorted(own.tolist()) and len({*comm.allgather(drawn)}) == 1
        orders.append(seeds)
    assert len(own) < 5 or orders[0] != orders[1]


@pytest.mark.mpi
def test_training(comm, shared_tmp, monkeypatch, capsys):
    """A GraphSAGE learns which nodes are in the largest strong component, the same on every rank."""
    pytest.importorskip("torch_geometric")
    monkeypatch.chdir(shared_tmp)
    graph = graphs.random_directed(400, 800)
    graphs.write(shared_tmp / "graph.h5", graph)
    comm.Barrier()
    found = run(TRAINING, run(LOADER, {}))
    model = [parameter.tolist() for parameter in found["model"].parameters()]
    assert comm.allgather(model) == [model] * comm.size
    assert comm.rank or float(capsys.readouterr().out.rstrip("%\n")) > 85


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc"])
def test_folders(comm, shared_tmp, monkeypatch, policy):
    """Each edge is in the part of its target, sorted by target, with its number, weight and features."""
    without_torch(monkeypatch)
    folder, graph, edges = write_folders(comm, shared_tmp, policy)
    node_map, edge_map = (pickle.loads((folder / f"{name}.pt").read_bytes()) for name in ("node_map", "edge_map"))
    assert json.loads((folder / "META.json").read_text())["num_parts"] == comm.size
    one, nodes, more = (
        pickle.loads((folder / f"part_{comm.rank}" / f"{name}.pt").read_bytes())
        for name in ("graph", "node_feats", "edge_feats")
    )
    number = one["edge_id"]
    assert np.array_equal(np.flatnonzero(node_map == comm.rank), nodes["global_id"])
    assert np.array_equal(np.flatnonzero(edge_map == comm.rank), np.sort(number))
    assert np.array_equal(node_map[one["col"]], np.full(number.size, comm.rank)) and np.all(np.diff(one["col"]) >= 0)
    assert np.array_equal(np.stack([one["row"], one["col"], more["feats"]["edge_attr"][:, 0]], axis=1), edges[number])
    assert np.array_equal(more["feats"]["twice"], number * 2) and np.array_equal(more["global_id"], number)
    assert np.array_equal(nodes["feats"]["x"], nodes["global_id"][:, None] * 1.5)
    for what in "nodes", "edges":
        with pytest.raises(InputError, match=f"{what}: 'x' has 7 rows"):
            write_pyg(part_of(comm, graph, policy), comm, str(folder), **{what: {"x": np.zeros(7)}})


@pytest.mark.mpi
def test_folders_in_pyg(comm, shared_tmp):
    """PyG loads them."""
    stores = pytest.importorskip("torch_geometric.distributed")
    folder, _, edges = write_folders(comm, shared_tmp, "cvc")
    graph = stores.LocalGraphStore.from_partition(str(folder), comm.rank)
    features = stores.LocalFeatureStore.from_partition(str(folder), comm.rank)
    (attribute,) = graph.get_all_edge_attrs()
    number, own = graph.get_edge_id(attribute).numpy(), features.get_global_id(None).numpy()
    assert np.array_equal(np.stack(graph.get_edge_index(attribute), axis=1), edges[number, :2])
    assert np.array_equal(features.get_tensor((None, None), "edge_attr")[:, 0], edges[number, 2])
    assert np.array_equal(features.get_tensor(None, "x")[:, 0], own * 1.5)
    assert np.all(graph.get_partition_ids_from_nids(own).numpy() == comm.rank)
    assert np.all(graph.get_partition_ids_from_eids(number).numpy() == comm.rank)


def part_of(comm: Any, graph: graphs.Graph, policy: str) -> Any:
    """A partition of a graph in memory."""
    columns = graph.sources, graph.targets, graph.weights
    return parts.partitioner.partition_graph(columns, parts.policy_of(policy), comm)


def write_folders(comm: Any, folder: Path, policy: str) -> tuple[Path, graphs.Graph, np.ndarray]:
    """Folders for PyG, of which graph, and its edges and weights by number."""
    graph = graphs.random_directed(50, 400)
    features = {"x": np.arange(graph.num_nodes)[:, None] * 1.5}
    part = part_of(comm, graph, policy)
    write_pyg(part, comm, str(folder / "pyg"), features, {"twice": np.arange(graph.num_edges) * 2})
    return folder / "pyg", graph, np.array(graph.triples())


def test_beside_pyg(comm):
    """Both samplers draw each pair of edges, and each number of nodes within two hops, as often as the other."""
    pyg_lib, torch = pytest.importorskip("pyg_lib"), pytest.importorskip("torch")
    torch.manual_seed(1)
    graph = graphs.random_directed(30, 150)
    part = parts.partitioner.partition_graph((graph.sources, graph.targets), parts.policy_of("oec"), comm)
    targets = graph.targets[np.lexsort((graph.targets, graph.sources))]
    offsets, targets, node = torch.from_numpy(graph.indptr), torch.from_numpy(targets), int(graph.degrees.argmax())
    for fan_out, replace in ([2], False), ([2], True), ([3, 2], False):
        ours = Sampler(part, comm, fan_out, replace=replace, numbered=True).sample(dict.fromkeys(range(TIMES), [node]))
        seed = torch.tensor([node])
        theirs = [
            pyg_lib.sampler.neighbor_sample(offsets, targets, seed, fan_out, replace=replace, csc=False)
            for _ in range(TIMES)
        ]
        drawn = [one.edge[: one.num_edges[0]] for one in ours], [one[3][: fan_out[0]] for one in theirs]
        sizes = [one.node.size for one in ours], [one[2].numel() for one in theirs]
        assert alike(*([tuple(sorted(edges.tolist())) for edges in each] for each in drawn)) > RARE
        assert alike(*sizes) > RARE


def alike(ours: list[Any], theirs: list[Any]) -> float:
    """How likely two lists of outcomes are if both are drawn from the same distribution: the test of homogeneity."""
    from scipy.stats import chi2_contingency  # takes a second to load, and few processes of the tests need it

    counts = [Counter(ours), Counter(theirs)]
    often = [value for value, count in sum(counts, Counter()).items() if count >= 20]
    table = [[count[value] for value in often] for count in counts]
    rare = [len(some) - sum(line) for some, line in zip((ours, theirs), table)]
    kept = [[*line, left] for line, left in zip(table, rare)] if sum(rare) else table
    return float(chi2_contingency(kept).pvalue)
