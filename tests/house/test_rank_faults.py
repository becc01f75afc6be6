"""One rank fails at a step of the rehearsal or of a run: all end soon, with one message."""

import os

import pytest
from fuzz.faults import KINDS, Fault, attack, faults_of, small_search

RANKS = 3


def some_of(kinds: tuple[str, ...]):
    """For each kind a step of the rehearsal or of the run, by turns; on one rank after the other."""

    def choose(steps: list[list[str]]) -> list[Fault]:
        chosen = []
        for number, kind in enumerate(kinds):
            rank, when = number % RANKS, ("rehearsal", "run")[number % 2]
            places = [step for step, place in enumerate(steps[rank]) if place.startswith(when)]
            chosen.append(Fault(places[(number + 1) * len(places) // (len(kinds) + 1)], rank, kind))
        return chosen

    return choose


@pytest.mark.limit(300)
def test_one_rank_fails(tmp_path):
    """An error of the user or of ours, an exit, and a signal; by turns on each rank."""
    outcomes = attack(RANKS, small_search(tmp_path), tmp_path, 2, some_of(("raise", "defect", "exit", "kill")))
    assert len(outcomes) == 4 and not [outcome for outcome in outcomes if outcome.wrong]


@pytest.mark.limit(300)
def test_one_rank_makes_no_progress(tmp_path):
    """It sleeps, or is stopped: ``--timeout`` ends all, from their first call on, and where they reduce objects."""
    choose = some_of(("sleep", "stop"))

    def choose_more(steps: list[list[str]]) -> list[Fault]:
        reduces = next(step for step, place in enumerate(steps[2]) if place.endswith("allreduce"))
        return [*choose(steps), Fault(0, 1, "stop"), Fault(reduces, 2, "stop")]

    outcomes = attack(RANKS, small_search(tmp_path), tmp_path, 6, choose_more)
    assert len(outcomes) == 4 and not [outcome for outcome in outcomes if outcome.wrong]


@pytest.mark.slow
@pytest.mark.limit(3600)
def test_many_steps(tmp_path):
    """One of so many faults that they take minutes; ``python -m tests.fuzz.faults`` tries all."""
    at_once = len(os.sched_getaffinity(0))
    outcomes = attack(
        RANKS, small_search(tmp_path), tmp_path, 2 * at_once, lambda steps: faults_of(steps, [*KINDS])[::37]
    )
    assert len(outcomes) > 50 and not [outcome for outcome in outcomes if outcome.wrong]
