"""Every file that a program writes has the same bits in every run; the table says what else may change an answer.

No answer depends on the time that anything takes. Where floats are added up across ranks, their order depends on how
many there are. On a GPU, the thread that comes first may win: what that may change is named here, too.
"""

import importlib
import json
from typing import NamedTuple

import graphs
import h5py
import numpy as np
import parts
import pytest
import ranks

from apps.harness import main as run_app
from cusp.__main__ import main as partition
from cusp.output.manifest import read_manifest

REPEATS = 3
TIMES = {"seconds", "partition_seconds", "startup_seconds", "phases", "peak_mb"}  # of rows and figures
GRAPH = graphs.random_directed(300, 2400)


class Run(NamedTuple):
    """A run of an app, and the labels whose bits may change: with the number of ranks, from run to run on a GPU."""

    app: str
    arguments: str = ""
    with_ranks: tuple[str, ...] = ()
    on_gpus: tuple[str, ...] = ()
    graph: bool = True


RUNS = [
    # of several in-neighbours one hop closer, the first thread of one GPU wins; of several ranks, the lowest gid
    Run("bfs", "--source 3 --parents", on_gpus=("parents",)),
    Run("bfs", "--source 3 --parents --direction pull", on_gpus=("parents",)),
    Run("sssp", "--source 3"),
    Run("widest", "--source 3"),
    Run("forest", "--roots 3,77,200"),
    Run("path", "--source 3 --targets 5,9"),
    Run("maze", "--width 20 --height 9 --blocked 0.2", graph=False),
    Run("cc"),
    Run("scc"),
    Run("kcore"),
    Run("triangles", "--per-node"),
    Run("communities"),
    Run("pagerank", "--algorithm push"),  # in whole numbers
    Run("pagerank", "--algorithm pull", with_ranks=("rank",)),
    Run("pagerank", "--algorithm pull --precision single", with_ranks=("rank",)),
    Run("betweenness", "--sources 5", with_ranks=("betweenness",)),
]


def answer(run: Run, comm, folder, name: str) -> tuple[dict[str, np.ndarray], bytes, dict]:
    """Labels, the bytes of their file, and the row without times. Collective."""
    graph = [str(folder / "g.h5"), "--policy", "cvc"] if run.graph else []
    output, rows = folder / f"{name}.h5", folder / f"{name}.jsonl"
    arguments = [*graph, *run.arguments.split(), "--output", str(output), "--rows", str(rows)]
    assert run_app(importlib.import_module(f"apps.{run.app}").APP, comm, arguments) == 0
    comm.Barrier()
    with h5py.File(output) as file:
        labels = {label: file[label][...] for label in file}
    (row,) = map(json.loads, rows.read_text().splitlines())
    return labels, output.read_bytes(), {key: row[key] for key in row if key not in TIMES}


@pytest.mark.mpi
@pytest.mark.limit(300)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.app} {run.arguments}".strip())
def test_answers(comm, shared_tmp, run):
    """Runs repeat to the bit, on as many ranks; and one rank alone finds the same."""
    graphs.write(shared_tmp / "g.h5", GRAPH)
    (first, written, row), *others = [answer(run, comm, shared_tmp, f"run{i}") for i in range(REPEATS)]
    for labels, also_written, other_row in others:
        if parts.DEVICE == "cpu" or not run.on_gpus:
            assert also_written == written
        for label in labels.keys() - set(run.on_gpus if parts.DEVICE == "gpu" else ()):
            assert labels[label].tobytes() == first[label].tobytes(), label
        assert other_row == row
    alone, _, _ = answer(run, ranks.MPI.COMM_SELF, shared_tmp, f"alone{comm.rank}")
    assert alone.keys() == first.keys()
    for label in alone:
        if label in run.with_ranks:
            np.testing.assert_allclose(alone[label], first[label], rtol=1e-5)
        elif not (parts.DEVICE == "gpu" and label in run.on_gpus):
            assert alone[label].tobytes() == first[label].tobytes(), label


@pytest.mark.mpi
@pytest.mark.limit(300)
@pytest.mark.parametrize("policy", ["oec", "cvc", "hvc", "fec", "hdrf", "random2d"])
def test_partitions(comm, shared_tmp, policy):
    """So do saved partitions, figures and exports."""
    graphs.write(shared_tmp / "g.h5", GRAPH)
    found = []
    for form in ("metis", "distdgl", "parquet") * 2:
        folder = shared_tmp / "made"  # the names of files are in some of them
        folder.mkdir(exist_ok=True)
        written = f"--save {folder}/parts --json {folder}/figures --export {form} --export-to {folder}/to"
        assert partition(comm, [str(shared_tmp / "g.h5"), "--policy", policy, *written.split()]) == 0
        comm.Barrier()
        saved = [(folder / "parts" / name).read_bytes() for name in read_manifest(folder / "parts").parts]
        manifest = json.loads((folder / "parts" / "manifest.json").read_text())
        del manifest["parts"]  # their names are new ones each time
        table = {key: value for key, value in json.loads((folder / "figures").read_text()).items() if key not in TIMES}
        exported = {path.name: path.read_bytes() for path in sorted(folder.glob("to.*"))}
        found.append((saved, manifest, table, exported))
        comm.Barrier()
        if comm.rank == 0:
            for path in folder.glob("to.*"):
                path.unlink()
        comm.Barrier()
    for place, (*rest, exported) in enumerate(found):
        assert exported and tuple(rest) == found[0][:3]
        assert exported == found[place % 3][3]
