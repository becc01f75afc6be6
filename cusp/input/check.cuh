// What must hold in a graph file, checked where its entries are. Twins: cusp/input/checksum.py, cusp/input/read_cpu.py.
// Compiled for an unsigned type VALUE of the bits of an entry.
#include "cusp/kernels/walk.cuh"

constexpr int EACH = 8;  // entries of a thread at a time

// sum[0] += checksum of the entries begin to end - 1, values[0] being entry ``first`` of the dataset; wrong[0] = least index of
// one with (bits & mask) > limit. Sums mod 2^64 and the least do not depend on the order of the atomics. A warp goes through
// all entries with the others and adds what it has with one atomic; EACH loads are under way at once.
extern "C" __global__ void check(const VALUE* values, i64 begin, i64 end, i64 first, i64 mask, i64 limit, u64* sum, i64* wrong) {
  u64 part = 0;
  i64 threads = num_threads();
  for (i64 i = begin + thread_id(); i < end; i += EACH * threads) {
    u64 bits[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) bits[k] = i + k * threads < end ? (u64)values[i + k * threads] : 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      i64 place = i + k * threads;
      if (place >= end) break;
      part += (bits[k] + 1) * (2 * (u64)(first + place) + 1);
      if ((bits[k] & (u64)mask) > (u64)limit) atomicMin(wrong, place);
    }
  }
  part = sum_of_warp(part);
  if (lane_id() == 0) atomicAdd(sum, part);
}

// wrong[0] = least index of an entry that is below the one before it or outside 0 .. num_edges. One thread per entry.
extern "C" __global__ void check_rising(const i64* indptr, i64 size, i64 num_edges, i64* wrong) {
  i64 i = thread_id();
  if (i >= size) return;
  i64 before = i ? indptr[i - 1] : 0;
  if (indptr[i] < before || indptr[i] > num_edges) atomicMin(wrong, i);
}

__device__ inline u64 mix(u64 x, u64 factor) {
  u64 product = (x + 1) * factor;
  return product ^ product >> 32;
}

// sum[0] += f(u) g(v) - g(u) f(v) for the edges u -> v from begin to end - 1, by runs of warps; modulo 2^64 that is, over all
// edges, what cusp/input/read_cpu.py sums by rows.
extern "C" __global__ void asymmetry(i64 first_node, const i64* indptr, i64 rows, const VALUE* targets, i64 begin, i64 end,
                                     u64* sum) {
  const u64 f = 0x9E3779B97F4A7C15ull, g = 0xD6E8FEB86659FD93ull;
  Run run = run_of_warp(begin, end, RUN);
  if (run.begin >= run.end) return;
  i64 row = slot_of(indptr, rows, run.begin);
  u64 part = 0;
  for (i64 edge = run.begin + lane_id(); edge < run.end; edge += 32) {
    row = row_of(indptr, rows, row, edge);
    u64 source = (u64)(first_node + row), target = (u64)targets[edge];
    part += mix(source, f) * mix(target, g) - mix(source, g) * mix(target, f);
  }
  part = sum_of_warp(part);
  if (lane_id() == 0) atomicAdd(sum, part);
}
