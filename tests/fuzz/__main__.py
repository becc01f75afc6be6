"""Attack every program with inputs from a seed: ``python -m tests.fuzz --minutes 60``.

A line per class of cases: tried, done, refused in one line, and what must not happen. What is found is shrunk to the
fewest steps of damage, and shown with the words that repeat it.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # graphs, ranks and this folder, as in the tests
os.environ.setdefault("CUSP_DEVICE", "cpu")

import ranks  # noqa: E402, F401 - prepares the process before numba is imported

# isort: split
import numpy as np  # noqa: E402
from fuzz import foreign_files, graph_files, no_files, options, policies, saved_parts  # noqa: E402
from fuzz.case import is_bad, shrunk  # noqa: E402

CLASSES = {
    "graph_files": graph_files.make_case,
    "saved_parts": saved_parts.make_case,
    "foreign_files": foreign_files.make_case,
    "node_maps": policies.make_node_map,
    "policies": policies.make_case,
    "options": options.make_case,
    "no_files": no_files.make_case,
}
COLUMNS = ("tried", "done", "refused", "traceback", "signal", "hang", "babble", "wrong")


def main() -> int:
    """Run until the time is over; exit code 1 if something happened that must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(CLASSES), help="classes of cases, with commas")
    parser.add_argument("--case", type=int, help="this one alone, shown in full")
    parser.add_argument("--most", type=int, default=10**9, metavar="N", help="cases of a class")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cusp-fuzz-") as scratch:
        return attack(parsed, Path(scratch))


def attack(parsed: argparse.Namespace, scratch: Path) -> int:
    """Try cases of all classes in turn."""
    names = parsed.only.split(",")
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    seen: set[tuple[str, str]] = set()
    deadline = time.monotonic() + parsed.minutes * 60
    number = parsed.case or 0
    while time.monotonic() < deadline and number < parsed.most:
        for name in names:
            case = CLASSES[name](np.random.default_rng([parsed.seed, number, sum(name.encode())]))
            outcome = case.try_it(_empty(scratch))
            counts[name]["tried"] += 1
            counts[name][outcome.kind] += 1
            headline = outcome.text.splitlines()[-1][:120] if outcome.text else ""
            if parsed.case is not None:
                print(outcome, [step for step, _ in case.steps], sep="\n")
            elif is_bad(outcome) and (outcome.kind, headline) not in seen:
                seen.add((outcome.kind, headline))
                steps = shrunk(case, outcome.kind, lambda: _empty(scratch))
                print(
                    f"{outcome.kind}: --only {name} --seed {parsed.seed} --case {number}: {steps}\n    {headline}",
                    flush=True,
                )
        number += 1
        if parsed.case is not None:
            break
    print("".join([f"{'class':<14}", *(f"{column:>10}" for column in COLUMNS)]))
    for name, count in counts.items():
        print("".join([f"{name:<14}", *(f"{count[column]:>10}" for column in COLUMNS)]))
    return int(any(count[kind] for count in counts.values() for kind in COLUMNS[3:]))


def _empty(scratch: Path) -> Path:
    folder = scratch / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


if __name__ == "__main__":
    sys.exit(main())
