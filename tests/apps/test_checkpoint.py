"""Runs that were interrupted go on from a checkpoint: the same answer, on any number of ranks; what is refused."""


import graphs
import h5py
import numpy as np
import pytest
from mpi4py import MPI

from apps import betweenness, communities, pagerank
from apps.harness import main
from apps.run.checkpoint import Checkpoint

ALWAYS = ("--every", "1e-9")  # seconds: a checkpoint after every round
CASES = {
    "pull": (pagerank.APP, ["--tolerance", "1e-12", "--unweighted"], 9),
    "pull float32 of some nodes": (pagerank.APP, ["--precision", "float32", "--personalize", "3:2", "5"], 4),
    "push": (pagerank.APP, ["--tolerance", "1e-10", "--algorithm", "push-residual", "--unweighted"], 7),
    "louvain, first level": (communities.APP, [], 1),
    "louvain, second level": (communities.APP, ["--seed", "3"], 5),
    "label propagation": (communities.APP, ["--algorithm", "label-propagation"], 1),
    "betweenness, level by level": (betweenness.APP, ["--sources", "20", "--policy", "cvc"], 6),
    "betweenness, each rank alone": (betweenness.APP, ["--policy", "iec"], 1),
}
EXACT = {"push", "louvain, first level", "louvain, second level", "label propagation"}  # on any number of ranks


class InterruptedRunError(Exception):
    """What ends a run in the middle."""


@pytest.fixture
def run(shared_tmp, monkeypatch):
    """Function (case, comm, arguments, stop) -> answer of a run on some ranks; with ``stop``, it ends after so many
    checkpoints.
    """
    if MPI.COMM_WORLD.rank == 0:
        graphs.write_here(shared_tmp / "g.h5", graphs.random_directed(150, 900, seed=2))
    MPI.COMM_WORLD.Barrier()
    monkeypatch.setattr(betweenness, "BATCH", 1)
    write, written = Checkpoint.write, []

    def write_and_stop(self, *arguments, **facts):
        write(self, *arguments, **facts)
        written.append(arguments[0])
        if len(written) == stop_after[0]:
            raise InterruptedRunError

    stop_after = [0]
    monkeypatch.setattr(Checkpoint, "write", write_and_stop)

    def answer(case: str, comm, *more: str, stop: int = 0) -> dict[str, np.ndarray]:
        app, options, _ = CASES[case]
        written.clear()
        stop_after[0], output = stop, shared_tmp / "answer.h5"
        arguments = [str(shared_tmp / "g.h5"), *options, "--output", str(output), "--rows", str(shared_tmp / "rows")]
        if stop:
            with pytest.raises(InterruptedRunError):
                main(app, comm, [*arguments, *more])
            return {}
        assert main(app, comm, [*arguments, *more]) == 0
        comm.Barrier()
        with h5py.File(output) as file:
            found = {name: file[name][...] for name in file}
        comm.Barrier()
        return found

    return answer


def same(case: str, found: dict, expected: dict, exact: bool) -> None:
    """Whether two answers are, bit for bit or as rounding allows."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if exact or case in EXACT:
            np.testing.assert_array_equal(found[name], values)
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-4 if "32" in case else 1e-9)


@pytest.mark.mpi
@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_that_of_a_run_without_interruption(comm, run, shared_tmp, case, capfd):
    """Bit for bit; rounds count from the beginning; the file is gone."""
    file = shared_tmp / "run.ckpt"
    whole = run(case, comm)
    run(case, comm, "--checkpoint", str(file), *ALWAYS, stop=CASES[case][2])
    assert file.exists()
    capfd.readouterr()
    again = run(case, comm, "--checkpoint", str(file), *ALWAYS)
    same(case, again, whole, exact=True)
    said = capfd.readouterr().out
    assert comm.rank > 0 or f"goes on from {file}: " in said
    assert [path.name for path in shared_tmp.iterdir() if "ckpt" in path.name] == []


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("case", CASES)
def test_on_another_number_of_ranks(comm, run, shared_tmp, case):
    """From all ranks to one, and from one to all."""
    one, file = MPI.COMM_SELF, ("--checkpoint", str(shared_tmp / "run.ckpt"), *ALWAYS)
    whole = run(case, comm)
    run(case, comm, *file, stop=CASES[case][2])
    if comm.rank == 0:
        same(case, run(case, one, *file), whole, exact=False)
        run(case, one, *file, stop=CASES[case][2])
    comm.Barrier()
    same(case, run(case, comm, *file, "--policy", "oec"), whole, exact=False)
