"""The fuzzer for a short time: cases of every class and answers at each number of ranks, the same in every run."""

import os
import signal
import threading
import time

import pytest
from fuzz import differential, isolate
from spawn import mpirun

SEED = 1
ANSWERS = 15  # at each number of ranks


@pytest.mark.slow
@pytest.mark.limit(300)
@pytest.mark.parametrize(
    ("classes", "most"),
    [("graph_files,saved_parts,foreign_files,node_maps", 12), ("no_files", 30), ("options", 8), ("policies", 3)],
)
def test_cases_are_done_or_refused(classes, most):
    """What is neither is shown with the words that repeat it."""
    chosen = ["--only", classes, "--most", str(most), "--seed", str(SEED), "--minutes", "5"]
    done = mpirun(1, "-m", "tests.fuzz", *chosen, launcher=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines[-len(classes.split(",")) :]] == [
        [name, str(most)] for name in classes.split(",")
    ]


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_answers_are_those_of_others(shared_tmp):
    wrong, answers, number = [], 0, 0
    with differential.rehearsed_once():
        while answers < ANSWERS:
            for question, why in differential.case(SEED, number, shared_tmp):
                answers += 1
                wrong += [f"--seed {SEED} --case {number}: {question}: {why}"] if why else []
            number += 1
    assert not wrong


@pytest.mark.parametrize("works", [True, False])
def test_who_waits_for_a_thread_that_works_does_not_hang(works):
    """However little the others on the machine leave to that thread."""
    child = os.fork()
    if child == 0:
        threading.Thread(target=(lambda: any(iter(int, 1))) if works else signal.pause).start()
        signal.pause()
    try:
        while len(os.listdir(f"/proc/{child}/task")) < 2:
            time.sleep(0.01)
        time.sleep(0.1)
        assert [isolate._seconds(child)[1] for _ in range(20)] == [not works] * 20
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
