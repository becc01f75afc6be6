// Frontiers of operators: queues of nodes with their edges, and the counters of a drain.
//
// An operator runs in rounds, which the host starts, or in a drain: a kernel in which rounds follow each other until
// nothing is left to do, with a barrier of all blocks (1 us) where a host would launch and read back (15 us).
#include "cusp/apps/operators/burst.cuh"

// A compacted frontier, which nodes are appended to: once complete, it is walked through as Rows. One 64-bit counter gives a
// node its slot and its edges their numbers in the same atomic step, so starts ascend and no scan is needed.
struct Queue {
  static constexpr bool IN_BURST = false;
  u64* counter;  // nodes << 34 | edges
  int* nodes;
  i64* starts;
  i64* shifts;
};
constexpr int EDGE_BITS = 34;

__device__ inline i64 queue_nodes(u64 counter) { return (i64)(counter >> EDGE_BITS); }
__device__ inline i64 queue_edges(u64 counter) { return (i64)(counter & ((1ull << EDGE_BITS) - 1)); }

__device__ inline void write_entry(Queue queue, i64 slot, int node, i64 start, i64 begin) {
  queue.nodes[slot] = node;
  queue.starts[slot] = start;
  queue.shifts[slot] = begin - start;
}

// Every lane appends a node with its edges from ``begin`` to ``end``, if there are any. The whole warp calls it.
__device__ inline void append(Queue queue, int node, i64 begin, i64 end) {
  unsigned mask = __ballot_sync(FULL, end > begin);
  if (mask == 0) return;
  i64 upto = scan_of_warp(end - begin);
  i64 all = __shfl_sync(FULL, upto, 31);
  u64 old = 0;
  if (lane_id() == 0) old = atomicAdd(queue.counter, (u64)__popc(mask) << EDGE_BITS | (u64)all);
  old = __shfl_sync(FULL, old, 0);
  if (end > begin)
    write_entry(queue, queue_nodes(old) + __popc(mask & below_lane()), node, queue_edges(old) + upto - (end - begin), begin);
}

// Lanes with ``chosen`` append their node with all its out-edges.
__device__ inline void append(Queue queue, bool chosen, int node, const i64* offsets) {
  i64 begin = 0, end = 0;
  if (chosen) begin = offsets[node], end = offsets[node + 1];
  append(queue, node, begin, end);
}

// Every lane appends K nodes with their edges, as far as there are any: one atomic for all of them, since atomics on one
// address follow each other (2 ns each). The whole warp calls it.
__device__ inline void append_all(Queue queue, const int (&node)[K], const i64 (&begin)[K], const i64 (&end)[K]) {
  u64 entry[K], own = 0;
  each_k([&](int k) {
    entry[k] = end[k] > begin[k] ? 1ull << EDGE_BITS | (u64)(end[k] - begin[k]) : 0;
    own += entry[k];
  });
  if (!__any_sync(FULL, own > 0)) return;
  u64 upto = scan_of_warp(own), at = 0;
  if (lane_id() == 31) at = atomicAdd(queue.counter, upto);
  at = __shfl_sync(FULL, at, 31) + upto - own;
  each_k([&](int k) {
    if (entry[k]) write_entry(queue, queue_nodes(at), node[k], queue_edges(at), begin[k]);
    at += entry[k];
  });
}

// Every lane appends those of its K nodes that are chosen, with all their out-edges.
template <class Out>
__device__ inline void append_all(Out queue, const bool (&chosen)[K], const int (&node)[K], const i64* offsets) {
  i64 begin[K], end[K];
  each_k([&](int k) {
    begin[k] = chosen[k] ? offsets[node[k]] : 0;
    end[k] = chosen[k] ? offsets[node[k] + 1] : 0;
  });
  append_all(queue, node, begin, end);
}

// Counters of a drain. Step s adds up in total[s % 3], which step s - 1 has cleared and step s + 1 reads: one barrier per
// step is enough, since nobody clears what somebody may still read.
struct Progress {
  unsigned arrived;  // at barriers
  unsigned steps;
  u64 total[3];
  u64 lowest[3];
  unsigned ended;  // blocks, of kernels that are not drains
};

// Two queues, of even and odd steps. An operator that the host starts round by round uses the one of step 0.
struct Queues {
  int* nodes;
  i64* starts;
  i64* shifts;
  i64 capacity;  // of each
  Progress* progress;

  __device__ Queue of_step(unsigned step) const {
    i64 at = (step & 1) * capacity;
    return {&progress->total[step % 3], nodes + at, starts + at, shifts + at};
  }
  __device__ u64 total(unsigned step) const { return peek(&progress->total[step % 3]); }
  __device__ Rows rows(unsigned step, u64 total) const {
    Queue queue = of_step(step);
    return {queue.nodes, queue.starts, queue.shifts, queue_nodes(total), 0, queue_edges(total)};
  }
  __device__ void barrier() const { grid_barrier(&progress->arrived); }

  // Where a drain begins, before its first barrier.
  __device__ void begin() const {
    if (thread_id() < 3) progress->total[thread_id()] = progress->lowest[thread_id()] = 0;
  }

  // The next step begins: its queue is empty, that of the last one is written no more. The one after it is cleared.
  __device__ Queue next(unsigned& step) const {
    step++;
    if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
    return of_step(step);
  }
};

// What a drain has done: rounds and edges of this block; those edges that blocks share are counted by the first one.
struct Drained {
  i64 rounds, edges;

  __device__ void operator+=(Drained more) { rounds += more.rounds, edges += more.edges; }
};

// Edges, about, and steps that may still follow. In a burst edges are counted as if every round had as many as the first.
struct Bound {
  i64 edges, steps;

  __device__ bool met() const { return edges <= 0 || steps <= 0; }
};

// A burst of each block: visit(edges, BlockQueue). Appends to ``out`` what it leaves, if claim(node) is true; of blocks that
// leave the same node, it is for one. Returns the rounds of this block, and the edges after the first.
template <class Visit, class Claim>
__device__ inline Drained run_burst(Rows rows, const i64* offsets, Queue out, Visit visit, Claim claim) {
  __shared__ Burst burst;
  burst.run(rows, IN_A_BURST, false, [&](const Edges& edges, BlockQueue found, int) { visit(edges, found); });
  burst.append_last(out, offsets, claim);
  return {burst.rounds, burst.later};
}

// Whether a node joins the queue of this step: true for the thread that first stamps it. For operators that would append a
// node several times; a step number must not come back.
__device__ inline bool stamp(int node, unsigned step, int* stamps) { return atomicExch(&stamps[node], (int)step) != (int)step; }

// Calls visit(edges, out) for all edges of the queue, where ``visit`` appends to ``out``, a Queue or a BlockQueue, the nodes
// whose edges come next; until it appends none, or the bound is met. The queue of ``step`` is complete. A step may have several
// rounds of a block.
template <class Visit, class Claim>
__device__ inline Drained drain(Queues queues, unsigned& step, const i64* offsets, Visit visit, Claim claim, Bound& bound) {
  Drained done = {0, 0};
  while (!bound.met()) {
    u64 total = queues.total(step);
    if (queue_nodes(total) == 0) break;
    Queue out = queues.next(step);
    Rows rows = queues.rows(step - 1, total);
    bool alone = BURSTS && is_narrow(rows) && rows.end * IN_A_BURST <= bound.edges;
    done += {1, blockIdx.x == 0 ? rows.end : 0};
    if (alone) done += run_burst(rows, offsets, out, visit, claim), done.rounds--;
    else for_each_edge(rows, [&](const Edges& edges) { visit(edges, out); });
    bound.edges -= alone ? rows.end * IN_A_BURST : rows.end, bound.steps--;
    queues.barrier();
  }
  return done;
}

// Calls visit(edges) for all edges of the queue of step 0, which the last block leaves empty.
template <class Visit>
__device__ inline void consume(Queues queues, Visit visit) {
  u64* total = &queues.progress->total[0];
  for_each_edge(queues.rows(0, *total), visit);
  if (last_block(&queues.progress->ended) && threadIdx.x == 0) *total = 0;
}

// The same with visit(node, target), for each edge on its own.
template <class Visit>
__device__ inline void consume(Queues queues, const int* targets, Visit visit) {
  consume(queues, [&](const Edges& edges) {
    int target[K];
    each_k([&](int k) { target[k] = edges.active[k] ? targets[edges.place[k]] : 0; });
    each_k([&](int k) { if (edges.active[k]) visit(edges.node[k], target[k]); });
  });
}

// Calls visit(chosen, nodes) for the nodes with a bit, up to K of each lane at a time. The grid calls it, whole warps call visit.
template <class Visit>
__device__ inline void for_each_marked(const unsigned* bits, i64 size, Visit visit) {
  for_each_loaded(0, (size + 31) / 32, [&](i64 word) { return bits[word]; },
                  [&](i64 word, unsigned own, bool) { for_each_bit<K>(word - lane_id(), own, visit); });
}

// The frontier's nodes as a queue. One lane per node of the bitmap; words without bits cost one load.
extern "C" __global__ void queue_bits(const unsigned* frontier, i64 size, const i64* offsets, Queues queues) {
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned bits = frontier[word];
    if (bits) append(queues.of_step(0), bits >> lane_id() & 1, (int)(word * 32 + lane_id()), offsets);
  }
}

// Publishes how many masters are updated, and how many out-edges those have in the whole graph.
extern "C" __global__ void frontier_size(const unsigned* updated, i64 masters, const i64* degrees, u64* sums, u64* host) {
  u64 nodes = 0, edges = 0;
  i64 words = (masters + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned bits = updated[word];
    if (bits == 0) continue;
    i64 lid = word * 32 + lane_id();
    if (bits >> lane_id() & 1 && lid < masters) nodes++, edges += degrees[lid];
  }
  add_up(&sums[0], nodes);
  add_up(&sums[1], edges);
  publish(sums, 2, host);
}
