// Words that all kernels share: lanes, bits, a barrier of all blocks, and work shared out by edges.
// No host headers: the files also run under the CPU shim in tests.
#pragma once

typedef unsigned long long u64;
typedef long long i64;
#define FULL 0xffffffffu

__device__ inline unsigned lane_id() { return threadIdx.x & 31; }
__device__ inline unsigned below_lane() { return (1u << lane_id()) - 1; }
__device__ inline i64 thread_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 num_threads() { return (i64)gridDim.x * blockDim.x; }

__device__ inline bool get_bit(const unsigned* words, i64 place) { return words[place >> 5] >> (place & 31) & 1; }

// Look before the atomic: most bits that are set in a traversal have been set already.
__device__ inline void set_bit(unsigned* words, i64 place) {
  unsigned bit = 1u << (place & 31);
  if (!(words[place >> 5] & bit)) atomicOr(&words[place >> 5], bit);
}

// Local id of a node that has a proxy here: the bits below its own are counted, see lid_map.py.
__device__ inline int lid_of(const u64* index, const int* table, i64 gid) {
  u64 below = index[2 * (gid >> 6)] & ((1ull << (gid & 63)) - 1);
  return table[index[2 * (gid >> 6) + 1] + __popcll(below)];
}

// All blocks wait for each other; ``arrived`` counts up for ever. Only for kernels whose blocks are all resident.
__device__ inline void grid_barrier(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    unsigned ticket = atomicAdd(arrived, 1u);
    unsigned wanted = (ticket / gridDim.x + 1) * gridDim.x;
    while ((int)(*(volatile unsigned*)arrived - wanted) < 0) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
}

// *sum += ``mine`` of all threads: one atomic a block, since those on one address follow each other. All threads call it.
__device__ inline void add_up(u64* sum, u64 mine) {
  __shared__ u64 of_block;
  for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(FULL, mine, step);
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  if (lane_id() == 0 && mine) atomicAdd(&of_block, mine);
  __syncthreads();
  if (threadIdx.x == 0 && of_block) atomicAdd(sum, of_block);
}

// True in all threads of the block that ends last, for which everything is done that the others did before. ``arrived`` is 0
// before and after. All threads call it.
__device__ inline bool last_block(unsigned* arrived) {
  __threadfence();
  __syncthreads();
  bool last = threadIdx.x == 0 && atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  last = __syncthreads_or(last);
  __threadfence();
  return last;
}

// The last block gives the host ``size`` sums to which all blocks have added, and leaves them at 0; the word behind them
// counts blocks.
__device__ inline void hand_over(u64* sums, int size, u64* host) {
  if (last_block((unsigned*)&sums[size]) && threadIdx.x < size) host[threadIdx.x] = atomicExch(&sums[threadIdx.x], 0ull);
}

// Values that are not negative, as integers of the same order: the atomic minimum of floats.
__device__ inline int lower(int* place, int value) { return atomicMin(place, value); }
__device__ inline i64 lower(i64* place, i64 value) { return atomicMin(place, value); }
__device__ inline double lower(double* place, double value) {
  return __longlong_as_double(atomicMin((i64*)place, __double_as_longlong(value)));
}

// A compacted frontier. The edges of its nodes are numbered through: those of nodes[i] begin at starts[i], and edge e
// of the frontier is edge e + rows[i] of the graph. One 64-bit counter gives a node its slot and its edges their
// numbers in the same atomic step, so starts ascend and no scan is needed.
struct Queue {
  u64* counter;  // nodes << 34 | edges
  int* nodes;
  i64* starts;
  i64* rows;
};
#define EDGE_BITS 34

__device__ inline i64 queue_nodes(u64 counter) { return (i64)(counter >> EDGE_BITS); }
__device__ inline i64 queue_edges(u64 counter) { return (i64)(counter & ((1ull << EDGE_BITS) - 1)); }

// Every lane appends a node with its edges from ``begin`` to ``end``, if there are any. The whole warp calls it.
__device__ inline void append(Queue queue, int node, i64 begin, i64 end) {
  unsigned mask = __ballot_sync(FULL, end > begin);
  if (mask == 0) return;
  i64 before = end - begin;
  for (int step = 1; step < 32; step *= 2) {
    i64 other = __shfl_up_sync(FULL, before, step);
    if (lane_id() >= (unsigned)step) before += other;
  }
  i64 all = __shfl_sync(FULL, before, 31);
  u64 old = 0;
  if (lane_id() == 0) old = atomicAdd(queue.counter, (u64)__popc(mask) << EDGE_BITS | (u64)all);
  old = __shfl_sync(FULL, old, 0);
  if (end > begin) {
    i64 slot = queue_nodes(old) + __popc(mask & below_lane());
    i64 start = queue_edges(old) + before - (end - begin);
    queue.nodes[slot] = node;
    queue.starts[slot] = start;
    queue.rows[slot] = begin - start;
  }
}

// Lanes with ``chosen`` append their node with all its out-edges.
__device__ inline void append(Queue queue, bool chosen, int node, const i64* offsets) {
  i64 begin = 0, end = 0;
  if (chosen) begin = offsets[node], end = offsets[node + 1];
  append(queue, node, begin, end);
}

// The next few edges of a warp: lane i has edge i of each of K groups of 32 consecutive ones.
constexpr int K = 4;
struct Edges {
  bool active[K];
  int node[K];
  i64 place[K];  // in the graph
};

// The last of ``count`` ascending starts that is not above ``edge``; starts[0] is not. The whole warp calls it: it probes 32
// places at a time.
__device__ inline i64 slot_of(const i64* starts, i64 count, i64 edge) {
  i64 slot = 0, room = count;  // the slot looked for is in slot ... slot + room - 1
  while (room > 1) {
    i64 step = (room + 31) / 32, probe = slot + step * lane_id();
    bool fits = step * lane_id() < room && starts[probe] <= edge;
    i64 steps = __popc(__ballot_sync(FULL, fits)) - 1;
    slot += steps * step;
    room = min(step, room - steps * step);
  }
  return slot;
}

// Calls visit(edges) for all edges of the queue, by whole warps. Each warp takes one run of consecutive edges, however
// they are spread over nodes: hubs and leaves cost the same, and neighbouring lanes read neighbouring targets. From the
// first node of its run on, the next 32 starts say which node each of the next 32 edges belongs to. K groups at a time, so
// that K loads are under way before one is needed.
template <class Visit>
__device__ inline void for_each_edge(Queue queue, u64 counter, Visit visit) {
  const i64 FAR = 1ll << 40;
  i64 nodes = queue_nodes(counter), edges = queue_edges(counter);
  i64 warps = num_threads() / 32, warp = thread_id() / 32;
  i64 run = ((edges + warps - 1) / warps + 31) / 32 * 32;
  i64 first = warp * run, last = min(first + run, edges);
  if (first >= last) return;
  i64 slot = slot_of(queue.starts, nodes, first);
  for (i64 tile = first; tile < last; tile += 32 * K) {
    Edges found;
    i64 next = slot + 1 + lane_id() < nodes ? queue.starts[slot + 1 + lane_id()] - tile : FAR;
    if (!__any_sync(FULL, next <= 32 * K)) {  // inside a hub's row
      int node = queue.nodes[slot];
      i64 row = queue.rows[slot] + tile + lane_id();
#pragma unroll
      for (int k = 0; k < K; k++) {
        found.active[k] = tile + 32 * k + lane_id() < last;
        found.node[k] = node;
        found.place[k] = row + 32 * k;
      }
    } else {
#pragma unroll
      for (int k = 0; k < K; k++) {
        i64 group = tile + 32 * k;
        found.active[k] = group + lane_id() < last;
        if (group >= last) continue;
        if (k > 0) next = slot + 1 + lane_id() < nodes ? queue.starts[slot + 1 + lane_id()] - group : FAR;
        unsigned begins = __reduce_or_sync(FULL, next < 32 ? 1u << next : 0u);
        i64 mine = slot + __popc(begins & (below_lane() | 1u << lane_id()));
        found.node[k] = queue.nodes[mine];
        found.place[k] = group + lane_id() + queue.rows[mine];
        slot += __popc(__ballot_sync(FULL, next <= 32));
      }
    }
    visit(found);
  }
}
