"""Pictures of timelines (scripts/draw_trace.py)."""

import json
from pathlib import Path

import graphs
import numpy as np
import pytest
import spawn

from cusp.commands.draw_trace import KINDS, band, main
from cusp.errors import InputError

ORDER = list(KINDS)


def span(kind: str, begin: float, end: float, rank: int = 0) -> dict:
    """An event as it is in the file."""
    return {"ph": "X", "name": kind, "cat": kind, "pid": rank, "tid": 0, "ts": begin, "dur": end - begin}


def test_innermost_counts():
    """Time belongs to the innermost span; what a wait contains is a wait; nothing is counted twice."""
    events = [
        span("phase", 0, 100), span("operator", 10, 30), span("wait", 30, 60), span("operator", 40, 50),
        span("sync", 60, 90), span("wait", 70, 80),
    ]  # fmt: skip
    for turned in (events, events[::-1]):
        shares = band(turned, 0, "rank 0", np.array([0.0, 100.0])).shares
        total = {kind: round(float(share) * 100, 9) for kind, (share,) in zip(KINDS, shares)}
        assert total == {"operator": 20, "wait": 40, "sync": 20, "phase": 20, "compile": 0}


def test_columns():
    """A column holds as much of each kind as there was; the rest is between spans."""
    parts = [span("sync", 0, 1), span("sync", 1.5, 4)]
    shares = band(parts, 0, "rank 0", np.array([0.0, 1.0, 2.0, 3.0, 5.0])).shares
    assert shares[ORDER.index("sync")].tolist() == [1, 0.5, 1, 0.5]
    assert band([], 0, "rank 0", np.array([0.0, 1.0])).shares[ORDER.index("phase")].tolist() == [1]
    events = [span("operator", 0, 1), span("round", 0, 4), span("wait", 1.5, 4), span("operator", 0, 4, rank=1)]
    shares = band(events, 0, "rank 0", np.array([0.0, 1.0, 2.0, 4.0])).shares
    assert shares[ORDER.index("operator")].tolist() == [1, 0, 0]
    assert shares[ORDER.index("wait")].tolist() == [0, 0.5, 1]
    assert shares[ORDER.index("phase")].tolist() == [0, 0.5, 0]
    assert np.allclose(shares.sum(axis=0), 1)


def test_draws_a_run(comm, shared_tmp):
    """A run's trace becomes a picture with the colours of its bands, of each phase; other files are refused."""
    from matplotlib import image

    graph, trace, picture = (str(shared_tmp / name) for name in ("g.h5", "trace.json", "picture.png"))
    graphs.write(graph, graphs.random_directed())
    spawn.mpirun(2, "-m", "cusp.apps.kcore", graph, "--execution", "bulk", "--trace", trace)
    for phase in ("run", "partition"):
        assert main(comm, [trace, "-o", picture, "--phase", phase]) == 0
        pixels = (image.imread(picture)[..., :3] * 255).round().astype(int)
        for _, color in (KINDS["wait"], KINDS["operator"]):
            rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
            assert (pixels == rgb).all(axis=2).sum() > 100
    broken, nobody = shared_tmp / "broken.json", shared_tmp / "nobody.json"
    broken.write_text(json.dumps([1, 2]))
    events = json.loads(Path(trace).read_text())["traceEvents"]
    nobody.write_text(json.dumps({"traceEvents": [event for event in events if event["name"] != "process_name"]}))
    for arguments, said in (
        ([str(nobody), "-o", picture], "is not a timeline that --trace wrote"),
        ([str(broken), "-o", picture], "is not a timeline that --trace wrote"),
        ([str(shared_tmp / "none.json"), "-o", picture], "no such file"),
        ([trace, "-o", picture, "--phase", "walk"], "has no phase 'walk'; its phases are"),
        ([trace, "-o", picture, "--first", "1e9"], "takes"),
        ([trace, "-o", str(shared_tmp / "picture.xyz")], "unknown kind of picture"),
    ):
        with pytest.raises(InputError, match=said):
            main(comm, arguments)
