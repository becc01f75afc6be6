// k-core: see interfaces.py.
#include "../frontier.cuh"

constexpr i64 FAR = 1ll << 31;  // above all degrees; as in kcore_gpu.py

// Publishes, of the masters below ``end`` that are left, the highest FAR - degree and the last lid + 1: 0, 0 if none is.
extern "C" __global__ void find_left(i64 end, const int* core, const int* degrees, u64* sums, u64* host) {
  u64 best = 0, last = 0;
  for (i64 lid = thread_id(); lid < end; lid += num_threads())
    if (core[lid] < 0) best = max(best, (u64)(FAR - degrees[lid])), last = (u64)lid + 1;
  best = largest_of_warp(best), last = largest_of_warp(last);
  if (lane_id() == 0 && best > peek(&sums[0])) atomicMax(&sums[0], best);
  if (lane_id() == 0 && last > peek(&sums[1])) atomicMax(&sums[1], last);
  publish(sums, 2, host);
}

// A node joins the queue once: of the threads that take a neighbour from it, one takes the last that it can spare. A thread
// that reads an old ``core`` lowers a degree that no longer matters.
extern "C" __global__ void __launch_bounds__(512, 2)
peel(i64 level, i64 end, i64 masters, const i64* offsets, const int* targets, int* core, int* degrees, unsigned* updated,
     Queues queues) {
  unsigned step = 0;
  for (i64 first = thread_id() / 32 * 32; first < end; first += num_threads()) {
    i64 lid = first + lane_id();
    bool chosen = lid < end && core[lid] < 0 && degrees[lid] <= level;
    if (chosen) core[lid] = (int)level;
    append(queues.of_step(step), chosen, (int)lid, offsets);
  }
  queues.barrier();
  drain(queues, step, [&](const Edges& edges, Queue out) {
    int target[K];
    bool left[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : 0;
#pragma unroll
    for (int k = 0; k < K; k++) left[k] = edges.active[k] && (target[k] >= masters || core[target[k]] < 0);
#pragma unroll
    for (int k = 0; k < K; k++) {
      bool last = left[k] && atomicSub(&degrees[target[k]], 1) == level + 1 && target[k] < masters;
      if (left[k] && target[k] >= masters) set_bit(updated, target[k]);
      if (last) core[target[k]] = (int)level;
      if (__any_sync(FULL, last)) append(out, last, target[k], offsets);
    }
  });
}
