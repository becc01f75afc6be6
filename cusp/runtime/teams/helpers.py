"""Threads that wait for what to do: for a while in compiled code, where a call takes a microsecond, and then asleep.

To wake a thread takes a tenth of a millisecond, and so does Python's lock, which it waits for: with 16 threads, a pass
in Python whose pieces do nothing takes a millisecond in all. What follows at once finds these threads awake, and a job
of their team (:mod:`cusp.runtime.teams.team`) needs neither.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import load, store, wait_a_little
from cusp.runtime.teams.team import FACTS, LEFT, LINE, PATIENCE, THREADS, come, new_team, take

FUNCTION, ARGUMENTS, BOUNDS = range(FACTS, FACTS + 3)  # of a job: addresses
EACH, FAILED = FACTS + 3, FACTS + 4  # bytes of the bounds of a piece; whether one raised anything
SOON = FACTS + 5  # a job is coming or under way: nobody falls asleep
AWAKE, CROWDED = 20_000, 60  # looks before a thread sleeps, a millisecond or less; where it has no core of its own


class Helpers:
    """So many threads, all of one team. They can do two kinds of things: jobs of the team, and calls of Python.

    Attributes
    ----------
    team : (words,) int64
        Whose jobs are compiled functions, see :func:`cusp.runtime.teams.together.together`.
    leading : Lock
        Held by who leads the team.
    """

    def __init__(self, size: int, patient: bool) -> None:
        self.team, self.leading = new_team(size, patient), threading.Lock()
        self._flags = np.zeros(size * LINE, np.int64)  # how often each was given something
        self._given: list[SimpleQueue[Callable[[], None]]] = [SimpleQueue() for _ in range(size)]
        self._left: deque[Callable[[], None]] = deque()  # for whoever is done first
        self._free: list[int] = []  # the last one may still be awake
        self._asleep: set[int] = set()
        _do_jobs(self.team, 1, 0, self._flags, 0, -1)  # none: it only loads the code
        for number in range(size):
            threading.Thread(target=self._serve, args=[number], name="cusp", daemon=True).start()

    def call(self, function: Callable[[], None]) -> None:
        """Let one of them call it."""
        self._left.append(function)
        self._give()

    def _give(self) -> None:
        """Give what is left to who is free: whoever comes second, what is to do or a thread, finds the other."""
        while self._left and self._free:
            try:
                number = self._free.pop()
            except IndexError:
                return
            try:
                self._given[number].put(self._left.popleft())
                self._flags[number * LINE] += 1
            except IndexError:
                self._free.append(number)

    def wake(self, number: int) -> None:
        """Wake so many who sleep, for a job that follows at once."""
        self.team[SOON] = 1
        for asleep in [*self._asleep][:number]:
            try:
                self._free.remove(asleep)
            except ValueError:
                continue  # it has been called
            self._asleep.discard(asleep)
            self._given[asleep].put(_nothing)

    def _serve(self, number: int) -> None:
        place, job = number * LINE, 0
        while True:
            seen = int(self._flags[place])
            self._free.append(number)
            self._give()
            while number not in self._asleep:
                job = _do_jobs(self.team, number + 1, job, self._flags, place, seen)
                if self.team[SOON] == 0 or self._flags[place] != seen:
                    self._asleep.add(number)
            function = self._given[number].get()
            self._asleep.discard(number)
            function()


def _nothing() -> None:
    """What a thread is called to that shall only be awake."""


@njit(cache=True, nogil=True)
def _do_jobs(team, number, before, flags, place, seen):  # type: ignore[no-untyped-def]
    """Do jobs until there is a call, or nothing for a while; returns the last one."""
    looks, patience = 0, AWAKE if team[PATIENCE] > 0 else 0
    while load(flags, place) == seen and looks < patience + CROWDED:
        job = come(team, number, before)
        if job > 0:
            do_job(team)
            store(team, THREADS + number * LINE + LEFT, job)
            before, looks = job, 0
        else:
            wait_a_little(looks, patience)
            looks += 1
    return before


@njit(cache=True, nogil=True)
def do_job(team):  # type: ignore[no-untyped-def]
    """Call its function, a compiled one, for the next pieces, until there are none."""
    first, last = take(team)
    while first < last:
        for piece in range(first, last):
            if call_address(team[FUNCTION], team[ARGUMENTS], team[BOUNDS] + team[EACH] * piece):
                team[FAILED] = 1
        first, last = take(team)


@intrinsic
def call_address(typing_context: Any, function: Any, arguments: Any, bounds: Any) -> Any:
    """Whether the compiled function at this address raises something, of arguments and bounds at two others."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args[1:]
        kind = context.call_conv.get_function_type(types.none, kinds)
        callee = builder.inttoptr(values[0], kind.as_pointer())
        return context.call_conv.call_function(builder, callee, types.none, kinds, values[1:])[0].is_error

    return types.boolean(types.int64, types.int64, types.int64), generate
