"""Shares of ranks: what rules make of them, what is measured, and what fits into the memory of a GPU."""

import graphs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusp.__main__ import main
from cusp.errors import OptionError
from cusp.estimates.dry_run import fraction_within
from cusp.estimates.quality import measure_quality
from cusp.input.graph_file import read_header
from cusp.input.split import first_node_of, weights_before
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.program import shares as program
from cusp.program.shares import Machine, best_shares, limit_shares, with_shares
from cusp.runtime.devices import Placement

ONE = Placement("cpu", ("cpu",), (1,))
SLOW, FAST = Machine(1e8, 4e9, 1.0), Machine(2e10, 4e9, 1.0)


def shares_of(size: int) -> tuple[int, ...]:
    """The first of so many ranks has the most, the last none."""
    return (6, 3, 1)[: size - 1] + (0,) * (size - min(size - 1, 3)) if size > 1 else (1,)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "hvc", "random", "dbh", "fec", "ldg", "hdrf"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_ranks_get_their_shares(comm, shared_tmp, policy, in_memory):
    """Of the edges, of files and of graphs in memory; exactly in contiguous blocks, else about; nothing for 0."""
    graph, shares = graphs.random_directed(2000, 30_000, 3), shares_of(comm.size)
    given = load_policy(policy, shares=shares, threshold=1000)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph((graph.sources, graph.targets) if in_memory else path, given, comm)
    expected = np.array(shares) / sum(shares)
    found = measure_quality(part, comm).edges / graph.num_edges
    assert found[-1] == 0
    np.testing.assert_allclose(found, expected, atol={"oec": 0.002, "hvc": 0.002}.get(policy, 0.12))
    if policy in ("oec", "random", "fec", "ldg"):
        assert comm.allgather(part.num_masters)[-1] == 0


@given(total=st.integers(0, 2**62), shares=st.lists(st.integers(0, 10**9), min_size=1, max_size=9).filter(any))
def test_weights_before(total, shares):
    """They ascend from 0 to all, and a part has its share to within one."""
    before = weights_before(total, len(shares), shares)
    assert before[0] == 0 and before[-1] == total and before == sorted(before)
    for part, share in enumerate(shares):
        assert abs((before[part + 1] - before[part]) * sum(shares) - total * share) < sum(shares)


def test_nodes_without_edges(comm):
    """The last nodes have no edges, and a part without a share gets none of them."""
    offsets = [0, 2, 4, 4, 4]
    firsts = [first_node_of(offsets.__getitem__, 4, 4, part, 3, "edges", (1, 1, 0)) for part in range(4)]
    assert firsts == [0, 1, 4, 4]


@pytest.mark.parametrize("shares", [(), (1,), (5, 3, 2), (0, 1, 0, 4)])
def test_pick(comm, shares):
    """As many whole numbers fall on each rank as its share says; without shares it is a remainder."""
    prop = parts_prop(shares)
    size, total = prop.num_parts, prop.all_shares
    ranks = [int(prop.pick(number)) for number in range(3 * total)]
    assert np.bincount(ranks, minlength=size).tolist() == [3 * prop.share(rank) for rank in range(size)]
    assert [prop.share(rank) for rank in range(size)] == list(shares or [1] * size)
    assert prop.share(-1) == prop.share(size) == 0
    if not shares:
        assert ranks == [number % size for number in range(3 * total)]


def parts_prop(shares):
    """What rules may ask, about a graph of two nodes."""
    from cusp.convert.memory_input import named_slice
    from cusp.policies.prop import Prop
    from cusp.runtime.mpi import MPI

    size = len(shares) or 4
    edges = named_slice(([0, 1], [1, 0]), MPI.COMM_SELF).edges
    return Prop(edges, size, 0, (size, 1), 5, np.linspace(0, 2, size + 1).astype(np.int64), shares=shares)


def test_equal_shares_are_none(comm):
    """In lowest terms, and the same for all is as if there were none."""
    assert load_policy("oec", shares=(8, 8)).shares_for(2) == () == load_policy("oec").shares_for(2)
    assert load_policy("oec", shares=(8, 4, 0)).shares_for(3) == (2, 1, 0)
    with pytest.raises(OptionError, match="--shares 8,4: 2 shares, but there are 3 ranks"):
        load_policy("oec", shares=(8, 4)).shares_for(3)


def test_a_cpu_beside_a_gpu(comm):
    """It gets nothing where messages cost more than it saves, else its part, and always what the GPU cannot hold."""
    small, large = (2**24, 2**29), (2**10, 2**36)
    assert best_shares([FAST, SLOW], ("gpu", "cpu"), *small) == [1.0, 0.0]
    assert best_shares([FAST, SLOW], ("gpu", "cpu"), *large) == pytest.approx([200 / 201, 1 / 201])
    full = Machine(FAST.rate, FAST.bandwidth, 0.75)
    assert best_shares([full, SLOW], ("gpu", "cpu"), *small) == [0.75, 0.25]
    assert best_shares([SLOW, SLOW, SLOW], ("cpu",) * 3, *small) == pytest.approx([1 / 3] * 3)


@given(
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda values: sum(values) > 0.01),
    fits=st.lists(st.floats(0, 1), min_size=6, max_size=6),
)
def test_limits(shares, fits):
    """Nobody gets more than fits, if all of it fits; what is left goes to others; nothing changes without need."""
    shares, fits = [share / sum(shares) for share in shares], fits[: len(shares)]
    found = limit_shares(shares, fits)
    assert sum(found) == pytest.approx(1) or not any(fits)
    if sum(fits) >= 1:
        assert all(share <= fit + 1e-9 for share, fit in zip(found, fits))
    if all(share <= fit for share, fit in zip(shares, fits)) and sum(fits) >= 1:
        assert found == shares


def test_memory_of_a_gpu(comm, tmp_path, monkeypatch):
    """A share above what fits is lowered, and a line says so."""
    header = read_header(graphs.write(tmp_path / "g.h5", graphs.random_directed(2000, 30_000, 3)))
    assert fraction_within(header, np.inf) == 1 and fraction_within(header, 0) == 0
    half = next(limit for limit in range(0, 10**7, 1000) if fraction_within(header, limit) >= 0.5)
    monkeypatch.setattr(program, "free_bytes", lambda placement, rank: half if rank == 0 else np.inf)

    class Two:
        """Ranks that all say what this one does, but for their memory."""

        rank, size = 0, 2

        def allgather(self, value):
            return [value, 1.0]

        def allreduce(self, value, *operation):
            return value

    monkeypatch.setattr(program, "together", comm_of_one(program.together))
    policy, line = with_shares(load_policy("oec"), (8, 1), header, Placement("gpu", ("0 GPU", "cpu"), (1, 1)), Two())
    assert policy.shares == (500, 500) and line == "shares: 500,500, limited by the memory of GPUs"
    policy, line = with_shares(load_policy("oec"), (1, 8), header, Placement("gpu", ("0 GPU", "cpu"), (1, 1)), Two())
    assert policy.shares == (1, 8) and line is None


def comm_of_one(together):
    """``together`` for this process alone."""
    from cusp.runtime.mpi import MPI

    return lambda comm: together(MPI.COMM_SELF)


@pytest.mark.mpi
def test_measured(comm, shared_tmp, capsys):
    """Every rank gets a share, and a line says with which the run can be repeated."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(2000, 30_000, 3))
    assert main(comm, [path, "--shares", "auto", "--device", "cpu"]) == 0
    if comm.rank == 0:
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("shares: "))
        numbers = line.split()[1].split(",")
        assert len(numbers) == comm.size and f"(--shares {','.join(numbers)} repeats them)" in line
        assert abs(sum(map(int, numbers)) - program.PER_MILLE) < comm.size and min(map(int, numbers)) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shares", "8,1"], "--shares 8,1: 2 shares, but there are 1 ranks; give one for each"),
        (["--shares", "auto", "--dry-run"], "--shares auto needs ranks that partition a graph"),
        (["--shares", "8,1", "--dry-run", "--ranks", "3"], "--shares 8,1: 2 shares, but there are 3 ranks"),
    ],
)
def test_refused(comm, tmp_path, arguments, message):
    path = graphs.write(tmp_path / "g.h5", graphs.random_directed())
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        main(comm, [path, *arguments])


@pytest.mark.parametrize("text", ["", "0", "0,0", "1,-1", "a", "1,,2", "1.5", "9" * 12])
def test_what_is_no_share(comm, tmp_path, capsys, text):
    """Says what was expected."""
    with pytest.raises(SystemExit):
        main(comm, ["g.h5", f"--shares={text}"])
    assert "expected auto, or whole numbers such as 8,8,1, not all 0" in capsys.readouterr().err


def test_dry_run(comm, tmp_path, capsys):
    """Estimates are for ranks with shares, too."""
    path = graphs.write(tmp_path / "g.h5", graphs.random_directed(2000, 30_000, 3))
    balances = []
    for more in [], ["--shares", "7,1"]:
        assert main(comm, [path, "--dry-run", "--ranks", "2", *more]) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("balance of edges"))
        balances.append(float(line.split()[-2]))
    assert balances == [pytest.approx(1.0, abs=0.01), pytest.approx(7 / 4, abs=0.01)]
