"""Many tasks, such as searches, that add up what they find: threads do them, and no bit depends on how many."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from cusp.runtime.threads import in_parallel

LANES = 64  # that have sums of their own, at most
LARGE = 1 << 25  # numbers in all of these
AT_ONCE = 1 << 24  # edges of the tasks in one call that Ctrl-C must wait for

State = TypeVar("State")
Result = TypeVar("Result")


def in_lanes(
    tasks: int, edges: int, sums: Sequence[np.ndarray], make: Callable[[], State],
    add: Callable[[State, np.ndarray, list[Any]], Result],
) -> list[Result]:  # fmt: skip
    """A thread does the tasks of a whole lane, whose sums are added to ``sums`` in the order of the lanes.

    Parameters
    ----------
    edges : int
        That a task walks along.
    make : function
        Makes what a thread needs, and can use again.
    add : function
        Does the tasks with these numbers, which ascend, and adds to a lane's sums, which begin with 0.

    Returns
    -------
    list
        What ``add`` returned.
    """
    lanes = max(1, min(LANES, tasks, LARGE // max(1, sum(each.size for each in sums))))
    step, spare = max(1, AT_ONCE // max(edges, 1)), list[State]()
    own = [[np.zeros_like(each) for each in sums] for _ in range(lanes)]

    def work(lane: int) -> list[Result]:
        try:
            state = spare.pop()  # of a thread that has finished a lane
        except IndexError:
            state = make()
        numbers = np.arange(lane, tasks, lanes)
        found = [add(state, numbers[first : first + step], own[lane]) for first in range(0, numbers.size, step)]
        spare.append(state)
        return found

    results = in_parallel(work, [(lane,) for lane in range(lanes)])
    for lane in own:
        for total, more in zip(sums, lane):
            total += more
    return [each for some in results for each in some]
