"""Cases for :mod:`scripts.bench.evaluate`: a policy, its parameters and a graph."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.bench.common import call


@dataclass(frozen=True)
class Case:
    """A policy on a graph; ``parts`` 0 stands for the number of ranks, ``offline`` for the maker of ``node_map``."""

    graph: str
    path: str
    policy: str
    parts: int = 0
    passes: int = 1
    rounds: int = 100
    node_map: str | None = None
    offline: str | None = None


def evaluate_on(ranks: int, cases: list[Case], folder: Path) -> list[dict]:
    """A row for each case, from one job of MPI; ``folder`` is for its files."""
    asked, answers = folder / f"cases-{ranks}.json", folder / f"rows-{ranks}.jsonl"
    asked.write_text(json.dumps([asdict(case) for case in cases]))
    call(ranks, "scripts.bench.evaluate", str(asked), str(answers))
    return [json.loads(line) for line in answers.read_text().splitlines()]
