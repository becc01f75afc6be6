"""Cases for :mod:`scripts.bench.shared.job`: a policy, its parameters and a graph."""

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.bench.shared.rows import call, read_rows


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


def measure(ranks: int, cases: list[Case], trials: int = 0) -> list[dict]:
    """Rows from one MPI job: the quality of each case or, with ``trials``, the seconds of its partitionings."""
    with tempfile.TemporaryDirectory() as folder:
        requested, rows = Path(folder) / "cases.json", Path(folder) / "rows.jsonl"
        requested.write_text(json.dumps([asdict(case) for case in cases]))
        call(ranks, "scripts.bench.shared.job", requested, rows, "--trials", str(trials))
        return read_rows(rows)
