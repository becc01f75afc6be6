"""The page about a partition: its numbers, that it is whole, and what is refused."""

import re
from html.parser import HTMLParser

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.library import partition_graph
from cusp.apps.report.__main__ import main
from cusp.apps.report.figures import collect
from cusp.errors import InputError

ALONE = {"meta", "img"}  # elements that have no end


class Checked(HTMLParser):
    """Raises if elements do not end where they should; keeps the words and the cells of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.words, self.cells, self.pictures = [], [], [], 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in ALONE:
            self.open.append(tag)
        words = dict(attrs)
        assert "href" not in words and words.get("src", "data:").startswith("data:"), "the page needs nothing else"
        self.pictures += "src" in words

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


@pytest.fixture
def graph(comm, shared_tmp):
    """A random graph with hubs, in a file whose name has to be escaped."""
    return graphs.write(shared_tmp / "a<b>&.h5", graphs.HARD["random"](), symmetric="random" in graphs.SYMMETRIC)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "oec"])
def test_figures(comm, graph, policy):
    """Every node has a degree; the ranks that nodes are on add up; what is sent is what the plan says."""
    part = partition_graph(graph, policy=policy, comm=comm, device=parts.DEVICE)
    found = collect(part, graph, ["bfs", "pagerank"], None)
    header = part.part
    assert sum(each.nodes for each in found.degrees) == header.num_nodes
    proxies = sum(each.nodes * each.replication for each in found.degrees)
    assert proxies == pytest.approx(part.quality.replication * header.num_nodes)
    assert all(each.lowest <= each.highest and 1 <= each.replication <= comm.size for each in found.degrees)
    assert found.traffic.sum() == pytest.approx(1e6 * part.quality.mb_a_round) and not found.traffic.diagonal().any()
    assert all(each.keys() >= {"read", "construct", "plan"} for each in found.phases)
    bfs, pagerank = found.runs
    assert (bfs.app, pagerank.source) == ("bfs", None) and bfs.source is not None and pagerank.result.rounds > 1
    if comm.rank == 0:
        assert len(pagerank.round_ms) == pagerank.result.rounds and len(pagerank.bands) == comm.size
        assert sum(pagerank.round_bytes) <= pagerank.sent and (pagerank.sent > 0) == (comm.size > 1)
        for band in bfs.bands:
            assert np.allclose(band.shares.sum(axis=0), 1, atol=0.01)


@pytest.mark.mpi
def test_page(comm, graph, shared_tmp):
    """All elements end, nothing comes from outside, names are escaped, and the numbers are those of the partition."""
    target = shared_tmp / "report.html"
    assert main(comm, [graph, "--policy", "cvc", "--apps", "bfs", "-o", str(target), "--device", parts.DEVICE]) == 0
    comm.Barrier()
    text = target.read_text()
    page = Checked(text)
    plain = re.sub(r"base64,[^\"]*", "", text)
    assert "a<b>&.h5" in "".join(page.words) and "http" not in plain and "<b>&" not in plain
    quality = partition_graph(graph, policy="cvc", comm=comm, device=parts.DEVICE).quality
    assert f"{quality.replication:.2f}" in page.words
    for count in [*quality.masters, *quality.edges]:
        assert f"{count:,}" in page.cells
    assert len(re.findall("<h2>", text)) == 5 and page.pictures >= 5


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--apps", "bfs,pagrank", "-o", "r.html"], "there is no 'pagrank'"),
        (["-o", "r.txt"], "must end with .html"),
        (["-o", "missing/r.html"], "missing"),
        (["--source", "-1", "-o", "r.html"], "--source -1: the graph has the nodes 0 to"),
    ],
)
def test_errors(comm, graph, shared_tmp, monkeypatch, words, message):
    """Before the work, on every rank; nothing is written."""
    monkeypatch.chdir(shared_tmp)
    with pytest.raises(InputError, match=re.escape(message)):
        main(comm, [graph, *words, "--device", parts.DEVICE])
    assert not list(shared_tmp.glob("*.html"))


def test_many_ranks():
    """Labels thin out, and numbers leave the cells."""
    from cusp.apps.report import charts

    axis = charts.matrix(np.arange(64 * 64).reshape(64, 64), str).axes[0]
    assert len(axis.get_xticks()) == len(axis.get_yticks()) == 16 and not axis.texts
    assert len(charts.matrix(np.arange(9).reshape(3, 3), str).axes[0].texts) == 9
    names = [str(rank) for rank in range(64)]
    bars = charts.bars(names, {"masters": np.arange(64), "mirrors": np.ones(64)}, str, "rank").axes[0]
    assert len(bars.get_xticks()) == 16 and len(bars.patches) == 128
    assert max(bar.get_y() + bar.get_height() for bar in bars.patches) == 64
