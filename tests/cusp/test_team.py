"""A team of threads: every share is done once, whoever comes; counts and lists are whole, and nobody is waited for."""

import numpy as np
import pytest

from cusp.runtime import threads
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.together import helped, make_team

SQUARES = 1


@njit(nogil=True)
def work(team, number, seen, found):  # type: ignore[no-untyped-def]
    mine = np.empty(4, np.uint32)
    size = 0
    first, last = teams.take(team)
    while first < last:
        for entry in range(first, last):
            seen[entry] += 1
            if size == 4:
                teams.append(team, teams.SUMS, mine, size, found)
                size = 0
            mine[size] = entry
            size += 1
            teams.count(team, number, SQUARES, entry * entry)
        first, last = teams.take(team)
    teams.append(team, teams.SUMS, mine, size, found)


@njit(nogil=True)
def lead(team, jobs, entries, seen, found):  # type: ignore[no-untyped-def]
    squares = 0
    for _ in range(jobs):
        team[teams.SUMS] = 0
        teams.call(team, 0, entries, 3)
        work(team, 0, seen, found)
        teams.dismiss(team)
        squares += teams.total(team, SQUARES)
    return squares


@njit(nogil=True)
def help_with(team, number, seen, found):  # type: ignore[no-untyped-def]
    job = teams.wait_for_job(team, number, 0)
    while job >= 0:
        work(team, number, seen, found)
        job = teams.leave(team, number, job)


@pytest.mark.parametrize("number", [1, 2, 3, 8])
@pytest.mark.parametrize("entries", [1, 100])
def test_every_entry_is_done_once_in_each_job(monkeypatch, number, entries):
    """Also by more threads than there are cores."""
    monkeypatch.setattr(threads._Chosen, "threads", number)
    seen, found = np.zeros(entries, np.int64), np.zeros(entries, np.uint32)
    with helped(help_with, seen, found) as team:
        squares = lead(team, 200, entries, seen, found)
    assert (seen == 200).all() and squares == 200 * (np.arange(entries) ** 2).sum()
    assert sorted(found) == [*range(entries)]


def test_a_helper_that_never_comes_is_not_waited_for():
    seen, found = np.zeros(100, np.int64), np.zeros(100, np.uint32)
    lead(make_team(3), 5, 100, seen, found)
    assert (seen == 5).all()


def test_helpers_end_with_the_block(monkeypatch):
    monkeypatch.setattr(threads._Chosen, "threads", 3)
    seen, found = np.zeros(9, np.int64), np.zeros(9, np.uint32)
    with pytest.raises(ZeroDivisionError), helped(help_with, seen, found):
        raise ZeroDivisionError


def test_late_helpers_make_jobs_rarer():
    team = make_team(2)
    assert teams.is_worth(team, 8, 8) and not teams.is_worth(team, 7, 8)
    team[teams.LATE] = 2
    assert teams.is_worth(team, 32, 8) and not teams.is_worth(team, 31, 8)
    assert not teams.is_worth(make_team(), 1 << 40, 8)


def test_late_helpers_are_tried_again():
    """Where jobs are never long enough to be tried, a doubling is forgotten after some, then another."""
    team = make_team(2)
    team[teams.LATE] = teams.LATEST
    tries = [teams.is_worth(team, 8, 8) for _ in range(2000)]
    first = tries.index(True)
    assert first == sum(teams.PATIENT << late for late in range(1, teams.LATEST + 1)) and all(tries[first:])
    assert team[teams.LATE] == 0 and not teams.is_worth(team, 7, 8)
