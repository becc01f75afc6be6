"""Reductions on the CPU: the functions that numba compiles from their texts. Twin of reduction.cuh."""

from collections.abc import Callable
from hashlib import sha256
from types import FunctionType
from typing import Any

import numpy as np

from cusp.language.arithmetic_cpu import largest, least, select
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import set_bit, set_bit_atomic
from gluon.reduction import Reduction

TEXT = """\
@njit(nogil=True, inline="always")
def combine_one(lid, value, values, updated, alone):
    old = values[lid]
    result = values.dtype.type({joined})
    if {changed}:
        values[lid] = result
        if alone:
            set_bit(updated, lid)
        else:
            set_bit_atomic(updated, lid)
"""


def compiled_with(reduction: Reduction, loop: Any) -> Callable[..., Any]:
    """A plain function that calls ``combine_one``, which combines a value into that of a proxy, for a reduction.

    If it is not ``alone``, others combine values into other proxies, whose bits may be in the same word.
    numba keeps what it compiles under the function's name, so that has a digest of the reduction.
    """
    text = TEXT.format(joined=reduction.joined, changed=reduction.changed)
    scope = {"np": np, "njit": njit, "least": least, "largest": largest, "select": select}
    scope |= {"set_bit": set_bit, "set_bit_atomic": set_bit_atomic}
    exec(text, scope)
    name = f"{loop.__name__}_{sha256(text.encode()).hexdigest()[:16]}"
    function = FunctionType(loop.__code__, {**loop.__globals__, "combine_one": scope["combine_one"]}, name)
    function.__qualname__ = name
    return njit(cache=True, nogil=True)(function)
