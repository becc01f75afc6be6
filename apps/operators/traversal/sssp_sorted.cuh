// Shortest paths where every edge weighs as much as its reverse and rows are sorted by weight: distances are settled bucket by
// bucket, then the other nodes pull. VALUE, the label's type, is int or long long; WEIGHT is that of the edges.
#include "cusp/apps/operators/frontier.cuh"
#include "gluon/kernels/link.cuh"

// Candidates for the targets of edges: ``far`` where the sum would not stay below it. K loads are under way at once.
struct Candidates {
  int target[K];
  VALUE value[K], old[K];

  // Lowers the target to the value; true for exactly one of several with the same.
  __device__ bool apply(int k, VALUE* values) const {
    return value[k] < old[k] && value[k] < atomicMin(&values[target[k]], value[k]);
  }
};

__device__ inline Candidates candidates(const Edges& edges, VALUE far, const int* targets, const WEIGHT* weights,
                                        const VALUE* values) {
  Candidates result;
  each_k([&](int k) {
    result.target[k] = 0, result.value[k] = far;
    if (!edges.active[k]) return;
    result.target[k] = targets[edges.place[k]];
    VALUE value = values[edges.node[k]], weight = (VALUE)weights[edges.place[k]];
    if (weight < far - value) result.value[k] = value + weight;
  });
  each_k([&](int k) { result.old[k] = values[result.target[k]]; });
  return result;
}

// *sum += over all edges, a hash of (source, target, weight) less that of (target, source, weight), modulo 2^64: over all
// ranks zero if every edge and its reverse weigh the same.
extern "C" __global__ void weight_asymmetry(i64 rows, const i64* gids, const i64* offsets, const int* targets,
                                            const WEIGHT* weights, u64* sum) {
  u64 total = 0;
  for (i64 row = thread_id() / 32; row < rows; row += num_threads() / 32) {
    for (i64 edge = offsets[row] + lane_id(); edge < offsets[row + 1]; edge += 32) {
      u64 weight = mix((u64)weights[edge]), source = (u64)gids[row], target = (u64)gids[targets[edge]];
      total += mix(mix(source + weight) ^ target) - mix(mix(target + weight) ^ source);
    }
  }
  total = sum_of_warp(total);
  if (lane_id() == 0 && total) atomicAdd(sum, total);
}

// First edge of a row, sorted by weight, that is not shorter than ``length``. It is near the begin, as a rule, and so are the
// places looked at: steps double, then halve.
__device__ inline i64 first_from(const WEIGHT* weights, i64 begin, i64 end, VALUE length) {
  i64 step = 8;
  for (; begin + step < end && (VALUE)weights[begin + step - 1] < length; step *= 2) begin += step;
  return first_where(begin, min(end, begin + step), [&](i64 place) { return (VALUE)weights[place] >= length; });
}

// As append, for the threads of a block at once: one atomic for all of them. The whole block calls it.
__device__ inline void append_block(Queue queue, int node, i64 begin, i64 end) {
  __shared__ u64 of_warp[32];
  if (!__syncthreads_or(end > begin)) return;
  unsigned warp = threadIdx.x / 32;
  u64 own = end > begin ? 1ull << EDGE_BITS | (u64)(end - begin) : 0, upto = scan_of_warp(own);
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
  u64 at = of_warp[warp] + upto - own;
  if (end > begin) write_entry(queue, queue_nodes(at), node, queue_edges(at), begin);
}

// The edges of a rank; each row is sorted by weight.
struct SortedRows {
  i64 size;
  const i64* offsets;
  const int* targets;
  const WEIGHT* weights;
};

// Relaxes the edges of queued rows. The bits of ``fallen`` say whose value fell; so do those of ``updated``, which is null
// without other ranks.
__device__ inline void relax(Rows queued, VALUE far, SortedRows rows, VALUE* values, unsigned* fallen, unsigned* updated) {
  for_each_edge(queued, [&](const Edges& edges) {
    Candidates found = candidates(edges, far, rows.targets, rows.weights, values);
    each_k([&](int k) {
      int target = found.target[k];
      if (!found.apply(k, values)) return;
      atomicOr(&fallen[target >> 5], 1u << (target & 31));
      if (updated) set_bit(updated, target);
    });
  });
}

// Appends the rows whose bits are set, and clears them: each with its edges that can lead below ``limit``. One lane looks
// at a word, so words without bits cost little; those of a warp are far apart, as hubs, whose rows take long, are not.
// ``relaxed_at`` is null where no other rank asks.
__device__ inline void collect(unsigned* fallen, Queue out, VALUE limit, VALUE far, SortedRows rows, const VALUE* values,
                               VALUE* relaxed_at) {
  i64 words = (rows.size + 31) / 32, warps = num_threads() / 32;
  for (i64 base = thread_id() / 32; base < words; base += 32 * warps) {
    i64 place = base + lane_id() * warps, left_rows = rows.size - place * 32;
    unsigned bits = left_rows > 0 ? fallen[place] : 0;
    if (left_rows < 32) bits &= left_rows > 0 ? (1u << left_rows) - 1 : 0;  // the others are mirrors
    if (bits) fallen[place] &= ~bits;
    for_each_bit<K>(0, bits, [&](const bool (&fell)[K], int (&lid)[K]) {
      VALUE value[K];
      i64 begin[K], end[K];
      each_k([&](int k) { lid[k] = (int)((base + lid[k] / 32 * warps) * 32 + lid[k] % 32); });
      each_k([&](int k) { value[k] = fell[k] ? values[lid[k]] : far; });
      each_k([&](int k) { begin[k] = end[k] = 0; });
      each_k([&](int k) { if (fell[k]) begin[k] = rows.offsets[lid[k]], end[k] = rows.offsets[lid[k] + 1]; });
      each_k([&](int k) { if (fell[k] && relaxed_at) relaxed_at[lid[k]] = value[k]; });
      if (limit < far) each_k([&](int k) { end[k] = first_from(rows.weights, begin[k], end[k], limit - value[k]); });
      append_all(out, lid, begin, end);
    });
  }
}

// Mirrors whose distance fell send it to their masters, which take what is shorter and get their bits. False if no rank was busy
// or sent anything.
__device__ inline bool exchange_fallen(Together& ranks, Queues queues, bool busy, VALUE* values, unsigned* fallen) {
  auto value = [&](int k) { return (u64)(k == 0 && busy); };
  take_mirrors<K>(ranks.peers, ranks.proxies, fallen, [&](const bool (&fell)[K], const int (&mirror)[K]) {
    ranks.tell_master(fell, mirror, [&](int to, i64 at, int k) { ranks.values_for<VALUE>(to)[at] = values[mirror[k]]; });
  });
  ranks.meet(value);
  if (ranks.sum(0, value) + ranks.news == 0) return false;
  ranks.take<1>([&](int p, i64 at, const bool (&came)[1], const int (&entry)[1]) {
    if (!came[0]) return;
    int lid = ranks.proxies.lists[p][entry[0]];
    VALUE sent = ranks.values_from<VALUE>(p)[at];
    if (sent < values[lid] && sent < atomicMin(&values[lid], sent)) atomicOr(&fallen[lid >> 5], 1u << (lid & 31));
  });
  queues.barrier();
  return true;
}

__device__ inline bool exchange_fallen(const Alone&, Queues, bool, VALUE*, unsigned*) { return true; }

// Relaxes what the queue of a step holds, then the nodes that fell, on any rank, until none does. All ranks take each step together:
// one that ran ahead would keep the others waiting for what it finds.
template <class Ranks>
__device__ inline void relax_all(Ranks& ranks, Queues queues, unsigned& step, VALUE limit, VALUE far, SortedRows rows,
                                 VALUE* values, unsigned* fallen, VALUE* relaxed_at, unsigned* updated) {
  for (;;) {
    u64 total = queues.total(step);
    if (Ranks::ALONE && queue_nodes(total) == 0) break;
    relax(queues.rows(step, total), far, rows, values, fallen, updated);
    queues.barrier();
    if (!exchange_fallen(ranks, queues, queue_nodes(total) > 0, values, fallen)) break;
    collect(fallen, queues.next(step), limit, far, rows, values, relaxed_at);
    queues.barrier();
  }
}

// Appends the rows of nodes below ``high`` with those of their edges that find(lid, value, begin, end) names. A thread has K rows
// at a time: most are not looked at.
template <class Find>
__device__ inline void append_rows(Queue out, VALUE high, VALUE far, SortedRows rows, const VALUE* values, Find find) {
  for (i64 base = (i64)blockIdx.x * blockDim.x; base < rows.size; base += K * num_threads()) {
    VALUE value[K];
    bool any = false;
    auto row = [&](int k) { return base + k * num_threads() + threadIdx.x; };
    each_k([&](int k) { value[k] = row(k) < rows.size ? values[row(k)] : far; });
    each_k([&](int k) { any |= value[k] < high; });
    if (!__syncthreads_or(any)) continue;
    each_k([&](int k) {
      i64 begin = 0, end = 0;
      if (value[k] < high) find(row(k), value[k], begin, end);
      append_block(out, (int)row(k), begin, end);
    });
  }
}

// Appends every node below ``high`` with its edges that lead into the bucket [low, high). Returns the lowest distance from
// ``low`` on that any of them leads to or, if it is the source, has; ``far`` if there is none.
__device__ inline VALUE append_windows(Queue out, VALUE low, VALUE high, VALUE far, SortedRows rows, const VALUE* values) {
  VALUE next = far;
  append_rows(out, high, far, rows, values, [&](i64 lid, VALUE value, i64& begin, i64& end) {
    i64 row_end = rows.offsets[lid + 1];
    begin = rows.offsets[lid];
    if (value < low) {
      begin = first_from(rows.weights, begin, row_end, low - value);
      VALUE weight = begin < row_end ? (VALUE)rows.weights[begin] : far;
      if (weight < far - value) next = min(next, value + weight);
    } else {
      next = min(next, value);
    }
    end = first_from(rows.weights, begin, row_end, high - value);
  });
  return next;
}

// Appends every node below ``limit`` with all its edges.
__device__ inline void append_below(Queue out, VALUE limit, VALUE far, SortedRows rows, const VALUE* values) {
  append_rows(out, limit, far, rows, values, [&](i64 lid, VALUE, i64& begin, i64& end) {
    begin = rows.offsets[lid], end = rows.offsets[lid + 1];
  });
}

// Edges of the nodes below ``low``, as far as this thread sees.
__device__ inline u64 settled_edges(VALUE low, SortedRows rows, const VALUE* values) {
  u64 edges = 0;
  for_each_loaded(0, rows.size, [&](i64 lid) { return values[lid]; }, [&](i64 lid, VALUE value, bool live) {
    if (live && value < low) edges += rows.offsets[lid + 1] - rows.offsets[lid];
  });
  return edges;
}

// The shortest path that a row has for its node, or ``value``: an edge is as long as its reverse. No path through a node below
// ``nearest`` is news, so a row ends where its edges are too long for what is known. All lanes of a warp call it, each with a
// row or none. A lane tries the first few edges alone; the warp goes through what is left of long rows together.
__device__ inline VALUE best_offer(bool looking, i64 edge, i64 end, VALUE value, VALUE nearest, VALUE far, SortedRows rows,
                                   const VALUE* values) {
  constexpr int ALONE = 4 * K;
  bool open = looking && edge < end;
  for (i64 last = edge + ALONE; open && edge < last; edge += K) {
    VALUE weight[K], near[K];
    each_k([&](int k) { weight[k] = edge + k < end ? (VALUE)rows.weights[edge + k] : far; });
    each_k([&](int k) { near[k] = weight[k] < value - nearest ? values[rows.targets[edge + k]] : far; });
    each_k([&](int k) { if (weight[k] < far - near[k]) value = min(value, near[k] + weight[k]); });
    open = edge + K < end && weight[K - 1] < value - nearest;
  }
  for (unsigned left = __ballot_sync(FULL, open); left; left &= left - 1) {
    int owner = __ffs(left) - 1;
    i64 at = __shfl_sync(FULL, edge, owner) + lane_id(), stop = __shfl_sync(FULL, end, owner);
    VALUE best = __shfl_sync(FULL, value, owner);
    for (bool more = true; more; at += 32) {
      VALUE weight = at < stop ? (VALUE)rows.weights[at] : far;
      VALUE near = weight < best - nearest ? values[rows.targets[at]] : far;
      best = least_of_warp(weight < far - near ? min(best, near + weight) : best);
      more = __shfl_sync(FULL, weight < best - nearest, 31);
    }
    if ((int)lane_id() == owner) value = best;
  }
  return value;
}

// Nodes that are not below ``low`` look through their own rows. Returns how many of them this warp found a shorter path for,
// in its first lane; theirs become the bits of ``fallen``. A warp has whole words of those; the begins of several are under way.
__device__ inline u64 pull(VALUE low, VALUE nearest, VALUE far, SortedRows rows, VALUE* values, unsigned* fallen) {
  constexpr int WORDS = 2;
  u64 count = 0;
  for (i64 base = thread_id() / 32; base * 32 < rows.size; base += WORDS * num_threads() / 32) {
    VALUE value[WORDS];
    bool looking[WORDS];
    i64 begin[WORDS], end[WORDS];
    auto word = [&](int k) { return base + k * num_threads() / 32; };
    auto row = [&](int k) { return word(k) * 32 + lane_id(); };
    each_k<WORDS>([&](int k) { value[k] = row(k) < rows.size ? values[row(k)] : 0; });
    each_k<WORDS>([&](int k) { looking[k] = row(k) < rows.size && !(value[k] < low); });
    each_k<WORDS>([&](int k) {
      begin[k] = looking[k] ? rows.offsets[row(k)] : 0, end[k] = looking[k] ? rows.offsets[row(k) + 1] : 0;
    });
    each_k<WORDS>([&](int k) {
      if (!__any_sync(FULL, looking[k])) return;
      VALUE best = best_offer(looking[k], begin[k], end[k], value[k], nearest, far, rows, values);
      bool shorter = looking[k] && best < value[k];
      if (shorter) values[row(k)] = best;
      unsigned bits = __ballot_sync(FULL, shorter);
      if (lane_id() == 0) fallen[word(k)] = bits, count += __popc(bits);
    });
  }
  return count;
}

constexpr i64 MANY = 16;  // if more than one node in so many fell, all pull again
constexpr i64 RARE = 64;  // nodes with one edge in so many of those that are enough need not be looked for in rows

// Sums over the grid, three in turn: threads add to one, it is read after a barrier, and one more barrier later nobody does so
// any more.
struct Sums {
  u64* places;  // the first is 0
  unsigned turn = 0;

  __device__ u64* next() {
    u64* place = &places[turn++ % 3];
    if (thread_id() == 0) places[turn % 3] = 0;
    return place;
  }
};

// Shortest paths of an undirected graph whose rows are sorted by weight, in one kernel.
//
// Distances are settled bucket after bucket. A bucket [low, high) relaxes of every node that is settled just the edges that
// lead into it, which are next to each other in the row, and of every node that falls into it those that stay inside: so each
// edge is relaxed once, and only if it is not longer than what is settled. Buckets without nodes are skipped. Hubs are
// settled first, and with them most of all edges. (That distances below ``low`` are final: every path to such a node has only shorter
// prefixes, whose edges have been relaxed in an earlier bucket.)
//
// As soon as ``enough`` edges belong to settled nodes, the others pull: each looks through its own row, which is short, as far
// as an edge and the distance of the first hub, ``nearest``, are shorter than what the node knows; the few nodes before that
// push. Then only paths through others that are not settled are news: all pull again, through edges that are shorter by
// ``low``, until few fall. What fell last is relaxed without buckets until nothing changes. Nearly all edges between settled
// nodes are never looked at.
//
// On several ranks no mirror has out-edges. A bucket is settled on each rank; then mirrors whose distance fell send it to their
// masters, and again, until no rank sends anything. Before each pull of nodes that are not settled, all mirrors get the distances
// of their masters.
struct Until {
  i64 enough, buckets;  // edges of settled nodes, and buckets, after which the others pull
};
struct Distances {  // of proxies
  VALUE* own;
  VALUE* const* of_all;  // where they are on all ranks
};

extern "C" __global__ void __launch_bounds__(512, RESIDENT)
settle_and_pull(RANKS::Given given, Distances distances, i64 source, const u64* index, const int* table, SortedRows rows,
                i64 proxies, Until until, VALUE far, VALUE width, unsigned* fallen, Queues queues, i64* rounds) {
  RANKS ranks(given);
  VALUE* values = distances.own;
  i64 buckets = 0, words = (proxies + 31) / 32, to_mirrors = 0;
  queues.begin();
  ranks.begin(2);
  for (i64 i = thread_id(); i < proxies; i += num_threads()) values[i] = far;
  for (i64 i = thread_id(); i < words; i += num_threads()) fallen[i] = 0;
  queues.barrier();
  if (thread_id() == 0 && has_bit(index, source)) values[lid_of(index, table, source)] = 0;
  queues.barrier();
  Sums sums = {queues.progress->lowest};
  u64* sum;
  auto value = [&](int k) { return k == 0 ? peek(sum) : (u64)rows.size; };
  unsigned step = 0;
  VALUE low = 0, nearest = 0;
  for (u64 settled = 0; buckets < until.buckets && low < far && (i64)settled < until.enough; buckets++) {
    VALUE high = far - low > width ? low + width : far;
    sum = sums.next();
    keep_highest(sum, (u64)(far - append_windows(queues.next(step), low, high, far, rows, values)));
    ranks.meet(value);
    low = far - (VALUE)ranks.most(0, value);  // where nothing is before; ``far`` if nobody has a candidate
    if ((i64)settled < until.enough / RARE) nearest = low;
    if (low >= high) continue;
    relax_all(ranks, queues, step, high, far, rows, values, fallen, nullptr, nullptr);
    low = high;
    sum = sums.next();
    add_up(sum, settled_edges(low, rows, values));
    ranks.meet(value);
    settled = ranks.sum(0, value);
  }
  if (thread_id() == 0) *rounds = buckets;
  if (nearest > 0 && low < far) {
    append_below(queues.next(step), nearest, far, rows, values);
    queues.barrier();
    relax(queues.rows(step, queues.total(step)), far, rows, values, fallen, nullptr);
    queues.barrier();
    exchange_fallen(ranks, queues, false, values, fallen);
  }
  for (bool many = low < far; many; nearest = low) {
    to_mirrors += ranks.publish(values, distances.of_all);
    if (!RANKS::ALONE) ranks.meet(nothing_to_tell);
    sum = sums.next();
    add_up(sum, pull(low, nearest, far, rows, values, fallen));
    ranks.meet(value);
    many = ranks.sum(0, value) > ranks.sum(1, value) / MANY;
  }
  collect(fallen, queues.next(step), far, far, rows, values, nullptr);
  queues.barrier();
  relax_all(ranks, queues, step, far, far, rows, values, fallen, nullptr, nullptr);
  if (!RANKS::ALONE) queues.barrier();
  ranks.end(ranks.mailed() * (sizeof(int) + sizeof(VALUE)), to_mirrors);
}

// The same on several ranks, step by step: the host asks the others in between. A bucket is opened on every rank, then each
// settles its part of it, the values that fell are synchronised, and it is settled again where values came, until none
// does. All totals are 0 before a bucket is opened or those that are not settled are queued.

// Queues the edges that lead into a bucket. Publishes how many edges settled nodes have, and how far what append_windows finds next
// is below ``far``.
extern "C" __global__ void open_bucket(VALUE low, VALUE high, VALUE far, SortedRows rows, const VALUE* values, Queues queues,
                                       u64* sums, u64* host) {
  keep_highest(&sums[1], (u64)(far - append_windows(queues.of_step(0), low, high, far, rows, values)));
  add_up(&sums[0], settled_edges(low, rows, values));
  publish(sums, 2, host);
}

// Relaxes what open_bucket has queued and the pending nodes, until none falls any more.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
settle_bucket(VALUE high, VALUE far, SortedRows rows, VALUE* values, VALUE* relaxed_at, unsigned* pending, unsigned* updated,
              Queues queues) {
  unsigned step = 0;
  collect(pending, queues.of_step(step), high, far, rows, values, relaxed_at);
  queues.barrier();
  Alone::Given given = {&queues.progress->arrived};
  Alone ranks(given);
  relax_all(ranks, queues, step, high, far, rows, values, pending, relaxed_at, updated);
  if (thread_id() == 0) queues.progress->total[(step + 2) % 3] = 0;  // the others are
}

// Bits of the nodes that are reached.
extern "C" __global__ void mark_reached(i64 size, const VALUE* values, VALUE far, unsigned* marks) {
  i64 lid = thread_id();
  unsigned bits = __ballot_sync(FULL, lid < size && values[lid] < far);
  if (lane_id() == 0 && lid < size) marks[lid >> 5] = bits;
}

// Every node that is not below ``low`` looks through its own row for a shorter path.
extern "C" __global__ void pull_unsettled(VALUE low, VALUE far, SortedRows rows, VALUE* values, unsigned* updated) {
  pull(low, (VALUE)0, far, rows, values, updated);
}
