"""Columns of tables: which are sources, targets and weights, and edges from them."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow
from pyarrow import types

from cusp.errors import GraphFileError, OptionError, shortened
from cusp.formats.source import Chunk, WideIdsError
from cusp.input.hdf5 import explained
from cusp.names.dictionary import Dictionary
from cusp.names.packed import Packed

PAIRS = (
    ("source", "target"), ("src", "dst"), ("src", "tgt"), ("source", "destination"), ("src", "dest"), ("s", "t"),
    ("from", "to"), ("u", "v"), ("i", "j"), ("start", "end"), ("origin", "destination"), ("orig", "dest"),
    ("sender", "receiver"), ("sender", "recipient"), ("follower", "followee"), ("node1", "node2"), ("id1", "id2"),
    ("row", "col"),
)  # fmt: skip
WEIGHTS = {
    "weight", "weights", "w", "value", "km", "miles", "length", "distance", "dist", "cost", "capacity", "strength",
    "count",
}  # fmt: skip
PLAIN = ("weight", "weights", "w")  # come before others


def choose_columns(where: object, names: list[str], wanted: list[str] | None = None) -> tuple[str, ...]:
    """Names of the columns of source, target and, where there is one, weight.

    Without ``wanted`` they are those with the usual headings: ``source`` and ``target``, ``from`` and ``to`` ..., in
    capitals or not, also ``source_id`` or ``FromNodeId``. Two columns beside one of weights are source and target,
    whatever their headings.

    >>> choose_columns("a.csv", ["year", "From", "To", "km"]), choose_columns("a.csv", ["a", "b", "c"], ["3", "a"])
    (('From', 'To', 'km'), ('c', 'a'))

    Parameters
    ----------
    where : path or str
        What the table is called in messages.
    names : list of str
        Of all columns.
    wanted : list of str, optional
        Names of two or three columns, or their numbers from 1. Two empty ones before a third: the usual headings.

    Raises
    ------
    OptionError
        There is no such column; or the headings leave open which are meant.
    """
    if wanted and wanted[:2] == ["", ""]:
        weight = _named(names, wanted[2]) or ""
        usual = choose_columns(where, [name for name in names if name != weight])
        return choose_columns(where, names, [*usual[:2], weight])
    there = f"{where} has the columns {shortened(', '.join(names))}"
    if wanted is not None:
        chosen = [_named(names, column) for column in wanted]
        if None in chosen or len(chosen) not in (2, 3):
            raise OptionError(f"--columns {','.join(wanted)}: {there}; expected SOURCE,TARGET or SOURCE,TARGET,WEIGHT")
        return tuple(column for column in chosen if column is not None)
    plain = {_plain(name): name for name in reversed(names)}
    heavy = [name for name in names if _plain(name) in WEIGHTS]
    heavy = [name for name in heavy if _plain(name) in PLAIN] or heavy
    ends = [(plain[source], plain[target]) for source, target in PAIRS if source in plain and target in plain]
    others = [name for name in names if name not in heavy]
    if not ends and heavy and len(others) == 2:
        ends = [(others[0], others[1])]
    if len(ends) != 1 or len(heavy) > 1:
        what = "the source and target of an edge" if len(ends) != 1 else "its weight"
        how = "--columns SOURCE,TARGET[,WEIGHT], or columns= in Python"
        raise OptionError(f"{there}; name those that are {what}: {how}")
    return (*ends[0], *heavy)


def _named(names: list[str], column: str) -> str | None:
    """The column of this name or number."""
    if column not in names and column.isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    return column if column in names else None


def _plain(name: str) -> str:
    """A heading without capitals, signs, and the words node and id at its end: ``FromNodeId`` is ``from``."""
    word = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"(?<=.)(node|vertex)?(id|name)?$", "", word) or word


def unused_columns(chosen: tuple[str, ...], numbers: Iterable[str]) -> list[str]:
    """For each column of numbers that is not among the two chosen ones: ``--columns`` with it as the weight."""
    return [",".join((*chosen, name)) for name in numbers if name not in chosen] if len(chosen) == 2 else []


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers."""
    return types.is_integer(kind) or types.is_floating(kind)


def edges_of(where: object, names: tuple[str, ...], columns: list[Any], dictionary: Dictionary | None) -> Chunk:
    """Sources, targets and weights, from arrays of Arrow.

    Parameters
    ----------
    where, names
        The table and its columns, for messages.
    columns : list of array
    dictionary : Dictionary or None
        Numbers ids that are names.

    Raises
    ------
    WideIdsError
        A whole number does not fit into int64.
    GraphFileError
        A value is missing; or is neither a whole number nor a name; a weight is infinite.
    """
    columns = [each.dictionary_decode() if types.is_dictionary(each.type) else each for each in columns]
    if any(column.null_count for column in columns[:2]):
        raise GraphFileError(f"{where}: a value is missing in the columns {', '.join(names[:2])}")
    weights = None
    if len(columns) > 2:
        weights = columns[2].cast(pyarrow.float64()) if columns[2].null_count else columns[2]
        weights = weights.to_numpy(zero_copy_only=False)
        if weights.dtype.kind == "f" and np.isinf(weights).any():
            raise GraphFileError(f"{where}: column {names[2]!r} has an infinite or too large weight")
    if dictionary is None:
        return _integers(where, names[0], columns[0]), _integers(where, names[1], columns[1]), weights
    with explained(where, "the names"):
        texts = [Packed.of_arrow(column.cast(pyarrow.large_string())) for column in columns[:2]]
    if any((np.diff(each.offsets) == 0).any() for each in texts):
        raise GraphFileError(f"{where}: a value is missing in the columns {', '.join(names[:2])}: a name is empty")
    sources, targets = map(dictionary.number, texts)
    return sources, targets, weights


def _integers(where: object, name: str, ids: Any) -> np.ndarray:
    if not types.is_integer(ids.type):
        raise GraphFileError(f"{where}: column {name!r} holds {ids.type}, a node id is a whole number or a name")
    values: np.ndarray = ids.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64 and values.size and values.max() > 2**63 - 1:
        raise WideIdsError(f"{where}: the id {values.max()} in column {name!r} is beyond int64; take ids as names")
    return values


def has_names(where: object, names: tuple[str, ...], kinds: list[Any], ids: str) -> bool:
    """Whether ids of these types of Arrow are names.

    Raises
    ------
    GraphFileError
        One is, the other is not, so that 1 and "1" would be the same node.
    """
    texts = [not is_numeric(kind) and not types.is_null(kind) for kind in kinds[:2]]
    if ids == "auto" and any(texts) and not all(texts):
        raise GraphFileError(
            f"{where}: column {names[0]!r} holds {kinds[0]}, but {names[1]!r} {kinds[1]}: 1 and '1' would be one node; "
            "make both numbers, or both texts, or say that they are meant so with --ids names"
        )
    return ids == "names" or (ids == "auto" and any(texts))
