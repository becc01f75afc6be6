// What several kernels of the partitioner share: walking through the edges of a CSR, and looking up local ids.
// Every warp takes a run of consecutive edges, however long or short their rows are, so that all warps have
// the same work and neighbouring lanes read neighbouring words.

typedef unsigned long long Word;

constexpr long long RUN = 1024;  // edges of a warp
constexpr unsigned ALL_LANES = 0xffffffffu;

// The run of this warp among the edges begin to end - 1. A launch has 32 threads for every RUN edges.
struct Run {
    long long begin, end;
    int lane;
};

__device__ __forceinline__ Run my_run(long long begin, long long end) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    begin += thread / 32 * RUN;
    return {begin, begin + RUN < end ? begin + RUN : end, int(threadIdx.x % 32)};
}

// Row of an edge, given one that begins at or before it: offsets[row] <= edge < offsets[row + 1]. Steps that
// double, then halve: a lane goes on from its last row, which is 32 edges back, so few steps are enough.
__device__ __forceinline__ long long row_of(const long long *offsets, long long rows, long long row, long long edge) {
    if (edge < offsets[row + 1]) return row;
    long long low = row + 1, step = 1;
    while (low + step < rows && offsets[low + step] <= edge) {
        low += step;
        step *= 2;
    }
    long long high = low + step < rows ? low + step : rows;
    while (high - low > 1) {
        const long long middle = (low + high) / 2;
        if (offsets[middle] <= edge) low = middle;
        else high = middle;
    }
    return low;
}

// Bits of the proxies and how many come before each word stand side by side (cusp/lid_map.py): one 16-byte
// access finds a place.
__device__ __forceinline__ bool has_bit(const Word *index, Word gid) { return index[2 * (gid >> 6)] >> (gid & 63) & 1; }

__device__ __forceinline__ long long bits_below(const Word *index, Word gid) {
    const Word below = index[2 * (gid >> 6)] & ((Word(1) << (gid & 63)) - 1);
    return (long long)(index[2 * (gid >> 6) + 1] + __popcll(below));
}
