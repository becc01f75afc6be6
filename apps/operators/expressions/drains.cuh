// Drains of edge operators: what is pending, the nodes of the lowest bucket of priorities among it, and how far apart priorities
// are. drains_gpu.py appends the operator of edges.cuh, a function priority(all, node, value), and kernels that call these
// with what they are given. A warp looks at the bits of one word, each lane at its node. Twins: the loops of drains_cpu.py.
#include "edges.cuh"

// Floats as whole numbers in the same order.
__device__ inline u64 ordered(Float value) {
  i64 bits = __double_as_longlong(value);
  return bits < 0 ? ~(u64)bits : (u64)bits | 1ull << 63;
}
__device__ inline Float float_of(u64 ordered) {
  return __longlong_as_double((i64)(ordered >> 63 ? ordered & ~(1ull << 63) : ~ordered));
}

// Nodes become pending whose value is not the one at which they were relaxed; all do if those are null.
extern "C" __global__ void add_bits(const unsigned* bits, i64 size, const Value* values, const Value* relaxed_at,
                                    unsigned* pending) {
  for (i64 word = thread_id() / 32; word * 32 < size; word += num_threads() / 32) {
    i64 node = word * 32 + lane_id();
    bool chosen = bits[word] >> lane_id() & 1 && node < size;
    if (chosen && relaxed_at) chosen = values[node] != relaxed_at[node];
    unsigned more = __ballot_sync(FULL, chosen);
    if (lane_id() == 0 && more) pending[word] |= more;
  }
}

// The lowest priority of a pending node, as ordered() has it. ``lowest`` begins with all bits set.
template <class Given>
__device__ inline void find_lowest(const Given& all, const unsigned* pending, i64 size, const Value* values, u64* lowest) {
  u64 least = ~0ull;
  for (i64 word = thread_id() / 32; word * 32 < size; word += num_threads() / 32) {
    i64 node = word * 32 + lane_id();
    if (pending[word] >> lane_id() & 1) least = min(least, ordered(all.priority(node, values[node])));
  }
  least = least_of_warp(least);
  if (lane_id() == 0 && least != ~0ull) atomicMin(lowest, least);
}

// Moves the pending nodes of the lowest bucket to ``frontier``, and publishes how many they are and how many edges they have.
template <class Given>
__device__ inline void take_lowest(const Given& all, unsigned* pending, i64 size, const i64* offsets, const Value* values,
                                   Value* relaxed_at, const u64* lowest, Float delta, unsigned* frontier, u64* sums,
                                   u64* host) {
  u64 nodes = 0, edges = 0;
  Float low = float_of(*lowest);
  for (i64 word = thread_id() / 32; word * 32 < size; word += num_threads() / 32) {
    i64 node = word * 32 + lane_id();
    bool chosen = pending[word] >> lane_id() & 1;
    if (chosen) {
      Float own = all.priority(node, values[node]);
      chosen = own <= low || !(own >= low + delta);  // also where delta is too small to be added, and what is not a number
    }
    if (chosen) nodes++, edges += offsets[node + 1] - offsets[node], relaxed_at[node] = values[node];
    unsigned taken = __ballot_sync(FULL, chosen);
    if (lane_id() == 0) frontier[word] = taken, pending[word] &= ~taken;
  }
  add_up(&sums[0], nodes);
  add_up(&sums[1], edges);
  publish(sums, 2, host);
}

// How much higher priorities are behind edges of pending nodes, the first ``most`` that are found; ``size`` counts them.
template <class Given>
__device__ inline void find_steps(const Given& all, const unsigned* pending, i64 size, const i64* offsets,
                                  const int* columns, const Value* values, Float* found, i64 most, u64* count) {
  for (i64 word = thread_id() / 32; word * 32 < size; word += num_threads() / 32) {
    i64 node = word * 32 + lane_id();
    if (!(pending[word] >> lane_id() & 1)) continue;
    Float own = all.priority(node, values[node]);
    for (i64 edge = offsets[node]; edge < offsets[node + 1] && (i64)peek(count) < most; edge++) {
      int col = columns[edge];
      if (!all.edges.where(node, col, edge)) continue;
      Value old = values[col], value = all.edges.candidate(node, col, edge);
      if (!changes(old, value)) continue;
      u64 place = atomicAdd(count, 1ull);
      if ((i64)place < most) found[place] = all.priority(col, joined(old, value)) - own;
    }
  }
}
