// Shortest paths by buckets: VALUE, the label's type, is int, long long or double; WEIGHT is that of the edges.
#include "frontier.cuh"

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
// it is narrower again.
#define FEW_EDGES (1ll << 16)
#define MANY_EDGES (1ll << 19)
#define IN_A_ROW 4

// Relaxes the out-edges of pending nodes below the limit until none is left. With ``whole``, buckets follow each other
// until nothing is pending at all; without it one bucket, which ends at ``limit``, is drained for all ranks to agree.
//
// A node is appended once a step: the thread that lowers it below the limit and first stamps it with the step does that.
// Its value may fall while its edges are relaxed by several warps; then it is stamped for the next step and relaxed
// again, so nothing is lost. A node that stays above the limit gets its pending bit. relaxed_at says, to those who come
// from another rank's message, at which value a node's edges have been or will be relaxed; without other ranks nobody
// asks.
extern "C" __global__ void __launch_bounds__(512, 2)
relax_drain(i64 whole, VALUE limit, VALUE far, VALUE delta, i64 proxies, const i64* offsets, const int* targets,
            const WEIGHT* weights, VALUE* values, VALUE* relaxed_at, unsigned* pending, unsigned* updated, int* stamps,
            int* nodes, i64* starts, i64* queue_rows, i64 room, u64* progress_words, i64* rounds) {
  Progress* progress = (Progress*)progress_words;
  Queues queues = {nodes, starts, queue_rows, room, progress};
  VALUE* lowest = (VALUE*)progress->lowest;  // of buckets in turn, three as of the totals; far to begin with
  unsigned step = progress->steps;
  i64 words = (proxies + 31) / 32, buckets = 0;
  VALUE width = delta;
  int few = 0;  // buckets of late
  for (;;) {
    if (whole) {  // where does the next bucket begin?
      VALUE mine = far;
      for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
        unsigned bits = pending[word];
        if (bits >> lane_id() & 1) mine = min(mine, values[word * 32 + lane_id()]);
      }
      for (int half = 16; half > 0; half /= 2) mine = min(mine, __shfl_down_sync(FULL, mine, half));
      VALUE* place = (VALUE*)&progress->lowest[buckets % 3];
      if (lane_id() == 0 && mine < far) lower(place, mine);
      if (thread_id() == 0) *(VALUE*)&progress->lowest[(buckets + 1) % 3] = far;
      grid_barrier(&progress->arrived);
      VALUE begin = *(volatile VALUE*)place;
      if (!(begin < far)) break;
      limit = bucket_end(begin, far, width);
    }
    step++;
    if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
    for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
      unsigned bits = pending[word];
      if (bits == 0) continue;
      i64 lid = word * 32 + lane_id();
      bool near = bits >> lane_id() & 1 && values[lid] < limit;
      if (near && !whole) relaxed_at[lid] = values[lid];
      unsigned chosen = __ballot_sync(FULL, near);
      if (chosen == 0) continue;
      if (lane_id() == 0) pending[word] = bits & ~chosen;
      append(queues.written_in(step), near, (int)lid, offsets);
    }
    grid_barrier(&progress->arrived);
    i64 work = queue_edges(peek(&progress->total[step % 3]));
    few = work < FEW_EDGES ? few + 1 : 0;
    if (few >= IN_A_ROW && width < far / 4) width *= 2, few = 0;
    if (work > MANY_EDGES && width > delta) width /= 2;
    for (;;) {
      u64 total = peek(&progress->total[step % 3]);
      if (queue_nodes(total) == 0) break;
      step++;
      if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
      Queue out = queues.written_in(step);
      for_each_edge(queues.written_in(step - 1), total, [&](const Edges& edges) {
        int target[K];
        VALUE candidate[K], old[K];
#pragma unroll
        for (int k = 0; k < K; k++) {
          target[k] = 0, candidate[k] = far;
          if (!edges.active[k]) continue;
          target[k] = targets[edges.place[k]];
          VALUE value = values[edges.node[k]], weight = (VALUE)weights[edges.place[k]];
          if (weight < far - value) candidate[k] = value + weight;
        }
#pragma unroll
        for (int k = 0; k < K; k++) old[k] = values[target[k]];
#pragma unroll
        for (int k = 0; k < K; k++) {
          bool again = false;
          if (candidate[k] < old[k] && candidate[k] < lower(&values[target[k]], candidate[k])) {
            if (!whole) set_bit(updated, target[k]);
            if (candidate[k] < limit) {
              again = atomicExch(&stamps[target[k]], (int)step) != (int)step;
              if (get_bit(pending, target[k])) atomicAnd(&pending[target[k] >> 5], ~(1u << (target[k] & 31)));
              if (!whole) lower(&relaxed_at[target[k]], candidate[k]);
            } else {
              set_bit(pending, target[k]);
            }
          }
          if (__any_sync(FULL, again)) append(out, again, target[k], offsets);
        }
      });
      grid_barrier(&progress->arrived);
    }
    buckets++;
    if (!whole) break;
  }
  grid_barrier(&progress->arrived);  // nobody reads ``steps`` any more
  if (thread_id() == 0) progress->steps = step, *rounds = buckets;
}
