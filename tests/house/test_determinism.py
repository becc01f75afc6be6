"""Answers, rows, figures, saved partitions and exports have the same bits in every run; a table says what may differ.

No answer depends on the time that anything takes, on the number of threads of a rank, nor on the transport: in every
second run, each rank has more of them, and now and then waits before it communicates, through memory that ranks share
instead of MPI. Where floats are added up across ranks, their
order depends on how many there are. On a GPU, the thread that comes first may win: what that may change is named here,
too.
"""

import importlib
import json
import random
import time
from typing import Any, NamedTuple

import graphs
import h5py
import numpy as np
import parts
import pytest
import ranks

import cusp.__main__
from cusp.apps import gap, harness
from cusp.apps.graph500 import __main__ as graph500
from cusp.output.manifest import read_manifest
from cusp.runtime import threads

LONGEST = 2e-3  # seconds that a rank waits
TIMES = {"phases", "teps", "peak_mb", "threads", "transport"}  # and all that ends in seconds: of rows and figures
TRAFFIC = {"rounds", "messages", "mb_sent", "mb_reduced", "mb_broadcast"}
ORDERED = ("sssp", "widest", "path", "maze", "table", "paths")
GRAPH = graphs.random_directed(300, 2400)


class Uneven(ranks.MPI.Intracomm):
    """The same ranks, each of which now and then waits before it communicates."""

    def __getattribute__(self, name: str) -> Any:
        if name not in ("rank", "size") and random.random() < 0.1:
            time.sleep(random.uniform(0, LONGEST))
        return super().__getattribute__(name)


class Run(NamedTuple):
    """A run of an app, and the labels whose bits may change: with the number of ranks, from run to run on a GPU."""

    app: str
    arguments: str = ""
    with_ranks: tuple[str, ...] = ()
    on_gpus: tuple[str, ...] = ()
    graph: bool = True


RUNS = [
    # A rank names the first parent that it comes to, in an order that depends on its partition, and of several ranks
    # the lowest gid wins. On several GPUs that are peers the first one does.
    Run("bfs", "--source 3 --parents", ("parents",), ("parents",) * (ranks.COMM.size > 1)),
    Run("bfs", "--source 3 --parents --direction pull", ("parents",), ("parents",) * (ranks.COMM.size > 1)),
    Run("sssp", "--source 3"),
    Run("widest", "--source 3"),
    Run("forest", "--roots 3,77,200"),
    Run("path", "--source 3 --targets 5,9", ("parents",)),  # the first tight in-edge of a rank, and then the lowest gid
    Run("maze", "--width 20 --height 9 --blocked 0.2", ("parents", "step"), ("parents", "step"), graph=False),
    Run("cc"),
    Run("scc"),
    Run("kcore"),
    Run("triangles", "--per-node"),
    Run("communities"),
    Run("communities", "--algorithm leiden"),
    Run("pagerank", "--algorithm push-residual --unweighted"),  # in whole numbers
    Run("pagerank", "--algorithm pull", ("pagerank",)),
    Run("pagerank", "--algorithm pull --precision float32", ("pagerank",)),
    Run("eigenvector", "", ("eigenvector",)),
    Run("katz", "", ("katz",)),
    Run("hits", "", ("hubs", "authorities")),
    Run("betweenness", "--sources 5", ("betweenness",)),
    Run("closeness", "--sources 100"),
    Run("mis"),
    Run("coloring"),
    Run("msf"),
    Run("similarity"),
    Run("truss"),
    Run("ppr", "--seeds 3 77 200"),
    Run("table", "--from 3 77 200 --to 5 9"),
    Run("table", "--from 3 77 200 --to 5 9 --landmarks 4"),
    Run("table", "--from 3 77 200 --to 5 9 --landmarks 4 --hops"),
    Run("paths", "--source 3 --target 9 --k 20"),
    Run("sample", "--fan-out 5,3 --batch-size 32 --weighted --numbered"),
    Run("walks", "--length 20 --p 0.5 --q 2"),
    Run("semiring", "--algorithm pagerank", ("pagerank",), ("pagerank",)),  # threads of a GPU add floats as they come
]


def untimed(row: dict) -> dict:
    """A row without times and, on a GPU, without rounds: what one thread writes, another may see in the same round."""
    left = TIMES | (TRAFFIC if parts.DEVICE == "gpu" else set())
    if row.get("app") in ORDERED:  # how many buckets threads open at once follows from their work
        left = left | {"rounds"}
    return {key: value for key, value in row.items() if key not in left and not key.endswith("seconds")}


def no_warm_up(monkeypatch) -> None:
    """Let programs start at once: a first run has loaded their code."""
    for module in (harness, cusp.__main__):
        monkeypatch.setattr(module, "warm_up", lambda *arguments: None)


def answer(
    run: Run, comm, folder, name: str, threads: int = 1, transport: str = "auto"
) -> tuple[dict[str, np.ndarray], bytes, dict]:
    """Labels, the bytes of their file, and the row without times. Collective."""
    graph = [str(folder / "g.h5"), "--policy", "cvc"] if run.graph else []
    output, rows = folder / f"{name}.h5", folder / f"{name}.jsonl"
    written = ["--output", str(output), "--rows", str(rows)]
    arguments = [*graph, *run.arguments.split(), "--threads", str(threads), "--transport", transport, *written]
    assert harness.main(importlib.import_module(f"cusp.apps.{run.app}").APP, comm, arguments) == 0
    comm.Barrier()
    with h5py.File(output) as file:
        labels = {label: file[label][...] for label in file}
    (row,) = map(json.loads, rows.read_text().splitlines())
    return labels, output.read_bytes(), untimed(row)


@pytest.mark.mpi
@pytest.mark.limit(300)
@pytest.mark.parametrize("run", parts.share(RUNS), ids=lambda run: f"{run.app} {run.arguments}".strip())
def test_answers(comm, shared_tmp, monkeypatch, run):
    """Runs repeat to the bit, on as many ranks by any transport with any threads; and one rank alone finds the same."""
    graphs.write(shared_tmp / "g.h5", GRAPH)
    monkeypatch.setattr(threads, "LEAST", 1)  # even of few edges each thread gets some
    monkeypatch.setattr(threads, "BLOCK", 64)
    first, written, row = answer(run, comm, shared_tmp, "first", transport="mpi")
    no_warm_up(monkeypatch)
    again, also_written, other_row = answer(run, Uneven(comm), shared_tmp, "again", 3)
    assert again.keys() == first.keys() >= {*run.with_ranks, *run.on_gpus}
    by_chance = run.on_gpus if parts.DEVICE == "gpu" else ()
    for label in first.keys() - {*by_chance}:
        assert again[label].tobytes() == first[label].tobytes(), label
    assert by_chance or also_written == written
    if by_chance:  # and so are the sums of their changes
        row, other_row = ({key: value for key, value in one.items() if key != "l1_change"} for one in (row, other_row))
    assert other_row == row
    if comm.rank > 0 or comm.size == 1:
        return
    alone, _, _ = answer(run, ranks.MPI.COMM_SELF, shared_tmp, "alone", 2)
    assert alone.keys() == first.keys()
    for label in first.keys() - {*run.with_ranks, *by_chance}:
        assert alone[label].tobytes() == first[label].tobytes(), label
    for label in run.with_ranks:
        if alone[label].dtype.kind == "f":
            np.testing.assert_allclose(alone[label], first[label], rtol=1e-5)


@pytest.mark.mpi
@pytest.mark.limit(300)
@pytest.mark.parametrize(
    ("program", "arguments"), parts.share([(graph500, "--scale 6 --keys 2"), (gap, "--kron 6 --trials 1")])
)
def test_benchmarks(comm, shared_tmp, program, arguments):
    """So do the rows of the benchmarks, times aside."""
    found = []
    for name, who in ("first", comm), ("again", Uneven(comm)):
        rows = shared_tmp / f"{name}.jsonl"
        assert program.main(who, [*arguments.split(), "--rows", str(rows)]) == 0
        comm.Barrier()
        found.append([untimed(json.loads(line)) for line in rows.read_text().splitlines()])
    assert found[0] and found[0] == found[1]


@pytest.mark.mpi
@pytest.mark.limit(300)
@pytest.mark.parametrize(
    "policy, form",
    parts.share(zip(["oec", "cvc", "hvc", "fec", "hdrf", "random2d"], ["metis", "distdgl", "parquet"] * 2)),
)
def test_partitions(comm, shared_tmp, monkeypatch, policy, form):
    """So do saved partitions, figures and exports."""
    graphs.write(shared_tmp / "g.h5", GRAPH)
    folder, found = shared_tmp / "made", []
    monkeypatch.setattr(threads, "LEAST", 1)
    for number, who in (1, comm), (3, Uneven(comm)):
        if comm.rank == 0:
            folder.mkdir()
        written = f"--save {folder}/parts --json {folder}/figures --export {form} --export-to {folder}/to"
        arguments = [str(shared_tmp / "g.h5"), "--policy", policy, "--threads", str(number), *written.split()]
        assert cusp.__main__.main(who, arguments) == 0
        comm.Barrier()
        saved = [(folder / "parts" / name).read_bytes() for name in read_manifest(folder / "parts").parts]
        manifest = json.loads((folder / "parts" / "manifest.json").read_text())
        del manifest["parts"]  # their names are new ones each time
        exported = {path.name: path.read_bytes() for path in sorted(folder.glob("to.*"))}
        found.append((saved, manifest, untimed(json.loads((folder / "figures").read_text())), exported))
        no_warm_up(monkeypatch)
        comm.Barrier()
        if comm.rank == 0:
            folder.rename(shared_tmp / f"made{len(found)}")  # some files hold the names of others
    assert len(found[0][0]) == comm.size and found[0][3]
    assert found[0] == found[1]
