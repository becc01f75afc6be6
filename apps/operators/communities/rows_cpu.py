"""What a row does in community detection on CPUs: it chooses a community, and neighbours see that it has moved."""

import numpy as np

from cusp.apps.operators.communities.interfaces import MOVED, RESTLESS
from cusp.runtime.compiled_code import njit


@njit(cache=True, nogil=True, inline="always")
def best_community(  # type: ignore[no-untyped-def]
    row, offsets, targets, weights, numbers, strengths, totals, gids, lot, scale, to, touched
):
    """The community that a row chooses, see ``moves``. Places are unsigned, here and below.

    ``to`` has the weight from the row to each community, 0 before and after. ``touched`` has room for as many of them
    as there are edges: one to which an edge of weight 0 leads may be there twice, which changes nothing.
    """
    weighted, own, strength, count = weights.size > 0, numbers[row], strengths[row], 0
    for edge in range(offsets[row], offsets[row + np.uint64(1)]):
        community = numbers[targets[edge]]
        before = to[community]
        touched[count] = community
        count += before == 0
        to[community] = before + (weights[edge] if weighted else 1.0)
    choice, highest = own, scale * to[own] - strength * (abs(totals[own]) - strength)
    for k in range(count):
        community = touched[k]
        total, weight = totals[community], to[community]
        score = scale * weight - strength * total
        to[community] = 0.0
        if score >= highest and total >= 0 and community != own:
            if score > highest or (choice != own and gids[community] * lot > gids[choice] * lot):
                choice, highest = community, score
    return choice


@njit(cache=True, nogil=True, inline="always")
def settle_row(row, offsets, targets, weights, before, after, states):  # type: ignore[no-untyped-def]
    """What the move of a row adds to the weight inside, see ``settle``; a mark that is there is not written again."""
    weighted, old, new, gain = weights.size > 0, before[row], after[row], 0.0
    for edge in range(offsets[row], offsets[row + np.uint64(1)]):
        target = np.uint64(targets[edge])
        now, state = after[target], states[target]
        if now != new and not state & RESTLESS:
            states[target] = state | RESTLESS
        weight = weights[edge] if weighted else 1.0
        if state & MOVED:
            gain += weight * (int(now == new) - int(before[target] == old))
        else:
            gain += weight * (2 * (int(now == new) - int(now == old)))
    return gain
