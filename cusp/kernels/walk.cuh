// Sharing out the edges of a CSR: every warp takes a run of consecutive edges, however long or short their rows are. So all
// warps have the same work, and neighbouring lanes read neighbouring words.
#include "cusp/kernels/warp.cuh"

struct Run {
  i64 begin, end;
};

// The run of a warp among the edges begin to end - 1, where every warp takes ``size`` of them.
__device__ inline Run run_of_warp(i64 begin, i64 end, i64 size, i64 warp = thread_id() / 32) {
  begin += warp * size;
  return {begin, min(begin + size, end)};
}

// The run of a warp where all warps have the same share of the edges, rounded up to a multiple of ``unit``.
__device__ inline Run even_run(i64 begin, i64 end, i64 unit, i64 warp) {
  i64 warps = num_threads() / 32;
  return run_of_warp(begin, end, ((end - begin + warps - 1) / warps + unit - 1) / unit * unit, warp);
}

// The number of a warp where blocks that run together have places far apart: some read edges on the card while others wait for
// edges of the host. The factor is a prime above the number of blocks, so each place is taken once.
constexpr i64 FAR_APART = 131101;
__device__ inline i64 scattered_warp() {
  i64 block = gridDim.x < FAR_APART ? blockIdx.x * FAR_APART % gridDim.x : blockIdx.x;
  return (block * blockDim.x + threadIdx.x) / 32;
}

// The number of a warp where those of different blocks follow each other: little work is spread over all multiprocessors.
__device__ inline i64 spread_warp() { return (i64)threadIdx.x / 32 * gridDim.x + blockIdx.x; }

// The last of ``count`` ascending starts that is not above ``edge``; starts[0] is not. The whole warp calls it: it probes 32
// places at a time.
__device__ inline i64 slot_of(const i64* starts, i64 count, i64 edge) {
  i64 slot = 0, left = count;  // the result is in slot ... slot + left - 1
  while (left > 1) {
    i64 step = (left + 31) / 32, probe = slot + step * lane_id();
    bool fits = step * lane_id() < left && starts[probe] <= edge;
    i64 steps = __popc(__ballot_sync(FULL, fits)) - 1;
    slot += steps * step;
    left = min(step, left - steps * step);
  }
  return slot;
}

// Row of an edge, given one that begins at or before it: offsets[row] <= edge < offsets[row + 1]. Steps that double, then
// halve: a lane goes on from its last row, which is 32 edges back, so few steps are enough.
__device__ inline i64 row_of(const i64* offsets, i64 rows, i64 row, i64 edge) {
  if (edge < offsets[row + 1]) return row;
  i64 low = row + 1, step = 1;
  while (low + step < rows && offsets[low + step] <= edge) {
    low += step;
    step *= 2;
  }
  i64 high = low + step < rows ? low + step : rows;
  while (high - low > 1) {
    i64 middle = (low + high) / 2;
    if (offsets[middle] <= edge) low = middle;
    else high = middle;
  }
  return low;
}

constexpr i64 RUN = 1024;  // edges per warp in for_each_edge_in: a launch has 32 threads for every RUN edges, see cuda.py

// Calls visit(row, edge, live) for the edges of the rows first to last - 1, by whole warps; lanes beyond the last edge are
// not live.
template <class Visit>
__device__ inline void for_each_edge_in(const i64* offsets, i64 first, i64 last, Visit visit) {
  Run run = run_of_warp(offsets[first], offsets[last], RUN);
  if (run.begin >= run.end) return;
  i64 row = first + slot_of(offsets + first, last - first, run.begin);
  for (i64 group = run.begin; group < run.end; group += 32) {
    i64 edge = group + lane_id();
    bool live = edge < run.end;
    if (live) row = row_of(offsets, last, row, edge);
    visit(row, edge, live);
  }
}
