"""Pictures and tables of rows (scripts/plot_rows.py)."""

import json

import pytest

from cusp.commands.plot_rows import join_threads, labels, main, medians, table
from cusp.errors import InputError


def row(ranks: int, seconds: float, **more) -> dict:
    """As an app writes it."""
    kept = {"app": "bfs", "graph": "data/g.h5", "policy": "oec", "device": "cpu", "threads": 1, "transport": "peer"}
    return kept | {"ranks": ranks, "seconds": seconds} | more


ROWS = [
    row(2, 0.5), row(1, 1.0), row(1, 3.0), row(1, 0.9), row(4, 0.25), row(4, 8.0, policy="cvc"),
    row(8, 2.0, policy="cvc"),
]  # fmt: skip


def test_medians():
    """Of each kind of run and number of ranks, by ascending number; what differs names them."""
    series = medians(ROWS)
    assert [*series.values()] == [{1: 1.0, 2: 0.5, 4: 0.25}, {4: 8.0, 8: 2.0}]
    assert [*next(iter(series.values()))] == [1, 2, 4]
    assert labels(series) == ["oec", "cvc"]
    assert [*medians([row(1, 1.0, transport="mpi"), row(2, 0.5)]).values()] == [{1: 1.0, 2: 0.5}]
    assert labels(medians([*ROWS, row(1, 1.0, threads=2)])) == ["oec, 1 thread", "cvc, 1 thread", "oec, 2 threads"]
    lines = [line.split() for line in table(series).splitlines()[1:]]
    assert lines == [
        ["oec", "1", "1,000", "1.00"], ["2", "500", "2.00"], ["4", "250", "4.00"],
        ["cvc", "4", "8,000", "1.00"], ["8", "2,000", "4.00"],
    ]  # fmt: skip


def test_joined_threads():
    """Runs with all cores at each number of ranks are one line, if asked; two numbers of threads have no median."""
    rows = [row(1, 1.0, threads=4), row(2, 0.6, threads=2), row(4, 0.5, threads=1)]
    assert len(medians(rows)) == 3
    joined = medians(join_threads(rows))
    assert [*joined.values()] == [{1: 1.0, 2: 0.6, 4: 0.5}] and labels(joined) == ["bfs"]
    with pytest.raises(InputError, match="--join-threads: bfs ran on 2 ranks with 2 threads and with 1: plot one"):
        join_threads([*rows, row(2, 0.7)])


def test_picture_and_mistakes(comm, tmp_path, capfd):
    """The table is printed, the picture drawn; what is no row is refused with its line."""
    from matplotlib import image

    rows, picture = tmp_path / "rows.jsonl", tmp_path / "rows.png"
    rows.write_text("\n".join(map(json.dumps, ROWS)))
    assert main(comm, [str(rows), "-o", str(picture)]) == 0
    assert "speed-up" in capfd.readouterr().out
    pixels = image.imread(picture)[..., :3]
    assert 0.5 < (pixels == 1).all(axis=2).mean() < 0.99
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps(ROWS[0]) + "\n{}\n")
    for arguments, said in (
        ([str(wrong)], "wrong.jsonl, line 2: is not a row"),
        ([str(tmp_path / "none")], "none: no such file"),
        ([str(picture)], "rows.png: is not text in UTF-8"),
        ([str(rows), "--app", "cc"], "--app cc: no rows of it"),
        ([str(rows), "-o", str(tmp_path / "picture.xyz")], "unknown kind of picture"),
    ):
        with pytest.raises(InputError, match=said):
            main(comm, arguments)
