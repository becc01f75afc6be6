"""The stand-in for CuPy: what kernels may use works, and what CUDA or CuPy refuse is refused."""

import io
import os
import shutil

import cudaemu
import numpy as np
import pytest

ALL = 0xFFFFFFFF

pytestmark = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="no g++")


@pytest.fixture(scope="module")
def cp():
    """The stand-in, as ``import cupy`` would give it."""
    with cudaemu.imported() as cupy:
        yield cupy


@pytest.fixture(scope="module")
def kernel(cp):
    """A function: the kernel of sample.cuh with this name."""
    return cp.RawModule(code=(cudaemu.HERE / "sample.cuh").read_text(), options=("--std=c++17",)).get_function


@pytest.fixture(scope="module")
def grid_kernel(cp):
    """A function: the kernel of sample_grid.cuh with this name, launched so that all blocks run at once."""
    code = (cudaemu.HERE / "sample_grid.cuh").read_text()
    return cp.RawModule(code=code, enable_cooperative_groups=True).get_function


# --- Kernels ------------------------------------------------------------------------------------------------------


def test_plain_threads(cp, kernel):
    out = cp.zeros(1000, np.float64)
    values = cp.arange(1000, dtype=np.int32)
    kernel("scale")((8,), (128,), (values, 1000, np.float32(0.5), True, out))
    factors = np.array([1, 10, 100, 1000])
    assert np.array_equal(out.get(), -0.5 * np.arange(1000) * factors[np.arange(1000) & 3])


def test_three_dimensions(cp, kernel):
    out = cp.zeros((2 * 3 * 2 * 4 * 2 * 2, 3), np.int32)
    kernel("place")((2, 3, 2), (4, 2, 2), (out,))
    threads = out.get().reshape(2, 3 * 2, 2, 2, 4, 3)
    assert np.array_equal(threads[1, 4, 1, 0], [[x, 0, 1] for x in range(4)])


def test_structures_and_device_variables(cp):
    module = cp.RawModule(code=(cudaemu.HERE / "sample.cuh").read_text())
    pair = np.zeros(1, np.dtype([("first", np.int32), ("second", np.float64)], align=True))
    pair[0] = (3, 1.5)
    out = cp.zeros(64)
    module.get_function("take_pair")((1,), (64,), (pair, out))
    assert (out.get() == 4.5).all()
    assert cp.ndarray((1,), np.int32, module.get_global("calls"))[0] == 64


def test_structures_with_pointers(cp):
    code = """
    struct Slice { int* values; long long size; };
    extern "C" __global__ void fill(Slice slice) { for (int i = 0; i < slice.size; i++) slice.values[i] = 7; }
    """
    values, kernel = cp.zeros(4, np.int32), cp.RawKernel(code, "fill")
    kernel((1,), (1,), (np.array([values.data.ptr, 3], np.int64).view("V16"),))
    assert values.tolist() == [7, 7, 7, 0]
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="store of 4 bytes at byte 16 of an array of 16 bytes"):
        kernel((1,), (1,), (np.array([values.data.ptr, 5], np.int64).view("V16"),))
    with pytest.raises(TypeError, match=r"of type \|V24, the parameter a struct of 16 bytes"):
        kernel((1,), (1,), (np.array([values.data.ptr, 3, 0], np.int64).view("V24"),))


def test_templates_and_options(cp):
    names = ["add_constant<int, 5>", "add_constant<double, 2>"]
    code = (cudaemu.HERE / "sample.cuh").read_text()
    module = cp.RawModule(code=code, options=("-DSCALE=3", "-arch=sm_90"), name_expressions=names)
    ints, doubles = cp.zeros(4, np.int32), cp.zeros(4)
    module.get_function(names[0])((1,), (4,), (ints,))
    module.get_function(names[1])((1,), (4,), (doubles,))
    assert ints.tolist() == [5] * 4 and doubles.tolist() == [2.0] * 4
    module.get_function("scale")((1,), (4,), (ints, 4, np.float32(1), False, doubles))
    assert doubles.tolist() == [15, 150, 1500, 15000]


def test_bits(cp, kernel):
    out = cp.zeros(15, np.int64)
    kernel("bits")((1,), (1,), (np.uint32(0b1100), np.uint64(1 << 40), out))
    two = np.float64(2).view(np.int64)
    assert out.tolist() == [2, 1, 3, 41, 28, 23, 0x30000000, 0x3F800000, 3, two, 3, 5, 2, 32, 7]


def test_atomics(cp, kernel):
    ints, words, wides = cp.zeros(10, np.int32), cp.zeros(4, np.uint32), cp.zeros(2, np.uint64)
    floats, doubles, longs = cp.zeros(1, np.float32), cp.zeros(1), cp.zeros(1, np.int64)
    words[1], ints[7], ints[9] = 0xFFFF, 6, 11
    kernel("atomics")((4,), (64,), (ints, words, wides, floats, doubles, longs))
    assert ints.tolist()[:4] == [256, -255, 255, -512] and int(ints[4]) == int(ints[5]) > 0
    assert ints.tolist()[6:] == [6, 0, 11, 11]
    assert words.tolist() == [ALL, 0xFF00, 0, 256 % 10]
    assert wides.tolist() == [256 << 33, 255 << 40] and longs.tolist() == [-255 << 33]
    assert floats.tolist() == [128.0] and doubles.tolist() == [64.0]


def test_warp_functions(cp, kernel):
    values = np.arange(64, dtype=np.int32)[::-1] % 32 + 1
    out = cp.zeros((64, 16), np.int64)
    kernel("warp_functions")((1,), (64,), (cp.asarray(np.ascontiguousarray(values)), out))
    row, value = out.get(), values[:32]
    for lane in range(32):
        same = sum(1 << i for i in range(32) if value[i] % 3 == value[lane] % 3)
        down = value[lane + 2] if lane % 8 < 6 else value[lane]
        expected = [0xAAAAAAAA, 1, 1, value[5], int(value[max(lane - 1, 0)]) << 40, down, value[lane ^ 16], same,
                    value.sum(), -32, -1, ALL, ALL]  # fmt: skip
        assert row[lane, :13].tolist() == expected
        assert row[lane, 13] == (0xAA if lane < 8 else 0)
        assert row[lane, 14:].tolist() == ([16, 16 * (lane // 4 * 4 + 3)] if lane < 16 else [0, 0])
    assert np.array_equal(row[:32], row[32:])


@pytest.mark.parametrize("threads", [256, 33])
def test_barriers_and_shared_memory(cp, kernel, threads):
    values, votes = cp.arange(3 * threads, dtype=np.int32), cp.zeros((3, 4), np.int32)
    kernel("reverse_blocks")((3,), (threads,), (values, votes))
    host = np.arange(3 * threads).reshape(3, threads)
    assert np.array_equal(values.get().reshape(3, threads), host[:, ::-1])
    assert votes.tolist() == [[(row & 1).sum(), 1, 0, threads] for row in host]


def test_dynamic_shared_memory(cp, kernel):
    values = cp.arange(100, dtype=np.int32)
    kernel("dynamic_shared")((1,), (100,), (values,), shared_mem=400)
    assert np.array_equal(values.get(), np.roll(np.arange(100), -1))


def test_shared_memory_of_templates(cp, kernel):
    out = cp.zeros((5, 2), np.int32)
    kernel("sums_of_two_sizes")((5,), (64,), (out,))
    assert out.tolist() == [[64, 64 * 63 // 2]] * 5


def test_shared_memory_begins_as_garbage(cp):
    code = 'extern "C" __global__ void k(int* out) { __shared__ int x; extern __shared__ int y[]; *out = x | y[0]; }'
    out = cp.zeros(1, np.int32)
    cp.RawKernel(code, "k")((1,), (1,), (out,), shared_mem=4)
    assert int(out[0]) == np.uint32(0xCBCBCBCB).view(np.int32)


# --- Barriers across the grid -------------------------------------------------------------------------------------


def test_handmade_grid_barrier(cp, kernel):
    arrived, values, sums = cp.zeros(1, np.uint32), cp.zeros(7, np.int32), cp.zeros(7, np.int32)
    kernel("handmade_barrier")((7,), (64,), (arrived, values, sums))
    assert sums.tolist() == [21] * 7


def test_a_loop_that_reads_a_volatile_flag(cp, kernel):
    flag, seen = cp.zeros(1, np.int32), cp.zeros(5, np.int32)
    kernel("volatile_flag")((5,), (3,), (flag, seen))
    assert seen.tolist() == [7] * 5


def test_cooperative_groups(cp, grid_kernel):
    values, sums = cp.zeros(6, np.int32), cp.zeros(6, np.int32)
    grid_kernel("grid_sums")((6,), (40,), (values, sums, np.int32(4)))
    assert sums.tolist() == [6 * 15] * 6
    grid_kernel("tile_sums")((1,), (32,), (cp.arange(32, dtype=np.int32), sums))
    assert sums.tolist()[:4] == [28, 92, 156, 220]


def test_atomic_ref(cp, grid_kernel):
    order = cp.zeros(9, np.int32)
    grid_kernel("pass_on")((9,), (1,), (cp.zeros(10, np.int32), order))
    assert order.tolist() == list(range(9))[::-1]


def test_a_grid_that_does_not_fit_cannot_wait_for_itself(cp, kernel, grid_kernel, monkeypatch):
    fits = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(grid_kernel("grid_sums").kernel.ptr, 1024, 0)
    fits *= cp.cuda.Device().attributes["MultiProcessorCount"]
    sums = cp.zeros(100, np.int32)
    with pytest.warns(UserWarning, match="grid size will be reduced"):
        grid_kernel("grid_sums")((fits + 1,), (1024,), (cp.zeros(100, np.int32), sums, np.int32(2)))
    assert (sums.get()[:fits] > 0).all() and int(sums[fits]) == 0
    monkeypatch.setenv("CUDAEMU_TIMEOUT", "0.2")
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="the launch does not end"):
        values = cp.zeros(100, np.int32)
        kernel("handmade_barrier")((fits + 1,), (1024,), (cp.zeros(1, np.uint32), values, values))


# --- Errors inside kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "divergent_barrier",
            r"divergent barrier: thread \(0, 0, 0\) of block \(0, 0, 0\) waits at .*:\d+, thread \(16,",
        ),
        ("missing_lane", r"deadlock: .*; 1 waiting at .*; 31 waiting at|; 31 waiting at .*; 1 waiting at"),
        ("waits_for_nobody", "the launch does not end: every thread waits for another; 32 waiting at an atomic"),
    ],
)
def test_threads_that_wait_in_vain(cp, kernel, monkeypatch, name, message):
    monkeypatch.setenv("CUDAEMU_TIMEOUT", "0.2")
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match=message):
        kernel(name)((1,), (32,), (cp.zeros(32, np.int32),))
    test_barriers_and_shared_memory(cp, kernel, 256)  # other launches are not harmed


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("out[i] = 1", "store of 4 bytes at byte 16 of an array of 16 bytes"),
        ("out[0] = out[i - 5]", "load of 4 bytes "),
        ("atomicAdd(&out[i], 1)", "store of 4 bytes at byte 16 of an array of 16 bytes"),
        ("out[0] = __ldg(out + i)", "load of 4 bytes at byte 16 of an array of 16 bytes"),
        ("*(double*)&out[3] = 1", "store of 8 bytes at byte 12 of an array of 16 bytes"),
        ("__shared__ int row[4]; row[i << 5] = 1", "store of 4 bytes outside of the block's shared variables"),
        ("extern __shared__ int row[]; row[i] = 1", "store of 4 bytes outside of the block's shared variables"),
    ],
)
def test_addresses_outside_of_arrays(cp, statement, message):
    code = f'#line 3 "some.cuh"\nextern "C" __global__ void k(int* out, long long i) {{\n{statement};\n}}'
    place = r" by thread \(0, 0, 0\) of block \(0, 0, 0\) at (.*/)?some\.cuh:4$"
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="k: " + message + ".*" + place):
        cp.RawKernel(code, "k")((1,), (1,), (cp.zeros(4, np.int32), 4), shared_mem=16)


def test_memory_that_was_freed(cp, kernel):
    gone = cp.zeros(1, np.int32).data.ptr
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="store of 4 bytes"):
        kernel("outside")((1,), (1,), (gone, 0))


def test_faults_without_checks(cp, monkeypatch):
    monkeypatch.setenv("CUDAEMU_CHECK", "0")
    code = 'extern "C" __global__ void k(int* out, int zero) { out[0] = 7 / zero; }'
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match=r"illegal memory access .* thread \(0, 0, 0\)"):
        cp.RawKernel(code, "k")((1,), (1,), (16, np.int32(1)))
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="division by zero"):
        cp.RawKernel(code, "k")((1,), (1,), (cp.zeros(1, np.int32), np.int32(0)))


def test_assert_and_a_grid_barrier_in_an_ordinary_launch(cp):
    code = '#line 5 "k.cuh"\nextern "C" __global__ void k(int x) { assert(x > 3); }'
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match=r"assertion failed: x > 3 at k.cuh:5, thread"):
        cp.RawKernel(code, "k")((1,), (1,), (np.int32(3),))
    ordinary = cp.RawModule(code=(cudaemu.HERE / "sample_grid.cuh").read_text()).get_function("grid_sums")
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="grid barrier in a launch that is not cooperative"):
        ordinary((1,), (1,), (cp.zeros(1, np.int32), cp.zeros(1, np.int32), np.int32(1)))


@pytest.mark.parametrize("seed", ["3", "4"])
def test_other_orders_of_threads(cp, kernel, grid_kernel, monkeypatch, seed):
    out = cp.zeros(64, np.int32)
    kernel("forgotten_barrier")((1,), (64,), (out,))
    first = out.get()
    monkeypatch.setenv("CUDAEMU_SEED", seed)
    kernel("forgotten_barrier")((1,), (64,), (out,))
    assert not np.array_equal(out.get(), first)
    for test in (test_warp_functions, test_atomics, test_shared_memory_of_templates):
        test(cp, kernel)
    test_barriers_and_shared_memory(cp, kernel, 33)
    test_cooperative_groups(cp, grid_kernel)


def test_interrupted_threads_lose_updates(cp, kernel, monkeypatch):
    monkeypatch.setenv("CUDAEMU_PREEMPT", "2")
    counter = cp.zeros(1, np.int32)
    kernel("race")((2,), (32,), (counter, 50))
    assert 0 < int(counter[0]) < 2 * 32 * 50


# --- Launches that are refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({1: np.int32(4)}, TypeError, "argument 1 is .* of type int32, the parameter a signed integer of 8 bytes"),
        ({2: 0.5}, TypeError, "argument 2 is 0.5 of type float64, the parameter a float of 4 bytes"),
        ({2: np.int32(1)}, TypeError, "argument 2 is .* of type int32, the parameter a float"),
        ({3: 1}, TypeError, "argument 3 is .* of type int64, the parameter a bool of 1 bytes"),
        ({0: 5.0}, TypeError, "argument 0 is a float, the parameter a pointer"),
        (
            {0: np.zeros(4, np.int32)},
            TypeError,
            "argument 0 is a ndarray, the parameter a pointer: pass a cupy.ndarray",
        ),
        ({0: "int64"}, TypeError, "argument 0 is an array of int64, the parameter a pointer to a signed integer of 4"),
        ({0: "float32"}, TypeError, "argument 0 is an array of float32"),
        ({0: "every other"}, ValueError, "argument 0 is not contiguous"),
    ],
)
def test_wrong_arguments(cp, kernel, change, error, message):
    special = {
        "int64": cp.zeros(4, np.int64),
        "float32": cp.zeros(4, np.float32),
        "every other": cp.zeros(8, np.int32)[::2],
    }
    args = [cp.zeros(4, np.int32), 4, np.float32(1), False, cp.zeros(4)]
    for place, value in change.items():
        args[place] = special[value] if isinstance(value, str) else value
    with pytest.raises(error, match=message):
        kernel("scale")((1,), (4,), tuple(args))
    with pytest.raises(TypeError, match="scale has 5 parameters, 2 arguments were given"):
        kernel("scale")((1,), (4,), tuple(args[:2]))


@pytest.mark.parametrize(
    ("name", "grid", "block", "shared"),
    [
        ("atomics", (0,), (1,), 0), ("atomics", (1,), (0,), 0), ("atomics", (1,), (1025,), 0),
        ("atomics", (1,), (32, 32, 2), 0), ("atomics", (1, 70000), (1,), 0), ("atomics", (1 << 31,), (1,), 0),
        ("atomics", (1,), (1,), 49153), ("take_pair", (1,), (65,), 0),
    ],
)  # fmt: skip
def test_wrong_shapes(cp, kernel, name, grid, block, shared):
    with pytest.raises(cp.cuda.driver.CUDADriverError, match=f"CUDA_ERROR_INVALID_VALUE: {name}: "):
        kernel(name)(grid, block, (), shared_mem=shared)


def test_much_dynamic_shared_memory_must_be_asked_for(cp, kernel):
    function = kernel("dynamic_shared")
    with pytest.raises(cp.cuda.driver.CUDADriverError):
        function.max_dynamic_shared_size_bytes = 300 << 10
    function.max_dynamic_shared_size_bytes = 200 << 10
    function((1,), (8,), (cp.zeros(8, np.int32),), shared_mem=200 << 10)


def test_unknown_kernels_and_sources_that_do_not_compile(cp, kernel):
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="named symbol not found: no_such_kernel"):
        kernel("no_such_kernel")
    code = '#line 7 "apps/some.cuh"\nextern "C" __global__ void k(int* out) { *out = undefined; }'
    with pytest.raises(cp.cuda.compiler.CompileException, match=r"apps/some\.cuh:7:\d+: error: .undefined.") as caught:
        cp.RawModule(code=code).get_function("k")
    listing = io.StringIO()
    caught.value.dump(listing)
    assert "undefined" in listing.getvalue()
    with pytest.raises(cp.cuda.compiler.CompileException, match="line 1: inline PTX"):
        cp.RawModule(code='__device__ void f() { asm volatile("nop;"); }').compile()
    with pytest.raises(cp.cuda.compiler.CompileException, match="--no-such-option"):
        cp.RawModule(code="", options=("--no-such-option",)).compile()


@pytest.mark.parametrize("call", ["atomicAdd((long long*)p, 1ll)", "__shfl_sync(~0u, *p, 0)", "min(1, 2ll)"])
def test_what_cuda_lacks_is_lacking_here(cp, call):
    code = f'struct Big {{ int x[4]; }};\nextern "C" __global__ void k(Big* p) {{ {call}; }}'
    with pytest.raises(cp.cuda.compiler.CompileException, match="error"):
        cp.RawKernel(code, "k").compile()
