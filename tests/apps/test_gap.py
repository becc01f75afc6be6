"""The GAP benchmark: numbers of trials, sources, graphs, kernels that are not there, options that do not fit."""

import json

import graphs
import parts
import pytest

from cusp.apps import gap
from cusp.errors import OptionError


def run(comm, shared_tmp, *arguments) -> list[dict]:
    """Rows of a run of the program on the device under test. Collective."""
    rows = shared_tmp / "rows.jsonl"
    assert gap.main(comm, [*arguments, "--device", parts.WANTED, "--rows", str(rows)]) == 0
    comm.Barrier()
    return [json.loads(line) for line in rows.read_text().splitlines()]


@pytest.mark.mpi
def test_trials_of_each_kernel(comm, shared_tmp, capsys):
    """As many as the rules say, BFS and SSSP from the same 64 sources, and verified."""
    rows = run(comm, shared_tmp, "--kron", "7", "--kernels", "bfs,sssp,cc", "--verify", "--policy", "cvc")
    of = {name: [row for row in rows if row["app"] == f"gap-{name}"] for name in ("bfs", "sssp", "cc")}
    assert [len(found) for found in of.values()] == [64, 64, 16]
    sources = [[row["arguments"]["source"] for row in of[name]] for name in ("bfs", "sssp")]
    assert sources[0] == sources[1] and len(set(sources[0])) == 64
    assert [row["verified"] for row in of["sssp"][:2]] == [True, None]
    assert all(row["graph"] == "kron7" and row["ranks"] == comm.size and row["seconds"] > 0 for row in rows)
    if comm.rank == 0:
        lines = [line.split() for line in capsys.readouterr().out.splitlines()[-3:]]
        assert [line[:2] + line[-1:] for line in lines] == [
            ["bfs", "64", "verified"], ["sssp", "64", "verified"], ["cc", "16", "verified"]
        ]  # fmt: skip
        mean = sum(row["seconds"] for row in of["cc"]) / 16
        assert float(lines[2][2]) == pytest.approx(mean, abs=1e-6)


@pytest.mark.mpi
def test_a_file(comm, shared_tmp):
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    rows = run(comm, shared_tmp, path, "--kernels", "cc,bfs", "--trials", "2")
    assert [row["app"] for row in rows] == ["gap-cc"] * 2 + ["gap-bfs"] * 2


def test_roots_of_betweenness():
    """Four of the sources a trial, in their order; fewer sources come again."""
    trials = [gap.KERNELS["bc"].arguments(trial, list(range(64))) for trial in range(16)]
    assert [root for trial in trials for root in trial["source"]] == list(range(64))
    assert gap.KERNELS["bc"].arguments(1, [7, 8, 9]) == {"source": [8, 9, 7, 8]}


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one graph"),
        (["--kron", "5", "--urand", "5"], "name one graph"),
        (["--kron", "5", "--kernels", "bfs,mst"], "--kernels mst: the kernels are bfs, sssp"),
    ],
)
def test_options_that_do_not_fit(comm, arguments, message):
    with pytest.raises(OptionError, match=message):
        gap.main(comm, arguments)
