// Rungs without a queue: every level looks at all edges, or at all nodes.
#include "scripts/bench/ladder/shared.cuh"

// Every edge from the last level to a node that is not reached reaches it. Several may write the same value: no atomics.
extern "C" __global__ void look_at_edges(Graph graph, int* hops, i64 level, u64* counters) {
  u64* changed = found_by(counters, level);
  Count seen{graph};
  for (i64 edge = thread_id(); edge < graph.edges; edge += num_threads()) {
    bool leads = hops[graph.sources[edge]] == level - 1;
    seen.add(1, 8);
    if (!leads) continue;
    int target = graph.targets[edge];
    seen.add(0, 8);
    if (hops[target] >= 0) continue;
    hops[target] = (int)level;
    *changed = 1;
    seen.add(0, 4);
  }
}

// A thread has a node. It clears the flag of its node behind itself: nobody sets it again.
extern "C" __global__ void push_flags(Graph graph, int* hops, i64 level, bool* frontier, bool* next, u64* counters) {
  u64* changed = found_by(counters, level);
  Count seen{graph};
  for (i64 node = thread_id(); node < graph.nodes; node += num_threads()) {
    seen.add(0, 1);
    if (!frontier[node]) continue;
    frontier[node] = false;
    seen.add(0, 17);
    for (i64 edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++) {
      int target = graph.targets[edge];
      seen.add(1, 8);
      if (hops[target] >= 0) continue;
      hops[target] = (int)level;
      next[target] = true;
      *changed = 1;
      seen.add(0, 5);
    }
  }
}

// A thread has a node, and writes only what belongs to it. The first neighbour in the frontier ends its search.
extern "C" __global__ void pull_flags(Graph graph, int* hops, i64 level, const bool* frontier, bool* next, u64* counters) {
  u64* changed = found_by(counters, level);
  Count seen{graph};
  for (i64 node = thread_id(); node < graph.nodes; node += num_threads()) {
    bool hit = false;
    seen.add(0, 5);
    if (hops[node] < 0) {
      seen.add(0, 16);
      for (i64 edge = graph.offsets[node]; edge < graph.offsets[node + 1] && !hit; edge++) {
        hit = frontier[graph.targets[edge]];
        seen.add(1, 5);
      }
    }
    next[node] = hit;
    if (!hit) continue;
    hops[node] = (int)level;
    *changed = 1;
    seen.add(0, 4);
  }
}

// The same with a bit per node, a word per warp, so that the frontier stays in caches; it counts the nodes that it finds, and
// their edges.
extern "C" __global__ void pull_bits(Graph graph, int* hops, i64 level, const unsigned* frontier, unsigned* next,
                                     u64* counters) {
  u64* found = found_by(counters, level);
  u64 nodes = 0, edges = 0;
  Count seen{graph};
  for (i64 word = thread_id() / 32; word * 32 < graph.nodes; word += num_threads() / 32) {
    i64 node = word * 32 + lane_id();
    bool hit = false;
    if (node < graph.nodes) seen.add(0, 4);
    if (node < graph.nodes && hops[node] < 0) {
      i64 begin = graph.offsets[node], end = graph.offsets[node + 1];
      seen.add(0, 16);
      for (i64 edge = begin; edge < end && !hit; edge++) {
        hit = get_bit(frontier, graph.targets[edge]);
        seen.add(1, 8);
      }
      if (hit) hops[node] = (int)level, nodes++, edges += (u64)(end - begin), seen.add(0, 4);
    }
    unsigned hits = __ballot_sync(FULL, hit);
    if (lane_id() == 0) next[word] = hits, seen.add(0, 4);
  }
  add_up(&found[0], nodes);
  add_up(&found[1], edges);
}

// Bits of the nodes of a queue, all others being 0 before.
extern "C" __global__ void queue_to_bits(const int* queue, i64 count, unsigned* bits) {
  i64 place = thread_id();
  if (place < count) set_bit(bits, queue[place]);
}

// Nodes that have bits, in a queue. ``counter`` is 0 before.
extern "C" __global__ void bits_to_queue(const unsigned* bits, i64 nodes, int* queue, u64* counter) {
  for (i64 word = thread_id() / 32; word * 32 < nodes; word += num_threads() / 32)
    append(queue, counter, bits[word] >> lane_id() & 1, (int)(word * 32 + lane_id()));
}
