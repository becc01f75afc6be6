"""What ``--debug`` checks of labels: is a value read where a sync has brought it, and is none added to twice?

A value that an operator has written is at the end of edges where it wrote, until a reduce brings it to the masters;
from there a broadcast brings it to the mirrors that are read. Who forgets one of them gets wrong answers on several
ranks only. What is found here is found on one rank, too, but for sums.
"""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cusp.errors import InputError, caller
from cusp.runtime.devices import to_host

if TYPE_CHECKING:
    from gluon.label import Label

ENDS = frozenset({"src", "dst"})


class LabelError(InputError):
    """A label that is used so that its values are wrong."""


@dataclass
class _State:
    """Of a label: where an operator wrote and nothing was reduced since; at which ends mirrors are up to date."""

    written: set[str] = field(default_factory=set)
    fresh: frozenset[str] = ENDS
    copies: Any = None  # values of mirrors after the last broadcast


_states: "WeakKeyDictionary[Label, _State]" = WeakKeyDictionary()


def _state(label: "Label") -> _State:
    return _states.setdefault(label, _State())


def read(who: str, name: str, label: "Label", ends: Iterable[str]) -> None:
    """Warn if an operator reads a label at an end of edges where mirrors may not be up to date."""
    state = _state(label)
    for end in sorted({*ends} - state.fresh):
        calls = f"sync.broadcast({name}, read={end!r})"
        if state.written:
            calls = f"sync.reduce({name}, write={min(state.written)!r}), then {calls}"
        _warn(f"{who}: {name} is read at {end}, where mirrors may be out of date; call {calls} before, or read='any'")


def before_write(label: "Label") -> Any:
    """What :func:`written` wants to know: the values of mirrors, if they matter."""
    return None if label.reduction.idempotent else _mirrors(label)


def written(who: str, name: str, label: "Label", end: str, before: Any) -> None:
    """An operator has written a label; raise LabelError if it has added to what a broadcast brought."""
    state = _state(label)
    state.written.add(end)
    state.fresh = frozenset()
    if state.copies is None:
        state.copies = before
    if before is not None:
        now, nothing = _mirrors(label), label.identity
        twice = (before == state.copies) & (before != nothing) & (now != before)
        if twice.any():
            gid = to_host(label.part.gids)[label.part.num_masters :][twice][0]
            raise LabelError(
                f"{who}: {name} is a sum, and the mirror of node {gid} holds a copy of its master, to which this adds: "
                f"it would count twice; take a new Label for each sum ({caller(sys._getframe())})"
            )


def synced(kind: str, labels: "Iterable[Label]", end: str) -> None:
    """Labels were reduced from, or broadcast to, an end of edges; warn if an operator wrote at the other one."""
    ends = ENDS if end == "any" else frozenset({end})
    for label in labels:
        state = _state(label)
        if kind == "reduce":
            if state.written and not state.written & ends:
                wrote = min(state.written)
                _warn(f"sync.reduce(write={end!r}): an operator wrote at {wrote}; say write={wrote!r}")
            state.written -= ends
        else:
            state.fresh |= ends
            state.copies = None if label.reduction.idempotent else _mirrors(label)


def _mirrors(label: "Label") -> Any:
    return to_host(label.values)[label.part.num_masters :].copy()


def _warn(text: str) -> None:
    warnings.warn(f"{text} ({caller(sys._getframe())})")
