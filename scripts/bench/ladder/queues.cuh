// Rungs with a queue of the frontier, in which a thread or a warp has a row.
#include "scripts/bench/ladder/shared.cuh"

// A thread has a row, and an atomic on the one counter for every node that it finds.
extern "C" __global__ void push_queue(Graph graph, int* hops, i64 level, const int* queue, i64 count, int* next,
                                      u64* counters) {
  u64* found = found_by(counters, level);
  Count seen{graph};
  if (thread_id() >= count) return;
  int node = queue[thread_id()];
  seen.add(0, 20);
  for (i64 edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++) {
    int target = graph.targets[edge];
    seen.add(1, 8);
    if (!claim(hops, target, level)) continue;
    next[atomicAdd(found, 1ull)] = target;
    seen.add(0, 8);
  }
}

// The same with a queue of the block in shared memory, whose atomics are an order faster; what does not fit goes straight to
// the queue of all. At the end one atomic makes room there for the whole block, which copies its own in order.
extern "C" __global__ void push_private(Graph graph, int* hops, i64 level, const int* queue, i64 count, int* next,
                                        u64* counters) {
  constexpr unsigned ROOM = 2048;
  __shared__ int own[ROOM];
  __shared__ unsigned held;
  __shared__ u64 place;
  u64* found = found_by(counters, level);
  Count seen{graph};
  if (threadIdx.x == 0) held = 0;
  __syncthreads();
  i64 begin = 0, end = 0;
  if (thread_id() < count) begin = graph.offsets[queue[thread_id()]], end = graph.offsets[queue[thread_id()] + 1];
  if (thread_id() < count) seen.add(0, 20);
  for (i64 edge = begin; edge < end; edge++) {
    int target = graph.targets[edge];
    seen.add(1, 8);
    if (!claim(hops, target, level)) continue;
    seen.add(0, 8);
    unsigned slot = atomicAdd(&held, 1u);
    if (slot < ROOM) own[slot] = target;
    else next[atomicAdd(found, 1ull)] = target;
  }
  __syncthreads();
  unsigned kept = min(held, ROOM);
  if (threadIdx.x == 0 && kept) place = atomicAdd(found, (u64)kept);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kept; i += blockDim.x) next[place + i] = own[i];
}

// A warp has a row: its lanes read neighbouring targets, and append what they find together.
extern "C" __global__ void push_warps(Graph graph, int* hops, i64 level, const int* queue, i64 count, int* next,
                                      u64* counters) {
  u64* found = found_by(counters, level);
  Count seen{graph};
  i64 warp = thread_id() / 32;
  if (warp >= count) return;
  int node = queue[warp];
  if (lane_id() == 0) seen.add(0, 20);
  i64 end = graph.offsets[node + 1];
  for (i64 edge = graph.offsets[node] + lane_id(); edge - lane_id() < end; edge += 32) {
    int target = edge < end ? graph.targets[edge] : -1;
    bool fresh = target >= 0 && claim(hops, target, level);
    if (target >= 0) seen.add(1, fresh ? 16 : 8);
    append(next, found, fresh, target);
  }
}
