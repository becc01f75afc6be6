"""Closeness, harmonic closeness and eccentricity, against sums over distances that are found one by one."""

from dataclasses import replace

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.closeness import APP, closeness, prepare
from cusp.apps.shared.lengths import measure
from cusp.apps.verify.check import VerificationError
from cusp.errors import OptionError

WIDE = graphs.random_directed(140, 1200, seed=9)  # two batches of sources, and a third that is not full


def expected(graph: graphs.Graph, sources: list[int], weighted: bool = False, scale: float = 1) -> dict:
    """From the distances of each source, by a queue or a heap of Python."""
    size, search = graph.num_nodes, graphs.serial_distances if weighted else graphs.serial_hops
    lengths, farthest = np.full((len(sources), size), np.inf), np.full(size, -1.0)
    farthest[graph.degrees == 0] = 0
    for place, source in enumerate(sources):
        found = search(graph, source).astype(np.float64)
        found[(found < 0) | (found > 2**62)] = np.inf
        farthest[source] = found[found < np.inf].max()
        found[source] = np.inf
        lengths[place] = found
    reached, sums = (lengths < np.inf).sum(axis=0), np.where(lengths < np.inf, lengths, 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = reached / sums * np.minimum(reached * scale / (size - 1), 1)
        inverse = np.where((lengths > 0) & (lengths < np.inf), 1 / lengths, 0).sum(axis=0) * scale
    return {
        "reaching": reached,
        "closeness": np.where(sums > 0, near, 0),
        "harmonic": inverse,
        "eccentricity": farthest,
    }


def check(part, graph: graphs.Graph, verify: bool = True, **options) -> dict:
    """Run, also without a copy of the graph, and perhaps verify; compare with what is expected. Collective."""
    sync = parts.make_sync(part)
    wanted = prepare(part, sync, parts.options_of(APP, **options))
    lengths = measure(part, sync) if wanted.lengths else None
    answer, together = (closeness(sync, each) for each in (wanted, replace(wanted, copy=None, lengths=lengths)))
    for name, values in together.on_host().labels.items():
        np.testing.assert_allclose(answer.on_host().labels[name], values, rtol=1e-12, atol=1e-12, err_msg=name)
    if verify:
        APP.check(part, sync, None, answer, wanted, parts.options_of(APP, **options))
    found = {name: parts.gather(part, values) for name, values in answer.on_host().labels.items()}
    for name, values in expected(graph, wanted.sources, bool(options.get("weighted")), wanted.scale).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12, err_msg=name)
    assert answer.figures == {"sources": len(wanted.sources), "diameter": max(found["eccentricity"])}
    return found


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_closeness(comm, shared_tmp, name, policy):
    """Hard graphs, exact on one rank, from a few nodes on more; with in-edges, so that levels are pulled, too."""
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm, csc=True)
    few = sorted({0, graph.num_nodes // 2, graph.num_nodes - 1})
    check(part, graph, **({"sources": "all"} if comm.size == 1 else {"source": few}))


@pytest.mark.mpi
@pytest.mark.parametrize(("symmetric", "csc"), parts.share([(False, True), (True, False), (False, False)]))
def test_many_batches(comm, shared_tmp, symmetric, csc):
    """Of a symmetric graph its own rows are pulled."""
    graph = graphs.both_ways(WIDE) if symmetric else WIDE
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, csc=csc)
    check(part, graph, verify=False, sources="all")


@pytest.mark.mpi
@pytest.mark.parametrize("dtype", parts.share([np.int64, np.float64]))
def test_weights(comm, shared_tmp, dtype):
    """Distances instead of hops, of weights from 0 to 9."""
    graph = graphs.random_directed(60, 200, seed=3)
    graph = graph._replace(weights=(graph.weights % 10).astype(dtype) / dtype(1 if dtype == np.int64 else 8))
    path = graphs.write(shared_tmp / "g.h5", graph, weight=np.dtype(dtype))
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, csc=True)
    check(part, graph, weighted=True, source=[0, 7, 39])


@pytest.mark.mpi
def test_some_sources(comm, shared_tmp):
    """Drawn ones stand for all; a wrong value is found on every rank."""
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", WIDE), parts.policy_of("oec"), comm, csc=True)
    sync, options = parts.make_sync(part), parts.options_of(APP, sources=20)
    wanted = prepare(part, sync, options)
    assert len(set(wanted.sources)) == 20 and wanted.scale == np.count_nonzero(WIDE.degrees) / 20
    check(part, WIDE, sources=20)
    for name, message in {
        "closeness": "closeness: is not that of", "harmonic": "harmonic: is not", "eccentricity": "that of node",
        "reaching": "reaching: is not the number",
    }.items():  # fmt: skip
        answer = closeness(sync, wanted)
        answer.labels[name][answer.labels[name].argmax()] *= 2 if comm.rank == comm.size - 1 else 1
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, answer, wanted, options)
    with pytest.raises(OptionError, match="--source 140: the graph has the nodes 0 to 139"):
        prepare(part, sync, parts.options_of(APP, source=[140]))
