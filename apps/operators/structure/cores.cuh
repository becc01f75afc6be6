// Core numbers from estimates: see interfaces.py.
#include "cusp/kernels/warp.cuh"

// Neighbours of a row that have ``core`` or more. The whole warp calls it.
__device__ inline i64 num_from(int core, i64 first, i64 last, const int* targets, const int* cores) {
  i64 count = 0;
  for (i64 edge = first + lane_id(); edge < last; edge += 32) count += cores[targets[edge]] >= core;
  return sum_of_warp(count);
}

// A warp for each master: the largest number up to its own that so many neighbours have or exceed, found by halving. Numbers
// only fall, so one that is read before its owner lowers it is still an upper bound, and the next pass sees the lower one.
extern "C" __global__ void lower_cores(i64 masters, const i64* offsets, const int* targets, int* cores, unsigned* updated) {
  for (i64 lid = thread_id() / 32; lid < masters; lid += num_threads() / 32) {
    i64 first = offsets[lid], last = offsets[lid + 1];
    int high = cores[lid], low = 0;
    if (num_from(high, first, last, targets, cores) >= high) continue;
    while (low + 1 < high) {  // ``low`` is possible, ``high`` is not
      int core = low + (high - low) / 2;
      bool possible = num_from(core, first, last, targets, cores) >= core;
      low = possible ? core : low, high = possible ? high : core;
    }
    __syncwarp();
    if (lane_id() == 0) {
      cores[lid] = low;
      set_bit(updated, lid);
    }
  }
}
