"""Attack every program with inputs from a seed: ``python -m tests.fuzz --minutes 60``.

A line per class of cases: tried, done, refused in one line, and what must not happen. What is found is shrunk to the
fewest steps of damage, and shown with the words that repeat it. On several ranks, some cases run at the same time.
"""

import argparse
import itertools
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # graphs, ranks and this folder, as in the tests
os.environ.setdefault("CUSP_DEVICE", "cpu")

import ranks  # noqa: E402, F401 - prepares the process before numba is imported

# isort: split
from fuzz import saved_parts  # noqa: E402
from fuzz.case import Step, is_bad, shrunk  # noqa: E402
from fuzz.classes import CLASSES, case_of  # noqa: E402
from fuzz.isolate import Outcome  # noqa: E402
from fuzz.together import Job, forks  # noqa: E402

COLUMNS = ("tried", "done", "refused", "traceback", "signal", "hang", "babble", "wrong")
Which = tuple[str, int]  # a case: its class and number
COMPILING = 4  # cases of each class after which several ranks are forked from what these have compiled


def main() -> int:
    """Run until the time is over; exit code 1 if something happened that must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(CLASSES), help="classes of cases, with commas")
    parser.add_argument("--case", type=int, help="this one alone, shown in full")
    parser.add_argument("--most", type=int, default=10**9, metavar="N", help="cases of a class")
    parser.add_argument("--ranks", type=int, default=1, help="of each case (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="jobs of several ranks (default: 4)")
    parsed = parser.parse_args()
    first = parsed.case or 0
    last = parsed.most if parsed.case is None else first + 1
    with tempfile.TemporaryDirectory(prefix="cusp-fuzz-") as scratch:
        attack = Attack(parsed, Path(scratch))
        (attack.alone if parsed.ranks == 1 else attack.together)(first, last)
        return attack.show()


@dataclass(frozen=True)
class Attacker:
    """Tries cases.

    Attributes
    ----------
    seed : int
    scratch : Path
        Each case gets a folder in it.
    job : Job or None
        How to start several ranks; None for one.
    """

    seed: int
    scratch: Path
    job: Job | None

    def __call__(self, which: Which) -> tuple[Which, Outcome, list[str]]:
        """Try a case: how it ended, and its steps; if that must not happen, as few of them as still end so."""
        case = case_of(which[0], self.seed, which[1])

        def try_it(steps: list[Step]) -> Outcome:
            folder, job = Path(tempfile.mkdtemp(dir=self.scratch)), self.job
            start = (lambda: job.start(which[0], self.seed, which[1], folder)) if job else None
            try:
                return case.try_it(folder, steps, start)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        outcome = try_it(case.steps)
        steps = shrunk(case, outcome.kind, try_it) if is_bad(outcome) else [name for name, _ in case.steps]
        return which, outcome, steps


class Attack:
    """Cases that are tried, and how they ended."""

    def __init__(self, parsed: argparse.Namespace, scratch: Path) -> None:
        self._parsed, self._scratch = parsed, scratch
        self._deadline = time.monotonic() + parsed.minutes * 60
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in parsed.only.split(",")}
        self._seen: set[tuple[str, str]] = set()

    def alone(self, first: int, last: int) -> None:
        """Cases of all classes in turn, on one rank."""
        for case in self._cases(first, last):
            self._note(*self._attacker(None)(case))

    def together(self, first: int, last: int) -> None:
        """Cases on several ranks, some at the same time: in processes that start no thread, for they fork."""
        middle = min(first + COMPILING, last)
        with forks(self._parsed.ranks, self._scratch, 0) as job:
            for case in self._cases(first, middle):
                self._note(*self._attacker(job)(case))
        with forks(self._parsed.ranks, self._scratch, 1) as job:
            attacker = self._attacker(job)
            with multiprocessing.get_context("fork").Pool(self._parsed.at_once) as pool:
                for each in pool.imap_unordered(attacker, self._cases(middle, last)):
                    self._note(*each)

    def _attacker(self, job: Job | None) -> Attacker:
        if job:
            saved_parts.save = lambda graph, folder: job.start("cusp", graph, "--save", folder)
        return Attacker(self._parsed.seed, self._scratch, job)

    def _cases(self, first: int, last: int) -> Iterator[Which]:
        numbers = itertools.takewhile(self._has_time, range(first, last))
        return ((name, number) for number in numbers for name in self._counts)

    def _note(self, which: Which, outcome: Outcome, steps: list[str]) -> None:
        """Count a case; what must not happen is shown, once."""
        name, number = which
        self._counts[name].update(["tried", outcome.kind])
        headline = outcome.text.splitlines()[-1][:120] if outcome.text else ""
        if self._parsed.case is not None:
            print(outcome, steps, sep="\n")
        elif is_bad(outcome) and (outcome.kind, headline) not in self._seen:
            self._seen.add((outcome.kind, headline))
            where = f"--ranks {self._parsed.ranks} --only {name} --seed {self._parsed.seed} --case {number}"
            print(f"{outcome.kind}: {where}: {steps}\n    {headline}", flush=True)

    def _has_time(self, number: int = 0) -> bool:
        return time.monotonic() < self._deadline

    def show(self) -> int:
        """A line for each class; 1 if something happened that must not."""
        print("".join([f"{'class':<14}", *(f"{column:>10}" for column in COLUMNS)]))
        for name, count in self._counts.items():
            print("".join([f"{name:<14}", *(f"{count[column]:>10}" for column in COLUMNS)]))
        return int(any(count[kind] for count in self._counts.values() for kind in COLUMNS[3:]))


if __name__ == "__main__":
    sys.exit(main())
