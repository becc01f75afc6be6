// Communities: see interfaces.py.
#include "cusp/apps/operators/communities/tables.cuh"

// Rows of up to SHORT edges, with tables in shared memory: 8 blocks of 24 KiB fill a multiprocessor.
extern "C" __global__ void __launch_bounds__(32 * WARPS) take_by_warps(Rows of, JOB job, const i64* items, i64 size) {
  __shared__ int keys[SLOTS];
  __shared__ double sums[SLOTS];
  int first = threadIdx.x / 32 * (2 * SHORT);
  for (i64 i = thread_id() / 32; i < size; i += num_threads() / 32) {
    i64 row = of.rows[items[i]];
    take_row<Warp>(of, job, items[i], row, {keys + first, sums + first, slots_of(of, row)});
  }
}

// Longer rows, a block each. What does not fit into shared memory goes to the block's own part of ``keys`` and ``sums``, from
// slot begins[blockIdx.x] on. Blocks draw rows, the longest first: so the part that fits the first row of a block fits all that
// it draws later, and as rows get shorter, the tables of all blocks fit into the L2 cache.
extern "C" __global__ void __launch_bounds__(1024)
take_by_blocks(Rows of, JOB job, const i64* items, i64 size, const i64* begins, int* keys, double* sums, u64* drawn) {
  __shared__ int near_keys[SLOTS];
  __shared__ double near_sums[SLOTS];
  __shared__ i64 next;
  for (i64 i = blockIdx.x; i < size; i = next) {
    i64 row = of.rows[items[i]];
    unsigned slots = slots_of(of, row);
    bool near = slots <= SLOTS;
    take_row<Block>(of, job, items[i], row, near ? Table{near_keys, near_sums, slots}
                                                 : Table{keys + begins[blockIdx.x], sums + begins[blockIdx.x], slots});
    if (threadIdx.x == 0) next = gridDim.x + (i64)atomicAdd(drawn, 1ull);
    __syncthreads();
  }
}

// Proxies whose communities have changed, the CSR they are rows of, and the communities of all, of type NAME. Row i of ``rows``
// has the places starts[i] to starts[i + 1] - 1 among the edges of all of them.
struct Moves {
  const i64* rows;
  const i64* starts;
  const i64* offsets;
  const int* targets;
  const double* weights;
  const NAME* before;
  const NAME* after;
};

extern "C" __global__ void settle(Moves of, i64 size, unsigned char* states, double* gains) {
  for_each_edge_in(of.starts, 0, size, [&](i64 i, i64 place, bool live) {
    double gain = 0;
    if (live) {
      i64 row = of.rows[i], edge = of.offsets[row] + place - of.starts[i];
      gain = gain_of(of.weights, edge, of.targets[edge], of.before[row], of.after[row], of.before, of.after, states);
    }
    add_warp((int)i, gain, gain != 0, [&](int key, double sum) { atomicAdd(&gains[key], sum); });
  });
}

// Weight of the edges inside communities, by row. The lanes of a warp have edges of one row, or of a few.
extern "C" __global__ void add_inside(Rows of, i64 rows, double* inside) {
  for_each_edge_in(of.offsets, 0, rows, [&](i64 row, i64 edge, bool live) {
    bool stays = live && of.numbers[row] == of.numbers[of.targets[edge]];
    double weight = stays ? weight_of(of.weights, edge) : 0.0;
    add_warp((int)row, weight, stays, [&](int key, double sum) { atomicAdd(&inside[key], sum); });
  });
}

// sums[numbers[i]] += values[i]
extern "C" __global__ void add_by_number(const int* numbers, const double* values, i64 size, double* sums) {
  for (i64 group = thread_id() / 32 * 32; group < size; group += num_threads()) {
    i64 i = group + lane_id();
    add_warp(i < size ? numbers[i] : NONE, i < size ? values[i] : 0.0, i < size,
             [&](int number, double sum) { atomicAdd(&sums[number], sum); });
  }
}
