// Connected components: see interfaces.py. VALUE, the type of labels, is int or long long.
//
// Threads unite trees at the same time, without locks (ECL-CC: Jaiganesh, Burtscher, HPDC 2018). Only a root gets a new
// parent, by atomicCAS, and always a lower node: so there are no cycles. A node that is not a root may get any node further
// up its path as its parent, by plain stores: whichever wins, and however old the parent that a thread reads, it is up that
// path.
#include "../frontier.cuh"

// Root of a node at the time this thread looks; on the way, every other node gets its grandparent as its parent.
__device__ inline int root_of(int* parents, int lid) {
  for (;;) {
    int parent = parents[lid];
    if (parent == lid) return lid;
    int above = parents[parent];
    if (above == parent) return parent;
    parents[lid] = above;
    lid = above;
  }
}

__device__ inline void unite(int* parents, int one, int other) {
  if (parents[one] == parents[other]) return;
  one = root_of(parents, one), other = root_of(parents, other);
  while (one != other) {
    int low = min(one, other), high = max(one, other);
    int parent = atomicCAS(&parents[high], high, low);
    if (parent == high) return;
    one = low, other = root_of(parents, parent);
  }
}

// One thread per node.
extern "C" __global__ void link_first(i64 edges, i64 size, const i64* offsets, const int* targets, int* parents) {
  for (i64 source = thread_id(); source < size; source += num_threads()) {
    i64 begin = offsets[source], end = min(offsets[source + 1], begin + edges);
    for (i64 edge = begin; edge < end; edge++) unite(parents, (int)source, targets[edge]);
  }
}

// The nodes whose value is not ``skipped``, as a queue for link_queue. One lane per node.
extern "C" __global__ void queue_others(const VALUE* values, VALUE skipped, i64 size, const i64* offsets, Queues queues) {
  for (i64 first = thread_id() / 32 * 32; first < size; first += num_threads()) {
    i64 lid = first + lane_id();
    append(queues.of_step(0), lid < size && values[lid] != skipped, (int)lid, offsets);
  }
}

// Unites every node of the queue with all its out-neighbours, edges shared out among warps. The queue is empty afterwards.
extern "C" __global__ void link_queue(Queues queues, const int* targets, int* parents) {
  consume(queues, targets, [&](int source, int target) { unite(parents, source, target); });
}

extern "C" __global__ void flatten(i64 size, int* parents) {
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    int root = (int)lid, parent = parents[lid];
    while (parent != root) root = parent, parent = parents[root];
    parents[lid] = root;
  }
}

// Most nodes share a root, so a thread keeps its minimum until it meets another root.
extern "C" __global__ void lower_roots(i64 size, const int* parents, VALUE* values, unsigned* updated) {
  int held = -1;
  VALUE lowest = 0;
  auto flush = [&] {
    if (held >= 0 && lowest < *(volatile VALUE*)&values[held]) lower(&values[held], lowest), set_bit(updated, held);
  };
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    int root = parents[lid];
    if (root == lid) continue;
    VALUE value = values[lid];
    if (root != held) {
      flush();
      held = root, lowest = value;
    }
    lowest = min(lowest, value);
  }
  flush();
}

// A warp has 32 nodes and with them one word of ``updated``, so no atomics are needed.
extern "C" __global__ void spread_roots(i64 size, const int* parents, VALUE* values, unsigned* updated) {
  for (i64 first = thread_id() / 32 * 32; first < size; first += num_threads()) {
    i64 lid = first + lane_id();
    bool lowered = false;
    if (lid < size) {
      VALUE value = values[parents[lid]];
      lowered = value < values[lid];
      if (lowered) values[lid] = value;
    }
    unsigned bits = __ballot_sync(FULL, lowered);
    if (lane_id() == 0 && bits) updated[first / 32] |= bits;
  }
}

extern "C" __global__ void count_members(i64 size, const int* parents, int* members) {
  int held = -1, count = 0;
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    if (parents[lid] != held) {
      if (count) atomicAdd(&members[held], count);
      held = parents[lid], count = 0;
    }
    count++;
  }
  if (count) atomicAdd(&members[held], count);
}
