"""Runs without rounds, in which messages are late and overtake each other: the same answers as in rounds, and an end.

``mpirun -n 3 python -m tests.fuzz.delays --seed 1 --runs 1000``

What a rank sends leaves it only after some looks at whether it has gone, other messages first, and what has come is
found only after some looks, too; ranks sleep now and then. A wrong answer is shown with the words that repeat its
graph; a run that does not end shows where all ranks are, and ends the job.
"""

import argparse
import contextlib
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ranks

# isort: split
import numpy as np
from fuzz.differential import rehearsed_once

from cusp.apps import library
from cusp.apps.operators.expressions import drains_cpu
from cusp.policies.policy import POLICIES
from gluon.mail import post as mail

LIMIT = 120.0  # seconds for a graph: much is compiled for the first
APPS = ("bfs", "sssp", "cc", "forest", "widest", "kcore", "pagerank")
RUNS_OF_A_GRAPH = 10
TOLERANCE = 1e-9  # of PageRank, of which there are two algorithms


class Late:
    """A request that begins after some looks."""

    def __init__(self, begin: Any, looks: int) -> None:
        self.begin, self.looks, self.request = begin, looks, None

    def Test(self) -> bool:  # noqa: N802
        self.looks -= 1
        if self.looks > 0:
            return False
        self.request = self.request or self.begin()
        return bool(self.request.Test())


class Delaying:
    """A communicator on which messages, and snapshots, are late."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.random, self.most = np.random.default_rng(comm.rank), 1

    def Issend(self, message: Any, rank: int, tag: int) -> Late:  # noqa: N802
        return Late(lambda: self.comm.Issend(message, rank, tag), self._looks())

    def Iallreduce(self, own: Any, result: Any, operation: Any) -> Late:  # noqa: N802
        return Late(lambda: self.comm.Iallreduce(own, result, operation), self._looks())

    def Improbe(self, *arguments: Any) -> Any:  # noqa: N802
        return None if self._looks() > self.most // 2 + 1 else self.comm.Improbe(*arguments)

    def _looks(self) -> int:
        return int(self.random.integers(1, self.most + 1))


@contextlib.contextmanager
def delays(comm: Any, seed: int) -> Iterator[Delaying]:
    """While this context lasts, mail of ranks is late, and ranks that share memory sleep now and then."""
    among_peers, kept, late = drains_cpu.PeerSearch, mail.kept, Delaying(comm.Dup())
    late.random = np.random.default_rng((seed, comm.rank))

    def slowly(search: Any, *others: Any) -> Any:
        def slow(polls: int, patience: int, *rest: Any) -> Any:
            if late.most > 1 and late.random.random() < 0.3:
                time.sleep(late.random.random() * 1e-3)
            return search(late._looks() - 1, late._looks() if late.most > 1 else patience, *rest)

        return among_peers(slow, *others)

    with (
        mock.patch.object(mail, "kept", lambda of, name, make: late if name == "mail" else kept(of, name, make)),
        mock.patch.object(drains_cpu, "PeerSearch", slowly),
    ):
        yield late


def case(seed: int, number: int, late: Delaying) -> Iterator[tuple[str, str]]:
    """Ask every app about a random graph, several times; what was asked, and what is wrong or nothing. Collective."""
    random = np.random.default_rng((seed, number))
    nodes = int(random.integers(1, random.choice([4, 30, 300])))
    edges = int(random.integers(0, random.choice([2, 4, 8]) * nodes + 1))
    ends = [random.integers(0, nodes, edges) for _ in range(2)]
    if random.random() < 0.3:  # a path, or several
        ends = [np.arange(nodes - 1), np.arange(1, nodes)]
    weights = random.integers(0, random.choice([2, 100]), ends[0].size)
    policy, transport = random.choice([name for name in POLICIES if name != "map"]), random.choice(["auto", "mpi"])
    graph = library.partition_graph(
        (*ends, weights), policy=str(policy), num_nodes=nodes, symmetrize=bool(random.random() < 0.5), share=True,
        transport=str(transport), device="cpu", threads=1,
    )  # fmt: skip
    source = int(random.integers(0, nodes))
    asked = {app: {"source": source} if library.app_of(app).needs_source else {} for app in APPS}
    asked["forest"] = {"roots": [source, int(random.integers(0, nodes))]}
    asked["bfs"]["parents"] = bool(random.random() < 0.3)
    asked["pagerank"] = {"algorithm": "push-residual", "tolerance": TOLERANCE, "unweighted": True}
    for app in random.permutation([*APPS])[:3].tolist():
        late.most = 1
        function = getattr(library, app)
        right = function(graph, execution="bulk", **asked[app])
        for _ in range(RUNS_OF_A_GRAPH):
            late.most = int(random.choice([1, 3, 10]))
            found = function(graph, execution="async", **asked[app])
            what = f"{app} of {nodes} nodes, {policy}, {transport}, {asked[app]}, looks up to {late.most}"
            yield what, _difference(app, right, found, graph, asked[app])


def _difference(app: str, right: Any, found: Any, graph: Any, options: dict) -> str:
    """Where an answer is not the one of rounds; parents may differ, where they are parents."""
    for name, values in right.values.items():
        other = found.values[name]
        if name == "parents":
            continue
        same = np.abs(values - other).sum() < 20 * TOLERANCE if app == "pagerank" else np.array_equal(values, other)
        if not same:
            at = int(np.flatnonzero(values != other)[0])
            return f"{name} of node {at}: {values[at]} in rounds, {other[at]} without"
    return ""


def main() -> int:
    """Run until there were enough runs; exit code 1 if an answer was wrong. Collective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1000, metavar="N")
    parser.add_argument("--minutes", type=float, default=1e9, help="end earlier, after the graph of that moment")
    parser.add_argument("--case", type=int, help="this graph alone")
    parsed = parser.parse_args()
    runs, wrong, number, began = 0, 0, parsed.case or 0, time.monotonic()
    with rehearsed_once(), delays(ranks.COMM, parsed.seed) as late:
        while ranks.tell(runs < parsed.runs and time.monotonic() < began + parsed.minutes * 60):
            words = f"--seed {parsed.seed} --case {number} on {ranks.COMM.size} ranks"
            try:
                with ranks.limited(words, LIMIT):
                    for what, why in case(parsed.seed, number, late):
                        runs, wrong = runs + 1, wrong + bool(why)
                        if ranks.COMM.rank == 0 and why:
                            print(f"{words}: {what}: {why}", flush=True)
            except Exception:
                ranks.end_job(words, traceback.format_exc())
            number += 1
            if parsed.case is not None:
                break
    if ranks.COMM.rank == 0:
        took = time.monotonic() - began
        print(f"{runs} runs of {number} graphs on {ranks.COMM.size} ranks, {took:.0f} s, wrong: {wrong}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
