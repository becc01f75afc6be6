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

// What edges offer their targets: a value, ``far`` where the sum would not stay below it. K loads are under way at once.
struct Candidates {
  int target[K];
  VALUE value[K], old[K];

  // Lowers the target to the value; true for exactly one of those that offer it the same.
  __device__ bool apply(int k, VALUE* values) const {
    return value[k] < old[k] && value[k] < lower(&values[target[k]], value[k]);
  }
};

__device__ inline Candidates candidates(const Edges& edges, VALUE far, const int* targets, const WEIGHT* weights,
                                        const VALUE* values) {
  Candidates found;
#pragma unroll
  for (int k = 0; k < K; k++) {
    found.target[k] = 0, found.value[k] = far;
    if (!edges.active[k]) continue;
    found.target[k] = targets[edges.place[k]];
    VALUE value = values[edges.node[k]], weight = (VALUE)weights[edges.place[k]];
    if (weight < far - value) found.value[k] = value + weight;
  }
#pragma unroll
  for (int k = 0; k < K; k++) found.old[k] = values[found.target[k]];
  return found;
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
        Candidates found = candidates(edges, far, targets, weights, values);
#pragma unroll
        for (int k = 0; k < K; k++) {
          int target = found.target[k];
          bool again = false;
          if (found.apply(k, values)) {
            if (!whole) set_bit(updated, target);
            if (found.value[k] < limit) {
              again = atomicExch(&stamps[target], (int)step) != (int)step;
              if (get_bit(pending, target)) atomicAnd(&pending[target >> 5], ~(1u << (target & 31)));
              if (!whole) lower(&relaxed_at[target], found.value[k]);
            } else {
              set_bit(pending, target);
            }
          }
          if (__any_sync(FULL, again)) append(out, again, target, offsets);
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

__device__ inline u64 mix(u64 value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ value >> 27) * 0x94D049BB133111EBull;
  return value ^ value >> 31;
}

// *sum += over all edges, a hash of (source, target, weight) less that of (target, source, weight), modulo 2^64: zero if
// every edge and its reverse weigh the same.
extern "C" __global__ void weight_asymmetry(i64 rows, const i64* offsets, const int* targets, const WEIGHT* weights,
                                            u64* sum) {
  u64 mine = 0;
  for (i64 row = thread_id() / 32; row < rows; row += num_threads() / 32) {
    for (i64 edge = offsets[row] + lane_id(); edge < offsets[row + 1]; edge += 32) {
      u64 weight = mix((u64)weights[edge]), target = (u64)targets[edge];
      mine += mix(((u64)row << 32 | target) ^ weight) - mix((target << 32 | (u64)row) ^ weight);
    }
  }
  for (int half = 16; half > 0; half /= 2) mine += __shfl_down_sync(FULL, mine, half);
  if (lane_id() == 0 && mine) atomicAdd(sum, mine);
}

// First edge of a row, sorted by weight, that is not shorter than ``length``.
__device__ inline i64 first_from(const WEIGHT* weights, i64 begin, i64 end, VALUE length) {
  while (begin < end) {
    i64 middle = (begin + end) / 2;
    if ((VALUE)weights[middle] < length) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// Relaxes the edges of a queue. The bits of ``fallen`` say whose value fell below ``limit``.
__device__ inline void relax(Queue queue, u64 total, VALUE limit, VALUE far, const int* targets, const WEIGHT* weights,
                             VALUE* values, unsigned* fallen) {
  for_each_edge(queue, total, [&](const Edges& edges) {
    Candidates found = candidates(edges, far, targets, weights, values);
#pragma unroll
    for (int k = 0; k < K; k++)
      if (found.apply(k, values) && found.value[k] < limit)
        atomicOr(&fallen[found.target[k] >> 5], 1u << (found.target[k] & 31));
  });
}

// Appends the nodes whose bits are set, and clears them: each with its edges that can lead below ``limit``. One lane looks
// at a word, so words without bits cost little.
__device__ inline void collect(unsigned* fallen, i64 words, Queue out, VALUE limit, VALUE far, const i64* offsets,
                               const WEIGHT* weights, const VALUE* values) {
  for (i64 base = thread_id() / 32 * 32; base < words; base += num_threads()) {
    unsigned mine = base + lane_id() < words ? fallen[base + lane_id()] : 0;
    if (mine) fallen[base + lane_id()] = 0;
    for (unsigned left = __ballot_sync(FULL, mine != 0); left; left &= left - 1) {
      int word = __ffs(left) - 1;
      i64 lid = (base + word) * 32 + lane_id(), begin = 0, end = 0;
      if (__shfl_sync(FULL, mine, word) >> lane_id() & 1) {
        begin = offsets[lid], end = offsets[lid + 1];
        if (limit < far) end = first_from(weights, begin, end, limit - values[lid]);
      }
      append(out, (int)lid, begin, end);
    }
  }
}

// Shortest paths of an undirected graph whose rows are sorted by weight, in one kernel.
//
// Distances are settled bucket after bucket. A bucket [low, high) relaxes of every node that is settled just the edges
// that lead into it, which stand together in the row, and of every node that falls into it those that stay inside: so
// each edge is relaxed once, and only if it is not longer than what is settled. Hubs are settled first, and with them
// most of all edges. As soon as ``enough`` of them belong to settled nodes, the others pull: each looks through its own
// row, which is short. What they found is then relaxed without buckets until nothing changes. Nearly all edges between
// settled nodes are never looked at. (That distances below ``low`` are final: every path to such a node has only shorter
// prefixes, whose edges have been relaxed in an earlier bucket.)
extern "C" __global__ void __launch_bounds__(512, 2)
settle_and_pull(i64 source, const u64* index, const int* table, i64 rows, i64 proxies, i64 enough, i64 most_buckets,
                VALUE far, VALUE width, const i64* offsets, const int* targets, const WEIGHT* weights, VALUE* values,
                unsigned* fallen, int* nodes, i64* starts, i64* queue_rows, i64 room, u64* progress_words, i64* rounds) {
  Progress* progress = (Progress*)progress_words;
  Queues queues = {nodes, starts, queue_rows, room, progress};
  i64 bucket = 0, words = (rows + 31) / 32;
  for (i64 i = thread_id(); i < proxies; i += num_threads()) values[i] = far;
  for (i64 i = thread_id(); i < words; i += num_threads()) fallen[i] = 0;
  grid_barrier(&progress->arrived);
  if (thread_id() == 0) values[lid_of(index, table, source)] = 0;
  grid_barrier(&progress->arrived);
  unsigned step = 0;
  auto next_step = [&]() {  // the queue that is read now is not written any more, the next one is empty
    step++;
    if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
  };
  auto drain = [&](VALUE limit) {
    for (;;) {
      u64 total = peek(&progress->total[step % 3]);
      if (queue_nodes(total) == 0) break;
      relax(queues.written_in(step), total, limit, far, targets, weights, values, fallen);
      grid_barrier(&progress->arrived);
      next_step();
      collect(fallen, words, queues.written_in(step), limit, far, offsets, weights, values);
      grid_barrier(&progress->arrived);
    }
  };
  VALUE low = 0;
  for (VALUE high; bucket < most_buckets && low < far; bucket++, low = high) {
    high = far - low > width ? low + width : far;
    next_step();
    if (thread_id() == 0) progress->lowest[(bucket + 1) % 3] = 0;
    u64 settled = 0;  // edges
    for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
      i64 lid = word * 32 + lane_id(), begin = 0, end = 0;
      VALUE value = lid < rows ? values[lid] : far;
      if (value < high) {
        begin = offsets[lid], end = offsets[lid + 1];
        if (value < low) settled += end - begin;
        i64 last = first_from(weights, begin, end, high - value);
        if (value < low) begin = first_from(weights, begin, last, low - value);
        end = last;
      }
      if (__any_sync(FULL, end > begin)) append(queues.written_in(step), (int)lid, begin, end);
    }
    for (int half = 16; half > 0; half /= 2) settled += __shfl_down_sync(FULL, settled, half);
    if (lane_id() == 0 && settled) atomicAdd(&progress->lowest[bucket % 3], settled);
    grid_barrier(&progress->arrived);
    if ((i64)peek(&progress->lowest[bucket % 3]) >= enough) break;
    drain(high);
  }
  for (bool pulled = false;; pulled = true) {  // those that are not settled pull; then they push what they have
    next_step();
    for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
      i64 lid = word * 32 + lane_id();
      bool chosen = lid < rows && !(values[lid] < low) && (!pulled || values[lid] < far);
      if (__any_sync(FULL, chosen)) append(queues.written_in(step), chosen, (int)lid, offsets);
    }
    grid_barrier(&progress->arrived);
    if (pulled) break;
    u64 total = peek(&progress->total[step % 3]);
    for_each_edge(queues.written_in(step), total, [&](const Edges& edges) {
      VALUE near[K];
#pragma unroll
      for (int k = 0; k < K; k++) near[k] = edges.active[k] ? values[targets[edges.place[k]]] : far;
#pragma unroll
      for (int k = 0; k < K; k++) {
        if (!(near[k] < far)) continue;
        VALUE weight = (VALUE)weights[edges.place[k]];
        if (weight < far - near[k] && near[k] + weight < values[edges.node[k]])
          lower(&values[edges.node[k]], near[k] + weight);
      }
    });
    grid_barrier(&progress->arrived);
  }
  drain(far);
  if (thread_id() == 0) *rounds = bucket;
}
