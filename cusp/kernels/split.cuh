// Stable split by up to 256 digits: edges by owner, and one pass of a radix sort. Compiled for a type KEY,
// whose digit is (key >> shift) & 255, and a type VALUE of what travels along.
//
// A tile is what a block works on. First every block counts its digits; the running sum of the counts, ordered
// by digit and then by block, says where the entries of each digit of each tile begin; then every block puts
// its entries there in the order in which they came.
#include "cusp/kernels/walk.cuh"

constexpr int WARPS = 8;    // of a block: launch with 256 threads
constexpr int ROUNDS = 16;  // entries of a thread
constexpr i64 TILE = 32 * WARPS * ROUNDS;

// Lanes with the same digit among those that have one: one ballot for each bit that differs between digits.
__device__ inline unsigned peers_of(unsigned digit, bool live, int bits) {
  unsigned peers = __ballot_sync(FULL, live);
  for (int bit = 0; bit < bits; bit++) {
    unsigned set = __ballot_sync(FULL, digit >> bit & 1);
    peers &= digit >> bit & 1 ? set : ~set;
  }
  return peers;
}

// counts[digit * tiles + tile]: entries of a tile with a digit. The lowest of the lanes that agree adds for all,
// so that few digits do not fight for one counter.
extern "C" __global__ void count_digits(const KEY* keys, i64 size, i64 shift, i64 bits, unsigned* counts) {
  __shared__ unsigned of_digit[256];
  of_digit[threadIdx.x] = 0;
  __syncthreads();
  for (int round = 0; round < ROUNDS; round++) {
    i64 i = blockIdx.x * TILE + round * 256 + threadIdx.x;
    bool live = i < size;
    unsigned digit = live ? (unsigned)(keys[i] >> shift) & 255 : 0;
    unsigned peers = peers_of(digit, live, (int)bits);
    if (live && lane_id() == (unsigned)__ffs(peers) - 1) atomicAdd(&of_digit[digit], (unsigned)__popc(peers));
  }
  __syncthreads();
  if (threadIdx.x < 1u << bits) counts[(i64)threadIdx.x * gridDim.x + blockIdx.x] = of_digit[threadIdx.x];
}

// Entry i goes to starts[digit * tiles + tile] + the number of earlier entries of the tile with its digit.
// A warp takes 512 entries in a row, 32 at a time; its lanes count those before them by ballots, its counters in
// shared memory hold the rounds before, and their sum over the warps before makes the number complete.
extern "C" __global__ void split(const KEY* keys, const VALUE* values, i64 size, i64 shift, i64 bits,
                                 const i64* starts, i64 with_keys, KEY* split_keys, VALUE* split_values) {
  __shared__ unsigned before[WARPS][256];
  int warp = threadIdx.x / 32;
  for (int w = 0; w < WARPS; w++) before[w][threadIdx.x] = 0;
  __syncthreads();
  i64 begin = blockIdx.x * TILE + warp * 32 * ROUNDS;
  KEY key[ROUNDS];
  unsigned rank[ROUNDS];
#pragma unroll
  for (int round = 0; round < ROUNDS; round++) {
    i64 i = begin + round * 32 + lane_id();
    bool live = i < size;
    key[round] = live ? keys[i] : (KEY)0;
    unsigned digit = (unsigned)(key[round] >> shift) & 255;
    unsigned peers = peers_of(digit, live, (int)bits);
    rank[round] = before[warp][digit] + __popc(peers & below_lane());
    __syncwarp();
    if (live && lane_id() == (unsigned)__ffs(peers) - 1) before[warp][digit] += __popc(peers);
    __syncwarp();
  }
  __syncthreads();
  unsigned sum = 0;
  for (int w = 0; w < WARPS; w++) {
    unsigned of_warp = before[w][threadIdx.x];
    before[w][threadIdx.x] = sum;
    sum += of_warp;
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < ROUNDS; round++) {
    i64 i = begin + round * 32 + lane_id();
    if (i >= size) continue;
    unsigned digit = (unsigned)(key[round] >> shift) & 255;
    i64 at = starts[(i64)digit * gridDim.x + blockIdx.x] + before[warp][digit] + rank[round];
    split_values[at] = values[i];
    if (with_keys) split_keys[at] = key[round];
  }
}

// How many edges of each row each rank gets: counts[owner * rows + row] += 1 for each edge. Of the lanes with the same row and
// owner, the lowest adds for all.
extern "C" __global__ void count_by_owner(const i64* indptr, i64 rows, const KEY* owners, unsigned* counts) {
  for_each_edge_in(indptr, 0, rows, [&](i64 row, i64 edge, bool live) {
    unsigned lanes = __ballot_sync(FULL, live);
    if (!live) return;
    i64 counter = owners[edge] * rows + row;
    unsigned peers = __match_any_sync(lanes, counter);
    if (lane_id() == (unsigned)__ffs(peers) - 1) atomicAdd(&counts[counter], (unsigned)__popc(peers));
  });
}
