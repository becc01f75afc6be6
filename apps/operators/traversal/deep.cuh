// Deep breadth-first searches: narrow levels in bursts, and what is made up for at the end.
#include "../frontier.cuh"

constexpr int DEEP = 16;  // levels, after which narrow ones of sparse graphs are taken in bursts

// Some levels in bursts, the first of which has ``level`` hops; returns how many. Nodes of the last one join ``out``, where
// the next barrier ends it. ``cut`` is 0.
//
// Why hops are right: a block gives its targets the hops of its own round, however far others are, and of several the fewest
// stay. A node d levels from here has an in-neighbour d - 1 levels from here, whose hops are right, by induction, once all
// blocks have taken d - 1 rounds; the block that wrote them has that node in its round d. So the levels that all blocks have
// taken are right, and what some found beyond is taken back.
__device__ inline int take_levels(Rows rows, const i64* offsets, const int* targets, int level, int most, int* hops,
                                  unsigned* seen, u64* cut, Queues queues, Queue out) {
  __shared__ Burst burst;
  burst.run(rows, most, true, [&](const Edges& edges, BlockQueue found, int before) {
    int target[K], value = level + before;
    i64 begin[K], end[K];
    bool fresh[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : -1;
#pragma unroll
    for (int k = 0; k < K; k++)  // on the way while hops are written
      begin[k] = target[k] >= 0 ? offsets[target[k]] : 0, end[k] = target[k] >= 0 ? offsets[target[k] + 1] : 0;
#pragma unroll
    for (int k = 0; k < K; k++)  // as an unsigned number, no hops, -1, are the most
      fresh[k] = target[k] >= 0 && atomicMin((unsigned*)&hops[target[k]], (unsigned)value) > (unsigned)value;
    found.add(fresh, target, begin, end);
  });
  if (threadIdx.x == 0 && burst.cut) atomicMax(cut, (u64)(most - burst.rounds));
  queues.barrier();
  int taken = most - (int)peek(cut), last = level + taken - 1, all = burst.found(), in_time = burst.found(taken);
  for (int i = threadIdx.x; i - (int)lane_id() < all; i += blockDim.x) {
    int node = burst.entries[min(i, all - 1)].node, known = *(const volatile int*)&hops[node];
    if (i < in_time) set_bit(seen, node);
    else if (i < all && known > last) hops[node] = -1;
    append(out, i < in_time && known == last, node, offsets);
  }
  return taken;
}

// The lowest of the in-neighbours on a shortest path becomes the parent of every node with more than DEEP hops. ``step`` is
// done with.
__device__ inline void find_parents(i64 proxies, const i64* offsets, const int* targets, const int* hops, const i64* gids,
                                    i64* parents, unsigned step, Queues queues) {
  Queue out = queues.next(step);
  for (i64 base = thread_id() / 32 * TILE; base < proxies; base += num_threads() / 32 * TILE) {
    int node[K];
    bool deep[K];
#pragma unroll
    for (int k = 0; k < K; k++) node[k] = (int)(base + 32 * k + lane_id());
#pragma unroll
    for (int k = 0; k < K; k++) deep[k] = node[k] < proxies && hops[node[k]] >= DEEP;
    append_all(out, deep, node, offsets);
  }
  queues.barrier();
  for_each_edge(queues.rows(step, queues.total(step)), [&](const Edges& edges) {
    int target[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : 0;
#pragma unroll
    for (int k = 0; k < K; k++)
      if (edges.active[k] && hops[target[k]] == hops[edges.node[k]] + 1)
        atomicMin((u64*)&parents[target[k]], (u64)gids[edges.node[k]]);
  });
}

// The most hops of a node that has out-edges, plus 1; ``most`` is 0.
__device__ inline int count_levels(i64 proxies, const i64* offsets, const int* hops, u64* most, Queues queues) {
  u64 best = 0;
  for (i64 i = thread_id(); i < proxies; i += num_threads())
    if (hops[i] >= 0 && offsets[i] < offsets[i + 1]) best = max(best, (u64)hops[i] + 1);
  best = largest_of_warp(best);
  if (lane_id() == 0 && best > peek(most)) atomicMax(most, best);
  queues.barrier();
  return (int)peek(most);
}
