"""Byte parsers: blocks of text -> arrays of edges. Compiled, and without the interpreter's lock."""

import numpy as np

from cusp.runtime.compiled_code import njit

OK, MALFORMED, TOO_LARGE, OUT_OF_RANGE, FRACTION, INFINITE = range(6)

_NEWLINE, _SPACE, _TAB, _RETURN, _COMMA = 10, 32, 9, 13, 44
_ZERO, _MINUS, _PLUS, _POINT, _LOWER_E, _UPPER_E = 48, 45, 43, 46, 101, 69
_MAX_DIGITS = 18  # every number of 18 digits fits int64
_POWERS = np.array([float(10**k) for k in range(23)])  # each is exact
_EXACT = 1 << 53
_ERROR = 2.0**-98  # bound of the relative error of a pair of floats


@njit(cache=True, nogil=True)
def _skip_blanks(data, i):  # type: ignore[no-untyped-def]
    """First position at or after ``i`` that is not a blank; a newline is not one."""
    c = data[i]
    while c == _SPACE or c == _TAB or c == _COMMA or c == _RETURN:
        i += 1
        c = data[i]
    return i


@njit(cache=True, nogil=True)
def _skip_token(data, i):  # type: ignore[no-untyped-def]
    """First position at or after ``i`` that is a blank or a newline."""
    c = data[i]
    while not (c == _SPACE or c == _TAB or c == _COMMA or c == _RETURN or c == _NEWLINE):
        i += 1
        c = data[i]
    return i


@njit(cache=True, nogil=True)
def _digits(data, i, value):  # type: ignore[no-untyped-def]
    """Append the decimal digits at ``i`` to ``value``; the position after them."""
    d = np.int64(data[i]) - _ZERO
    while 0 <= d <= 9:
        value = value * 10 + d
        i += 1
        d = np.int64(data[i]) - _ZERO
    return value, i


@njit(cache=True, nogil=True)
def _ends(data, i):  # type: ignore[no-untyped-def]
    """Whether a number may end at ``i``."""
    c = data[i]
    return c == _SPACE or c == _NEWLINE or c == _TAB or c == _COMMA or c == _RETURN


@njit(cache=True, nogil=True)
def _node(data, i, base, first_id, end_id):  # type: ignore[no-untyped-def]
    """Read a node id: the id from 0, position after it, code."""
    negative = data[i] == _MINUS and first_id < 0
    i += negative
    value, end = _digits(data, i, 0)
    if end == i or not _ends(data, end):
        return 0, end, MALFORMED
    if end - i > _MAX_DIGITS + 1 or value < 0:  # with 19 digits, what is too large for int64 has become negative
        return 0, end, TOO_LARGE
    value = -value if negative else value
    return value - base, end, OK if first_id <= value < end_id else OUT_OF_RANGE


@njit(cache=True, nogil=True)
def _integer(data, i):  # type: ignore[no-untyped-def]
    """Read an integer with an optional sign: value, position after it, code."""
    negative = data[i] == _MINUS
    if negative or data[i] == _PLUS:
        i += 1
    value, end = _digits(data, i, 0)
    if end == i:
        return 0, end, FRACTION if data[end] == _POINT else MALFORMED
    if data[end] == _POINT or data[end] == _LOWER_E or data[end] == _UPPER_E:
        return 0, end, FRACTION
    if not _ends(data, end):
        return 0, end, MALFORMED
    return -value if negative else value, end, OK if end - i <= _MAX_DIGITS else TOO_LARGE


@njit(cache=True, nogil=True)
def _product(a, b):  # type: ignore[no-untyped-def]
    """``a * b`` as a rounded product and its error, both exact (Dekker, Numer. Math. 18, 1971)."""
    split = 134217729.0  # 2**27 + 1
    high_a, high_b = split * a, split * b
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


@njit(cache=True, nogil=True)
def _scaled(mantissa, exponent):  # type: ignore[no-untyped-def]
    """``mantissa * 10**exponent`` rounded once, and whether that is certain.

    The result is computed as a sum of two floats, with a relative error below ``_ERROR``. It is certain
    unless a midpoint between two float64 is so near that the error could decide (Ziv's test).
    """
    high = np.float64(mantissa)
    low = np.float64(mantissa - np.int64(high))
    power = _POWERS[abs(exponent)]
    if mantissa <= _EXACT:  # both are exact: a single operation, rounded once
        return high / power if exponent < 0 else high * power, True
    if exponent < 0:
        value = high / power
        product, error = _product(value, power)
        rest = (((high - product) - error) + low) / power
    else:
        value, error = _product(high, power)
        rest = error + low * power
    slack = _ERROR * value
    return value + rest, value + (rest - slack) == value + (rest + slack)


@njit(cache=True, nogil=True)
def _real(data, i):  # type: ignore[no-untyped-def]
    """Read a decimal number: value, position after it, code, whether the value is exact."""
    sign = 1.0
    if data[i] == _MINUS or data[i] == _PLUS:
        sign = 44.0 - data[i]  # '+' is 43, '-' is 45
        i += 1
    mantissa, end = _digits(data, i, 0)
    digits = end - i
    exponent = zeros = 0
    if data[end] == _POINT:
        while mantissa == 0 and data[end + 1 + zeros] == _ZERO:
            zeros += 1
        mantissa, after = _digits(data, end + 1 + zeros, mantissa)
        exponent = end + 1 - after
        digits -= exponent
        end = after
    if digits == 0:
        return 0.0, end, MALFORMED, False
    if data[end] == _LOWER_E or data[end] == _UPPER_E:
        power, after, code = _integer(data, end + 1)
        if code != OK:
            return 0.0, end, MALFORMED, False
        exponent += power
        end = after
    if not _ends(data, end):
        return 0.0, end, MALFORMED, False
    if digits - zeros > _MAX_DIGITS or abs(exponent) > 22:
        return 0.0, end, OK, False
    value, exact = _scaled(mantissa, exponent)
    return sign * value, end, OK, exact


@njit(cache=True, nogil=True)
def parse_lines(  # type: ignore[no-untyped-def]
    data, letter, comments, columns, which, base, first_id, end_id, sources, targets, integers, reals, inexact
):
    """Parse whole lines ``[letter] column column ...`` into edges.

    Parameters
    ----------
    data : uint8[:]
        Text that ends with a newline, which stops every inner loop.
    letter : int
        The byte that starts every edge line, 0 for none.
    comments : tuple of 2 int
        Bytes that start a comment line.
    columns : int
        Columns of every line, exactly.
    which : tuple of 3 int
        Column of source, target and weight (-1 for none).
    base, first_id, end_id : int
        What is subtracted from ids, the smallest one and the one after the largest, as written in the file.
    sources, targets : int64[:]
        Filled; at least ``data.size // 4`` long. Ids from 0.
    integers : int64[:], reals : float64[:]
        The one with a length is filled with the weights.
    inexact : int64[:, :], row = (edge, position)
        Weights that need more than one rounding: the caller must convert the text there.

    Returns
    -------
    edges, num_inexact, code, position : int
        ``code`` is not OK where the line at ``position`` is wrong; nothing after it was parsed.
    """
    i = 0
    edge = 0
    rounds = 0
    while i < data.size:
        i = _skip_blanks(data, i)
        c = data[i]
        if c == _NEWLINE:
            i += 1
            continue
        if c == comments[0] or c == comments[1]:
            while data[i] != _NEWLINE:
                i += 1
            i += 1
            continue
        if letter != 0:
            if c != letter or not _ends(data, i + 1):
                return edge, rounds, MALFORMED, i
            i += 1
        for column in range(columns):
            i = _skip_blanks(data, i)
            if column == which[0]:
                sources[edge], end, code = _node(data, i, base, first_id, end_id)
            elif column == which[1]:
                targets[edge], end, code = _node(data, i, base, first_id, end_id)
            elif column == which[2] and integers.size > 0:
                integers[edge], end, code = _integer(data, i)
            elif column == which[2]:
                reals[edge], end, code, exact = _real(data, i)
                if not exact:
                    inexact[rounds, 0] = edge
                    inexact[rounds, 1] = i
                    rounds += 1
            else:
                end = _skip_token(data, i)
                code = MALFORMED if end == i else OK
            if code != OK:
                return edge, rounds, code, i
            i = end
        i = _skip_blanks(data, i)
        if data[i] != _NEWLINE:
            return edge, rounds, MALFORMED, i
        i += 1
        edge += 1
    return edge, rounds, OK, i
