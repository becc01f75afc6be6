"""The graph file: what is read, how it is shared out, and what is checked."""

import os
from contextlib import suppress
from itertools import product

import damage
import graphs
import h5py
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.apps import bfs, harness
from cusp.errors import GraphFileError, InputError, OptionError
from cusp.formats import open_edges
from cusp.input import edge_slice
from cusp.input.checksum import checksum, combine
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import read_header
from cusp.input.read_cpu import asymmetry
from cusp.input.split import first_node_of, split_weights

GRAPH = damage.GRAPH


def test_header(tmp_path):
    """What the header says, in native byte order."""
    path = str(tmp_path / "g.h5")
    graphs.write_here(path, GRAPH, index=">i8", weight=">f4", symmetric=True, transpose=True)
    header = read_header(path)
    assert (header.path, header.num_nodes, header.num_edges) == (path, 40, 200)
    assert (header.symmetric, header.has_transpose) == (True, True)
    assert header.index_dtype.isnative and header.weight_dtype == np.float32
    graphs.write_here(path, GRAPH, weight=None)
    header = read_header(path)
    assert (header.symmetric, header.has_transpose, header.weight_dtype) == (False, False, None)


@pytest.mark.mpi
@pytest.mark.parametrize("sums", [False, True], ids=["plain", "checksums"])
@pytest.mark.parametrize("weight", [None, "u1", "f8"])
def test_slices_make_up_the_graph(comm, shared_tmp, weight, sums):
    """All ranks together read each edge once."""
    path = graphs.write(shared_tmp / "g.h5", GRAPH, weight=weight, sums=sums)
    edges = read_slice(path, comm)
    assert edges.indptr.size == edges.bounds[comm.rank + 1] - edges.bounds[comm.rank] + 1
    assert (edges.indptr[0], edges.indptr[-1]) == (0, edges.targets.size)
    assert (edges.weights is None) == (weight is None)
    np.testing.assert_array_equal(np.concatenate(comm.allgather(edges.targets)), GRAPH.targets)
    np.testing.assert_array_equal(np.concatenate(comm.allgather(np.diff(edges.indptr))), GRAPH.degrees)
    if weight is not None:
        np.testing.assert_array_equal(np.concatenate(comm.allgather(edges.weights)), GRAPH.weights)
    assert read_slice(path, comm, weights=False).weights is None


@pytest.mark.mpi
def test_in_degrees(comm, shared_tmp):
    """In-degrees of the slice's nodes, on request."""
    path = graphs.write(shared_tmp / "g.h5", GRAPH, transpose=True, sums=True)
    edges = read_slice(path, comm, in_degrees=True)
    in_degrees = np.bincount(GRAPH.targets, minlength=GRAPH.num_nodes)
    np.testing.assert_array_equal(np.concatenate(comm.allgather(edges.in_degrees)), in_degrees)


@pytest.mark.mpi
@pytest.mark.parametrize("fault", parts.share(damage.FILES))
def test_faults(comm, shared_tmp, fault):
    """Refused on every rank with the same message, wherever the fault is and whoever reads it."""
    pattern = damage.make(damage.FILES[fault], shared_tmp / "bad.h5")
    with pytest.raises(GraphFileError, match=pattern if fault != "folder" else "folder") as caught:
        read_slice(str(shared_tmp / "bad.h5"), comm, "nodes")
    assert len(set(comm.allgather(str(caught.value)))) == 1


@pytest.mark.parametrize("fault", damage.UNTRUSTED)
def test_untrusted(comm, tmp_path, fault):
    """Nothing outside the file is read, nothing that it cannot hold is allocated, and no attribute is believed."""
    pattern = damage.make(damage.UNTRUSTED[fault], tmp_path / "bad.h5")
    path = str(tmp_path / "bad.h5")
    with pytest.raises(GraphFileError, match=pattern):
        read_slice(path, comm)
    with pytest.raises(GraphFileError):
        list(open_edges(path).chunks())


@pytest.mark.parametrize("kind", ["bits", "zeros"])
def test_any_damage_to_metadata(comm, tmp_path, kind):
    """Whatever h5py raises, at any access, is an error of the file."""
    path = tmp_path / "g.h5"
    graphs.write_here(path, GRAPH, sums=True, transpose=True)
    whole = path.read_bytes()
    for place in range(8, 4096, 61):
        content = bytearray(whole)
        content[place : place + 40] = bytes(40) if kind == "zeros" else bytes([whole[place] ^ 64])
        path.write_bytes(content)
        with suppress(GraphFileError):
            read_slice(str(path), comm)


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
def test_a_flipped_bit_is_not_converted(comm, tmp_path, name):
    """The checksums are compared before they are made anew."""
    path = tmp_path / "g.h5"
    damage.flipped(name)(path)
    source = open_edges(path)
    assert sum(chunk[0].size for chunk in source.chunks()) == 200
    with pytest.raises(GraphFileError, match=f"checksum of /{name}"):
        source.check_complete(source.edges_read, [source.sums])


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "bit"), parts.share(product(["indptr", "indices", "data"], [0, 3, 6])))
def test_every_flipped_bit_is_found(comm, shared_tmp, name, bit):
    """A flipped bit at any of several places of a dataset with a checksum."""
    path = graphs.write(shared_tmp / "g.h5", GRAPH, sums=True)
    with h5py.File(path) as file:
        offset, size = file[name].id.get_offset(), file[name].id.get_storage_size()
    comm.Barrier()
    for place in range(offset, offset + size, max(1, size // 12)):
        flip(path, place, bit)
        with pytest.raises(GraphFileError):
            read_slice(path, comm)
        comm.Barrier()
        flip(path, place, bit)
    read_slice(path, comm)


def flip(path: str, place: int, bit: int) -> None:
    """Flip a bit of a file on rank 0. Collective."""
    if ranks.COMM.rank == 0:
        with open(path, "r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1 << bit]))
    ranks.COMM.Barrier()


def test_any_cut(comm, tmp_path):
    """A file that is cut off anywhere is refused with a message."""
    path = tmp_path / "g.h5"
    graphs.write_here(path, GRAPH, sums=True)
    whole = path.read_bytes()
    for size in [*range(0, 200, 23), *range(200, len(whole), len(whole) // 25), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            read_slice(str(path), comm)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_damaged_compressed_chunk(comm, tmp_path, place):
    """Bytes that can no longer be unpacked, in any of the datasets, are an error of the file."""
    path = tmp_path / "g.h5"
    graphs.write_here(path, GRAPH, compression="gzip", chunks=(41,))
    with h5py.File(path) as file:
        chunk = file[("indptr", "indices", "data")[place]].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 4 : chunk.byte_offset + chunk.size] = b"\xff" * (chunk.size - 4)
    path.write_bytes(content)
    with pytest.raises(GraphFileError, match="g.h5"):
        read_slice(str(path), comm)


@pytest.mark.mpi
@settings(max_examples=30)
@given(graph=graphs.small_graphs(), both=st.booleans())
def test_symmetric_is_checked(comm, shared_tmp, graph, both):
    """The attribute is accepted only if the graph has every edge in both directions equally often."""
    graph = graphs.both_ways(graph) if both else graph
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    forth = sorted(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    back = sorted(zip(graph.targets.tolist(), graph.sources.tolist(), strict=True))
    if forth == back:
        assert read_slice(path, comm).symmetric
    else:
        with pytest.raises(GraphFileError, match="symmetric"):
            read_slice(path, comm)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=30), st.integers(0, 30))
def test_checksum(values, cut):
    """Parts add up to the whole; so does the definition, in Python's integers."""
    array = np.array(values, np.uint64)
    pieces = [checksum(array[:cut]), checksum(array[cut:], min(cut, array.size))]
    expected = sum((value + 1) * (2 * place + 1) for place, value in enumerate(values)) % 2**64
    assert checksum(array) == combine(pieces) == expected


@settings(max_examples=30)
@given(graphs.small_graphs(), st.integers(0, 12))
def test_asymmetry_in_parts(graph, cut):
    """The parts of two readers cancel exactly for a symmetric graph."""
    graph, cut = graphs.both_ways(graph), min(cut, graph.num_nodes)
    middle = graph.indptr[cut]
    first = asymmetry(0, graph.indptr[: cut + 1], graph.targets[:middle])
    second = asymmetry(cut, graph.indptr[cut:] - middle, graph.targets[middle:])
    assert (int(first) + int(second)) % 2**64 == 0


@settings(max_examples=60)
@given(
    graph=graphs.small_graphs(),
    size=st.integers(1, 9),
    split=st.sampled_from(["edges", "nodes", "weighted", "0:7", "5:2"]),
)
def test_first_nodes(graph, size, split):
    """Ascending bounds from 0 to N; no rank's share is larger than a fair one by more than one node's weight."""
    indptr = graph.indptr
    bounds = [
        first_node_of(lambda v: indptr[v], graph.num_nodes, graph.num_edges, r, size, split) for r in range(size + 1)
    ]
    assert (bounds[0], bounds[-1]) == (0, graph.num_nodes)
    if split != "0:7" or graph.num_edges:
        assert bounds == sorted(bounds)
        node, edge = split_weights(split, graph.num_nodes, graph.num_edges)
        weight = np.diff(np.arange(graph.num_nodes + 1) * node + indptr * edge)
        shares = [weight[a:b].sum() for a, b in zip(bounds, bounds[1:], strict=False)]
        assert max(shares) < weight.sum() / size + weight.max() + 1


@pytest.mark.parametrize("split", ["", "edge", "1", "1:", ":1", "a:b", "1.5:1", "-1:1", "0:0", "1:1:1"])
def test_split_that_is_none(split):
    """A wrong --split is refused by name."""
    with pytest.raises(OptionError, match="--split"):
        split_weights(split, 10, 10)


@pytest.mark.mpi
def test_scipy_reads_it_too(comm, shared_tmp):
    """The names are SciPy's."""
    sparse = pytest.importorskip("scipy.sparse")
    path = graphs.write(shared_tmp / "g.h5", GRAPH)
    with h5py.File(path) as file:
        matrix = sparse.csr_matrix((file["data"][...], file["indices"][...], file["indptr"][...]), shape=(40, 40))
    assert matrix.sum() == GRAPH.weights.sum()


@pytest.mark.mpi
@pytest.mark.parametrize("when", ["while it is read", "before it is read"])
def test_a_file_that_is_replaced(comm, shared_tmp, monkeypatch, when):
    """What was read of it is of two graphs."""
    path = graphs.write(shared_tmp / "g.h5", GRAPH)
    other = graphs.write(shared_tmp / "other.h5", graphs.random_directed(50, 300))

    def replace(*arguments):
        if name == "warm_up" or path in arguments:  # not of the rehearsal
            comm.Barrier()
            if comm.rank == 0:
                os.replace(other, path)
            comm.Barrier()
        return real(*arguments)

    module, name = (edge_slice, "_check_sums") if when == "while it is read" else (harness, "warm_up")
    real = getattr(module, name)
    monkeypatch.setattr(module, name, replace)
    with pytest.raises(GraphFileError, match=r"g.h5: was written to, or replaced, while it was read"):
        harness.main(bfs.APP, comm, [path, "--source", "0"])
