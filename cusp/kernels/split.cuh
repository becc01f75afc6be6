// Stable split by up to 256 digits: edges by owner, and one pass of a radix sort. Compiled for a type KEY,
// whose digit is (key >> shift) & 255, and a type VALUE of what travels along.
//
// A tile is what a block works on. First every block counts its digits; the running sum of the counts, ordered
// by digit and then by block, says where the entries of each digit of each tile begin; then every block puts
// its entries there in the order in which they came.

constexpr int WARPS = 8;                   // of a block: launch with 256 threads
constexpr int ROUNDS = 16;                 // entries of a thread
constexpr long long TILE = 32 * WARPS * ROUNDS;
constexpr unsigned ALL_LANES = 0xffffffffu;

// Lanes with the same digit among those that have one: a ballot for each bit that differs between digits.
__device__ __forceinline__ unsigned peers_of(unsigned digit, bool live, int bits) {
    unsigned peers = __ballot_sync(ALL_LANES, live);
    for (int bit = 0; bit < bits; ++bit) {
        const unsigned set = __ballot_sync(ALL_LANES, digit >> bit & 1);
        peers &= digit >> bit & 1 ? set : ~set;
    }
    return peers;
}

// counts[digit * tiles + tile]: entries of a tile with a digit. The lowest of the lanes that agree adds for all,
// so that few digits do not fight for one counter.
extern "C" __global__ void count_digits(const KEY *keys, long long size, long long shift, long long bits,
                                        unsigned *counts) {
    __shared__ unsigned found[256];
    found[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int round = 0; round < ROUNDS; ++round) {
        const long long i = blockIdx.x * TILE + round * 256 + threadIdx.x;
        const bool live = i < size;
        const unsigned digit = live ? unsigned(keys[i] >> shift) & 255 : 0;
        const unsigned peers = peers_of(digit, live, int(bits));
        if (live && lane == __ffs(int(peers)) - 1) atomicAdd(found + digit, unsigned(__popc(peers)));
    }
    __syncthreads();
    if (threadIdx.x < 1u << bits) counts[(long long)threadIdx.x * gridDim.x + blockIdx.x] = found[threadIdx.x];
}

// Entry i goes to starts[digit * tiles + tile] + the number of earlier entries of the tile with its digit.
// A warp takes 512 entries in a row, 32 at a time; its lanes count those before them by ballots, its counters in
// shared memory hold the rounds before, and their sum over the warps before makes the number complete.
extern "C" __global__ void split(const KEY *keys, const VALUE *values, long long size, long long shift, long long bits,
                                 const long long *starts, long long with_keys, KEY *split_keys, VALUE *split_values) {
    __shared__ unsigned before[WARPS][256];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int w = 0; w < WARPS; ++w) before[w][threadIdx.x] = 0;
    __syncthreads();
    const long long begin = blockIdx.x * TILE + warp * 32 * ROUNDS;
    KEY key[ROUNDS];
    unsigned rank[ROUNDS];
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const long long i = begin + round * 32 + lane;
        const bool live = i < size;
        key[round] = live ? keys[i] : (KEY)0;
        const unsigned digit = unsigned(key[round] >> shift) & 255;
        const unsigned peers = peers_of(digit, live, int(bits));
        rank[round] = before[warp][digit] + __popc(peers & ((1u << lane) - 1));
        __syncwarp();
        if (live && lane == __ffs(int(peers)) - 1) before[warp][digit] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();
    unsigned sum = 0;
    for (int w = 0; w < WARPS; ++w) {
        const unsigned found = before[w][threadIdx.x];
        before[w][threadIdx.x] = sum;
        sum += found;
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const long long i = begin + round * 32 + lane;
        if (i >= size) continue;
        const unsigned digit = unsigned(key[round] >> shift) & 255;
        const long long at = starts[(long long)digit * gridDim.x + blockIdx.x] + before[warp][digit] + rank[round];
        split_values[at] = values[i];
        if (with_keys) split_keys[at] = key[round];
    }
}
