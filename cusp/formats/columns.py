"""Which columns of a table are the source, the target and the weight of an edge."""

import re

from cusp.errors import OptionError, shortened

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
        raise OptionError(f"{there}; name those that are {what}: --columns SOURCE,TARGET[,WEIGHT]")
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
