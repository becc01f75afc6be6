"""A graph file holds what all ranks wrote, with correct checksums, or it does not exist at all."""

import os

import h5py
import numpy as np
import parts
import pytest
from spawn import mpirun
from test_csr_builder import WEIGHTS, add_share, make, oracle

from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.input.checksum import checksum
from cusp.input.graph_file import index_dtype
from cusp.output.dataset_writer import writing_graph
from cusp.output.whole_file import OutputError, check_targets
from cusp.runtime import files
from cusp.runtime.mpi import MPI


def assert_file(path, num_nodes, symmetric, **groups):
    """The file has the given groups ({name: (indptr, indices, data or None)}) and correct attributes."""
    with h5py.File(path) as file:
        found = {name: int(file.attrs[name]) for name in ("num_nodes", "num_edges", "format_version")}
        first = next(iter(groups.values()))
        assert found == {"num_nodes": num_nodes, "num_edges": len(first[1]), "format_version": 1}
        assert file.attrs["symmetric"] == symmetric
        assert file.attrs["num_nodes"].dtype == np.int64
        assert ("csc" in file) == ("csc" in groups)
        for name, arrays in groups.items():
            group = file[name if name == "csc" else "/"]
            for key, values in zip(("indptr", "indices", "data"), arrays, strict=True):
                assert (key in group) == (values is not None)
                if values is not None:
                    np.testing.assert_array_equal(group[key], values)
                    assert group[key].chunks is None
                    assert group[key].attrs["checksum"] == checksum(group[key][:])
                    assert group[key].attrs["checksum"].dtype == np.uint64


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("kind", "symmetrize"), parts.share([*((kind, False) for kind in WEIGHTS), (None, True), ("i4", True)])
)
def test_write(comm, shared_tmp, kind, symmetrize):
    """With the transpose, spilled to scratch files, and a second time over the existing file."""
    sources, targets, weights = make(500, 8000, kind, 7)
    options = {"symmetrize": symmetrize, "dedup": True}
    path = shared_tmp / "graph.h5"
    for memory_limit in (50_000, 10**9):
        builder = CsrBuilder(comm, num_nodes=600, weight_dtype=kind, memory_limit=memory_limit, **options)
        add_share(builder, sources, targets, weights)
        expected = oracle(sources, targets, weights, 600, **options)
        assert builder.write(path, transpose=True) == (600, expected[1].size)
        transposed = oracle(targets, sources, weights, 600, **options)
        assert_file(path, 600, symmetrize, graph=expected, csc=transposed)
        assert os.listdir(shared_tmp) == ["graph.h5"]
        comm.barrier()


@pytest.mark.mpi
@pytest.mark.parametrize("num_nodes", [0, 1, 5])
@pytest.mark.parametrize("kind", [None, "f4"])
def test_no_edges(comm, shared_tmp, num_nodes, kind):
    path = shared_tmp / "empty.h5"
    assert CsrBuilder(comm, num_nodes=num_nodes, weight_dtype=kind).write(path, transpose=True) == (
        num_nodes,
        0,
    )
    arrays = np.zeros(num_nodes + 1), [], None if kind is None else []
    assert_file(path, num_nodes, False, graph=arrays, csc=arrays)


@pytest.mark.mpi
def test_slabs_in_any_order(comm, shared_tmp):
    """Ranks write interleaved slabs; wide ids make 64-bit indices."""
    path = shared_tmp / "slabs.h5"
    indices = np.random.default_rng(0).integers(0, 7, 1000).astype(np.uint32)
    indptr = np.linspace(0, 1000, 8).astype(np.int64)
    with writing_graph(path, comm, num_nodes=7, num_edges=1000, symmetric=True) as writer:
        for first in reversed(range(10 * comm.rank, 1000, 10 * comm.size)):
            writer.write("indices", first, indices[first : first + 10])
        if comm.rank == comm.size - 1:
            writer.write("indptr", 0, indptr)
    assert_file(path, 7, True, graph=(indptr, indices, None))
    assert index_dtype(2**32) == np.uint32 and index_dtype(2**32 + 1) == np.int64


@pytest.mark.mpi
@pytest.mark.parametrize("failing", ["first", "last", "all"])
def test_error_in_block(comm, shared_tmp, failing):
    """What one rank raises in the block ends it on all ranks; the existing file stays as it was."""
    path = shared_tmp / "graph.h5"
    if comm.rank == 0:
        path.write_text("older")
    comm.barrier()
    fails = {"first": comm.rank == 0, "last": comm.rank == comm.size - 1, "all": True}[failing]
    with pytest.raises(OutputError, match="on purpose"):
        with writing_graph(path, comm, num_nodes=1, num_edges=0):
            if fails:
                raise OutputError("on purpose")
    comm.barrier()
    assert path.read_text() == "older"
    assert os.listdir(shared_tmp) == ["graph.h5"]


@pytest.mark.mpi
def test_missing_part(comm, shared_tmp):
    with pytest.raises(OutputError, match="0 of 4 values of /indptr"):
        with writing_graph(shared_tmp / "graph.h5", comm, num_nodes=3, num_edges=0):
            pass
    comm.Barrier()  # rank 0 removes what it made
    assert os.listdir(shared_tmp) == []


@pytest.mark.mpi
def test_no_such_folder(comm, shared_tmp):
    for path in (shared_tmp / "missing" / "graph.h5", shared_tmp):
        with pytest.raises(OutputError, match="folder"):
            check_targets(comm, {"--output": path})
        with pytest.raises(OutputError, match="folder"):
            with writing_graph(path, comm, num_nodes=3, num_edges=0):
                pass


@pytest.mark.mpi
def test_failed_write(comm, shared_tmp, monkeypatch):
    """The disk is full for the last rank only: every rank raises, and nothing is left behind."""

    def full(file, offset, values):
        raise OSError(28, "No space left on device")

    if comm.rank == comm.size - 1:
        monkeypatch.setattr("cusp.output.dataset_writer.write_at", full)
    builder = CsrBuilder(comm)
    builder.add(np.arange(100), np.arange(100))
    with pytest.raises(OutputError, match="No space left on device; free some space"):
        builder.write(shared_tmp / "graph.h5")
    comm.Barrier()
    assert os.listdir(shared_tmp) == []


LIMITED = """
import resource, sys
from cusp.runtime.mpi import MPI
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
import numpy as np
from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.output.whole_file import OutputError
builder = CsrBuilder(MPI.COMM_WORLD)
builder.add(np.zeros(100_000, int), np.arange(100_000))
try:
    builder.write(sys.argv[1])
except OutputError as error:
    print(error, flush=True)
"""


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_file_size_limit(tmp_path, num_ranks):
    """A real error of the operating system: the file may not grow beyond 100 kB."""
    outcome = mpirun(num_ranks, "-c", LIMITED, tmp_path / "graph.h5")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count("cannot be written: File too large; free some space") == num_ranks
    assert os.listdir(tmp_path) == []


def test_short_writes(tmp_path, monkeypatch):
    """The system may write less than requested; a single call gets at most ``MAX_CALL`` bytes."""
    requested = []

    def short(file, data, offset):
        requested.append(len(data))
        return pwrite(file, data[:3], offset)

    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", short)
    monkeypatch.setattr(files, "MAX_CALL", 8)
    values = np.arange(20, dtype=np.int32)
    with open(tmp_path / "file", "wb+") as file:
        files.write_at(file.fileno(), 5, values)
        back = np.empty_like(values)
        files.read_at(file.fileno(), 5, back)
        assert (back == values).all() and max(requested) == 8
        with pytest.raises(OSError, match="the file ends at byte 85, 4 bytes too early"):
            files.read_at(file.fileno(), 9, back)


def test_wrong_slab(tmp_path):
    with pytest.raises(ValueError, match="indices"):
        with writing_graph(tmp_path / "graph.h5", MPI.COMM_SELF, num_nodes=3, num_edges=4) as writer:
            writer.write("indices", 3, np.zeros(2, np.uint32))
