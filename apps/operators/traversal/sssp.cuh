// Shortest paths by buckets: pending nodes below a limit relax their out-edges until none is left. Types as in distances.cuh.
#include "distances.cuh"

extern "C" __global__ void find_pending(const unsigned* lowered, i64 size, const VALUE* values, const VALUE* relaxed_at,
                                        unsigned* pending, VALUE far, u64* sums, u64* host) {
  VALUE lowest = far;
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned fell = lowered[word], bits = pending[word];
    if ((fell | bits) == 0) continue;
    i64 lid = word * 32 + lane_id();
    unsigned more = __ballot_sync(FULL, fell >> lane_id() & 1 && values[lid] < relaxed_at[lid]) & ~bits;
    if (lane_id() == 0 && more) pending[word] = bits | more;
    if ((bits | more) >> lane_id() & 1) lowest = min(lowest, values[lid]);
  }
  keep_lowest(&sums[0], lowest, far);
  publish(sums, 1, host);
}

// One warp per node.
extern "C" __global__ void mark_too_far(i64 proxies, const i64* offsets, const int* targets, const WEIGHT* weights,
                                        const VALUE* values, VALUE far, unsigned char* marks, unsigned* updated) {
  for (i64 source = thread_id() / 32; source < proxies; source += num_threads() / 32) {
    if (values[source] == far) continue;
    for (i64 edge = offsets[source] + lane_id(); edge < offsets[source + 1]; edge += 32)
      if ((VALUE)weights[edge] >= far - values[source]) marks[targets[edge]] = 1, set_bit(updated, targets[edge]);
  }
}

// First distance of the next bucket: ``far`` where there is no next, and always above ``lowest``.
template <class Whole>
__device__ inline Whole bucket_end(Whole lowest, Whole far, Whole delta) {
  Whole end = lowest / delta * delta;
  return far - end > delta ? end + delta : far;
}
__device__ inline double bucket_end(double lowest, double far, double delta) {
  if (!(delta < far)) return far;
  double end = floor(lowest / delta) * delta + delta;
  return end > lowest ? end : __longlong_as_double(__double_as_longlong(lowest) + 1);
}

// Several buckets in a row that begin with few edges do not fill the GPU: the next one is wider. After one with many,
// it is narrower again. Bursts need few edges; there, buckets are wider if they end after few steps, as the way from one to the
// next takes as long as some, and narrower after many, as a wide bucket relaxes edges again and again (of a lattice, 19 times).
constexpr i64 FEW_EDGES = 1ll << 16, MANY_EDGES = 1ll << 19;
constexpr unsigned SHORT = 6, LONG = 48;  // steps of a bucket
constexpr int IN_A_ROW = 4;

struct Width {
  VALUE usual, now;
  int few;  // buckets of late

  // ``work``: edges with which the bucket began; ``steps`` that it took.
  __device__ void adapt(i64 work, unsigned steps, VALUE far) {
    few = (BURSTS ? steps < SHORT : work < FEW_EDGES) ? few + 1 : 0;
    if (few >= IN_A_ROW && now < far / 4) now *= 2, few = 0;
    if ((BURSTS ? steps > LONG : work > MANY_EDGES) && now > usual) now /= 2;
  }
};

// Calls visit(chosen, nodes) for all pending nodes, as visit_bits.
template <class Visit>
__device__ inline void for_each_pending(const unsigned* pending, i64 words, Visit visit) {
  auto load = [&](i64 word) { return pending[word]; };
  for_each_loaded(0, words, load, [&](i64 word, unsigned bits, bool) { visit_bits(word - lane_id(), bits, visit); });
}

// Lowest distance of a pending node that this thread sees; the grid looks at all.
__device__ inline VALUE lowest_pending(const unsigned* pending, i64 words, const VALUE* values, VALUE far) {
  VALUE lowest = far;
  for_each_pending(pending, words, [&](const bool (&chosen)[K], const int (&node)[K]) {
#pragma unroll
    for (int k = 0; k < K; k++)
      if (chosen[k]) lowest = min(lowest, values[node[k]]);
  });
  return lowest;
}

// Appends the pending nodes below ``limit``, which are pending no more. ``relaxed_at`` is null where nobody asks.
__device__ inline void append_pending(Queue out, VALUE limit, unsigned* pending, i64 words, const VALUE* values,
                                      VALUE* relaxed_at, const i64* offsets) {
  for_each_pending(pending, words, [&](const bool (&chosen)[K], const int (&node)[K]) {
    bool near[K];
    VALUE value[K];
#pragma unroll
    for (int k = 0; k < K; k++) value[k] = chosen[k] ? values[node[k]] : limit;
#pragma unroll
    for (int k = 0; k < K; k++) {
      near[k] = value[k] < limit;
      if (near[k] && relaxed_at) relaxed_at[node[k]] = value[k];
      unsigned taken = __ballot_sync(FULL, near[k]);
      if (lane_id() == 0 && taken) pending[node[k] / 32] &= ~taken;
    }
    append_all(out, near, node, offsets);
  });
}

// Whether a node whose value fell joins the queue of this step: below the limit, where it is pending no more; one that stays
// above is.
__device__ inline bool joins(int node, bool below, unsigned step, int* stamps, unsigned* pending) {
  if (!below) set_bit(pending, node);
  else if (get_bit(pending, node)) clear_bit(pending, node);
  return below && stamp(node, step, stamps);
}

constexpr unsigned MANY_STEPS = 1u << 30;  // after which they are counted anew: a stamp must not come back by overflow

// Relaxes the out-edges of pending nodes below the limit until none is left. With ``whole``, buckets follow each other
// until nothing is pending at all; without it one bucket, which ends at ``limit``, is drained for all ranks to agree.
//
// A node is appended once per step: the thread that lowers it below the limit and first stamps it with the step does that;
// within a burst, whenever it is lowered. Its value may fall while its edges are relaxed by several warps; then it is
// stamped for the next step and relaxed again, so nothing is lost. A node that stays above the limit gets its pending bit.
// relaxed_at says, to those who come from another rank's message, at which value a node's edges have been or will be
// relaxed; without other ranks nobody asks.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
relax_drain(i64 whole, VALUE limit, VALUE far, VALUE delta, i64 proxies, const i64* offsets, const int* targets,
            const WEIGHT* weights, VALUE* values, VALUE* relaxed_at, unsigned* pending, unsigned* updated, int* stamps,
            Queues queues, i64* rounds) {
  Progress* progress = queues.progress;
  unsigned step = progress->steps;
  if (step >= MANY_STEPS) {
    for (i64 lid = thread_id(); lid < proxies; lid += num_threads()) stamps[lid] = 0;
    step %= 6;  // of_step() asks for the remainders by 2 and 3
    queues.barrier();
  }
  i64 words = (proxies + 31) / 32, buckets = 0;
  Width width = {delta, delta, 0};
  for (;;) {
    if (whole) {  // where does the next bucket begin?
      VALUE lowest = least_of_warp(lowest_pending(pending, words, values, far));
      VALUE* place = (VALUE*)&progress->lowest[buckets % 3];  // as the totals, three in turn; far to begin with
      if (lane_id() == 0 && lowest < far) lower(place, lowest);
      if (thread_id() == 0) *(VALUE*)&progress->lowest[(buckets + 1) % 3] = far;
      queues.barrier();
      VALUE begin = *(volatile VALUE*)place;
      if (!(begin < far)) break;
      limit = bucket_end(begin, far, width.now);
    }
    append_pending(queues.next(step), limit, pending, words, values, whole ? nullptr : relaxed_at, offsets);
    queues.barrier();
    i64 work = queue_edges(queues.total(step));
    unsigned before = step;
    auto relax = [&](const Edges& edges, auto out) {
      // In a burst every load is waited for: what may be needed is on the way together, and nothing is looked at first.
      constexpr bool ALONE = decltype(out)::IN_BURST;
      Candidates offers = candidates<!ALONE>(edges, far, targets, weights, values);
      i64 begin[K], end[K];
      bool waits[K];
#pragma unroll
      for (int k = 0; k < K; k++) {
        bool early = ALONE && offers.value[k] < far;
        begin[k] = early ? offsets[offers.target[k]] : 0, end[k] = early ? offsets[offers.target[k] + 1] : 0;
        waits[k] = early && get_bit(pending, offers.target[k]);
        if (!ALONE && offers.value[k] < offers.old[k]) prefetch(&offsets[offers.target[k]]);
      }
#pragma unroll
      for (int k = 0; k < K; k++) {
        int target = offers.target[k];
        bool fell = offers.apply(k, values), near = fell && offers.value[k] < limit;
        if (fell && !whole) set_bit(updated, target);
        if (near && !whole) lower(&relaxed_at[target], offers.value[k]);
        if (!ALONE) near = fell && joins(target, near, step, stamps, pending);
        else if (fell && !near) set_bit(pending, target);
        else if (near && waits[k]) clear_bit(pending, target);
        if (!near) begin[k] = end[k] = 0;
        else if (!ALONE) begin[k] = offsets[target], end[k] = offsets[target + 1];
      }
      for (int k = 0; k < K; k++)
        if (begin[k] < end[k]) prefetch(&targets[begin[k]]), prefetch(&weights[begin[k]]);
      append_all(out, offers.target, begin, end);
    };
    drain(queues, step, offsets, relax, [&](int node) { return stamp(node, step, stamps); });
    width.adapt(work, step - before, far);
    buckets++;
    if (!whole) break;
  }
  queues.barrier();  // nobody reads ``steps`` any more
  if (thread_id() == 0) progress->steps = step, *rounds = buckets;
}
