"""Runs that were interrupted go on from a checkpoint: the same answer, on any number of ranks; what is refused."""

import errno
from pathlib import Path
from unittest import mock

import graphs
import h5py
import numpy as np
import parts
import pytest
import spawn

from cusp.apps import betweenness, bfs, closeness, communities, library, pagerank
from cusp.apps.harness import main
from cusp.apps.operators.sums import betweenness_cpu
from cusp.apps.run.checkpoint import Checkpoint
from cusp.apps.shared.graphs import whole_graph
from cusp.errors import InputError
from cusp.output import dataset_writer
from cusp.output.whole_file import OutputError
from cusp.partitioner import partition_graph
from cusp.runtime.mpi import MPI

ALWAYS = ("--every", "1e-9")  # a checkpoint after every round
CIRCLE = graphs.make(300, [(v, (v + 1) % 300) for v in range(300)])  # communities of several levels
GRAPH = graphs.random_directed(150, 900, seed=2)
CASES = {  # app, graph, options, and the checkpoint after which it is interrupted
    "pull": (pagerank.APP, GRAPH, ["--tolerance", "1e-12", "--unweighted"], 9),
    "pull by weight": (pagerank.APP, GRAPH, ["--precision", "float32", "--personalize", "3:2", "5"], 4),
    "push": (pagerank.APP, GRAPH, ["--tolerance", "1e-10", "--algorithm", "push-residual", "--unweighted"], 7),
    "louvain, first level": (communities.APP, GRAPH, [], 2),
    "louvain, third level": (communities.APP, CIRCLE, [], 5),
    "leiden, third level": (communities.APP, CIRCLE, ["--algorithm", "leiden", "--resolution", "0.5"], 5),
    "leiden, single nodes in the end": (communities.APP, CIRCLE, ["--algorithm", "leiden"], 8),
    "label propagation": (communities.APP, GRAPH, ["--algorithm", "label-propagation"], 1),
    "betweenness by level": (betweenness.APP, GRAPH, ["--sources", "20", "--policy", "cvc"], 6),
    "closeness": (closeness.APP, GRAPH, ["--policy", "cvc"], 1),
    "betweenness alone": (betweenness.APP, GRAPH, ["--sources", "12", "--policy", "iec"], 1),
}
ROUNDED = {
    "closeness": 1e-12,
    "pull": 1e-9,
    "pull by weight": 1e-4,
    "betweenness by level": 1e-12,
    "betweenness alone": 1e-12,
}


class InterruptedRunError(Exception):
    """What ends a run in the middle."""


@pytest.fixture
def run(shared_tmp, monkeypatch):
    """Function (case, comm, arguments, stop) -> answer on some ranks; ``stop``: it ends after so many checkpoints."""
    monkeypatch.setattr(whole_graph, "AT_ONCE", 1)
    write, left = Checkpoint.write, [0]

    def write_and_stop(*arguments, **facts) -> None:
        write(*arguments, **facts)
        left[0] -= 1
        if left[0] == 0:
            raise InterruptedRunError

    monkeypatch.setattr(Checkpoint, "write", write_and_stop)

    def answer(case: str, comm: MPI.Intracomm, *more: str, stop: int = 0) -> dict[str, np.ndarray]:
        app, graph, options, _ = CASES[case]
        left[0], output = stop, shared_tmp / "answer.h5"
        monkeypatch.setattr(betweenness_cpu, "SMALL", 0 if case == "betweenness by level" else 1 << 20)
        if comm.rank == 0:
            graphs.write_here(shared_tmp / "g.h5", graph)
        comm.Barrier()
        arguments = [str(shared_tmp / "g.h5"), *options, "--output", str(output), *more]
        if stop:
            with pytest.raises(InterruptedRunError):
                main(app, comm, arguments)
            return {}
        assert main(app, comm, arguments) == 0
        with h5py.File(output) as file:
            found = {name: file[name][...] for name in file}
        comm.Barrier()
        return found

    return answer


@pytest.mark.mpi
@pytest.mark.parametrize("case", parts.share(CASES))
def test_the_answer_is_that_of_a_run_without_interruption(comm, run, shared_tmp, case, capfd):
    """Bit for bit; rounds count from the beginning; the file is gone."""
    file = shared_tmp / "run.ckpt"
    expected = run(case, comm)
    rounds = capfd.readouterr().out.partition(" rounds")[0].split()[-1:]
    run(case, comm, "--checkpoint", str(file), *ALWAYS, stop=CASES[case][-1])
    capfd.readouterr()
    found = run(case, comm, "--checkpoint", str(file))
    said = capfd.readouterr().out
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    assert comm.rank > 0 or f" goes on from {file}: " in said
    assert said.rpartition(" rounds")[0].split()[-1:] == rounds
    assert not [path.name for path in shared_tmp.iterdir() if "ckpt" in path.name]


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("case", parts.share(CASES))
def test_on_another_number_of_ranks(comm, run, shared_tmp, case):
    """From all ranks to one, or from one to all, by another policy."""
    file, turn = ("--checkpoint", str(shared_tmp / "run.ckpt")), list(CASES).index(case) % 2
    expected = run(case, comm)
    if turn or comm.rank == 0:
        run(case, comm if turn else MPI.COMM_SELF, *file, *ALWAYS, stop=CASES[case][-1])
    comm.Barrier()
    found = expected
    if not turn or comm.rank == 0:
        found = run(case, MPI.COMM_SELF if turn else comm, *file, "--policy", "hvc")
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=ROUNDED.get(case, 0))


TERMINATED = """
import os, signal, sys, time
from cusp.apps.pagerank import APP, main, run_main
from cusp.apps.run.checkpoint import Checkpoint
from cusp.runtime import signals
is_due, calls = Checkpoint.is_due, []
def hear_first(self, sync):
    calls.append(0)
    if len(calls) == 8 and self._comm.rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
        while not signals.asked_to_end():
            time.sleep(1e-3)
    return is_due(self, sync)
Checkpoint.is_due = hear_first
run_main(lambda comm, argv: main(APP, comm, argv))
"""


def test_a_signal_to_one_rank_writes_a_checkpoint(comm, tmp_path):
    """At the end of the round, once, and all ranks leave; one rank goes on."""
    graphs.write_here(tmp_path / "g.h5", GRAPH)
    (tmp_path / "terminated.py").write_text(TERMINATED)
    options = [str(tmp_path / "g.h5"), "--unweighted", "--output", str(tmp_path / "ranks.h5")]
    kept = ["--checkpoint", str(tmp_path / "run.ckpt")]
    done = spawn.mpirun(2, tmp_path / "terminated.py", *options, *kept, timeout=60)
    said = f"error: ended by SIGTERM after 8 rounds; the same command goes on from {tmp_path / 'run.ckpt'}\n"
    assert (done.returncode, done.stderr) == (143, said) and not (tmp_path / "ranks.h5").exists()
    found = []
    for more in (kept, []):
        assert main(pagerank.APP, comm, [*options, *more]) == 0
        with h5py.File(tmp_path / "ranks.h5") as file:
            found.append(file["pagerank"][...])
    np.testing.assert_allclose(*found, rtol=1e-12)


KILLED = """
import os, signal
from cusp.apps.pagerank import APP, main, run_main
replace, calls = os.replace, []
def killed_before_the_third(old, new):
    calls.append(new) if str(new).endswith("run.ckpt") else None
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(old, new)
os.replace = killed_before_the_third
run_main(lambda comm, argv: main(APP, comm, argv))
"""


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(comm, tmp_path, capfd):
    """Whole; and what was half written is removed by the next run."""
    graphs.write_here(tmp_path / "g.h5", GRAPH)
    (tmp_path / "killed.py").write_text(KILLED)
    options = [str(tmp_path / "g.h5"), "--unweighted", "--output", str(tmp_path / "ranks.h5")]
    kept = ["--checkpoint", str(tmp_path / "run.ckpt")]
    done = spawn.mpirun(2, tmp_path / "killed.py", *options, *kept, *ALWAYS, timeout=60)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert len([*tmp_path.glob(".run.ckpt*.tmp")]) == 1
    found = []
    for more in (kept, []):
        assert main(pagerank.APP, comm, [*options, *more]) == 0
        with h5py.File(tmp_path / "ranks.h5") as file:
            found.append(file["pagerank"][...])
    assert "run.ckpt: 2 rounds of 2 ranks" in capfd.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"g.h5", "killed.py", "ranks.h5"}
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.mpi(min_size=2)
def test_an_error_of_one_rank_while_others_wait_for_it(comm, shared_tmp, monkeypatch):
    """It is not told where files end: the others are in another call, and its rank ends all."""
    part = partition_graph(([0, 1, 2], [1, 2, 0]), "oec", comm)
    together = []
    monkeypatch.setattr(dataset_writer, "raise_together", lambda comm, error: together.append(error))
    monkeypatch.setattr(dataset_writer, "in_gid_order", mock.Mock(side_effect=InputError("alone")))
    with pytest.raises(InputError, match="alone"):
        with dataset_writer.writing_datasets(shared_tmp / "f.h5", comm, {"x": (3, np.dtype("f8"))}) as writer:
            writer.write_masters("x", part, np.zeros(part.num_masters), comm)
    assert not together


def changed(name: str, change):
    """Function (path) that changes the values of a dataset in a checkpoint; None removes it."""

    def write(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            values = change(file[name][...])
            if values is None:
                del file[name]
            elif values.shape == file[name].shape:
                file[name][...] = values
            else:
                del file[name]
                file[name] = values

    return write


FAULTS = {
    "text": (lambda path: path.write_text("0 1\n"), "not an HDF5 file"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-3000]), "cut short|not in the file|cannot be read"),
    "another file": (lambda path: graphs.write_here(path, GRAPH), "no dataset /checkpoint"),
    "wrong text": (changed("checkpoint", lambda text: text ^ 1), "the checksum of /checkpoint does not match"),
    "wrong value": (changed("pagerank", lambda values: values * 1.5), "the checksum of /pagerank does not match"),
    "too few values": (changed("pagerank", lambda values: values[:-1]), "/pagerank has 149 float64, expected 150"),
    "no values": (changed("pagerank", lambda values: None), "no dataset /pagerank"),
}
OTHERS = {
    "damping": ({"damping": 0.9}, GRAPH, "a run with --damping 0.85, and this one has 0.9: use the same options"),
    "starts": ({"personalize": {3: 2}}, GRAPH, "a run with --personalize None, and this one has "),
    "an edge": ({}, GRAPH._replace(targets=np.roll(GRAPH.targets, 1)), "a run with edges that add up to [0-9]+, and"),
    "a weight": ({}, GRAPH._replace(weights=GRAPH.weights + (GRAPH.weights == 7)), "with edges that add up to"),
    "size": ({}, graphs.random_directed(149, 900, seed=2), "a run with nodes 150, and this one has 149"),
}


@pytest.fixture
def rank_by(comm, shared_tmp, monkeypatch):
    """Function (graph, **options) -> PageRank from Python on all ranks, with the checkpoint of a round of ``GRAPH``."""

    def rank(graph: graphs.Graph, **options):
        edges = graph.sources, graph.targets, graph.weights
        part = library.partition_graph(edges, num_nodes=graph.num_nodes, device=parts.DEVICE)
        return library.pagerank(part, checkpoint=shared_tmp / "run.ckpt", **options)

    def write_and_stop(*arguments, **facts) -> None:
        write(*arguments, **facts)
        raise InterruptedRunError

    write = Checkpoint.write
    with monkeypatch.context() as patched, pytest.raises(InterruptedRunError):
        patched.setattr(Checkpoint, "write", write_and_stop)
        rank(GRAPH, every=1e-9)
    comm.Barrier()
    return rank


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share([*FAULTS, *OTHERS]))
def test_a_file_that_does_not_fit(rank_by, comm, shared_tmp, fault):
    """One line, the same on every rank, and the file stays as it is."""
    file = shared_tmp / "run.ckpt"
    options, graph, message = OTHERS.get(fault) or ({}, GRAPH, FAULTS[fault][1])
    if comm.rank == 0 and fault in FAULTS:
        FAULTS[fault][0](file)
    comm.Barrier()
    before = file.read_bytes()
    with pytest.raises(InputError, match=message) as caught:
        rank_by(graph, **options)
    assert f"{file}: is " in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert file.read_bytes() == before


@pytest.mark.mpi
def test_a_disk_that_fills_up_on_one_rank(rank_by, comm, shared_tmp, monkeypatch):
    """An error on every rank; the checkpoint before it is whole, and nothing else is left."""
    expected, write, written = rank_by(GRAPH), dataset_writer.write_at, []
    assert not (shared_tmp / "run.ckpt").exists()
    comm.Barrier()

    def fail_later(*arguments) -> None:
        written.append(0)
        if comm.rank == comm.size - 1 and len(written) > 5:
            raise OSError(errno.ENOSPC, "full")
        write(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(dataset_writer, "write_at", fail_later)
        with pytest.raises(OutputError, match="run.ckpt: cannot be written: No space left on device; free some space"):
            rank_by(GRAPH, every=1e-9)
    comm.Barrier()  # what the first rank had begun to write is removed
    assert [path.name for path in shared_tmp.iterdir()] == ["run.ckpt"]
    comm.Barrier()
    found = rank_by(GRAPH)
    assert found.rounds == expected.rounds
    np.testing.assert_array_equal(found.pagerank, expected.pagerank)


@pytest.mark.mpi
def test_options(comm, shared_tmp, capfd):
    """Where a checkpoint makes no sense, or cannot be written."""
    if comm.rank == 0:
        graphs.write_here(shared_tmp / "g.h5", GRAPH)
    comm.Barrier()
    file = ["--checkpoint", str(shared_tmp / "run.ckpt")]
    push = ["--algorithm", "push-residual", "--unweighted", "--execution", "async"]
    for options, message in (
        ([*file, "--trials", "2"], "--checkpoint: is for one run"),
        ([*file, *push], "--checkpoint: is written at the end of a round"),
        (["--every", "5min"], "--every: says how often"),
        (["--checkpoint", str(shared_tmp / "no" / "run.ckpt")], "there is no folder"),
        (["--checkpoint", str(shared_tmp / "g.h5")], "--checkpoint .*g.h5: is the file of the input"),
    ):
        with pytest.raises(InputError, match=message):
            main(pagerank.APP, comm, [str(shared_tmp / "g.h5"), *options])
    with pytest.raises(SystemExit):
        main(bfs.APP, comm, [str(shared_tmp / "g.h5"), *file])
    assert comm.rank > 0 or "bfs writes no checkpoints: its runs are short" in capfd.readouterr().err
