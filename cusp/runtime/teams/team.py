"""A team: threads of a rank inside one compiled call each, which do the wide rounds of an algorithm together.

One of them leads: it does what is narrow alone, as if there were no others, and calls them to a *job*, entries that are
cut into shares, where that is worth it. Who is free takes the next share. The leader waits only for those that came:
a helper that sleeps, or has no core, holds nobody up. A call costs a few microseconds, and nothing of Python.

    leader                                   helper
    while ...:                               job = wait_for_job(team, number, 0)
        ... alone ...                        while job >= 0:
        call(team, KIND, entries, share)         work(team, number, ...)
        work(team, 0, ...)                       job = leave(team, number, job)
        dismiss(team)

``work`` does shares until ``take(team)`` returns no more. What a job is about stands in ``team[FACTS:]``; lengths of
lists to which all append in ``team[SUMS:]``. What is only counted, each thread counts for itself (:func:`count`). All
threads see what the leader wrote before the call, and after it the leader sees all they have done.
"""

import numpy as np

from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import YIELDS, atomic_add, fence, load, store, wait_a_little

LINE = 8  # words of a line of the cache: what different threads change is in different ones
JOB, KIND, ENTRIES, SHARE, WANTED, HELPERS, PATIENCE, LATE = range(LINE)  # JOB: how many there were, OVER at the end
ENDED = LINE  # the last job whose leader waits for those who came
MISSED = LINE + 1  # what would have been a job, had helpers not been late
NEXT = 2 * LINE  # the first entry that nobody has taken
FACTS, SUMS, THREADS = range(3 * LINE, 6 * LINE, LINE)
CAME, LEFT, COUNTS = 0, 1, 2  # of the line of each thread: the last job it came to and left; what it has counted
OVER = -1
LOOKS = 30_000  # at a flag, 1 to 2 ms, before a thread yields its core; half as many for each time helpers were late
LATEST = 5  # doublings of the least job, where others have the cores meanwhile and helpers are late
PATIENT = 8  # as many missed jobs, for each such doubling twice as many, until there is one doubling less
PIECES = 256  # of a list whose places are kept, so that it can be put in order
AWAY = YIELDS + 4  # further looks after which a helper has lost its core, and does not merely have more to do
BUFFER = 256  # entries that a thread collects before it appends them to a list of all


def new_team(helpers: int, patient: bool) -> np.ndarray:
    """The words of a team, whose threads keep their cores while they wait for each other, if they are patient."""
    team = np.zeros(THREADS + (helpers + 2) * LINE + 3 * PIECES, np.int64)
    team[HELPERS], team[PATIENCE] = helpers, LOOKS if patient else 0
    return team


@njit(cache=True, nogil=True, inline="always")
def is_worth(team, size, few):  # type: ignore[no-untyped-def]
    """Whether something of this size is a job: from few entries on, more if helpers were late, but not forever."""
    worth = team[HELPERS] > 0 and size >= few
    if worth and size < few << team[LATE]:
        worth = False
        team[MISSED] += 1
        if team[MISSED] >= PATIENT << team[LATE]:
            team[MISSED] = 0
            team[LATE] -= 1
    return worth


@njit(cache=True, nogil=True, inline="always")
def first_piece(team):  # type: ignore[no-untyped-def]
    """Where the number of pieces stands; after a line, three words for each: its rank, first entry and size."""
    return THREADS + (team[HELPERS] + 1) * LINE


@njit(cache=True, nogil=True)
def call(team, kind, entries, share):  # type: ignore[no-untyped-def]
    """A job begins: so many entries, taken as many at a time as that every thread can come about 8 times, or more."""
    share = max(share, entries // (8 * team[HELPERS] + 8))
    team[KIND], team[ENTRIES], team[SHARE], team[NEXT] = kind, entries, share, 0
    team[WANTED] = min(team[HELPERS], (entries - 1) // share)
    team[THREADS + COUNTS : THREADS + LINE] = 0
    team[first_piece(team)] = 0
    store(team, JOB, team[JOB] + 1)


@njit(cache=True, nogil=True)
def dismiss(team):  # type: ignore[no-untyped-def]
    """The job ends, as soon as all that came have left.

    Who comes writes that down and then looks whether it ended; the leader writes that down and then looks who came:
    with a fence between both, one of them sees the other (Dekker).
    """
    job, looks, patience = team[JOB], 0, team[PATIENCE] >> team[LATE]
    store(team, ENDED, job)
    fence()
    for line in range(THREADS + LINE, THREADS + (team[WANTED] + 1) * LINE, LINE):
        while load(team, line + CAME) == job and load(team, line + LEFT) != job:
            wait_a_little(looks, patience)
            looks += 1
    late = min(team[LATE] + 1, LATEST) if looks > patience + AWAY else max(team[LATE] - 1, 0)
    if late != team[LATE]:
        team[LATE] = late


@njit(cache=True, nogil=True, inline="always")
def take(team):  # type: ignore[no-untyped-def]
    """The next share: its first entry and the one after its last; the same twice if there is none."""
    first = team[ENTRIES]
    if load(team, NEXT) < first:
        first = min(atomic_add(team, NEXT, team[SHARE]), first)
    return first, min(first + team[SHARE], team[ENTRIES])


@njit(cache=True, nogil=True)
def wait_for_job(team, number, before):  # type: ignore[no-untyped-def]
    """Come to the job after the one before, if so many helpers are wanted; returns its number, or OVER."""
    looks, job = 0, np.int64(0)
    while job == 0:
        job = come(team, number, before)
        if job == 0:
            wait_a_little(looks, team[PATIENCE] >> team[LATE])
            looks += 1
    return job


@njit(cache=True, nogil=True, inline="always")
def come(team, number, before):  # type: ignore[no-untyped-def]
    """The number of a job after the one before, if this helper is wanted and not too late; else 0, or OVER."""
    job, line = load(team, JOB), THREADS + number * LINE
    if job > 0 and (job == before or number > team[WANTED] or load(team, ENDED) >= job):
        return np.int64(0)
    if job > 0:
        store(team, line + CAME, job)
        fence()
        if load(team, ENDED) >= job:
            store(team, line + CAME, 0)
            return np.int64(0)
        team[line + COUNTS : line + LINE] = 0
    return job


@njit(cache=True, nogil=True, inline="always")
def leave(team, number, job):  # type: ignore[no-untyped-def]
    """Leave this job and wait for another."""
    store(team, THREADS + number * LINE + LEFT, job)
    return wait_for_job(team, number, job)


@njit(cache=True, nogil=True, inline="always")
def count(team, number, which, more):  # type: ignore[no-untyped-def]
    """A thread adds to one of its counts, from 0 on, of this job; six at most."""
    team[THREADS + number * LINE + COUNTS + which] += more


@njit(cache=True, nogil=True)
def total(team, which):  # type: ignore[no-untyped-def]
    """One of the counts, of all threads that came, after the job."""
    result = team[THREADS + COUNTS + which]
    for line in range(THREADS + LINE, THREADS + (team[WANTED] + 1) * LINE, LINE):
        if team[line + LEFT] == team[JOB]:
            result += team[line + COUNTS + which]
    return result


@njit(cache=True, nogil=True, inline="always")
def append(team, length, collected, size, entries):  # type: ignore[no-untyped-def]
    """Append what a thread has collected to a list of all, whose length is this sum of the team."""
    if size > 0:
        first = np.uint64(atomic_add(team, length, size))
        for place in range(np.uint64(size)):
            entries[first + place] = collected[place]


@njit(cache=True, nogil=True)
def append_piece(team, length, rank, collected, size, entries):  # type: ignore[no-untyped-def]
    """The same of a list that will be put in order: its pieces by their ranks, such as the first entry of a share."""
    if size > 0:
        first = np.uint64(atomic_add(team, length, size))
        for place in range(np.uint64(size)):
            entries[first + place] = collected[place]
        line = first_piece(team)
        number = atomic_add(team, line, 1)
        if number < PIECES:
            line += LINE + 3 * number
            team[line], team[line + 1], team[line + 2] = rank, first, size


@njit(cache=True, nogil=True)
def put_in_order(team, begin, end, entries):  # type: ignore[no-untyped-def]
    """After a job: these entries of a list, all of which came as pieces. Where there were too many, as they came.

    So what is close in the list stays close, and goes to one thread again.
    """
    line = first_piece(team)
    number = team[line]
    if number < 2 or number > PIECES:
        return
    order = np.empty(number, np.int64)
    for piece in range(number):  # they come nearly in order; numba compiles its sorts for seconds
        place, rank = piece, team[line + LINE + 3 * piece]
        while place > 0 and team[order[place - 1]] > rank:
            order[place] = order[place - 1]
            place -= 1
        order[place] = line + LINE + 3 * piece
    came, place = entries[begin:end].copy(), begin
    for piece in order:
        first, size = team[piece + 1] - begin, team[piece + 2]
        for entry in range(size):
            entries[place + entry] = came[first + entry]
        place += size
