"""The programs of docs/how-to/learning.md: with PyG where it is installed, their loader also without."""

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
from scipy.stats import chi2_contingency

from cusp.apps.shared.sampler import Sampler

TIMES, RARE = 4000, 1e-3  # seeds are fixed
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "learning.md"
LOADER, TRAINING = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1:3]


def run(text: str, names: dict[str, Any]) -> dict[str, Any]:
    """What a program of the page defines."""
    exec(compile(text, PAGE, "exec"), names)
    return names


def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy in the place of torch."""
    for name, functions in (
        ("torch", {"from_dlpack": np.from_dlpack, "stack": np.stack}), ("torch_geometric", {}),
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
    counts = [Counter(ours), Counter(theirs)]
    often = [value for value, count in sum(counts, Counter()).items() if count >= 20]
    table = [[count[value] for value in often] for count in counts]
    rare = [len(some) - sum(line) for some, line in zip((ours, theirs), table)]
    kept = [[*line, left] for line, left in zip(table, rare)] if sum(rare) else table
    return float(chi2_contingency(kept).pvalue)
