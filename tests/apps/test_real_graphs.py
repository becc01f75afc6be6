"""Real graphs, converted by our converter: answers from every policy against published reference hashes."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import h5py
import numpy as np
import parts
import pytest
import ranks

from cusp.apps import cc, kcore, scc
from cusp.apps.bfs import bfs
from cusp.apps.pagerank import APP, pagerank, prepare
from cusp.apps.sssp import measure, sssp
from cusp.apps.triangles import triangles
from cusp.commands.convert import make_parser, request_of
from cusp.convert.conversion import convert
from cusp.partition import Partition
from cusp.policies import load_policy
from cusp.runtime.devices import to_host
from scripts.bench.shared.graphs import FILES

POLICIES = ["oec", "iec", "cvc", "hvc", "fec", "hdrf"]
if parts.SIZE == 2:  # where it takes least
    POLICIES += ["gvc", "svc", "ldg", "dbh", "random", "random2d"]


@pytest.fixture(scope="module")
def converted(real_graphs):
    """Function (name) -> graph file with weights and its reference answers; converted once. Collective."""
    made = tempfile.mkdtemp(prefix="cusp-test-") if ranks.COMM.rank == 0 else None
    folder = Path(str(ranks.tell(made)))
    done: dict[str, tuple[str, dict]] = {}

    def graph(name: str) -> tuple[str, dict]:
        if name not in done:
            source, options = FILES[name]
            path = folder / f"{name}.h5"
            reference = json.loads((real_graphs / f"{name}.reference.json").read_text())
            if ranks.COMM.rank == 0:
                alone = ranks.MPI.COMM_SELF
                convert(alone, request_of(make_parser().parse_args([str(real_graphs / source), *options])), str(path))
                add_weights(path, reference)
            ranks.COMM.Barrier()
            done[name] = str(path), reference
        return done[name]

    yield graph
    ranks.COMM.Barrier()
    if ranks.COMM.rank == 0:
        shutil.rmtree(folder, ignore_errors=True)


def add_weights(path: Path, reference: dict) -> None:
    """Weights by the formula of the reference answers, where the graph has none of its own."""
    with h5py.File(path, "r+") as file:
        if "data" in file:
            return
        indptr, targets = file["indptr"][...], file["indices"][...].astype(np.int64)
        sources = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        if not reference["directed"]:
            sources, targets = np.minimum(sources, targets), np.maximum(sources, targets)
        file["data"] = (1 + (sources * 2654435761 + targets * 40503) % 64).astype(np.uint8)


def digest(part: Partition, values: np.ndarray, dtype: str) -> str | None:
    """SHA-256 of the values of all nodes in order, on rank 0. Collective."""
    pieces = ranks.COMM.gather((to_host(part.gids[: part.num_masters]), values))
    if pieces is None:
        return None
    everywhere = np.empty(part.num_nodes, dtype)
    for gids, mine in pieces:
        everywhere[gids] = mine
    return hashlib.sha256(everywhere.tobytes()).hexdigest()


@pytest.mark.mpi
@pytest.mark.parametrize("name", list(FILES))
def test_size(converted, name):
    """Nodes, arcs and largest degree are those of the reference."""
    path, reference = converted(name)
    with h5py.File(path) as file:
        indptr = file["indptr"][...]
        assert (indptr.size - 1, file["indices"].size) == (reference["num_nodes"], reference["arcs"])
        assert np.diff(indptr).max() == reference["out_degree"]["max"]
        assert bool(file.attrs["symmetric"]) == (not reference["directed"])


@pytest.mark.mpi
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", list(FILES))
def test_answers(converted, comm, name, policy):
    """Hops in every direction and distances from all roots, to the last node."""
    path, reference = converted(name)
    large = reference["arcs"] > 500_000
    road = name == "usa-road-ny"  # hundreds of rounds
    part = parts.partition_graph(path, load_policy(policy, threshold=100), comm, csc=reference["directed"])
    sync = parts.make_sync(part)
    directions = ["auto", "push", "pull"]
    for place, expected in enumerate(reference["bfs"][: 1 if road and parts.SIZE > 2 else None]):
        for direction in directions[place : place + 1] if large else directions:
            if direction == "pull" and road:  # each round over all nodes
                direction = "auto"
            answer = bfs(part, sync, expected["root"], direction).on_host()
            assert comm.allreduce(np.count_nonzero(answer.reached)) == expected["reached"]
            assert digest(part, answer.labels["hops"], "<i4") in (None, expected["sha256_int32"])
    lengths = measure(part, sync)
    for expected in reference["sssp"][: 1 if large else None]:
        answer = sssp(part, sync, expected["root"], lengths).on_host()
        assert digest(part, answer.labels["distance"], "<i8") in (None, expected["sha256_int64"])


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
@pytest.mark.parametrize("name", list(FILES))
def test_components_and_cores(converted, comm, name, policy):
    """Every component and core number; of strong components their number and the nodes in the largest."""
    path, reference = converted(name)
    part = parts.partition_graph(path, load_policy(policy), comm, csc=True)
    sync = parts.make_sync(part)
    answer, expected = cc.cc(part, sync, cc.prepare(part, sync)).on_host(), reference["weak_cc"]
    assert answer.figures == {"components": expected["count"], "largest": expected["largest"]}
    assert digest(part, answer.labels["component"], "<i4") in (None, expected["sha256_int32"])
    answer, expected = kcore.kcore(part, sync, kcore.prepare(part, sync)).on_host(), reference["kcore"]
    assert answer.figures == {"degeneracy": expected["max"]}
    assert digest(part, answer.labels["core"], "<i4") in (None, expected["sha256_int32"])
    if reference["directed"]:
        answer, expected = scc.scc(part, sync, scc.prepare(part, sync)).on_host(), reference["strong_cc"]
        assert answer.figures == {"components": expected["count"], "largest": expected["largest"]}


@pytest.mark.mpi
@pytest.mark.parametrize("name", list(FILES))
def test_triangles(converted, comm, name):
    """The number of triangles, edges taken both ways."""
    path, reference = converted(name)
    part = parts.partition_graph(path, load_policy("cvc"), comm, weights=False)
    answer = triangles(part, parts.make_sync(part), per_node=name == "wiki-vote")
    assert answer.figures["triangles"] == reference["triangles"]


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), [*zip(FILES, ["cvc", "oec", "iec", "hvc", "fec"])])
def test_pagerank(converted, comm, name, policy):
    """The largest ranks of the reference answers, and figures of the iterations that led to them."""
    path, reference = converted(name)
    if parts.DEVICE == "gpu" and reference["arcs"] > 500_000:
        pytest.skip("a hundred iterations take too long where the kernels run on a CPU")
    expected = reference["pagerank"]
    part = parts.partition_graph(path, load_policy(policy, threshold=100), comm, csc=reference["directed"])
    sync = parts.make_sync(part)
    chosen = {"precision": "float64", "damping": expected["damping"], "tolerance": expected["tol_l1"]}
    options = parts.options_of(APP, algorithm="pull", unweighted=True, **chosen)
    walk = prepare(part, sync, options)
    answer = pagerank(part, sync, walk, options.damping, options.tolerance).on_host()
    assert (answer.rounds, answer.figures["l1_change"]) == (
        expected["iterations"],
        pytest.approx(expected["last_l1_change"], rel=1e-3),
    )
    found = parts.gather(part, answer.labels["pagerank"])
    assert found.sum() == pytest.approx(1)
    for node, rank in expected["top10"]:
        assert found[node] == pytest.approx(rank, abs=1e-8, rel=1e-6)
