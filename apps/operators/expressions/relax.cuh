// Relaxing in the order of priorities: nodes whose value has changed are pending, as bits, and those in the lowest bucket of
// priorities look along their edges first. relax_gpu.py appends the operator, with its function priority(node, value), and kernels
// that call these with what they are given. KEY is the type of priorities: int, unsigned, long long or double. Twins: the
// loops of drains_cpu.py.
//
// A priority is a hint: it may rise when a value gets better, and the answer is the same.
#include "cusp/apps/operators/expressions/edges.cuh"

typedef KEY Key;

__device__ inline Key highest();  // defined below this file: infinity, or the largest number of the type

// Keys as whole numbers in the same order, and back.
__device__ inline u64 code_of(int key) { return (u64)((i64)key + (1ll << 31)); }
__device__ inline u64 code_of(unsigned key) { return key; }
__device__ inline u64 code_of(i64 key) { return (u64)key ^ 1ull << 63; }
__device__ inline u64 code_of(double key) {
  i64 bits = __double_as_longlong(key);
  return bits < 0 ? ~(u64)bits : (u64)bits | 1ull << 63;
}
__device__ inline void decode(u64 code, int& key) { key = (int)((i64)code - (1ll << 31)); }
__device__ inline void decode(u64 code, unsigned& key) { key = (unsigned)code; }
__device__ inline void decode(u64 code, i64& key) { key = (i64)(code ^ 1ull << 63); }
__device__ inline void decode(u64 code, double& key) {
  key = __longlong_as_double((i64)(code >> 63 ? code & ~(1ull << 63) : ~code));
}

// How far below the highest a key is. 0 stands for no key at all, so the highest one counts as the one before it.
__device__ inline u64 below_highest(Key key) { return max(code_of(highest()) - code_of(key), 1ull); }
__device__ inline Key key_below(u64 below) {
  Key key;
  decode(code_of(highest()) - below, key);
  return key;
}

template <class Operator>
__device__ inline Key key_of(const Operator& op, i64 node, Value value) {
  Key key = op.priority(node, value);
  return key == key ? key : highest();
}

// The last key of the bucket that begins at ``lowest``. The highest one and the one before it share a bucket.
template <class Whole>
__device__ inline Whole bucket_last(Whole lowest, Whole delta) {
  return code_of(highest()) - code_of(lowest) <= (u64)delta ? highest() : lowest + (delta - 1);
}
__device__ inline double bucket_last(double lowest, double delta) {
  double last = lowest + delta;
  return last < key_below(1) ? last : highest();
}

// Several buckets in a row that begin with few edges do not fill the GPU: the next one is wider. After one with many,
// it is narrower again. Bursts need few edges; there, buckets are wider if they end after few steps, as the way from one to the
// next takes as long as some, and narrower after many, as a wide bucket relaxes edges again and again (of a lattice, 19 times).
constexpr i64 FEW_EDGES = 1ll << 16, MANY_EDGES = 1ll << 19;
constexpr unsigned SHORT = 6, LONG = 48;  // steps of a bucket
constexpr int IN_A_ROW = 4;

struct Width {
  Key usual, now;
  int few;  // buckets of late

  // ``work``: edges with which the bucket began; ``steps`` that it took.
  __device__ void adapt(i64 work, unsigned steps) {
    few = (BURSTS ? steps < SHORT : work < FEW_EDGES) ? few + 1 : 0;
    if (few >= IN_A_ROW && now < highest() / 4) now *= 2, few = 0;
    if ((BURSTS ? steps > LONG : work > MANY_EDGES) && now > usual) now /= 2;
  }
};

// The nodes of a rank, their rows, and what is known of each.
struct Nodes {
  i64 size;  // of nodes from there on no edges are relaxed, so they are never pending
  const i64* offsets;
  const int* columns;
  Value* values;
  unsigned* pending;
  int* stamps;
  unsigned* updated;  // null, with the next, where no other rank has to know what changed
  Value* relaxed_at;  // at which value the edges of a node have been or will be relaxed

  __device__ i64 words() const { return (size + 31) / 32; }
  __device__ void wait(int node) const { if (node < size) set_bit(pending, node); }
};

// *most = how far the lowest key of a pending node that this warp sees is below the highest, if that is more; the grid sees all.
template <class Operator>
__device__ inline void keep_lowest(const Operator& op, const Nodes& nodes, u64* most) {
  u64 below = 0;
  for_each_marked(nodes.pending, nodes.size, [&](const bool (&chosen)[K], const int (&node)[K]) {
    Value value[K];
#pragma unroll
    for (int k = 0; k < K; k++) value[k] = chosen[k] ? nodes.values[node[k]] : Value();
#pragma unroll
    for (int k = 0; k < K; k++)
      if (chosen[k]) below = max(below, below_highest(key_of(op, node[k], value[k])));
  });
  keep_highest(most, below);
}

// Appends the pending nodes up to the key ``last``, which are pending no more.
template <class Operator>
__device__ inline void append_pending(const Operator& op, const Nodes& nodes, Queue out, Key last) {
  for_each_marked(nodes.pending, nodes.size, [&](const bool (&chosen)[K], const int (&node)[K]) {
    bool near[K];
    Value value[K];
#pragma unroll
    for (int k = 0; k < K; k++) value[k] = chosen[k] ? nodes.values[node[k]] : Value();
#pragma unroll
    for (int k = 0; k < K; k++) {
      near[k] = chosen[k] && key_of(op, node[k], value[k]) <= last;
      if (near[k] && nodes.relaxed_at) nodes.relaxed_at[node[k]] = value[k];
      if (near[k]) clear_bit(nodes.pending, node[k]);
    }
    append_all(out, near, node, nodes.offsets);
  });
}

// Whether a node whose value changed joins the queue of this step: if it is near, in the bucket, where it is pending no more;
// one that is not is pending. Where a better value may have a higher key, pending nodes remain so: what another thread found
// at the same time may be for later.
template <class Operator>
__device__ inline bool joins(const Nodes& nodes, int node, bool near, unsigned step) {
  if (!near) nodes.wait(node);
  else if (Operator::FALLS && get_bit(nodes.pending, node)) clear_bit(nodes.pending, node);
  return near && stamp(node, step, nodes.stamps);
}

// What K edges lead to: a value, and whether it may change the node's. K loads of each kind are under way at once. Without LOOK
// nothing is looked at first: the value counts if it is better than none.
struct Updates {
  int node[K];
  Value value[K], old[K];
  bool may[K];

  __device__ bool apply(int k, Value* values) const { return may[k] && combine_atomic(node[k], value[k], old[k], values); }
};
template <bool LOOK, class Operator>
__device__ inline Updates updates_of(const Operator& op, const Nodes& nodes, const Edges& edges) {
  Updates result;
#pragma unroll
  for (int k = 0; k < K; k++) result.node[k] = edges.active[k] ? nodes.columns[edges.place[k]] : 0, result.may[k] = edges.active[k];
  if (Operator::CONDITIONAL) {
#pragma unroll
    for (int k = 0; k < K; k++) {
      bool on = edges.active[k];
      result.may[k] = op.where(on ? edges.node[k] : 0, result.node[k], on ? edges.place[k] : 0) && on;
    }
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    result.value[k] = (Value)identity();
    if (result.may[k]) result.value[k] = op.candidate(edges.node[k], result.node[k], edges.place[k]);
  }
#pragma unroll
  for (int k = 0; k < K; k++) result.old[k] = LOOK ? nodes.values[result.node[k]] : (Value)identity();
#pragma unroll
  for (int k = 0; k < K; k++) result.may[k] = result.may[k] && changes(result.old[k], result.value[k]);
  return result;
}

// Relaxes edges; appends to ``out`` the nodes in the bucket that changed. changed(node, near, value) is called for each that
// changed. In a burst every load is waited for: what may be needed is on the way together, and nothing is looked at first.
template <class Operator, class Out, class Changed>
__device__ inline void relax(const Operator& op, const Nodes& nodes, const Edges& edges, Out out, Key last, unsigned step,
                             Changed changed) {
  constexpr bool ALONE = Out::IN_BURST, LOOK = !ALONE || ATOMIC == SWAP;
  Updates found = updates_of<LOOK>(op, nodes, edges);
  i64 begin[K], end[K];
  bool waits[K];
#pragma unroll
  for (int k = 0; k < K; k++) {
    bool early = ALONE && found.may[k];
    begin[k] = early ? nodes.offsets[found.node[k]] : 0, end[k] = early ? nodes.offsets[found.node[k] + 1] : 0;
    waits[k] = Operator::FALLS && early && get_bit(nodes.pending, found.node[k]);
    if (!ALONE && found.may[k]) prefetch(&nodes.offsets[found.node[k]]);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    int node = found.node[k];
    bool fell = found.apply(k, nodes.values), near = fell && key_of(op, node, found.value[k]) <= last;
    if (fell) changed(node, near, found.value[k]);
    if (!ALONE) near = fell && joins<Operator>(nodes, node, near, step);
    else if (fell && !near) nodes.wait(node);
    else if (near && waits[k]) clear_bit(nodes.pending, node);
    if (!near) begin[k] = end[k] = 0;
    else if (!ALONE) begin[k] = nodes.offsets[node], end[k] = nodes.offsets[node + 1];
  }
#pragma unroll
  for (int k = 0; k < K; k++)
    if (begin[k] < end[k]) prefetch(&nodes.columns[begin[k]]), op.prefetch_edge(begin[k]);
  append_all(out, found.node, begin, end);
}

constexpr unsigned MANY_STEPS = 1u << 30;  // after which they are counted anew: a stamp must not come back by overflow

// The number of the last step. All threads call it, where a kernel begins.
__device__ inline unsigned last_step(const Nodes& nodes, const Queues& queues) {
  unsigned step = queues.progress->steps;
  if (step < MANY_STEPS) return step;
  for (i64 node = thread_id(); node < nodes.size; node += num_threads()) nodes.stamps[node] = 0;
  queues.barrier();
  return step % 6;  // of_step() asks for the remainders by 2 and 3
}

// Relaxes pending nodes up to the key ``until``, bucket by bucket, until none is left or the bound is met, after which they are
// pending again. done[0..2] grow by the buckets, the edges, and the most rounds of a block; done[3] is whether the bound was met.
//
// A node is appended once per step: the thread that changes it and first stamps it with the step does that; within a burst,
// whenever it is changed. Its value may change while its edges are relaxed by several warps; then it is stamped for the next
// step and relaxed again, so nothing is lost. relaxed_at is for those who come from another rank's message.
//
// RANKS is the world that the kernel runs in: OneRank, or ManyRanks of peers/relax.cuh.
template <class Operator, class Ranks>
__device__ inline void relax_in(Ranks& ranks, const Operator& op, const Nodes& nodes, Queues queues, Key until, Key delta,
                                i64 edges, i64 steps, i64* done) {
  Progress* progress = queues.progress;
  unsigned step = last_step(nodes, queues);
  Bound bound = {edges, steps};
  Drained drained = {0, 0};
  Width width = {delta, delta, 0};
  i64 buckets = 0, before = done[2];
  u64 total = 0;
  ranks.begin();
  for (; !Ranks::ALONE || !bound.met(); buckets++) {
    u64* most = &progress->lowest[buckets % 3];  // as the totals, three in turn; 0 to begin with
    if (thread_id() == 0) progress->lowest[(buckets + 1) % 3] = 0;
    keep_lowest(op, nodes, most);
    u64 below = ranks.open(queues, most, bound, width);
    if (below == 0) break;
    Key lowest = key_below(below);
    if (lowest > until) break;
    Key last = min(bucket_last(lowest, width.now), until);
    append_pending(op, nodes, queues.next(step), last);
    queues.barrier();
    i64 work = queue_edges(queues.total(step));
    unsigned first = step;
    drained += ranks.relax_bucket(op, nodes, queues, step, last, bound);
    ranks.close(work, step - first, width);
    total = queues.total(step);
  }
  Queue left = queues.of_step(step);
  for (i64 i = thread_id(); i < queue_nodes(total); i += num_threads()) set_bit(nodes.pending, left.nodes[i]);
  if (threadIdx.x == 0) atomicAdd((u64*)&done[1], (u64)drained.edges), atomicMax(&done[2], before + drained.rounds);
  queues.barrier();  // nobody reads the counters any more
  ranks.end();
  if (thread_id() > 0) return;
  progress->steps = step, done[0] += buckets, done[3] = ranks.met(bound);
  for (int i = 0; i < 3; i++) progress->lowest[i] = 0;
}

struct OneRank {
  static constexpr bool ALONE = true;

  __device__ void begin() const {}
  // Returns how far below the highest key the lowest is at which a bucket opens; 0 ends it all.
  __device__ u64 open(Queues queues, u64* most, const Bound&, const Width&) const {
    queues.barrier();
    return peek(most);
  }
  template <class Operator>
  __device__ Drained relax_bucket(const Operator& op, const Nodes& nodes, Queues queues, unsigned& step, Key last,
                                  Bound& bound) const {
    auto changed = [&](int node, bool near, Value value) {
      if (nodes.updated == nullptr) return;
      set_bit(nodes.updated, node);
      if (near) join_atomic(&nodes.relaxed_at[node], value);
    };
    auto visit = [&](const Edges& edges, auto out) { relax(op, nodes, edges, out, last, step, changed); };
    auto claim = [&](int node) { return stamp(node, step, nodes.stamps); };
    return drain(queues, step, nodes.offsets, visit, claim, bound);
  }
  __device__ void close(i64 work, unsigned steps, Width& width) const { width.adapt(work, steps); }
  __device__ bool met(const Bound& bound) const { return bound.met(); }
  __device__ void end() const {}
};

template <class Operator>
__device__ inline void relax_drain(const Operator& op, Nodes nodes, Queues queues, Key until, Key delta, i64 edges, i64 steps,
                                   i64* done) {
  OneRank ranks;
  relax_in(ranks, op, nodes, queues, until, delta, edges, steps, done);
}

// Nodes with a bit become pending, if their value is not the one at which they were relaxed; all of them do if nobody knows that.
// Publishes how far below the highest the lowest key of a pending node is, and how many are pending.
template <class Operator>
__device__ inline void add_bits(const Operator& op, Nodes nodes, const unsigned* bits, u64* sums, u64* host) {
  u64 below = 0, count = 0;
  for (i64 word = thread_id() / 32; word < nodes.words(); word += num_threads() / 32) {
    unsigned changed = bits ? bits[word] : 0, pending = nodes.pending[word];
    if ((changed | pending) == 0) continue;
    i64 node = word * 32 + lane_id();
    bool chosen = changed >> lane_id() & 1 && node < nodes.size;
    if (chosen && nodes.relaxed_at) chosen = nodes.values[node] != nodes.relaxed_at[node];
    unsigned more = __ballot_sync(FULL, chosen) & ~pending;
    if (lane_id() == 0 && more) nodes.pending[word] = pending | more;
    if (((pending | more) >> lane_id() & 1) == 0) continue;
    below = max(below, below_highest(key_of(op, node, nodes.values[node]))), count++;
  }
  keep_highest(&sums[0], below);
  add_up(&sums[1], count);
  publish(sums, 2, host);
}

// How much higher keys are behind edges of pending nodes, the first ``most`` that are found; ``count`` counts them.
template <class Operator>
__device__ inline void find_steps(const Operator& op, Nodes nodes, Float* found, i64 most, u64* count) {
  for (i64 word = thread_id() / 32; word < nodes.words(); word += num_threads() / 32) {
    i64 node = word * 32 + lane_id();
    if (!(nodes.pending[word] >> lane_id() & 1)) continue;
    Float own = (Float)key_of(op, node, nodes.values[node]);
    for (i64 edge = nodes.offsets[node]; edge < nodes.offsets[node + 1] && (i64)peek(count) < most; edge++) {
      int col = nodes.columns[edge];
      if (!op.where(node, col, edge)) continue;
      Value old = nodes.values[col], value = op.candidate(node, col, edge);
      if (!changes(old, value)) continue;
      u64 place = atomicAdd(count, 1ull);
      if ((i64)place < most) found[place] = (Float)key_of(op, col, joined(old, value)) - own;
    }
  }
}
