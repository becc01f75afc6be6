"""Tests on several ranks that cannot hang: ``mpirun -n 3 python -m pytest --with-mpi``.

* A test marked ``mpi`` runs on all ranks together, the others only where there is one rank.
* After each step of a test (setup, call, teardown) the ranks agree on its outcome. A rank that fails while
  the others wait inside the test ends the job within seconds, with its own report.
* A test that takes too long ends the job with the stacks of all ranks.
* Only rank 0 prints; a failure on any rank is a failure everywhere, shown with that rank's report.
"""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("CUSP_DEVICE", "cpu")  # before any import: also for the programs that tests start
os.environ.setdefault("CUSP_THREADS", "1")  # they share the cores with other tests and ranks
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in jobs of a shell's background: programs would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# isort: split
import ranks  # first of ours: prepares the process before anything imports numba

# isort: split
import compile_once
import properties
import pytest

from scripts.bench.shared import graphs as published

DIFFERENT_TESTS = 3  # exit code
_collection_errors: list[str] = []
compile_once.install()
gc.disable()  # until all tests are collected, which stay


@pytest.fixture(scope="session")
def comm():
    """All ranks of this run."""
    return ranks.COMM


@pytest.fixture
def shared_tmp() -> Iterator[Path]:
    """One empty folder, the same on all ranks, removed when all have finished with it. Collective."""
    made = tempfile.mkdtemp(prefix="cusp-test-") if ranks.COMM.rank == 0 else None
    folder = Path(ranks.tell(made))
    yield folder
    ranks.agree("shared_tmp", ranks.Outcome(ranks.PASSED))
    if ranks.COMM.rank == 0:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def real_graphs() -> Path:
    """Folder of real graphs in their published formats; without it the test is skipped."""
    folder = published.folder()
    if not folder.is_dir():
        pytest.skip(f"no real graphs: CUSP_TEST_GRAPHS is not set and {folder} does not exist")
    return folder


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Silence every rank but 0, and pytest-mpi's closing page about the MPI library."""
    config.addinivalue_line("markers", "limit(seconds): the time a test may take")
    ranks.use_real_stderr()
    properties.use_settings()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if ranks.COMM.rank > 0 and reporter is not None:
        reporter._tw._file = open(os.devnull, "w")
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "MPIPlugin":
            plugin._is_testing_mpi = False  # asked only when the page is printed


def pytest_report_header() -> str:
    """The number of ranks and the MPI library."""
    name, version = ranks.MPI.get_vendor()
    return f"{ranks.COMM.size} ranks, {name} {'.'.join(map(str, version))}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On several ranks, leave out the tests that are meant for one; without ``--device gpu``, skip the GPU's own."""
    if os.environ["CUSP_DEVICE"] != "gpu":
        for item in items:
            if item.path.name.endswith("_gpu.py") and item.path.name != "test_gpu.py":
                item.add_marker(pytest.mark.skip(reason="--device gpu was not asked for"))
    if ranks.COMM.size == 1:
        return
    alone = [item for item in items if item.get_closest_marker("mpi") is None]
    items[:] = [item for item in items if item.get_closest_marker("mpi") is not None]
    config.hook.pytest_deselected(items=alone)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keep what went wrong while a file was imported: on ranks above 0 nobody sees it printed."""
    if report.failed:
        _collection_errors.append(report.longreprtext)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop on every rank if they did not find the same tests. Collective."""
    gc.freeze()
    gc.enable()
    mine = ranks.Outcome(ranks.PASSED, ([item.nodeid for item in session.items], _collection_errors[:1]))
    found = [outcome.report for outcome in ranks.agree("collection", mine)]
    for rank, (names, errors) in enumerate(found):
        if (names, bool(errors)) != (found[0][0], bool(found[0][1])):
            why = "\n".join(errors or found[0][1])
            pytest.exit(f"ranks 0 and {rank} did not find the same tests\n{why}", returncode=DIFFERENT_TESTS)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Give each test a limit."""
    mark = item.get_closest_marker("limit")
    with ranks.limited(item.nodeid, mark.args[0] if mark else ranks.LIMIT):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """On several ranks, run the examples of a property test on all of them together."""
    if ranks.COMM.size == 1 or not properties.is_property(pyfuncitem.obj):
        return None
    fixtures = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    properties.run_property(pyfuncitem.nodeid, pyfuncitem.obj, fixtures)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Give a step of a test the same outcome on all ranks: the worst of them. Collective."""
    report = yield
    if ranks.COMM.size == 1:
        return report
    shown = report.longreprtext if report.failed else report.longrepr
    outcomes = ranks.agree(f"{item.nodeid} ({call.when})", ranks.Outcome(report.outcome, shown))
    words = [outcome.word for outcome in outcomes]
    if "failed" in words:
        show_failures(report, outcomes)
    elif "skipped" in words and report.outcome == "passed":
        report.outcome, report.longrepr = "skipped", outcomes[words.index("skipped")].report
    return report


def show_failures(report: pytest.TestReport, outcomes: list[ranks.Outcome]) -> None:
    """Make the report a failure, with the different reports of the ranks that failed."""
    failures: dict[str, list[int]] = {}
    for rank, outcome in enumerate(outcomes):
        if outcome.word == "failed":
            failures.setdefault(str(outcome.report), []).append(rank)
    if report.outcome != "failed":
        report.outcome = "failed"
        report.longrepr = f"failed on {sum(map(len, failures.values()))} of {len(outcomes)} ranks, not on this"
    for text, where in list(failures.items())[:3]:
        if text != report.longreprtext:
            report.sections.append((f"failed on rank {', '.join(map(str, where))}", text))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note each test's outcome."""
    if report.when == "call" or not report.passed:
        note(report.outcome, report.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which tests are running."""
    note("started", nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Note that they do so no more."""
    note("finished", nodeid)


def note(word: str, nodeid: str) -> None:
    """Write a line to the file $CUSP_TEST_OUTCOMES, which survives the end of the job."""
    path = os.environ.get("CUSP_TEST_OUTCOMES")
    worker = "PYTEST_XDIST_WORKER" in os.environ  # its reports reach the process that distributes the tests
    if path and ranks.COMM.rank == 0 and not worker:
        with open(path, "a") as file:
            file.write(f"{word}\t{nodeid}\n")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let rank 0 alone give the exit code: a launcher ends the job at the first that is not zero.

    It is no error that all the tests asked for are meant for one rank.
    """
    alone = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and ranks.COMM.size > 1
    if ranks.COMM.rank > 0 or alone:
        session.exitstatus = pytest.ExitCode.OK
