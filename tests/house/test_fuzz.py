"""The fuzzer for a short time: cases of every class and answers at each number of ranks, the same in every run."""

import pytest
from fuzz import differential
from spawn import mpirun

SEED = 1
ANSWERS = 15  # at each number of ranks


@pytest.mark.limit(300)
@pytest.mark.parametrize(
    ("classes", "most"),
    [("graph_files,saved_parts,foreign_files,node_maps", 40), ("options", 20), ("policies", 6)],
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
