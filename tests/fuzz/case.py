"""What a case of the fuzzer is: a folder of inputs, steps that damage it, and a program that must stand it."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import graphs
import numpy as np
from fuzz import programs
from fuzz.isolate import GOOD, Outcome, attempt

Step = tuple[str, Callable[[Path], None]]  # a name for people, and what it does to the folder

LIMIT = 20.0  # seconds
_loaded: set[str] = set()


@dataclass
class Case:
    """One try.

    Attributes
    ----------
    make : function (folder)
        Writes inputs without a fault.
    steps : list of (name, function (folder))
        Damage, done in this order in a process of its own: HDF5 may die of a file that a step before has damaged,
        which then stays as it is.
    run : function (folder) -> exit code
        The program; it runs in a process of its own.
    check : function (folder) -> str
        After exit code 0, in a process of its own: what is wrong with the answer, or an empty text.
    code : str
        Cases of one name call the same compiled code. The first of them loads it by a run without damage, in this
        process, from which all others are forked. Empty if it is not loaded.
    rehearsal : function (folder) -> exit code
        That run, if it is not ``run``.
    """

    make: Callable[[Path], None]
    steps: list[Step]
    run: Callable[[Path], int]
    check: Callable[[Path], str] = field(default=lambda folder: "")
    code: str = ""
    rehearsal: Callable[[Path], int] | None = None

    def try_it(
        self, folder: Path, steps: list[Step] | None = None, start: Callable[[], Outcome] | None = None
    ) -> Outcome:
        """Make the inputs in an empty folder, damage them, run the program, or start it, and look at its answer."""
        if not start and self.code and self.code not in _loaded:
            _loaded.add(self.code)
            with tempfile.TemporaryDirectory(prefix="cusp-fuzz-") as other:
                self.make(Path(other))
                programs.rehearse(lambda: (self.rehearsal or self.run)(Path(other)))
        self.make(folder)
        attempt(lambda: self._damage(folder, self.steps if steps is None else steps), LIMIT)
        outcome = start() if start else attempt(lambda: self.run(folder), LIMIT)
        if outcome.kind == "done":
            checked = attempt(lambda: self._complain(folder), 2 * LIMIT)
            if checked.kind != "done":
                return Outcome("wrong", checked.text or f"the check ended by a {checked.kind}", outcome.seconds)
        return outcome

    def _damage(self, folder: Path, steps: list[Step]) -> int:
        for _, damage in steps:
            damage(folder)
        return 0

    def _complain(self, folder: Path) -> int:
        wrong = self.check(folder)
        sys.stderr.write(wrong)
        return int(bool(wrong))


def random_graph(random: np.random.Generator, most_nodes: int, most_edges: int, least: int = 0) -> graphs.Graph:
    """A directed graph with loops and parallel edges, at least ``least`` of nodes beyond one and of edges."""
    nodes, edges = int(random.integers(1 + least, most_nodes)), int(random.integers(least, most_edges))
    return graphs.random_directed(nodes, edges, int(random.integers(1 << 30)))


def change_bytes(path: Path, random: np.random.Generator, how: int | None = None) -> None:
    """Cut a file (0), flip up to five bits (1), or insert up to 20 bytes (2)."""
    content = bytearray(path.read_bytes())
    at, how = int(random.integers(len(content) + 1)), int(random.integers(3)) if how is None else how
    if how == 0:
        content = content[:at]
    elif how == 1:
        for _ in range(random.integers(1, 6) if content else 0):
            content[random.integers(len(content))] ^= 1 << random.integers(8)
    else:
        content[at:at] = bytes(random.integers(0, 256, random.integers(1, 20), dtype=np.uint8))
    path.write_bytes(content)


def shrunk(case: Case, kind: str, try_again: Callable[[list[Step]], Outcome]) -> list[str]:
    """Names of as few steps as still give this kind of outcome."""
    steps = list(case.steps)
    for step in list(steps):
        fewer = [other for other in steps if other is not step]
        if try_again(fewer).kind == kind:
            steps = fewer
    return [name for name, _ in steps]


def is_bad(outcome: Outcome) -> bool:
    """Whether it must not happen."""
    return outcome.kind not in GOOD
