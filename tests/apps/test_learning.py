"""The programs of docs/how-to/learning.md: with PyG where it is installed, their loader also without."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import graphs
import numpy as np
import parts
import pytest

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
