// Operators on the GPU, one round at a time: passes over the local graph that lower labels and set their 'updated' bits.
// VALUE is the label's type, int or long long for BFS, also double for SSSP; WEIGHT is that of the edges.
#include "../cusp/warp.cuh"

// The frontier's nodes as a queue. One lane a node of the bitmap; words without bits cost one load.
extern "C" __global__ void queue_bits(const unsigned* frontier, i64 size, const i64* offsets, u64* counter, int* nodes,
                                      i64* starts, i64* rows) {
  Queue queue = {counter, nodes, starts, rows};
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned bits = frontier[word];
    if (bits) append(queue, bits >> lane_id() & 1, (int)(word * 32 + lane_id()), offsets);
  }
}

// sums[0] += updated masters, sums[1] += their out-edges in the whole graph.
extern "C" __global__ void frontier_size(const unsigned* updated, i64 masters, const i64* degrees, u64* sums) {
  u64 nodes = 0, edges = 0;
  i64 words = (masters + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    i64 lid = word * 32 + lane_id();
    unsigned bits = updated[word];
    if (bits >> lane_id() & 1 && lid < masters) nodes++, edges += degrees[lid];
  }
  for (int step = 16; step > 0; step /= 2) {
    nodes += __shfl_down_sync(FULL, nodes, step);
    edges += __shfl_down_sync(FULL, edges, step);
  }
  if (lane_id() == 0 && nodes) atomicAdd(&sums[0], nodes), atomicAdd(&sums[1], edges);
}

// Every frontier node v gives level | (gids[v] & gid_mask) to its out-neighbours that have no value or a larger one.
// Two that write one node at a time: the smaller wins, whatever the order, so parents do not depend on timing.
extern "C" __global__ void bfs_push(const u64* counter, const int* nodes, const i64* starts, const i64* rows,
                                    const int* targets, const i64* gids, i64 gid_mask, VALUE level, VALUE* values,
                                    unsigned* updated) {
  Queue queue = {(u64*)counter, (int*)nodes, (i64*)starts, (i64*)rows};
  for_each_edge(queue, *counter, [&](bool active, int node, i64 edge) {
    if (!active) return;
    VALUE value = gid_mask ? (VALUE)(level | (gids[node] & gid_mask)) : level;
    int target = targets[edge];
    if (values[target] > value && lower(&values[target], value) > value) set_bit(updated, target);
  });
}

// The first in-neighbour of a row that is in the frontier, or -1. All lanes of a warp call it, each with a row or none.
// A lane tries the first few alone: hub-first rows end there nearly always. What is left of long rows the warp scans
// together, 32 neighbours at a time.
__device__ inline int find_source(bool looking, i64 begin, i64 end, const int* sources, const unsigned* frontier) {
  const int ALONE = 8;
  int found = -1;
  i64 edge = begin;
  if (looking) {
    i64 last = min(end, begin + ALONE);
    for (; edge < last && found < 0; edge++)
      if (get_bit(frontier, sources[edge])) found = sources[edge];
  }
  unsigned left = __ballot_sync(FULL, looking && found < 0 && edge < end);
  while (left) {
    int owner = __ffs(left) - 1;
    left &= left - 1;
    i64 at = __shfl_sync(FULL, edge, owner), stop = __shfl_sync(FULL, end, owner);
    unsigned hits = 0;
    int source = -1;
    for (; at < stop && !hits; at += 32) {
      source = at + lane_id() < stop ? sources[at + lane_id()] : -1;
      hits = __ballot_sync(FULL, source >= 0 && get_bit(frontier, source));
    }
    if (hits) source = __shfl_sync(FULL, source, __ffs(hits) - 1);
    if (hits && (int)lane_id() == owner) found = source;
  }
  return found;
}

// Every node without a value looks for an in-neighbour in the frontier and stops at the first. A warp has 32 nodes and
// with them one word of ``updated``, so no atomics are needed.
extern "C" __global__ void bfs_pull(const unsigned* frontier, i64 size, const i64* offsets, const int* sources,
                                    const i64* gids, i64 gid_mask, VALUE level, VALUE unreached, VALUE* values,
                                    unsigned* updated) {
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    i64 target = word * 32 + lane_id();
    bool looking = target < size && values[target] == unreached;
    i64 begin = 0, end = 0;
    if (looking) begin = offsets[target], end = offsets[target + 1];
    looking = begin < end;
    if (!__any_sync(FULL, looking)) continue;
    int source = find_source(looking, begin, end, sources, frontier);
    if (source >= 0) values[target] = gid_mask ? (VALUE)(level | (gids[source] & gid_mask)) : level;
    unsigned found = __ballot_sync(FULL, source >= 0);
    if (lane_id() == 0 && found) updated[word] |= found;
  }
}

// Nodes whose value fell since their edges were last relaxed are pending.
extern "C" __global__ void mark_lowered(const unsigned* lowered, i64 size, const VALUE* values, const VALUE* relaxed_at,
                                        unsigned* pending) {
  i64 lid = thread_id();
  bool mark = lid < size && get_bit(lowered, lid) && values[lid] < relaxed_at[lid];
  unsigned bits = __ballot_sync(FULL, mark);
  if (lane_id() == 0 && bits) pending[lid >> 5] |= bits;
}

// *lowest = smallest value of a pending node, if it is below *lowest.
extern "C" __global__ void lowest_pending(const unsigned* pending, i64 size, const VALUE* values, VALUE* lowest) {
  VALUE mine = *lowest;
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32)
    if (pending[word] >> lane_id() & 1) mine = min(mine, values[word * 32 + lane_id()]);
  for (int step = 16; step > 0; step /= 2) mine = min(mine, __shfl_down_sync(FULL, mine, step));
  if (lane_id() == 0 && mine < *lowest) lower(lowest, mine);
}

// Marks the targets of edges from reached nodes whose sum does not fit below ``far``; a warp a node.
extern "C" __global__ void mark_too_far(i64 proxies, const i64* offsets, const int* targets, const WEIGHT* weights,
                                        const VALUE* values, VALUE far, unsigned char* marks, unsigned* updated) {
  for (i64 source = thread_id() / 32; source < proxies; source += num_threads() / 32) {
    if (values[source] == far) continue;
    for (i64 edge = offsets[source] + lane_id(); edge < offsets[source + 1]; edge += 32)
      if ((VALUE)weights[edge] >= far - values[source]) marks[targets[edge]] = 1, set_bit(updated, targets[edge]);
  }
}
