"""What a case of the fuzzer is: a folder of inputs, steps that damage it, and a program that must stand it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import graphs
import numpy as np
from fuzz.isolate import GOOD, Outcome, attempt

Step = tuple[str, Callable[[Path], None]]  # a name for people, and what it does to the folder

LIMIT = 20.0  # seconds


@dataclass
class Case:
    """One try.

    Attributes
    ----------
    make : function (folder)
        Writes inputs without a fault.
    steps : list of (name, function (folder))
        Damage, done in this order.
    run : function (folder) -> exit code
        The program; it runs in a process of its own.
    check : function (folder) -> str
        After exit code 0: what is wrong with the answer, or an empty text.
    """

    make: Callable[[Path], None]
    steps: list[Step]
    run: Callable[[Path], int]
    check: Callable[[Path], str] = field(default=lambda folder: "")

    def try_it(self, folder: Path, steps: list[Step] | None = None) -> Outcome:
        """Make the inputs in an empty folder, damage them, run the program, look at its answer."""
        self.make(folder)
        for _, damage in self.steps if steps is None else steps:
            damage(folder)
        outcome = attempt(lambda: self.run(folder), LIMIT)
        wrong = self.check(folder) if outcome.kind == "done" else ""
        return Outcome("wrong", wrong, outcome.seconds) if wrong else outcome


def random_graph(random: np.random.Generator, most_nodes: int, most_edges: int, least: int = 0) -> graphs.Graph:
    """A directed graph with loops and parallel edges, at least ``least`` of nodes beyond one and of edges."""
    nodes, edges = int(random.integers(1 + least, most_nodes)), int(random.integers(least, most_edges))
    return graphs.random_directed(nodes, edges, int(random.integers(1 << 30)))


Maker = Callable[[np.random.Generator], Case]


def shrunk(case: Case, kind: str, new_folder: Callable[[], Path]) -> list[str]:
    """Names of as few steps as still give this kind of outcome."""
    steps = list(case.steps)
    for step in list(steps):
        fewer = [other for other in steps if other is not step]
        if case.try_it(new_folder(), fewer).kind == kind:
            steps = fewer
    return [name for name, _ in steps]


def is_bad(outcome: Outcome) -> bool:
    """Whether it must not happen."""
    return outcome.kind not in GOOD
