"""What threads of a rank do together in compiled code: a pass, or all of an algorithm."""

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from cusp.runtime.compiled_code import form_of, njit
from cusp.runtime.teams.helpers import ARGUMENTS, BOUNDS, EACH, FAILED, FUNCTION, SOON, call_address, do_job
from cusp.runtime.teams.team import JOB, OVER, call, dismiss, new_team
from cusp.runtime.threads import have_cores, helpers, is_busy, num_threads, start_threads

ROOM = 512  # words for the arguments of a kernel


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


def together(kernel: Any, pieces: Sequence[tuple[int, ...]], *arguments: Any) -> None:
    """``kernel(*piece, *arguments)`` of every piece, a function of ``njit`` that returns and raises nothing.

    As :func:`cusp.runtime.threads.in_parallel`, but Python is left once, for all pieces and threads, so that a pass of
    a few microseconds pays. There is at least one piece; all have as many numbers, mostly where it begins and ends.
    """
    if not isinstance(kernel, Dispatcher):  # with NUMBA_DISABLE_JIT
        for piece in pieces:
            kernel(*piece, *arguments)
        return
    size = num_threads() - 1 if len(pieces) > 1 and not is_busy() else 0
    bounds, room, others = np.array(pieces, np.int64), np.empty(ROOM, np.int64), helpers(size) if size else None
    function = _describer(kernel)(room, pieces[0], arguments)
    if others is None or not others.leading.acquire(blocking=False):
        failed = _alone(function, room, bounds)
    else:
        try:
            others.wake(len(pieces) - 1)
            failed = _lead(others.team, function, room, bounds)
        finally:
            others.team[SOON] = 0
            others.leading.release()
    if failed:
        raise ArithmeticError(f"{kernel.__name__}: it must not raise anything")


@njit(cache=True, nogil=True)
def _lead(team, function, room, bounds):  # type: ignore[no-untyped-def]
    team[FUNCTION], team[ARGUMENTS], team[BOUNDS] = function, room.ctypes.data, bounds.ctypes.data
    team[EACH], team[FAILED] = bounds.strides[0], 0
    call(team, 0, bounds.shape[0], 1)
    do_job(team)
    dismiss(team)
    return team[FAILED]


@njit(cache=True, nogil=True)
def _alone(function, room, bounds):  # type: ignore[no-untyped-def]
    failed = 0
    for turn in range(bounds.shape[0]):
        failed |= call_address(function, room.ctypes.data, bounds.ctypes.data + bounds.strides[0] * turn)
    return failed


@functools.cache
def _describer(kernel: Any) -> Any:
    """What puts arguments of a kernel into an array and returns the address of a function of these and bounds."""

    def describe(room, piece, arguments):  # type: ignore[no-untyped-def]
        return _describe(room, kernel, piece, arguments)

    return form_of(kernel, _named(describe, kernel, ""), ".together")


def _named(function: Any, kernel: Any, of: str) -> Any:
    """With a name of its own: code from the cache is linked by names, and all such functions are defined here."""
    function.__module__ = kernel.py_func.__module__
    digest = hashlib.sha256(of.encode()).hexdigest()[:16]
    function.__qualname__ = f"{kernel.py_func.__qualname__}.{function.__name__}.{digest}"
    return function


@intrinsic
def _describe(typing_context: Any, room: Any, kernel: Any, piece: Any, arguments: Any) -> Any:
    compiled = kernel.dispatcher

    def at(kind: Any) -> Any:
        def define(typing_context: Any, address: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                return builder.load(builder.inttoptr(values[0], context.get_value_type(kind).as_pointer()))

            return kind(types.int64), generate

        return intrinsic(define)

    arguments_at, bounds_at = at(arguments), at(piece)

    def of_piece(address, bounds):  # type: ignore[no-untyped-def]
        compiled(*bounds_at(bounds), *arguments_at(address))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word, kind = context.get_value_type(types.int64), context.get_value_type(arguments)
        assert context.get_abi_sizeof(kind) <= 8 * ROOM, "more arguments than there is room for"
        _named(of_piece, compiled, f"{piece} {arguments}")
        part = context.compile_subroutine(builder, of_piece, types.none(types.int64, types.int64))
        place = builder.bitcast(context.make_array(room)(context, builder, values[0]).data, kind.as_pointer())
        builder.store(_lent(context, builder, arguments, values[3]), place)
        return builder.ptrtoint(context.declare_function(builder.module, part.fndesc), word)

    return types.int64(room, kernel, piece, arguments), generate


def _lent(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """A value without those that own its arrays: who uses them counts no references."""
    if isinstance(kind, types.Array):
        for owner in range(2):  # of the memory; of the Python object
            value = builder.insert_value(value, builder.extract_value(value, owner).type(None), owner)
    elif isinstance(kind, types.BaseTuple):
        for place, inner in enumerate(kind):
            entry = _lent(context, builder, inner, builder.extract_value(value, place))
            value = builder.insert_value(value, entry, place)
    return value
