"""Attack every program with inputs from a seed: ``python -m tests.fuzz --minutes 60``.

A line per class of cases: tried, done, refused in one line, and what must not happen. What is found is shrunk to the
fewest steps of damage, and shown with the words that repeat it. On several ranks, some cases run at the same time.
"""

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # graphs, ranks and this folder, as in the tests
os.environ.setdefault("CUSP_DEVICE", "cpu")

import ranks  # noqa: E402, F401 - prepares the process before numba is imported

# isort: split
from fuzz import saved_parts, together  # noqa: E402
from fuzz.case import Step, is_bad, shrunk  # noqa: E402
from fuzz.classes import CLASSES, case_of  # noqa: E402
from fuzz.isolate import Outcome  # noqa: E402

COLUMNS = ("tried", "done", "refused", "traceback", "signal", "hang", "babble", "wrong")
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
    names, first = parsed.only.split(","), parsed.case or 0
    last = parsed.most if parsed.case is None else first + 1
    with tempfile.TemporaryDirectory(prefix="cusp-fuzz-") as scratch:
        attack = Attack(parsed, Path(scratch))
        if parsed.ranks == 1:
            for name, number in attack.cases(names, first, last):
                attack.attack(name, number)
        else:
            attack.together(names, first, last)
        return attack.show()


class Attack:
    """Cases that are tried, and how they ended."""

    def __init__(self, parsed: argparse.Namespace, scratch: Path) -> None:
        self._parsed, self._scratch, self._shows_all = parsed, scratch, parsed.case is not None
        self._deadline = time.monotonic() + parsed.minutes * 60
        self._job: together.Job | None = None
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in parsed.only.split(",")}
        self._seen: set[tuple[str, str]] = set()

    def cases(self, names: list[str], first: int, last: int) -> Iterator[tuple[str, int]]:
        """Cases of all classes in turn."""
        return ((name, number) for number in itertools.takewhile(self._has_time, range(first, last)) for name in names)

    def together(self, names: list[str], first: int, last: int) -> None:
        """Cases on several ranks."""
        middle = min(first + COMPILING, last)
        with together.forks(self._parsed.ranks, self._scratch, 0) as self._job:
            saved_parts.save = lambda graph, folder: self._job.start("cusp", graph, "--save", folder)
            for name, number in self.cases(names, first, middle):
                self.attack(name, number)
        with (
            together.forks(self._parsed.ranks, self._scratch, 1) as self._job,
            ThreadPool(self._parsed.at_once) as pool,
        ):
            for _ in pool.imap_unordered(lambda case: self.attack(*case), self.cases(names, middle, last)):
                pass

    def attack(self, name: str, number: int) -> None:
        """Try a case, if there is time; what must not happen is shown."""
        if not self._has_time():
            return
        case, seed = case_of(name, self._parsed.seed, number), self._parsed.seed

        def try_it(steps: list[Step]) -> Outcome:
            folder = Path(tempfile.mkdtemp(dir=self._scratch))
            job = self._job
            start = (lambda: job.start(name, seed, number, folder)) if job else None
            try:
                return case.try_it(folder, steps, start)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        outcome = try_it(case.steps)
        self._counts[name].update(["tried", outcome.kind])
        headline = outcome.text.splitlines()[-1][:120] if outcome.text else ""
        if self._shows_all:
            print(outcome, [step for step, _ in case.steps], sep="\n")
        elif is_bad(outcome) and (outcome.kind, headline) not in self._seen:
            self._seen.add((outcome.kind, headline))
            steps = shrunk(case, outcome.kind, try_it)
            where = f"--ranks {self._parsed.ranks} --only {name} --seed {seed} --case {number}"
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
