// Rungs that share out the edges of a frontier evenly, however they are spread over its rows.
#include "scripts/bench/ladder/shared.cuh"

constexpr int BLOCK = 256;

// Whether the edge, if the lane has one, reaches a node; which one. ``keep`` is for whole warps.
template <class Keep>
__device__ inline void follow(const Graph& graph, int* hops, i64 level, bool live, i64 edge, Count& seen, Keep keep) {
  int target = live ? graph.targets[edge] : -1;
  bool fresh = live && claim(hops, target, level);
  if (live) seen.add(1, fresh ? 16 : 8);
  keep(fresh, target);
}

// A queue for rows of a thread, a warp or a block each, one behind the other, with a counter each.
__device__ inline int bucket_of(const Graph& graph, int node) {
  i64 degree = graph.offsets[node + 1] - graph.offsets[node];
  return degree < 32 ? 0 : degree < 1024 ? 1 : 2;
}

extern "C" __global__ void begin_buckets(Graph graph, i64 source, int* queues, u64* counters) {
  int bucket = bucket_of(graph, (int)source);
  queues[bucket * graph.nodes] = (int)source;
  counters[bucket] = 1;
}

__device__ inline void append_by_degree(const Graph& graph, int* queues, u64* found, bool fresh, int node, Count& seen) {
  if (fresh) seen.add(0, 16);
  int bucket = fresh ? bucket_of(graph, node) : -1;
  for (int each = 0; each < 3; each++) append(queues + each * graph.nodes, &found[each], bucket == each, node);
}

// ``together`` threads have a row: 1, or those of a warp, or of a block.
extern "C" __global__ void push_bucket(Graph graph, int* hops, i64 level, i64 bucket, i64 together, const int* queues,
                                       i64 count, int* next, u64* counters) {
  u64* found = found_by(counters, level);
  Count seen{graph};
  i64 row = thread_id() / together, edge = thread_id() % together, end = 0;
  if (row < count) {
    if (edge == 0) seen.add(0, 20);
    int node = queues[bucket * graph.nodes + row];
    edge += graph.offsets[node], end = graph.offsets[node + 1];
  }
  for (; __any_sync(FULL, edge < end); edge += together)
    follow(graph, hops, level, edge < end, edge, seen, [&](bool fresh, int node) {
      append_by_degree(graph, next, found, fresh, node, seen);
    });
}

// Every thread of a block brings a row, or an empty one, and the block goes through all of them: look(live, edge) is called by
// whole warps. Rows of a block's length or more are taken by the block, one after the other, those of a warp's length by their
// warp. Of what is left a scan says where each row's edges go, in an order without gaps.
template <int THREADS, class Look>
__device__ inline void gather(i64 begin, i64 end, Look look) {
  __shared__ unsigned winner, sums[THREADS / 32];
  __shared__ i64 row[2], places[THREADS];
  while (__syncthreads_or(end - begin >= THREADS)) {
    if (end - begin >= THREADS) winner = threadIdx.x;
    __syncthreads();
    if (winner == threadIdx.x) row[0] = begin, row[1] = end, begin = end;
    __syncthreads();
    i64 last = row[1];
    for (i64 edge = row[0] + threadIdx.x; edge - threadIdx.x < last; edge += THREADS) look(edge < last, edge);
  }
  while (unsigned long_rows = __ballot_sync(FULL, end - begin >= 32)) {
    int owner = __ffs(long_rows) - 1;
    i64 first = __shfl_sync(FULL, begin, owner), last = __shfl_sync(FULL, end, owner);
    if ((int)lane_id() == owner) begin = end;
    for (i64 edge = first + lane_id(); edge - lane_id() < last; edge += 32) look(edge < last, edge);
  }
  unsigned own = (unsigned)(end - begin), upto = scan_of_warp(own), at = upto - own, total = 0;
  if (lane_id() == 31) sums[threadIdx.x / 32] = upto;
  __syncthreads();
  for (unsigned warp = 0; warp < THREADS / 32; warp++) {
    if (warp < threadIdx.x / 32) at += sums[warp];
    total += sums[warp];
  }
  for (unsigned base = 0; base < total; base += THREADS) {
    for (; begin < end && at < base + THREADS; begin++, at++) places[at - base] = begin;
    __syncthreads();
    bool live = base + threadIdx.x < total;
    look(live, live ? places[threadIdx.x] : 0);
    __syncthreads();
  }
}

// The row of a node of the queue, empty behind its end.
template <class Node>
__device__ inline void row_at(const Graph& graph, const Node* queue, i64 place, i64 count, i64& begin, i64& end, Count& seen) {
  begin = end = 0;
  if (place >= count) return;
  begin = graph.offsets[queue[place]], end = graph.offsets[queue[place] + 1];
  seen.add(0, 16 + sizeof(Node));
}

// A level; ``with_edges`` says that the edges of the nodes that it finds are counted, too.
extern "C" __global__ void __launch_bounds__(BLOCK)
push_gathered(Graph graph, int* hops, i64 level, const int* queue, i64 count, int* next, i64 with_edges, u64* counters) {
  u64* found = found_by(counters, level);
  u64 edges = 0;
  Count seen{graph};
  i64 begin, end;
  row_at(graph, queue, thread_id(), count, begin, end, seen);
  gather<BLOCK>(begin, end, [&](bool live, i64 edge) {
    follow(graph, hops, level, live, edge, seen, [&](bool fresh, int node) {
      append(next, &found[0], fresh, node);
      if (fresh && with_edges) edges += (u64)(graph.offsets[node + 1] - graph.offsets[node]), seen.add(0, 16);
    });
  });
  if (with_edges) add_up(&found[1], edges);
}

// One block goes on from level to level until a frontier is empty, or larger than ``most``. Its barrier takes a hundredth of the
// time of a launch. Leaves the size of the last frontier and its level.
extern "C" __global__ void __launch_bounds__(1024)
push_levels(Graph graph, int* hops, i64 level, int* even, int* odd, i64 count, i64 most, u64* counters) {
  constexpr int THREADS = 1024;
  __shared__ u64 found;
  Count seen{graph};
  for (;; level++) {
    const int* queue = level % 2 ? even : odd;
    int* next = level % 2 ? odd : even;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    for (i64 first = 0; first < count; first += THREADS) {
      i64 begin, end;
      row_at(graph, queue, first + threadIdx.x, count, begin, end, seen);
      gather<THREADS>(begin, end, [&](bool live, i64 edge) {
        follow(graph, hops, level, live, edge, seen, [&](bool fresh, int node) { append(next, &found, fresh, node); });
      });
      __syncthreads();
    }
    count = (i64)found;
    __syncthreads();
    if (count == 0 || count > most) break;
  }
  if (threadIdx.x < 9) counters[threadIdx.x] = 0;
  if (threadIdx.x == 0) counters[9] = (u64)count, counters[10] = (u64)level;
}

// A level that only sets flags: several threads may reach a node, and write the same. A thread clears the flag of its own node.
extern "C" __global__ void __launch_bounds__(BLOCK)
push_marking(Graph graph, int* hops, i64 level, const i64* queue, i64 count, bool* marked) {
  Count seen{graph};
  i64 begin, end;
  row_at(graph, queue, thread_id(), count, begin, end, seen);
  if (thread_id() < count) marked[queue[thread_id()]] = false, seen.add(0, 1);
  gather<BLOCK>(begin, end, [&](bool live, i64 edge) {
    if (!live) return;
    int target = graph.targets[edge];
    seen.add(1, 8);
    if (hops[target] < 0) hops[target] = (int)level, marked[target] = true, seen.add(0, 5);
  });
}
