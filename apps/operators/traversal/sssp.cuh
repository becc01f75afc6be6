// Shortest paths by buckets: VALUE, the label's type, is int, long long or double; WEIGHT is that of the edges.
#include "../frontier.cuh"

// Distances are not negative: their bits are integers of the same order.
__device__ inline i64 bits_of(int value) { return value; }
__device__ inline i64 bits_of(i64 value) { return value; }
__device__ inline i64 bits_of(double value) { return __double_as_longlong(value); }

// *least = how far, in bits, the lowest ``mine`` of all warps is below ``far``: 0 if none is, as counters begin that are
// handed over. The whole warp calls it.
__device__ inline void keep_lowest(u64* least, VALUE mine, VALUE far) {
  for (int step = 16; step > 0; step /= 2) mine = min(mine, __shfl_down_sync(FULL, mine, step));
  u64 below = mine < far ? (u64)(bits_of(far) - bits_of(mine)) : 0;
  if (lane_id() == 0 && below > peek(least)) atomicMax(least, below);
}

// Nodes whose value fell since their edges were last relaxed are pending. Hands over the lowest value of all that are.
extern "C" __global__ void find_pending(const unsigned* lowered, i64 size, const VALUE* values, const VALUE* relaxed_at,
                                        unsigned* pending, VALUE far, u64* sums, u64* host) {
  VALUE mine = far;
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned fell = lowered[word], bits = pending[word];
    if ((fell | bits) == 0) continue;
    i64 lid = word * 32 + lane_id();
    unsigned more = __ballot_sync(FULL, fell >> lane_id() & 1 && values[lid] < relaxed_at[lid]) & ~bits;
    if (lane_id() == 0 && more) pending[word] = bits | more;
    if ((bits | more) >> lane_id() & 1) mine = min(mine, values[lid]);
  }
  keep_lowest(&sums[0], mine, far);
  hand_over(sums, 1, host);
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

// *sum += over all edges, a hash of (source, target, weight) less that of (target, source, weight), modulo 2^64: over all
// ranks zero if every edge and its reverse weigh the same.
extern "C" __global__ void weight_asymmetry(i64 rows, const i64* gids, const i64* offsets, const int* targets,
                                            const WEIGHT* weights, u64* sum) {
  u64 mine = 0;
  for (i64 row = thread_id() / 32; row < rows; row += num_threads() / 32) {
    for (i64 edge = offsets[row] + lane_id(); edge < offsets[row + 1]; edge += 32) {
      u64 weight = mix((u64)weights[edge]), source = (u64)gids[row], target = (u64)gids[targets[edge]];
      mine += mix(mix(source + weight) ^ target) - mix(mix(target + weight) ^ source);
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

// As append, for the threads of a block at once: one atomic for all of them. The whole block calls it.
__device__ inline void append_block(Queue queue, int node, i64 begin, i64 end) {
  __shared__ u64 of_warp[32];
  if (!__syncthreads_or(end > begin)) return;
  unsigned warp = threadIdx.x / 32;
  u64 mine = end > begin ? 1ull << EDGE_BITS | (u64)(end - begin) : 0, upto = mine;
  for (int step = 1; step < 32; step *= 2) {
    u64 other = __shfl_up_sync(FULL, upto, step);
    if (lane_id() >= (unsigned)step) upto += other;
  }
  if (lane_id() == 31) of_warp[warp] = upto;
  __syncthreads();
  if (threadIdx.x == 0) {
    u64 all = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++) all += of_warp[i];
    u64 at = atomicAdd(queue.counter, all);
    for (unsigned i = 0; i < blockDim.x / 32; i++) {
      u64 next = at + of_warp[i];
      of_warp[i] = at, at = next;
    }
  }
  __syncthreads();
  u64 at = of_warp[warp] + upto - mine;
  if (end > begin) {
    i64 slot = queue_nodes(at), start = queue_edges(at);
    queue.nodes[slot] = node;
    queue.starts[slot] = start;
    queue.rows[slot] = begin - start;
  }
}

// The edges of a rank; each row is sorted by weight.
struct Rows {
  i64 size;
  const i64* offsets;
  const int* targets;
  const WEIGHT* weights;
};

// Relaxes the edges of a queue. The bits of ``fallen`` say whose value fell; so do those of ``updated``, which is there if
// there are other ranks.
__device__ inline void relax(Queue queue, u64 total, VALUE far, Rows rows, VALUE* values, unsigned* fallen,
                             unsigned* updated) {
  for_each_edge(queue, total, [&](const Edges& edges) {
    Candidates found = candidates(edges, far, rows.targets, rows.weights, values);
#pragma unroll
    for (int k = 0; k < K; k++) {
      int target = found.target[k];
      if (!found.apply(k, values)) continue;
      atomicOr(&fallen[target >> 5], 1u << (target & 31));
      if (updated) set_bit(updated, target);
    }
  });
}

// Appends the nodes whose bits are set, and clears them: each with its edges that can lead below ``limit``. One lane looks
// at a word, so words without bits cost little. ``relaxed_at`` is there if there are other ranks.
__device__ inline void collect(unsigned* fallen, Queue out, VALUE limit, VALUE far, Rows rows, const VALUE* values,
                               VALUE* relaxed_at) {
  i64 words = (rows.size + 31) / 32;
  for (i64 base = thread_id() / 32 * 32; base < words; base += num_threads()) {
    unsigned mine = base + lane_id() < words ? fallen[base + lane_id()] : 0;
    if (mine) fallen[base + lane_id()] = 0;
    for (unsigned left = __ballot_sync(FULL, mine != 0); left; left &= left - 1) {
      int word = __ffs(left) - 1;
      i64 lid = (base + word) * 32 + lane_id(), begin = 0, end = 0;
      if (__shfl_sync(FULL, mine, word) >> lane_id() & 1) {
        VALUE value = values[lid];
        begin = rows.offsets[lid], end = rows.offsets[lid + 1];
        if (limit < far) end = first_from(rows.weights, begin, end, limit - value);
        if (relaxed_at) relaxed_at[lid] = value;
      }
      append(out, (int)lid, begin, end);
    }
  }
}

// The queue that is read now is not written any more, the next one is empty.
__device__ inline void next_step(Progress* progress, unsigned& step) {
  step++;
  if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
}

// Relaxes what the queue of a step holds, then the nodes that fell, until none does.
__device__ inline void drain(Queues queues, unsigned& step, VALUE limit, VALUE far, Rows rows, VALUE* values,
                             unsigned* fallen, VALUE* relaxed_at, unsigned* updated) {
  Progress* progress = queues.progress;
  for (;;) {
    u64 total = peek(&progress->total[step % 3]);
    if (queue_nodes(total) == 0) break;
    relax(queues.written_in(step), total, far, rows, values, fallen, updated);
    grid_barrier(&progress->arrived);
    next_step(progress, step);
    collect(fallen, queues.written_in(step), limit, far, rows, values, relaxed_at);
    grid_barrier(&progress->arrived);
  }
}

// Appends every node below ``high`` with its edges that lead into the bucket [low, high), and returns how many edges those
// below ``low`` have. ``next`` becomes the lowest distance from ``low`` on that any of them offers or, if it is the
// source, has.
__device__ inline u64 append_windows(Queue out, VALUE low, VALUE high, VALUE far, Rows rows, const VALUE* values,
                                     VALUE& next) {
  u64 settled = 0;
  for (i64 base = (i64)blockIdx.x * blockDim.x; base < rows.size; base += num_threads()) {
    i64 lid = base + threadIdx.x, begin = 0, end = 0;
    VALUE value = lid < rows.size ? values[lid] : far;
    if (value < low) {
      i64 row_end = rows.offsets[lid + 1];
      begin = rows.offsets[lid];
      settled += row_end - begin;
      begin = first_from(rows.weights, begin, row_end, low - value);
      end = first_from(rows.weights, begin, row_end, high - value);
      VALUE weight = begin < row_end ? (VALUE)rows.weights[begin] : far;
      if (weight < far - value) next = min(next, value + weight);
    } else if (value < high) {
      begin = rows.offsets[lid];
      end = first_from(rows.weights, begin, rows.offsets[lid + 1], high - value);
      next = min(next, value);
    }
    append_block(out, (int)lid, begin, end);
  }
  return settled;
}

// Appends the nodes that are pending, and clears their bits: each with its edges that can lead below ``limit``.
__device__ inline void append_pending(unsigned* pending, Queue out, VALUE limit, VALUE far, Rows rows,
                                      const VALUE* values, VALUE* relaxed_at) {
  for (i64 base = (i64)blockIdx.x * blockDim.x; base < rows.size; base += num_threads()) {
    i64 lid = base + threadIdx.x, begin = 0, end = 0;
    unsigned bits = lid < rows.size ? pending[lid >> 5] : 0;
    if (bits >> lane_id() & 1) {
      VALUE value = relaxed_at[lid] = values[lid];
      begin = rows.offsets[lid], end = rows.offsets[lid + 1];
      if (limit < far) end = first_from(rows.weights, begin, end, limit - value);
    }
    append_block(out, (int)lid, begin, end);
    if (lane_id() == 0 && bits) pending[lid >> 5] = 0;
  }
}

// Appends all nodes that are not below ``low``; with ``reached`` those that are below ``far``.
__device__ inline void append_unsettled(Queue out, VALUE low, VALUE far, bool reached, Rows rows, const VALUE* values) {
  for (i64 base = (i64)blockIdx.x * blockDim.x; base < rows.size; base += num_threads()) {
    i64 lid = base + threadIdx.x, begin = 0, end = 0;
    if (lid < rows.size && !(values[lid] < low) && (!reached || values[lid] < far))
      begin = rows.offsets[lid], end = rows.offsets[lid + 1];
    append_block(out, (int)lid, begin, end);
  }
}

// The nodes of a queue look through their own rows for shorter paths: an edge is as long as its reverse.
__device__ inline void pull_edges(Queue queue, u64 total, VALUE far, Rows rows, VALUE* values, unsigned* updated) {
  for_each_edge(queue, total, [&](const Edges& edges) {
    VALUE near[K];
#pragma unroll
    for (int k = 0; k < K; k++) near[k] = edges.active[k] ? values[rows.targets[edges.place[k]]] : far;
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (!(near[k] < far)) continue;
      VALUE weight = (VALUE)rows.weights[edges.place[k]];
      if (!(weight < far - near[k] && near[k] + weight < values[edges.node[k]])) continue;
      lower(&values[edges.node[k]], near[k] + weight);
      if (updated) set_bit(updated, edges.node[k]);
    }
  });
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
  Rows graph = {rows, offsets, targets, weights};
  i64 bucket = 0, words = (rows + 31) / 32;
  for (i64 i = thread_id(); i < proxies; i += num_threads()) values[i] = far;
  for (i64 i = thread_id(); i < words; i += num_threads()) fallen[i] = 0;
  grid_barrier(&progress->arrived);
  if (thread_id() == 0) values[lid_of(index, table, source)] = 0;
  grid_barrier(&progress->arrived);
  unsigned step = 0;
  VALUE low = 0;
  for (VALUE high; bucket < most_buckets && low < far; bucket++, low = high) {
    high = far - low > width ? low + width : far;
    next_step(progress, step);
    if (thread_id() == 0) progress->lowest[(bucket + 1) % 3] = 0;
    VALUE next = far;
    u64 settled = append_windows(queues.written_in(step), low, high, far, graph, values, next);
    for (int half = 16; half > 0; half /= 2) settled += __shfl_down_sync(FULL, settled, half);
    if (lane_id() == 0 && settled) atomicAdd(&progress->lowest[bucket % 3], settled);
    grid_barrier(&progress->arrived);
    if ((i64)peek(&progress->lowest[bucket % 3]) >= enough) break;
    drain(queues, step, high, far, graph, values, fallen, nullptr, nullptr);
  }
  for (bool pulled = false;; pulled = true) {  // those that are not settled pull; then they push what they have
    next_step(progress, step);
    append_unsettled(queues.written_in(step), low, far, pulled, graph, values);
    grid_barrier(&progress->arrived);
    if (pulled) break;
    pull_edges(queues.written_in(step), peek(&progress->total[step % 3]), far, graph, values, nullptr);
    grid_barrier(&progress->arrived);
  }
  drain(queues, step, far, far, graph, values, fallen, nullptr, nullptr);
  if (thread_id() == 0) *rounds = bucket;
}

// The same on several ranks, step by step: the host asks the others in between. A bucket is opened on every rank, then each
// settles its part of it, the values that fell are synchronised, and it is settled again where values came, until none
// does. All totals are 0 before a bucket is opened or those that are not settled are queued.

// Queues the edges that lead into a bucket. Hands over the edges of settled nodes, and what append_windows finds next.
extern "C" __global__ void open_bucket(VALUE low, VALUE high, VALUE far, i64 proxies, const i64* offsets,
                                       const WEIGHT* weights, const VALUE* values, int* nodes, i64* starts,
                                       i64* queue_rows, i64 room, u64* progress_words, u64* sums, u64* host) {
  Queues queues = {nodes, starts, queue_rows, room, (Progress*)progress_words};
  VALUE next = far;
  u64 settled = append_windows(queues.written_in(0), low, high, far, {proxies, offsets, nullptr, weights}, values, next);
  add_up(&sums[0], settled);
  keep_lowest(&sums[1], next, far);
  hand_over(sums, 2, host);
}

// Relaxes what open_bucket has queued and the pending nodes, until none falls any more.
extern "C" __global__ void __launch_bounds__(512, 2)
settle_bucket(VALUE high, VALUE far, i64 proxies, const i64* offsets, const int* targets, const WEIGHT* weights,
              VALUE* values, VALUE* relaxed_at, unsigned* pending, unsigned* updated, int* nodes, i64* starts,
              i64* queue_rows, i64 room, u64* progress_words) {
  Progress* progress = (Progress*)progress_words;
  Queues queues = {nodes, starts, queue_rows, room, progress};
  Rows rows = {proxies, offsets, targets, weights};
  unsigned step = 0;
  append_pending(pending, queues.written_in(step), high, far, rows, values, relaxed_at);
  grid_barrier(&progress->arrived);
  drain(queues, step, high, far, rows, values, pending, relaxed_at, updated);
  if (thread_id() == 0) progress->total[(step + 2) % 3] = 0;  // the others are
}

// Bits of the nodes that are reached.
extern "C" __global__ void mark_reached(i64 size, const VALUE* values, VALUE far, unsigned* marks) {
  i64 lid = thread_id();
  unsigned bits = __ballot_sync(FULL, lid < size && values[lid] < far);
  if (lane_id() == 0 && lid < size) marks[lid >> 5] = bits;
}

extern "C" __global__ void queue_unsettled(VALUE low, VALUE far, i64 proxies, const i64* offsets, const VALUE* values,
                                           int* nodes, i64* starts, i64* queue_rows, i64 room, u64* progress_words) {
  Queues queues = {nodes, starts, queue_rows, room, (Progress*)progress_words};
  append_unsettled(queues.written_in(0), low, far, false, {proxies, offsets, nullptr, nullptr}, values);
}

extern "C" __global__ void pull_queued(VALUE far, i64 proxies, const i64* offsets, const int* targets,
                                       const WEIGHT* weights, VALUE* values, unsigned* updated, int* nodes, i64* starts,
                                       i64* queue_rows, i64 room, u64* progress_words) {
  Queues queues = {nodes, starts, queue_rows, room, (Progress*)progress_words};
  u64 total = peek(&queues.progress->total[0]);
  pull_edges(queues.written_in(0), total, far, {proxies, offsets, targets, weights}, values, updated);
}
