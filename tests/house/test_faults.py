"""Bad input of every kind: one clear message, on every rank, and nothing left half-written."""

import argparse
import importlib
import os
import re
from pathlib import Path

import damage
import graphs
import numpy as np
import parts
import pytest
import spawn

from cusp.apps import bfs, path, sssp
from cusp.apps.harness import main
from cusp.apps.run import cli
from cusp.errors import InputError, OptionError
from cusp.launch import parse_together

RUN = {"bfs": bfs.APP, "sssp": sssp.APP}


@pytest.fixture
def refused(comm, capfd):
    """Function (app, arguments, pattern): the run ends with one message, the same on every rank."""

    def check(app: str, arguments: list, pattern: str) -> str:
        with pytest.raises(InputError) as caught:
            main(RUN[app], comm, [str(argument) for argument in arguments])
        message = str(caught.value)
        told = comm.allgather((type(caught.value), message))
        assert all(other == told[0] for other in told)
        assert re.search(pattern, message), message
        assert len(message.splitlines()) <= 3 and len(message) < 600
        assert "Traceback" not in capfd.readouterr().err
        return message

    return check


@pytest.fixture
def good(shared_tmp) -> str:
    """A graph file without a fault."""
    return graphs.write(shared_tmp / "good.h5", damage.GRAPH)


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share(damage.FILES))
def test_graph_file(refused, shared_tmp, fault):
    """The message names the file and what is wrong in it."""
    pattern = damage.make(damage.FILES[fault], shared_tmp / "bad.h5")
    message = refused("bfs", [shared_tmp / "bad.h5", "--source", 0], pattern)
    assert str(shared_tmp / "bad.h5") in message


@pytest.mark.mpi
@pytest.mark.parametrize("fault", list(damage.WEIGHTED))
def test_weights(refused, comm, shared_tmp, fault):
    """Weights are checked where they are used; a breadth-first search does not read them."""
    pattern = damage.make(damage.WEIGHTED[fault], shared_tmp / "bad.h5")
    refused("sssp", [shared_tmp / "bad.h5", "--source", 0], pattern)
    assert main(RUN["bfs"], comm, [str(shared_tmp / "bad.h5"), "--source", "0"]) == 0


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share(damage.POLICIES))
@pytest.mark.filterwarnings("ignore:.*numba cannot compile")
def test_policy_file(refused, good, fault):
    """The message names the policy and what is wrong with it."""
    content, pattern = damage.POLICIES[fault]
    message = refused("bfs", [good, "--policy", parts.user_file(content, "my_policy.py")], pattern)
    assert "my_policy" in message


OPTIONS = {
    "source_too_large": (["--source", 40], "--source 40: .* 0 to 39"),
    "source_negative": (["--source", -1], "--source -1"),
    "source_far": (["--source", 2**63], "--source 9223372036854775808: .* 0 to 39"),
    "source_long": (["--source", "9" * 5000], r"--source 999.* \.\.\. 999.*: the graph has the nodes 0 to 39"),
    "source_with_a_name": (["--source", "Anna"], "--source Anna: the graph has the nodes 0 to 39"),
    "unknown_policy": (["--policy", "metis"], "metis.*oec"),
    "unknown_master_rule": (["--policy", "nobody+source"], "nobody"),
    "unknown_edge_rule": (["--policy", "contiguous+nowhere"], "nowhere"),
    "missing_policy_file": (["--policy", "/no/such/policy.py"], "/no/such/policy.py: no such file"),
    "grid": (["--grid", "7x11"], "7x11 is for 77 ranks"),
    "split_word": (["--split", "halves"], "--split halves"),
    "split_zero": (["--split", "0:0"], "--split 0:0"),
    "split_negative": (["--split", "-1:2"], "--split -1:2"),
    "split_three": (["--split", "1:2:3"], "--split 1:2:3"),
    "output_folder": (["--output", "/no/such/folder/hops.h5"], "/no/such/folder"),
    "output_is_folder": (["--output", "."], "suffix of the name"),
    "output_name_too_long": (["--output", "a" * 5000 + ".h5"], "name too long"),
    "rows_folder": (["--rows", "/no/such/folder/rows.json"], "/no/such/folder"),
    "rows_is_folder": (["--rows", "."], "folder"),
}


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share(OPTIONS))
def test_option(refused, good, fault):
    """The message names the option."""
    options, pattern = OPTIONS[fault]
    joined = [f"{options[0]}={options[1]}"] if str(options[1]).startswith("-") else options
    refused("bfs", [good, *joined], pattern)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "arguments", [["--trials", "0"], ["--sources", "x"], ["--grid", "2"], ["--nonsense"]], ids=" ".join
)
def test_usage(comm, good, arguments, capfd):
    """What is no option at all ends with argparse's code on every rank, and is said once."""
    with pytest.raises(SystemExit) as caught:
        main(RUN["bfs"], comm, [good, *arguments])
    assert caught.value.code == 2
    assert ("error: " in capfd.readouterr().err) == (comm.rank == 0)


REFUSED = (
    "bfs --trials -1", "bfs --seed 1e3", "bfs --threshold -1", "bfs --device frob",
    "bfs --state-rounds 10000000", "kcore --k 1e20", "kcore --k 0", "pagerank --damping 2", "pagerank --tolerance nan",
    "pagerank --damping nan", "maze --width 1000000",
    "semiring --tolerance nan",
)  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_numbers_out_of_range(line, capsys):
    """The parser refuses them, in one line."""
    with pytest.raises(SystemExit) as caught:
        parser_of(line.split()[0]).parse_args(line.split()[1:])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: argument {line.split()[1]}: ") and error.count("\n") == 1


def test_unknown_device_in_the_environment(monkeypatch, capsys):
    """Not taken for a GPU."""
    monkeypatch.setenv("CUSP_DEVICE", "frob")
    with pytest.raises(SystemExit):
        parser_of("bfs").parse_args([])
    said = "'frob': choose one of auto, cpu, gpu, or a list such as gpu,gpu,cpu; the default is that of $CUSP_DEVICE"
    assert said in capsys.readouterr().err


def parser_of(name: str):
    """The command line of an app."""
    return cli.parser_of(importlib.import_module(f"cusp.apps.{name}").APP)


@pytest.mark.mpi(min_size=2)
def test_ranks_that_were_started_with_different_options(comm):
    """Both command lines are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--k", type=int)
    with pytest.raises(OptionError, match=r"--k 1' here, '.* --k 0' on rank 0 \(rank 1 of"):
        parse_together(comm, parser, ["--k", str(comm.rank)])


@pytest.mark.mpi
def test_path_without_targets_over_a_loop_of_length_0(comm, shared_tmp, capfd):
    """A loop at the source, two edges of length 0 that make a circle; nothing to show, everything to verify."""
    graph = graphs.make(4, [(0, 0), (0, 1), (1, 2), (2, 1), (2, 3)], np.array([0, 4, 0, 0, 1]))
    file = graphs.write(shared_tmp / "g.h5", graph)
    assert main(path.APP, comm, [file, "--source", "0", "--verify"]) == 0
    assert main(path.APP, comm, [file, "--source", "0", "--verify", "--targets", "0,3"]) == 0
    shown = capfd.readouterr().out
    assert comm.rank > 0 or ("distance 0: 0" in shown and "distance 5: 0 -> 1 -> 2 -> 3" in shown)


@pytest.mark.mpi
def test_no_source_to_be_had(refused, comm, shared_tmp, capfd):
    """A graph without edges needs --source; with it it works, and idle ranks are only warned of."""
    path = graphs.write(shared_tmp / "g.h5", graphs.make(2, []))
    refused("bfs", [path], "--source")
    for app in RUN.values():
        assert main(app, comm, [path, "--source", "1", "--verify"]) == 0
    warned = "warning:" in capfd.readouterr().err
    assert warned == (comm.rank == 0 and comm.size > 2)


LIMITED = """
import resource, sys
from cusp.apps.bfs import APP, main, run_main
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # not before MPI has made its own files
run_main(lambda comm, argv: main(APP, comm, argv))
"""


@pytest.fixture
def one_message(tmp_path):
    """Function (ranks, arguments, pattern): a command ends with code 1 and one message, and leaves nothing."""

    def check(ranks: int, arguments: list, pattern: str) -> None:
        before = sorted(os.listdir(tmp_path))
        done = spawn.mpirun(ranks, *arguments, launcher=ranks > 1, timeout=60)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        assert done.returncode == 1, done.stderr
        assert [line.startswith("error: ") for line in lines].count(True) == 1, done.stderr
        assert lines[0].startswith("error: ") and len(lines) <= 3, done.stderr
        assert re.search(pattern, done.stderr), done.stderr
        assert sorted(os.listdir(tmp_path)) == before

    return check


@pytest.fixture
def alone(tmp_path) -> Path:
    """A graph file without a fault, for spawned runs."""
    graphs.write_here(tmp_path / "good.h5", damage.GRAPH)
    return tmp_path / "good.h5"


@pytest.mark.parametrize(("fault", "ranks"), [("missing", 3), ("descent", 1), ("flipped_indices", 2)])
def test_command_with_a_bad_file(one_message, tmp_path, fault, ranks):
    """From the shell: before, while and after the file is read."""
    write, pattern = damage.FILES[fault]
    write(tmp_path / "bad.h5")
    one_message(ranks, ["-m", "cusp.apps.bfs", tmp_path / "bad.h5", "--output", tmp_path / "hops.h5"], pattern)


def test_command_with_a_negative_weight(one_message, tmp_path):
    """An error that one rank alone finds, late."""
    write, pattern = damage.WEIGHTED["negative_weight"]
    write(tmp_path / "bad.h5")
    one_message(2, ["-m", "cusp.apps.sssp", tmp_path / "bad.h5"], pattern)


@pytest.mark.parametrize(("fault", "ranks"), [("owner_too_large", 2), ("owner_divides_by_0", 1)])
def test_command_with_a_bad_policy(one_message, tmp_path, alone, fault, ranks):
    """A rule that goes wrong inside a compiled loop."""
    content, pattern = damage.POLICIES[fault]
    (tmp_path / "mine.py").write_text(content)
    one_message(ranks, ["-m", "cusp.apps.bfs", alone, "--policy", tmp_path / "mine.py"], pattern)


def test_disk_full(one_message, tmp_path):
    """The output does not fit: the reason is told, nothing is left, and an older answer stays."""
    graph = graphs.make(1_000_000, [(v, v + 1) for v in range(100)])
    graphs.write_here(tmp_path / "g.h5", graph, weight=None)
    (tmp_path / "hops.h5").write_text("older answer")
    (tmp_path / "limited.py").write_text(LIMITED)
    arguments = [tmp_path / "limited.py", 2_000_000, tmp_path / "g.h5", "--source", 0, "--output", tmp_path / "hops.h5"]
    one_message(2, arguments, "hops.h5.*(too large|cannot be written)")
    assert (tmp_path / "hops.h5").read_text() == "older answer"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_rows_on_a_full_disk(one_message, alone):
    """Rows that cannot be written are an error, not a traceback."""
    one_message(1, ["-m", "cusp.apps.bfs", alone, "--rows", "/dev/full"], "/dev/full.*No space")


def test_warnings_of_numpy_are_none_of_the_user(tmp_path):
    """Weights with infinities of a float type are read without a word from NumPy."""
    graph = damage.GRAPH._replace(weights=np.where(damage.GRAPH.weights > 15, 3e38, 1.0).astype(np.float32))
    graphs.write_here(tmp_path / "g.h5", graph, weight=np.float32)
    done = spawn.mpirun(1, "-m", "cusp.apps.sssp", tmp_path / "g.h5", "--verify", launcher=False, timeout=30)
    assert "Warning" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr
