"""Saved partitions: what is loaded is what was saved, and nothing else is accepted (cusp/output/saved.py)."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import graphs
import h5py
import numpy as np
import parts
import pytest
import ranks
import spawn

from cusp.__main__ import main as program
from cusp.apps.bfs import APP as BFS
from cusp.apps.bfs import bfs
from cusp.apps.harness import main
from cusp.errors import together
from cusp.output.manifest import MANIFEST, SavedError, read_manifest
from cusp.output.saved import LOCK, load_partition, save_partition
from cusp.output.whole_file import OutputError
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import load_policy

SIZE = ranks.COMM.size


def save(comm, folder, path, policy="hvc", **parameters) -> Partition:
    """Partition a file and save the result. Collective."""
    part = partition_graph(path, load_policy(policy, **parameters), comm)
    save_partition(folder, part, comm, graph=path, policy=policy, parameters=parameters, order="degree", split="edges")
    return part


def assert_same(first: Partition, second: Partition) -> None:
    """Equal bit for bit."""
    for name in ("mirror_starts", "gids", "offsets", "targets", "weights", "has_in", "degrees"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.dtype == other.dtype and np.array_equal(one, other), name
    assert np.array_equal(
        first.lid_map.lids(np.arange(first.num_nodes)), second.lid_map.lids(np.arange(first.num_nodes))
    )


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "fec", "dbh"])
@pytest.mark.parametrize("name", ["hub", "no_edges", "three_nodes", "random"])
def test_loaded_as_saved(comm, shared_tmp, name, policy):
    """Every array is the same, and so are the answers computed with them."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = save(comm, str(shared_tmp / "parts"), path, policy, threshold=3)
    loaded = load_partition(str(shared_tmp / "parts"), comm)
    assert_same(part, loaded)
    parts.check_partition(loaded, graph)
    answer = bfs(loaded, parts.make_sync(loaded), 0)
    assert np.array_equal(parts.gather(loaded, answer.labels["hops"]), graphs.serial_hops(graph, 0))


@pytest.mark.mpi
def test_without_weights(comm, shared_tmp):
    """An app that needs no weights reads none."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    save(comm, str(shared_tmp / "parts"), path)
    assert load_partition(str(shared_tmp / "parts"), comm, weights=False).weights is None


@pytest.mark.mpi
def test_saved_again(comm, shared_tmp):
    """The second save replaces the first, and leaves only its own files."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    save(comm, str(shared_tmp / "parts"), path, "oec")
    part = save(comm, str(shared_tmp / "parts"), path, "iec")
    assert_same(part, load_partition(str(shared_tmp / "parts"), comm))
    comm.Barrier()
    expected = [LOCK, MANIFEST, *read_manifest(shared_tmp / "parts").parts]
    assert sorted(os.listdir(shared_tmp / "parts")) == sorted(expected)


@pytest.mark.mpi
def test_says_what_it_does(comm, shared_tmp, capfd):
    """Saving in place of another partition is said; so is dividing anew, on other ranks than it was saved for."""
    path, folder = graphs.write(shared_tmp / "g.h5", graphs.random_directed()), str(shared_tmp / "parts")
    alone = comm.Split(comm.rank)
    if comm.rank == 0:
        for policy in ("oec", "iec"):
            assert program(alone, [path, "--save", folder, "--policy", policy]) == 0
        assert f"saved to {folder}, in place of one of {path} by oec for 1 ranks" in capfd.readouterr().out
    comm.Barrier()
    assert main(BFS, comm, [folder, "--source", "0"]) == 0
    said = capfd.readouterr().err
    assert ("was saved for 1 ranks" in said) == (comm.rank == 0 and comm.size > 1)
    assert (f"is divided anew among {comm.size} by iec" in said) == (comm.rank == 0 and comm.size > 1)
    alone.Free()


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["gids", "offsets", "targets", "weights", "has_in", "degrees", "mirror_starts"])
def test_damaged_part(comm, shared_tmp, name):
    """A changed value in any array of any rank is refused on every rank."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    save(comm, str(shared_tmp / "parts"), path)
    with together(comm):
        if comm.rank == 0:
            with h5py.File(shared_tmp / "parts" / read_manifest(shared_tmp / "parts").parts[-1], "r+") as file:
                file[name][0] = file[name][0] ^ 1
    with pytest.raises(SavedError, match="damaged"):
        load_partition(str(shared_tmp / "parts"), comm)


@pytest.mark.mpi
@pytest.mark.parametrize("damage", ["cut", "gone", "text"])
def test_broken_file(comm, shared_tmp, damage):
    """A part that was cut short, is missing or is something else."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    save(comm, str(shared_tmp / "parts"), path)
    victim = shared_tmp / "parts" / read_manifest(shared_tmp / "parts").parts[0]
    comm.Barrier()
    if comm.rank == 0:
        if damage == "cut":
            os.truncate(victim, victim.stat().st_size // 2)
        elif damage == "gone":
            victim.unlink()
        else:
            victim.write_text("no HDF5")
    comm.Barrier()
    with pytest.raises(SavedError, match="missing|damaged"):
        load_partition(str(shared_tmp / "parts"), comm)


@pytest.mark.mpi
def test_of_another_graph(comm, shared_tmp):
    """The graph file was rewritten after the partition was saved."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(seed=1), sums=True)
    save(comm, str(shared_tmp / "parts"), path)
    graphs.write(shared_tmp / "g.h5", graphs.random_directed(seed=2), sums=True)
    with pytest.raises(SavedError, match="has changed"):
        load_partition(str(shared_tmp / "parts"), comm)


@pytest.mark.mpi
def test_no_partition(comm, shared_tmp):
    """A folder without a manifest, with a broken one, and with one for other ranks."""
    with pytest.raises(SavedError, match="no partition is saved"):
        load_partition(str(shared_tmp), comm)
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    save(comm, str(shared_tmp / "parts"), path)
    manifest = shared_tmp / "parts" / MANIFEST
    content = json.loads(manifest.read_text())
    comm.Barrier()
    more = {"ranks": SIZE + 1, "parts": [f"part-{rank}-of-{SIZE + 1}.00.h5" for rank in range(SIZE + 1)]}
    for change, message in ((more, "made for"), ({"format_version": 99}, "format version 99")):
        if comm.rank == 0:
            manifest.write_text(json.dumps(content | change))
        comm.Barrier()
        with pytest.raises(SavedError, match=message):
            load_partition(str(shared_tmp / "parts"), comm)
        comm.Barrier()


@pytest.mark.mpi
def test_folder_that_is_a_file(comm, shared_tmp):
    """Saving into something that is not a folder."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    with pytest.raises(OutputError, match="is not a folder"):
        save(comm, str(shared_tmp / "g.h5"), path)


def test_on_other_numbers_of_ranks(tmp_path):
    """Saved on 2 ranks; loaded on 2, partitioned again on 1; the same answers."""
    graph = graphs.random_directed(300, 2000)
    graphs.write_here(tmp_path / "g.h5", graph)
    saved = spawn.mpirun(2, "-m", "cusp", tmp_path / "g.h5", "--policy", "hvc", "--save", tmp_path / "parts")
    assert saved.returncode == 0, saved.stderr
    for n in (2, 1):
        out = tmp_path / f"hops{n}.h5"
        done = spawn.mpirun(n, "-m", "cusp.apps.bfs", tmp_path / "parts", "--source", 0, "--verify", "--output", out)
        assert done.returncode == 0, done.stderr
        with h5py.File(out) as file:
            assert np.array_equal(file["hops"][...], graphs.serial_hops(graph, 0))


@pytest.mark.parametrize("delay", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
def test_killed_while_saving(tmp_path, delay):
    """kill -9 of a rank at some moment of a second save: the first partition is still intact, or the second is."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed(20_000, 200_000), sums=True)
    script = tmp_path / "save.py"
    script.write_text(
        "import sys, cusp\nfrom mpi4py import MPI\nfrom cusp.partitioner import partition_graph\n"
        "from cusp.policies import load_policy\nfrom cusp.output.saved import save_partition\n"
        "comm, graph, folder, policy = MPI.COMM_WORLD, *sys.argv[1:]\n"
        "part = partition_graph(graph, load_policy(policy), comm)\n"
        "comm.Barrier()\nopen(folder + f'.ready.{comm.rank}', 'w').write(str(__import__('os').getpid()))\n"
        "for _ in range(1 if policy == 'oec' else 1000):\n"
        "    save_partition(folder, part, comm, graph=graph, policy=policy, parameters={}, order='degree',\n"
        "                   split='edges')\n"
    )
    folder = tmp_path / "parts"
    arguments = [script, tmp_path / "g.h5", folder]
    assert spawn.mpirun(2, *arguments, "oec").returncode == 0
    ready = tmp_path / "parts.ready.1"
    ready.unlink()
    command = [*spawn.launcher_of.command(2), sys.executable, *map(str, arguments), "iec"]
    environment = spawn.launcher_of.environment({"PYTHONPATH": str(spawn.ROOT)})
    job = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not (ready.exists() and ready.read_text()) and time.monotonic() < limit:
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(int(ready.read_text()), signal.SIGKILL)
    job.wait(60)
    done = spawn.mpirun(2, "-m", "cusp.apps.bfs", folder, "--source", 0, "--verify")
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout
    shutil.rmtree(folder)
