"""Hypothesis on several ranks: rank 0 draws and shrinks, the others run each of its examples along with it.

Each rank drawing for itself would part at the first example that fails on one rank only. Here all ranks
agree on the outcome of every example, and only rank 0 decides what comes next. Drawn values travel by
pickle, so ``st.data()`` cannot be used in a test marked ``mpi``; nor can ``note`` and ``target``.
"""

import functools
import traceback
from collections.abc import Callable
from typing import Any

import ranks
from hypothesis import HealthCheck, settings
from hypothesis.errors import UnsatisfiedAssumption


def use_settings() -> None:
    """The same examples in every run, no clock in any decision; fewer of them on several ranks."""
    settings.register_profile(
        "ranks",
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=100 if ranks.COMM.size == 1 else 30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("ranks")


def is_property(test: Callable[..., None]) -> bool:
    """Whether ``@given`` was applied to the test."""
    return bool(getattr(test, "is_hypothesis_test", False))


def run_property(name: str, test: Callable[..., None], fixtures: dict[str, Any]) -> None:
    """Run all examples of a test; raises on rank 0 what Hypothesis raises. Collective."""
    if ranks.COMM.rank == 0:
        lead(name, test, fixtures)
    else:
        follow(name, test, fixtures)


def lead(name: str, test: Callable[..., None], fixtures: dict[str, Any]) -> None:
    """Let Hypothesis run the test, and send each example to the other ranks before it runs here."""
    original = test.hypothesis.inner_test

    @functools.wraps(original)
    def example(*args: Any, **values: Any) -> None:
        ranks.tell({key: value for key, value in values.items() if key not in fixtures})
        error = attempt(original, *args, **values)
        outcomes = ranks.agree(name, outcome_of(error))
        if error is not None:
            raise error
        for rank, outcome in enumerate(outcomes):
            if outcome.word == "failed":
                raise AssertionError(f"on rank {rank}:\n{outcome.report}")

    test.hypothesis.inner_test = example
    try:
        test(**fixtures)
    finally:
        test.hypothesis.inner_test = original
        ranks.tell(None)


def follow(name: str, test: Callable[..., None], fixtures: dict[str, Any]) -> None:
    """Run the examples that rank 0 sends until it has no more."""
    bound = [test.__self__] if hasattr(test, "__self__") else []
    while (drawn := ranks.tell(None)) is not None:
        error = attempt(test.hypothesis.inner_test, *bound, **fixtures, **drawn)
        ranks.agree(name, outcome_of(error))


def attempt(test: Callable[..., None], *args: Any, **values: Any) -> BaseException | None:
    """Run one example and return what it raised, or None."""
    try:
        test(*args, **values)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # skips and Hypothesis' own signals are BaseExceptions
        return error
    return None


def outcome_of(error: BaseException | None) -> ranks.Outcome:
    """An example that ``assume`` turned down is neither passed nor failed."""
    if error is None:
        return ranks.Outcome(ranks.PASSED)
    word = "rejected" if isinstance(error, UnsatisfiedAssumption) else "failed"
    return ranks.Outcome(word, "".join(traceback.format_exception(error)))
