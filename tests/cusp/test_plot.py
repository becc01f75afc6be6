"""The picture of a comparison (cusp/estimates/plot.py)."""

import sys

import graphs
import pytest

from cusp.__main__ import main
from cusp.estimates.plot import PANELS, _draw, _draw_series, digits, short_name
from cusp.output.whole_file import OutputError


@pytest.fixture
def graph(shared_tmp) -> str:
    """A graph file."""
    return graphs.write(shared_tmp / "g.h5", graphs.random_directed())


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_picture_is_drawn(comm, shared_tmp, graph):
    """A PNG whose size grows with the policies, mostly white, with bars of both colours."""
    from matplotlib import image

    heights = []
    for policies in ("oec,random", "oec,iec,cvc,hvc,dbh,random"):
        path = shared_tmp / "picture.png"
        asked = ["compare", graph, "--ranks", "7", "--policies", policies, "--plot", str(path)]
        assert main(comm, asked) == 0
        comm.Barrier()
        pixels = image.imread(path)[..., :3]
        assert 0.5 < (pixels == 1).all(axis=2).mean() < 0.99
        for color in (0x8F, 0xB3, 0xD1), (0x1F, 0x5F, 0x99):
            assert (abs(pixels * 255 - color) < 1).all(axis=2).sum() > 500
        heights.append(pixels.shape[0])
        comm.Barrier()
    assert heights[0] < heights[1]


def test_what_is_drawn():
    """Names at the bars, values beside them; nothing is covered by anything else."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = ("oec", "folder/of/a_user/with_a_very_long_name_indeed.py", "hdrf")
    figures = [
        {"policy": policy, "replication": value, "edge_balance": 1.0, "mb_a_round": 1e4 * value, "memory_mb": 0.0}
        for policy, value in zip(names, (9.094, 3.7, 3.701), strict=True)
    ]
    drawn, axes = pyplot.subplots(1, len(PANELS), figsize=(13, 3), sharey=True, layout="constrained")
    for axis, panel in zip(axes, PANELS):
        _draw(axis, panel, figures)
    drawn.draw_without_rendering()
    assert [text.get_text() for text in axes[0].texts] == ["9.09", "3.70", "3.70"]
    assert [text.get_text() for text in axes[2].texts] == ["90,940", "37,000", "37,010"]
    bars = [patch.get_facecolor() for patch in axes[0].patches]
    assert bars[1] == bars[2] != bars[0]
    labels = axes[0].get_yticklabels()
    assert [name.get_text() for name in labels] == ["oec", "with_a_very…_indeed.py", "hdrf"]
    texts = [text for axis in axes for text in [*axis.texts, axis.title, axis.xaxis.label]] + labels
    boxes = [text.get_window_extent() for text in texts]
    for place, box in enumerate(boxes):
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[:place]), texts[place]
    pyplot.close(drawn)


def testshort_name_names():
    """A name that fits stays; the folder of a file is left out."""
    assert short_name("contiguous+hybrid") == "contiguous+hybrid" and short_name("a/b/mine.py") == "mine.py"
    assert len(short_name("x" * 60)) == 22


def test_lines_over_numbers_of_parts(tmp_path):
    """A line for each policy, through its values, by ascending number of parts; the axis says which."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, axis = pyplot.subplots()
    figures = [
        {"policy": policy, "parts": parts, "replication": first * parts}
        for parts in (16, 4) for policy, first in (("oec", 1.0), ("a/b/mine.py", 0.5))
    ]  # fmt: skip
    _draw_series(axis, PANELS[0], figures)
    drawn.draw_without_rendering()
    assert [line.get_label() for line in axis.lines] == ["oec", "mine.py"]
    assert [line.get_xydata().tolist() for line in axis.lines] == [[[4, 4], [16, 16]], [[4, 2], [16, 8]]]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["4", "16"]
    assert axis.get_xlabel() == "parts" and axis.get_ylim()[0] == 1
    pyplot.close("all")


def test_equal_lines_can_be_told_apart():
    """Lines with the same values are drawn side by side, and each point is where its value is."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, axis = pyplot.subplots()
    names = ("oec", "iec", "random", "cvc")
    figures = [{"policy": policy, "parts": parts, "replication": 2.0} for policy in names for parts in (4, 16)]
    _draw_series(axis, PANELS[0], figures)
    drawn.draw_without_rendering()
    places = [line.get_transform().transform(line.get_xydata()) for line in axis.lines]
    assert len({place[0, 1] for place in places}) == 1
    steps = [later[0, 0] - earlier[0, 0] for earlier, later in zip(places, places[1:])]
    assert min(steps) > 3 and max(abs(place - axis.transData.transform((4, 2)))[0] for place in places[0][:1]) < 10
    assert len({(line.get_marker(), line.get_color()) for line in axis.lines}) == 4
    pyplot.close("all")


def test_digits():
    """Neither "0.0" for little nor an exponent for much."""
    assert [digits(value) for value in (0, 0.01234, 4.26, 34.04, 123456)] == ["0", "0.0123", "4.26", "34", "123,456"]


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["picture.xyz", "picture", "missing/picture.png"])
def test_picture_that_cannot_be_written(comm, shared_tmp, graph, name):
    """Known before anything is compared: the graph is not even there."""
    with pytest.raises(OutputError):
        main(comm, ["compare", graph + "-not-there", "--policies", "oec", "--plot", str(shared_tmp / name)])


@pytest.mark.mpi
def test_without_matplotlib(comm, shared_tmp, graph, monkeypatch):
    """Says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = shared_tmp / "picture.png"
    with pytest.raises(OutputError, match="pip install matplotlib"):
        main(comm, ["compare", graph, "--policies", "oec", "--plot", str(path)])
    assert not path.exists()
