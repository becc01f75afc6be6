// What the rungs of the ladder share: the graph, the claim of a node, the queue of a level, and what a counting run adds up.
#include "cusp/kernels/warp.cuh"

struct Graph {
  i64 nodes, edges;
  const i64* offsets;
  const int* targets;
  const int* sources;  // of each edge: the same edges as a list of pairs
  u64* tally;          // of a counting run: PLACES pairs of edges and bytes, the sums of which count
};

// What a thread has looked at: nothing at all, unless the macro COUNT is defined. Every rung says beside its loads and stores
// how many edges and bytes they are; an entry counts at its own width, whether it comes from memory or from a cache.
struct Count {
  const Graph& graph;
#ifdef COUNT
  static constexpr i64 PLACES = 4096;  // atomics on one address would follow each other
  u64 edges = 0, bytes = 0;
  __device__ void add(i64 more_edges, i64 more_bytes) { edges += more_edges, bytes += more_bytes; }
  __device__ ~Count() {
    u64* place = graph.tally + thread_id() % PLACES * 2;
    if (edges) atomicAdd(&place[0], edges);
    if (bytes) atomicAdd(&place[1], bytes);
  }
#else
  __device__ void add(i64, i64) {}
#endif
};

// The three counters of what a level finds. Those of the next level are cleared here: nobody else looks at them now.
__device__ inline u64* found_by(u64* counters, i64 level) {
  if (thread_id() < 3) counters[(level + 1) % 3 * 3 + thread_id()] = 0;
  return &counters[level % 3 * 3];
}

// Before the first level: only the source is reached, and it is all that the queue has.
extern "C" __global__ void begin(Graph graph, i64 source, int* hops, int* queue, u64* counters) {
  for (i64 node = thread_id(); node < graph.nodes; node += num_threads()) hops[node] = node == source ? 0 : -1;
  if (thread_id() == 0) queue[0] = (int)source;
  if (thread_id() < 9) counters[thread_id()] = 0;
}

// Whether this thread is the one that reaches the node. Look before the atomic: most nodes were reached before.
__device__ inline bool claim(int* hops, int node, i64 level) {
  return hops[node] < 0 && atomicCAS(&hops[node], -1, (int)level) == -1;
}

// Lanes with ``fresh`` append their node: one atomic for all of them. The whole warp calls it.
__device__ inline void append(int* queue, u64* counter, bool fresh, int node) {
  unsigned lanes = __ballot_sync(FULL, fresh);
  if (!lanes) return;
  u64 at = 0;
  if (lane_id() == 0) at = atomicAdd(counter, (u64)__popc(lanes));
  at = __shfl_sync(FULL, at, 0);
  if (fresh) queue[at + __popc(lanes & below_lane())] = node;
}
