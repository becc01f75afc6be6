"""Options of a command line as keyword arguments of a function."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, get_type_hints

import numpy as np

from cusp.errors import OptionError
from cusp.program.cli import integer, node_list, one_node, weighted_node


class Keywords(argparse.ArgumentParser):
    """The options that ``add_options`` adds, and the seed if it is asked for, with the same defaults and checks.

    Attributes
    ----------
    actions : list of Action
        One per option; ``dest`` is its keyword.
    """

    def __init__(
        self, name: str, add_options: Callable[[argparse.ArgumentParser], object], seeded: bool = False
    ) -> None:
        super().__init__(prog=name, add_help=False, allow_abbrev=False)
        add_options(self)
        if seeded:
            self.add_argument("--seed", type=integer, help="seed of everything random (default: 1)")
        self.actions = list(self._actions)
        self.set_defaults(seed=1)

    def error(self, message: str) -> NoReturn:
        """Raise, instead of ending the program."""
        raise OptionError(f"{self.prog}: {message}")

    def read(self, given: dict[str, Any]) -> argparse.Namespace:
        """The options, with the values given."""
        known = {action.dest: action for action in self.actions}
        argv: list[str] = []
        for name, value in given.items():
            if name not in known:
                raise OptionError(f"{self.prog}: no option {name}; there are {', '.join(known) or 'none'}")
            argv += _texts(known[name], value)
        return self.parse_args(argv)


def annotation_of(action: argparse.Action) -> Any:
    """The type of the keyword that an option becomes, for signatures; nodes may be names."""
    if action.nargs == 0:
        return bool if action.default is not None else bool | None
    kind: Any = action.type if isinstance(action.type, type) else get_type_hints(action.type or _text).get("return")
    if action.choices:
        kind = Literal[tuple(action.choices)]
    if action.type is weighted_node:
        return Any
    if action.type is one_node:
        kind = Any
    if action.type is node_list:
        kind = Sequence[Any]
    elif action.nargs is not None:
        kind = Sequence[kind]
    return kind if action.required or action.default is not None else kind | None


def _text(value: str) -> str:
    """What an option without a type is."""
    return value


def _texts(action: argparse.Action, value: Any) -> list[str]:
    """An option as it would be typed; nothing if it has its default."""
    flag = action.option_strings[-1]
    if value is None or value is action.default:
        return []
    if action.nargs == 0:
        if not isinstance(value, (bool, np.bool_)):
            raise OptionError(f"{action.dest}={value!r}: expected True or False")
        if isinstance(action, argparse.BooleanOptionalAction):
            return [action.option_strings[0] if value else flag]
        return [flag] if value else []
    if isinstance(value, (list, tuple, np.ndarray)):
        if action.nargs is None:
            return [f"{flag}={('x' if action.dest == 'grid' else ',').join(map(str, value))}"]
        return [flag, *map(str, value)]
    return [f"{flag}={value}"]
