"""What threads of a rank do together in compiled code: a pass, or all of an algorithm."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from cusp.runtime.compiled_code import form_of
from cusp.runtime.teams.helpers import ARGUMENTS, FAILED, FUNCTION, do_job
from cusp.runtime.teams.team import JOB, OVER, call, dismiss, new_team, take
from cusp.runtime.threads import Range, have_cores, helpers, is_busy, num_threads, start_threads


def make_team(helpers: int = 0) -> np.ndarray:
    """The words of a team; without helpers, its leader is alone."""
    return new_team(helpers, have_cores())


@contextmanager
def helped(help_with: Callable[..., None], *arguments: Any) -> Iterator[np.ndarray]:
    """A team whose helpers are in ``help_with(team, number, *arguments)`` meanwhile, a compiled function."""
    team = make_team(num_threads() - 1)
    with start_threads(help_with, [(team, number, *arguments) for number in range(1, num_threads())]):
        try:
            yield team
        finally:
            team[JOB] = OVER


def together(kernel: Any, pieces: Sequence[Range], *arguments: Any) -> None:
    """``kernel(first, last, *arguments)`` of every piece, a function of ``njit`` that returns and raises nothing.

    As :func:`cusp.runtime.threads.in_parallel`, but Python is left once, for all pieces and threads, so that a pass of
    a few microseconds pays.
    """
    if not isinstance(kernel, Dispatcher):  # with NUMBA_DISABLE_JIT
        for piece in pieces:
            kernel(*piece, *arguments)
        return
    size = num_threads() - 1 if len(pieces) > 1 and not is_busy() else 0
    bounds, others = np.array(pieces, np.int64), helpers(size) if size else None
    if others is None or not others.leading.acquire(blocking=False):
        _leader(kernel)(make_team(), bounds, arguments)
        return
    try:
        others.wake(len(pieces) - 1)
        _leader(kernel)(others.team, bounds, arguments)
    finally:
        others.leading.release()


@functools.cache
def _leader(kernel: Any) -> Any:
    """What leads a team through a pass of this kernel, kept with its other compiled code."""

    def lead(team, bounds, arguments):  # type: ignore[no-untyped-def]
        _lead(team, bounds, kernel, arguments)

    return form_of(kernel.py_func, lead, ".together")


@intrinsic
def _lead(typing_context: Any, team: Any, bounds: Any, kernel: Any, arguments: Any) -> Any:
    """Compile what each thread calls, put the arguments where all find them, and make it a job."""
    compiled, packed = kernel.dispatcher, types.Tuple((team, bounds, arguments))

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            place = builder.inttoptr(values[0], context.get_value_type(packed).as_pointer())
            found = builder.load(place)
            context.nrt.incref(builder, packed, found)
            return found

        return packed(types.int64), generate

    def take_part(address, number):  # type: ignore[no-untyped-def]
        team, bounds, arguments = at(address)
        turn, last = take(team)
        while turn < last:
            compiled(bounds[turn, 0], bounds[turn, 1], *arguments)
            turn, last = take(team)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        part = context.compile_subroutine(builder, take_part, types.none(types.int64, types.int64))
        function = context.declare_function(builder.module, part.fndesc)
        place = cgutils.alloca_once(builder, context.get_value_type(packed))
        builder.store(context.make_tuple(builder, packed, [values[0], values[1], values[3]]), place)
        word = context.get_value_type(types.int64)
        addresses = [builder.ptrtoint(pointer, word) for pointer in (function, place)]
        kinds = types.none(team, bounds, types.int64, types.int64)
        context.compile_internal(builder, _call_all, kinds, [values[0], values[1], *addresses])
        return context.get_dummy_value()

    return types.none(team, bounds, kernel, arguments), generate


def _call_all(team, bounds, function, arguments):  # type: ignore[no-untyped-def]
    team[FUNCTION], team[ARGUMENTS], team[FAILED] = function, arguments, 0
    call(team, 0, bounds.shape[0], 1)
    do_job(team, 0)
    dismiss(team)
