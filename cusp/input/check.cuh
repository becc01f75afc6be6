// What must hold in a graph file, checked where its entries lie. Twins: cusp/input/checksum.py, cusp/input/checks.py.
// Compiled for an unsigned type VALUE of the bits of an entry.
#include "../kernels/walk.cuh"

constexpr int EACH = 8;  // entries of a thread at a time

__device__ __forceinline__ Word sum_of_warp(Word part) {
    for (int half = 16; half; half /= 2) part += __shfl_xor_sync(ALL_LANES, part, half);
    return part;
}

// sum[0] += checksum of the entries, which stand at first, first + 1 ... of the dataset; wrong[0] = least index of an
// entry with (bits & mask) > limit. Sums mod 2^64 and the least do not depend on the order of the atomics. A warp goes
// through all entries with the others and adds what it has with one atomic; EACH loads are under way at once.
extern "C" __global__ void check(const VALUE *values, long long size, long long first, long long mask, long long limit,
                                 Word *sum, long long *wrong) {
    Word part = 0;
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += EACH * threads) {
        Word bits[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) bits[k] = i + k * threads < size ? Word(values[i + k * threads]) : 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const long long place = i + k * threads;
            if (place >= size) break;
            part += (bits[k] + 1) * (2 * Word(first + place) + 1);
            if ((bits[k] & Word(mask)) > Word(limit)) atomicMin(wrong, place);
        }
    }
    part = sum_of_warp(part);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, part);
}

// wrong[0] = least index of an entry that is below the one before it or outside 0 .. num_edges. One thread an entry.
extern "C" __global__ void check_rising(const long long *indptr, long long size, long long num_edges, long long *wrong) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const long long before = i ? indptr[i - 1] : 0;
    if (indptr[i] < before || indptr[i] > num_edges) atomicMin(wrong, i);
}

__device__ __forceinline__ Word mix(Word x, Word factor) {
    const Word product = (x + 1) * factor;
    return product ^ product >> 32;
}

// sum[0] += f(u) g(v) - g(u) f(v) for each edge u -> v; see cusp/input/checks.py, which sums by rows. mod 2^64 that is the same.
extern "C" __global__ void asymmetry(long long first_node, const long long *indptr, long long rows, const VALUE *targets,
                                     Word *sum) {
    const Word f = 0x9E3779B97F4A7C15ull, g = 0xD6E8FEB86659FD93ull;
    const Run run = my_run(indptr[0], indptr[rows]);
    Word part = 0;
    long long row = 0;
    for (long long edge = run.begin + run.lane; edge < run.end; edge += 32) {
        row = row_of(indptr, rows, row, edge);
        const Word source = Word(first_node + row), target = Word(targets[edge]);
        part += mix(source, f) * mix(target, g) - mix(source, g) * mix(target, f);
    }
    part = sum_of_warp(part);
    if (run.lane == 0) atomicAdd(sum, part);
}
