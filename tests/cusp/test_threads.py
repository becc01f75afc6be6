"""Ranges and threads: every entry once, results in order, errors at once, and how many threads there are."""

import os
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusp.errors import OptionError
from cusp.kernels import build_cpu
from cusp.program.report import describe_placement
from cusp.runtime import threads
from cusp.runtime.devices import Placement
from cusp.runtime.mpi import MPI


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Three threads, for ranges of any size."""
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads._Chosen, "threads", 3)


@given(st.integers(0, 1000))
def test_ranges_cover_every_entry_once(size):
    assert [entry for first, last in threads.ranges(size) for entry in range(first, last)] == [*range(size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "BLOCK", 7)
        blocks = [block for first, last in threads.spans_of_blocks(size) for block in range(first, last)]
    assert blocks == [*range(-(-size // 7))]


def test_transposition_is_the_same_for_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 20, 300))])
    targets, weights = rng.integers(0, 300, offsets[-1]).astype(np.int32), rng.integers(0, 9, offsets[-1], np.uint32)

    def transposed():
        starts = np.zeros(301, np.int64)
        build_cpu.count_in_edges(targets, starts)
        sources, moved = np.empty_like(targets), np.empty_like(weights)
        np.cumsum(starts, out=starts)
        build_cpu.transpose(0, offsets, targets, weights, 0, 300, starts[:-1].copy(), sources, moved)
        return starts.tolist(), sources.tolist(), moved.tolist()

    assert threads.tables(targets.size, 300) == 3
    by_three = transposed()
    monkeypatch.setattr(threads._Chosen, "threads", 1)
    order = np.argsort(targets, kind="stable")
    rows = np.repeat(np.arange(300), np.diff(offsets))
    assert transposed() == by_three
    assert by_three[1:] == (rows[order].tolist(), weights[order].tolist())


@given(st.lists(st.integers(0, 50), max_size=60))
def test_rows_are_cut_by_edges(degrees):
    offsets = np.concatenate([[7], 7 + np.cumsum(degrees)]).astype(np.int64)
    pieces = threads.row_ranges(offsets)
    assert [row for first, last in pieces for row in range(first, last)] == [*range(len(degrees))]
    fair = sum(degrees) / len(pieces) + max(degrees, default=0)
    assert all(sum(degrees[first:last]) <= fair + 1 for first, last in pieces)


def test_one_thread_has_one_range(monkeypatch):
    monkeypatch.setattr(threads._Chosen, "threads", 1)
    assert threads.ranges(10**6) == [(0, 10**6)]
    assert threads.row_ranges(np.arange(0, 10**6, 7)) == [(0, -(-(10**6) // 7) - 1)]


def test_results_keep_their_order_and_threads_share_the_work():
    together, seen = threading.Barrier(3, timeout=30), set()

    def work(number):
        if number < 3:
            together.wait()  # fails unless three threads are here at once
        seen.add(threading.get_ident())
        return number * number

    assert threads.in_parallel(work, [(number,) for number in range(20)]) == [number**2 for number in range(20)]
    assert len(seen) == 3


@pytest.mark.parametrize("wrong", [0, 5])
def test_an_error_ends_the_work(wrong):
    """No further piece begins, and none runs any more once the error is here."""
    begun, done, together = [], [], threading.Barrier(3, timeout=30)

    def work(number):
        begun.append(number)
        if number < 3:
            together.wait()
        if number == wrong:
            raise ZeroDivisionError(number)
        time.sleep(0.01)
        done.append(number)

    with pytest.raises(ZeroDivisionError, match=str(wrong)):
        threads.in_parallel(work, [(number,) for number in range(1000)])
    assert len(begun) == len(done) + 1 < 1000


def test_the_first_error_is_raised():
    """The one that one thread would have met, although others came earlier."""
    together = threading.Barrier(3, timeout=30)

    def work(number):
        together.wait()
        time.sleep(0.05 * (2 - number))
        raise ZeroDivisionError(number)

    with pytest.raises(ZeroDivisionError, match="0"):
        threads.in_parallel(work, [(number,) for number in range(3)])


def test_a_map_keeps_the_order_and_starts_no_thread_for_one_item():
    seen = set()

    def work(number):
        seen.add(threading.get_ident())
        return number * number

    for size in 0, 1, 2, 20:
        assert list(threads.ordered_map(work, iter(range(size)))) == [number**2 for number in range(size)]
        assert (seen <= {threading.get_ident()}) == (size < 2)


def test_work_inside_work_ends():
    inner = lambda: sum(threads.in_parallel(lambda number: number, [(number,) for number in range(9)]))  # noqa: E731
    assert threads.in_parallel(inner, [()] * 9) == [36] * 9


def test_a_child_process_has_threads_of_its_own():
    threads.in_parallel(abs, [(1,)] * 9)
    child = os.fork()
    if child == 0:
        os._exit(int(threads.in_parallel(abs, [(-1,)] * 9) != [1] * 9))
    assert os.waitpid(child, 0)[1] == 0


def test_the_line_that_names_the_device():
    lines = {(1,): "1 thread", (4,): "4 threads", (2, 2): "2 threads per rank", (1, 3): "1 to 3 threads per rank"}
    for numbers, text in lines.items():
        placement = Placement("cpu", ("cpu",) * len(numbers), numbers)
        assert describe_placement(placement, "host", MPI.COMM_SELF) == f"device: cpu, {text}"


def test_number_of_threads(monkeypatch):
    monkeypatch.setenv("CUSP_THREADS", "5")
    assert threads.use_threads(2) == threads.num_threads() == 2
    assert threads.use_threads(None) == 5
    monkeypatch.setenv("CUSP_THREADS", "")
    monkeypatch.setenv("MPI_LOCALNRANKS", "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3, 4})
    assert threads.num_threads() == 2
    for wrong in "0", "-1", "two", "9999":
        monkeypatch.setenv("CUSP_THREADS", wrong)
        with pytest.raises(OptionError, match=f"CUSP_THREADS={wrong}: expected a number of threads from 1 to 1024"):
            threads.num_threads()


def test_a_rehearsal_calls_what_helpers_do():
    """Also if the work is done before they wake up."""
    came: list[int] = []
    with threads.ranges_of_any_size():
        for number in range(20):
            with threads.start_threads(lambda helper: (time.sleep(0.001), came.append(helper)), [(number,), (number,)]):
                pass
    assert sorted(came) == sorted([*range(20), *range(20)])


def test_a_call_in_a_piece_is_done_alone():
    """All by the thread that the piece is on, in order; the next call from outside is shared again."""

    def inside(number: int) -> list[tuple[int, int]]:
        return threads.in_parallel(lambda part: (threading.get_ident(), number + part), [(part,) for part in range(9)])

    for found in threads.in_parallel(inside, [(number,) for number in range(8)]):
        assert len({thread for thread, _ in found}) == 1
        assert [value - found[0][1] for _, value in found] == [*range(9)]
    together = threading.Barrier(3, timeout=20)
    threads.in_parallel(lambda number: together.wait(), [(number,) for number in range(3)])
