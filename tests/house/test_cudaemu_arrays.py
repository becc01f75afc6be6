"""The stand-in for CuPy without its kernels: arrays that do not mix with NumPy's, streams, memory, devices."""

import copy
import pickle

import cudaemu
import numpy as np
import pytest

from cusp.runtime.mpi import MPI


@pytest.fixture(scope="module")
def cp():
    """The stand-in, as ``import cupy`` would give it."""
    with cudaemu.imported() as cupy:
        yield cupy


# --- Arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mix",
    [
        lambda cp, a, n: np.asarray(a),
        lambda cp, a, n: np.array(a),
        lambda cp, a, n: np.sort(n.searchsorted(a)),
        lambda cp, a, n: a + n,
        lambda cp, a, n: n + a,
        lambda cp, a, n: n < a,
        lambda cp, a, n: np.add(a, n),
        lambda cp, a, n: np.concatenate([a, n]),
        lambda cp, a, n: cp.concatenate([a, n]),
        lambda cp, a, n: cp.add(a, [1, 2, 3]),
        lambda cp, a, n: cp.searchsorted(a, n),
        lambda cp, a, n: a[n],
        lambda cp, a, n: n[a],
        lambda cp, a, n: a.__iadd__(n),
        lambda cp, a, n: a.__setitem__(slice(None), n),
        lambda cp, a, n: a.__setitem__(slice(None), [1, 2, 3]),
        lambda cp, a, n: n.__setitem__(slice(None), a),
        lambda cp, a, n: MPI.COMM_SELF.Allreduce(n, a),
        lambda cp, a, n: memoryview(a),
        lambda cp, a, n: range(a[0]),
        lambda cp, a, n: a.set(n.astype(np.int32)),
        lambda cp, a, n: cp.lexsort((a, a)),
    ],
)
def test_the_memories_of_host_and_device_do_not_mix(cp, mix):
    with pytest.raises((TypeError, IndexError)):
        mix(cp, cp.arange(3), np.arange(3))


def test_what_cupy_lacks(cp):
    array = cp.arange(4)
    with pytest.raises(AttributeError, match="insert"):
        cp.insert(array, 1, 1)
    with pytest.raises(NotImplementedError):
        cp.minimum.reduce(array)
    with pytest.raises(NotImplementedError):
        cp.maximum.accumulate(array)
    with pytest.raises(ValueError, match="repeats"):
        cp.repeat(array, array)
    with pytest.raises(ValueError, match="kind"):
        array.sort(kind="quicksort")
    with pytest.raises(TypeError):
        hash(array)


def test_functions_give_arrays_of_the_device(cp):
    array = cp.asarray(np.array([3, 1, 2], np.uint32))
    for made in (
        array.sum(),
        array[0],
        array.max(),
        cp.sort(array),
        array + 1,
        1 + array,
        array < 2,
        ~array,
        -array,
        array.astype(np.int64),
        cp.nonzero(array)[0],
        cp.where(array > 1, array, 0),
        cp.cumsum(array),
        np.float32(2) * array,
        cp.zeros_like(array),
        cp.bincount(array),
        array.view(np.int32),
        array.T,
        array.reshape(3, 1),
        cp.stack([array, array]),
        np.sqrt(array),
        np.concatenate([array, array]),
        cp.unique(array, return_inverse=True)[1],
        array[array > 1],
        array[cp.asarray([0, 2])],
        array[::2],
        array[[0, 1]],
        cp.take(array, cp.asarray([1])),
        cp.unpackbits(array.view(cp.uint8)),
    ):
        assert type(made) is cp.ndarray
    assert array.sum().shape == () and array.sum().dtype == np.uint64 and int(array.sum()) == 6
    assert (array[1:] + array[:-1]).tolist() == [4, 3] and bool((array == array).all())
    assert f"{array} {array[0]:02d} {array!r}" == "[3 1 2] 03 array([3, 1, 2], dtype=uint32)"
    assert isinstance(array.get(), np.ndarray) and cp.asnumpy(array).dtype == np.uint32
    assert cp.get_array_module(array) is cp and cp.get_array_module(np.zeros(1)) is np
    assert copy.deepcopy(array).tolist() == pickle.loads(pickle.dumps(array)).tolist() == [3, 1, 2]


def test_views_and_copies(cp):
    array = cp.zeros((3, 4), np.int32)
    array[1][2] = 5
    row = array[2]
    row += 7
    array[0, 0] = array[1, 2]
    assert array.tolist() == [[5, 0, 0, 0], [0, 0, 5, 0], [7, 7, 7, 7]]
    assert row.data.ptr == array.data.ptr + 32 and row.data.mem is array.data.mem
    assert cp.asarray(array) is array and cp.array(array).data.ptr != array.data.ptr
    first = array[0, 0]
    array[0, 0] = 9
    assert int(first) == 9  # an entry is a view, as in CuPy
    cp.add.at(array, cp.asarray([0, 0]), 1)
    assert array[0].tolist() == [11, 2, 2, 2]
    out = cp.empty(4, np.int64)
    assert cp.cumsum(array[0], out=out) is out and out.tolist() == [11, 13, 15, 17]


def test_new_memory_is_garbage(cp):
    for made in (cp.empty(2, np.int32), cp.ndarray(2, np.int32), cp.empty_like(cp.zeros(2, np.int32))):
        assert made.tolist() == [np.uint32(0xCDCDCDCD).view(np.int32)] * 2
    pinned = np.frombuffer(cp.cuda.alloc_pinned_memory(10), np.int32)
    assert pinned.size == 128 and pinned[0] == np.uint32(0xCDCDCDCD).view(np.int32)


# --- Streams ------------------------------------------------------------------------------------------------------


def test_copies_to_the_host_arrive_when_the_stream_is_synchronized(cp):
    stream, array = cp.cuda.Stream(non_blocking=True), cp.arange(4)
    landing = np.frombuffer(cp.cuda.alloc_pinned_memory(32), np.int64, 4)
    array.get(stream=stream, out=landing, blocking=False)
    array += 1
    assert landing[1] != 1
    cp.cuda.Stream.null.synchronize()
    assert landing[1] != 1
    stream.synchronize()
    assert landing.tolist() == [0, 1, 2, 3]
    with stream:
        assert cp.cuda.get_current_stream() is stream
        cp.cuda.runtime.memcpyAsync(
            landing.ctypes.data, array.data.ptr, 32, cp.cuda.runtime.memcpyDeviceToHost, stream.ptr
        )
        event = stream.record()
        array.get(out=landing, blocking=False)
    assert cp.cuda.get_current_stream() is cp.cuda.Stream.null
    landing[:] = 0
    event.synchronize()
    assert landing.tolist() == [1, 2, 3, 4]
    landing[:] = 0
    cp.cuda.Device().synchronize()
    assert landing.tolist() == [1, 2, 3, 4]


def test_events_have_a_time(cp):
    first, last = cp.cuda.Event(), cp.cuda.Event()
    first.record()
    last.record(cp.cuda.Stream())
    assert last.done and cp.cuda.get_elapsed_time(first, last) >= 0
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError):
        cp.cuda.get_elapsed_time(first, cp.cuda.Event(disable_timing=True))


# --- Memory and devices -------------------------------------------------------------------------------------------


def test_memory_is_counted(cp):
    pool = cp.cuda.MemoryPool()
    before = cp.get_default_memory_pool()
    cp.cuda.set_allocator(pool.malloc)
    try:
        array = cp.zeros(1000, np.int64)
        part = array[500:]
        del array
        assert pool.used_bytes() == 8000 and cp.cuda.Device().mem_info[0] == cp.cuda.Device().mem_info[1] - 8000
        del part
        assert pool.used_bytes() == 0
        pool.set_limit(size=100)
        with pytest.raises(cp.cuda.memory.OutOfMemoryError):
            cp.zeros(101, np.int8)
    finally:
        cp.cuda.set_allocator(before.malloc)


def test_addresses(cp):
    runtime = cp.cuda.runtime
    address = runtime.malloc(16)
    array = cp.ndarray((2,), np.int64, cp.cuda.MemoryPointer(cp.cuda.UnownedMemory(address, 16, None), 0))
    source = cp.asarray([5, 6])
    runtime.memcpy(array.data.ptr, source.data.ptr, 16, runtime.memcpyDeviceToDevice)
    (array.data + 8).memset(0, 8)
    assert array.tolist() == [5, 0]
    runtime.free(address)
    with pytest.raises(runtime.CUDARuntimeError):
        runtime.free(address)


def test_several_devices(cp, monkeypatch):
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="invalid device ordinal"):
        cp.cuda.Device(1).use()
    monkeypatch.setenv("CUDAEMU_DEVICES", "2")
    assert cp.cuda.runtime.getDeviceCount() == 2
    with cp.cuda.Device(1):
        array = cp.zeros(1, np.int32)
    assert array.device.id == 1 and cp.cuda.Device().id == 0
    kernel = cp.RawKernel('extern "C" __global__ void k(int* out) { *out = 1; }', "k")
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="lies on device 1"):
        kernel((1,), (1,), (array,))
    monkeypatch.setenv("CUDAEMU_DEVICES", "0")
    assert not cp.cuda.is_available()
