// Breadth-first search: push, pull, and a whole search in one kernel, for one rank or several. VALUE, the label's type, is int or
// long long.
#include "cusp/apps/operators/frontier.cuh"
#include "gluon/kernels/link.cuh"

// Where two write one node, the smaller value wins, whatever the order, so parents do not depend on timing. The queue is empty
// afterwards.
extern "C" __global__ void bfs_push(Queues queues, const int* targets, const i64* gids, i64 gid_mask, VALUE level,
                                    VALUE* values, unsigned* updated) {
  consume(queues, [&](const Edges& edges) {
    int target[K];
    VALUE old[K];
    each_k([&](int k) { target[k] = edges.active[k] ? targets[edges.place[k]] : 0; });
    each_k([&](int k) { old[k] = values[target[k]]; });
    each_k([&](int k) {
      if (!edges.active[k]) return;
      VALUE value = gid_mask ? (VALUE)(level | (gids[edges.node[k]] & gid_mask)) : level;
      if (old[k] > value && atomicMin(&values[target[k]], value) > value) set_bit(updated, target[k]);
    });
  });
}

// The first in-neighbour of a row that is in the frontier, or -1. All lanes of a warp call it, each with a row or none.
// A lane tries the first few alone: hub-first rows nearly always end there. The warp scans together what is left of long rows,
// 32 neighbours at a time.
__device__ inline int find_source(bool looking, i64 begin, i64 end, const int* sources, const unsigned* frontier) {
  const int ALONE = 8;
  int result = -1;
  i64 edge = begin;
  if (looking) {
    i64 last = min(end, begin + ALONE);
    for (; edge < last && result < 0; edge++)
      if (get_bit(frontier, sources[edge])) result = sources[edge];
  }
  unsigned left = __ballot_sync(FULL, looking && result < 0 && edge < end);
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
    if (hits && (int)lane_id() == owner) result = source;
  }
  return result;
}

// A warp has 32 nodes and with them one word of ``updated``, so no atomics are needed.
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
    unsigned hits = __ballot_sync(FULL, source >= 0);
    if (lane_id() == 0 && hits) updated[word] |= hits;
  }
}

// One pull level: every node below ``rows`` that is not in ``seen`` looks for an in-neighbour that is. Any in-neighbour seen
// before the last level would have led here by then, so one that is seen is in the frontier: no frontier is needed.
// A warp writes whole words of ``next``; ``seen`` stays as it is, so this level's hits are not taken for earlier ones.
// The first in-neighbour, which is the one with the most edges, is in an array of its own: it nearly always decides, and
// reading it is one stream. Whole warps call found(hit, target, in-neighbour).
// A warp has several words under way, as for_each_loaded. Loads of one kind are issued together: those of bits are unconditional,
// and a barrier of the warp follows, or else the compiler lets the last ones wait for the use of the first. Nodes whose first
// in-neighbour misses are gathered from all words, so that the rest of their rows is searched by full warps.
template <class Found>
__device__ inline void pull_level(i64 rows, const int* first, const i64* offsets, const int* sources, const unsigned* seen,
                                  unsigned* next, Found found) {
  constexpr int TOGETHER = 4;
  __shared__ unsigned char missed[MOST_WARPS][32 * TOGETHER];  // places in the warp's words
  __shared__ unsigned late[MOST_WARPS][TOGETHER];              // what is found for them
  int warp = threadIdx.x / 32;
  int words = (int)((rows + 31) / 32), stride = (int)(num_threads() / 32);
  for (int base = (int)(thread_id() / 32); base < words; base += TOGETHER * stride) {
    unsigned old[TOGETHER], hits = 0;
    int source[TOGETHER], misses = 0;
    each_k<TOGETHER>([&](int k) { old[k] = seen[min(base + k * stride, words - 1)]; });
    each_k<TOGETHER>([&](int k) {
      int target = (base + k * stride) * 32 + (int)lane_id();
      source[k] = target < (int)rows && !(old[k] >> lane_id() & 1) ? first[target] : -1;
    });
    each_k<TOGETHER>([&](int k) { hits |= (unsigned)(source[k] >= 0 && get_bit(seen, source[k])) << k; });
    if (lane_id() < TOGETHER) late[warp][lane_id()] = 0;
    __syncwarp();
    each_k<TOGETHER>([&](int k) {
      bool hit = hits >> k & 1, miss = source[k] >= 0 && !hit;
      found(hit, (base + k * stride) * 32 + (int)lane_id(), source[k]);
      old[k] |= __ballot_sync(FULL, hit);
      unsigned others = __ballot_sync(FULL, miss);
      if (miss) missed[warp][misses + __popc(others & below_lane())] = (unsigned char)(32 * k + lane_id());
      misses += __popc(others);
    });
    __syncwarp();
    for (int at = lane_id(); at - (int)lane_id() < misses; at += 32) {
      int place = at < misses ? missed[warp][at] : 0;
      int target = (base + place / 32 * stride) * 32 + place % 32;
      i64 begin = 0, end = 0;
      if (at < misses) begin = offsets[target] + 1, end = offsets[target + 1];
      int other = find_source(begin < end, begin, end, sources, seen);
      found(other >= 0, target, other);
      if (other >= 0) atomicOr(&late[warp][place / 32], 1u << place % 32);
    }
    __syncwarp();
    each_k<TOGETHER>([&](int k) {
      if (lane_id() == 0 && base + k * stride < words) next[base + k * stride] = old[k] | late[warp][k];
    });
    __syncwarp();
  }
}

// The nodes of a bitmap that are not in ``older``, from local id ``begin`` on, are appended, and added to ``older``. The grid
// calls it.
__device__ inline void queue_new(Queue out, i64 begin, i64 end, const unsigned* seen, unsigned* older, const i64* offsets) {
  i64 last = (end + 31) / 32;
  for (i64 base = begin / 32 + thread_id() / 32 * 32; base < last; base += num_threads()) {
    i64 word = base + lane_id();
    unsigned fresh = word < last ? seen[word] & ~older[word] : 0;
    if (word * 32 < begin) fresh &= ~0u << (begin & 31);
    if (fresh) older[word] |= fresh;
    for_each_bit<K>(base, fresh, [&](const bool (&chosen)[K], const int (&node)[K]) { append_all(out, chosen, node, offsets); });
  }
}

// Whether a node that is seen is of this level. One without hops is, too: whoever claims it writes them a little later.
__device__ inline bool in_level(const int* hops, int node, int level) {
  int known = *(const volatile int*)&hops[node];
  return known < 0 || known == level;
}

// The lowest of those that lead to a node in this level becomes its parent, whoever comes first. As an unsigned number, no
// parent, -1, is the highest.
__device__ inline void offer_parent(const int* hops, i64* parents, int target, int level, i64 parent) {
  if (in_level(hops, target, level)) atomicMin((u64*)&parents[target], (u64)parent);
}

constexpr int DEEP = 16;  // levels, after which narrow ones of sparse graphs are taken in bursts

// Some levels in bursts, the first of which has ``level`` hops; returns how many. Nodes of the last one join ``out``, where
// the next barrier ends it. ``cut`` is 0.
//
// Why hops are right: a block gives its targets the hops of its own round, however far others are, and of several the fewest
// stay. A node d levels from here has an in-neighbour d - 1 levels from here, whose hops are right, by induction, once all
// blocks have taken d - 1 rounds; the block that wrote them has that node in its round d. So the levels that all blocks have
// taken are right, and what some found beyond is taken back.
__device__ inline int take_levels(Rows rows, const i64* offsets, const int* targets, int level, int most, int* hops,
                                  unsigned* seen, u64* cut, Queues queues, Queue out) {
  __shared__ Burst burst;
  burst.run(rows, most, true, [&](const Edges& edges, BlockQueue found, int before) {
    int target[K], value = level + before;
    i64 begin[K], end[K];
    bool fresh[K];
    each_k([&](int k) { target[k] = edges.active[k] ? targets[edges.place[k]] : -1; });
    // on the way while hops are written
    each_k([&](int k) {
      begin[k] = target[k] >= 0 ? offsets[target[k]] : 0, end[k] = target[k] >= 0 ? offsets[target[k] + 1] : 0;
    });
    // as an unsigned number, no hops, -1, are the most
    each_k([&](int k) {
      fresh[k] = target[k] >= 0 && atomicMin((unsigned*)&hops[target[k]], (unsigned)value) > (unsigned)value;
    });
    found.add(fresh, target, begin, end);
  });
  if (threadIdx.x == 0 && burst.cut) atomicMax(cut, (u64)(most - burst.rounds));
  queues.barrier();
  int taken = most - (int)peek(cut), last = level + taken - 1, all = burst.found(), in_time = burst.found(taken);
  for (int i = threadIdx.x; i - (int)lane_id() < all; i += blockDim.x) {
    int node = burst.entries[min(i, all - 1)].node, known = *(const volatile int*)&hops[node];
    if (i < in_time) set_bit(seen, node);
    else if (i < all && known > last) hops[node] = -1;
    append(out, i < in_time && known == last, node, offsets);
  }
  return taken;
}

// The lowest of the in-neighbours on a shortest path becomes the parent of every node with more than DEEP hops. ``step`` is
// done with.
__device__ inline void find_parents(i64 proxies, const i64* offsets, const int* targets, const int* hops, const i64* gids,
                                    i64* parents, unsigned step, Queues queues) {
  Queue out = queues.next(step);
  for (i64 base = thread_id() / 32 * TILE; base < proxies; base += num_threads() / 32 * TILE) {
    int node[K];
    bool deep[K];
    each_k([&](int k) { node[k] = (int)(base + 32 * k + lane_id()); });
    each_k([&](int k) { deep[k] = node[k] < proxies && hops[node[k]] >= DEEP; });
    append_all(out, deep, node, offsets);
  }
  queues.barrier();
  for_each_edge(queues.rows(step, queues.total(step)), [&](const Edges& edges) {
    int target[K];
    each_k([&](int k) { target[k] = edges.active[k] ? targets[edges.place[k]] : 0; });
    each_k([&](int k) {
      if (edges.active[k] && hops[target[k]] == hops[edges.node[k]] + 1)
        atomicMin((u64*)&parents[target[k]], (u64)gids[edges.node[k]]);
    });
  });
}

// The most hops of a node that has out-edges, plus 1; ``most`` is 0.
__device__ inline int count_levels(i64 proxies, const i64* offsets, const int* hops, u64* most, Queues queues) {
  u64 best = 0;
  for (i64 i = thread_id(); i < proxies; i += num_threads())
    if (hops[i] >= 0 && offsets[i] < offsets[i + 1]) best = max(best, (u64)hops[i] + 1);
  keep_highest(most, best);
  queues.barrier();
  return (int)peek(most);
}

// How a level is done: by a queue, which knows the edges of the next one; by bits, which a sweep over all words turns into hops,
// where there are so many new nodes that counters would be in the way; or by a pull.
enum Way { QUEUED, SWEPT, PULLED };
constexpr bool AHEAD = BURSTS;          // several ranks run ahead after DEEP levels, where these are narrow: run_ahead
constexpr i64 AHEAD_FROM = 1 << 16;     // edges of a frontier, of all ranks: not more
constexpr int WINDOW = 2 * IN_A_BURST;  // levels from the lowest that is pending on any rank on: no more are looked at
constexpr u64 FAR_AHEAD = 1ull << 32;   // above all hops
constexpr i64 SWEPT_FROM = 8;  // nodes of the graph for each edge of a frontier: with fewer it is swept, if there are partners

// The graph of one rank.
struct Local {
  i64 proxies;
  const i64* offsets;
  const int* targets;
  i64 rows;  // proxies from here on have no in-edges
  const i64* in_offsets;
  const int* in_sources;
  const int* first;  // in-neighbour
  const i64* gids;
  const i64* degrees;
  i64 shift;  // edges of a frontier are counted in units of 2^shift, so that a counter holds those of the graph

  __device__ u64 counted(int lid) const { return 1ull << EDGE_BITS | (u64)(degrees[lid] >> shift); }
};

// The graph of all ranks, and when to pull: see apps/bfs.py.
struct Whole {
  i64 nodes, edges;  // nodes that take part; edges as they are counted
  i64 mirrors_push;  // whether any mirror has out-edges
};

// When to pull.
struct Rule {
  i64 direction;  // 0 whichever is cheaper, 1 push, 2 pull
  i64 alpha, beta;
};

// The answer. With parents, also what this rank knows of mirrors: the levels at which it reached them, the lowest parent that it
// has for them, and which it has sent, those to one rank after those to another. Parents are null if they are not wanted.
struct Found {
  int* hops;  // of masters; with parents, or where ranks run ahead, of proxies
  i64* parents;
  int* kept;
  int* stamps;  // the steps in which nodes were last queued, where ranks run ahead
};

// Bits of proxies, of which the partners know where they are, and memory for bits of their masters: for those to rank p, and of
// those from rank p, of even and odd levels.
struct Bits {
  unsigned* seen;
  unsigned* const* seen_of;
  unsigned* next;
  unsigned* const* next_of;
  i64 words;
  unsigned* const* out;
  const unsigned* const* in;
};

__device__ inline i64 bit_words(i64 size) { return (size + 31) / 32; }

// Stores the new bits of the mirrors of rank p's masters there, in the order of the list. The grid calls it; returns how many,
// of this thread.
__device__ inline u64 give_bits(const Proxies& proxies, int p, unsigned* there, const unsigned* bits, const unsigned* older) {
  i64 begin = proxies.starts[p], size = proxies.mirrors_of(p), shift = begin & 31, last = (begin + size - 1) >> 5;
  u64 count = 0;
  for (i64 word = thread_id(); word < bit_words(size); word += num_threads()) {
    i64 at = (begin >> 5) + word;
    unsigned low = bits[at] & ~older[at], high = at < last ? bits[at + 1] & ~older[at + 1] : 0;
    unsigned own = __funnelshift_r(low, high, shift);
    if (size - word * 32 < 32) own &= (1u << (size & 31)) - 1;
    ((volatile unsigned*)there)[word] = own;
    count += __popc(own);
  }
  return count;
}

// Masters whose bits rank p gave get their bits and ``level``. The grid calls it.
__device__ inline void take_bits(const Proxies& proxies, int p, const unsigned* came, unsigned* bits, int* levels, int level) {
  for (i64 word = thread_id() / 32; word < bit_words(proxies.sizes[p]); word += num_threads() / 32) {
    if (!(came[word] >> lane_id() & 1)) continue;
    int lid = proxies.lists[p][word * 32 + lane_id()];
    if (get_bit(bits, lid)) continue;
    atomicOr(&bits[lid >> 5], 1u << (lid & 31));
    levels[lid] = level;
  }
}

// An entry that is not needed any more: its node was reached in an earlier level.
constexpr int LATE = -1;

// Masters that other ranks found by queues in the last level join ``queue``, if that is wanted. With parents, those that come
// late are struck out. True if there are some.
template <class Ranks>
__device__ inline bool take_entries(const Ranks& ranks, const Local& graph, Found found, int level, unsigned* seen, bool queued,
                                    Queue queue) {
  return ranks.template take<K>([&](int p, i64 at, const bool (&came)[K], const int (&entry)[K]) {
    bool fresh[K];
    int lid[K];
    each_k([&](int k) { lid[k] = came[k] ? ranks.proxies.lists[p][entry[k]] : 0; });
    each_k([&](int k) {
      fresh[k] = came[k] && claim_bit(seen, lid[k]);
      if (came[k] && !fresh[k] && found.parents && !in_level(found.hops, lid[k], level)) ranks.mail.in[p][at + 32 * k] = LATE;
      if (fresh[k]) found.hops[lid[k]] = level;
    });
    if (queued) append_all(queue, fresh, lid, graph.offsets);
  });
}

// Every entry gets the parent of its mirror as its value.
__device__ inline void tell_parents(const Together& ranks, Found found) {
  for (int p = 0; p < ranks.peers.ranks; p++) {
    const int* list = found.kept + (ranks.proxies.starts[p] - ranks.proxies.masters);
    i64* there = ranks.values_for<i64>(p);
    for_each_loaded(0, p == ranks.peers.rank ? 0 : (i64)ranks.sent()[p], [&](i64 i) { return found.parents[list[i]]; },
                    [&](i64 i, i64 parent, bool live) { if (live) there[i] = parent; });
  }
}

// The lowest parent that any rank has for a master becomes its parent. All who reached it in its level have one.
__device__ inline void take_parents(const Together& ranks, i64* parents) {
  for (int p = 0; p < ranks.peers.ranks; p++)
    for (i64 i = thread_id(); p != ranks.peers.rank && i < ranks.taken()[p]; i += num_threads()) {
      int place = ranks.mail.in[p][i];
      if (place != LATE) atomicMin((u64*)&parents[ranks.proxies.lists[p][place]], (u64)ranks.values_from<i64>(p)[i]);
    }
}

// New mirrors are sent to their masters.
template <class Ranks, int SIZE>
__device__ inline void tell_masters(const Ranks& ranks, const bool (&mirror)[SIZE], const int (&lid)[SIZE], int* kept) {
  if constexpr (!Ranks::ALONE)
    ranks.tell_master(mirror, lid, [&](int to, i64 at, int k) {
      if (kept) kept[ranks.proxies.starts[to] - ranks.proxies.masters + at] = lid[k];
    });
}

// A push from queue to queue, with parents if ``names``. Returns the new masters << EDGE_BITS | their out-edges, of this thread;
// alone, the queue counts them.
template <class Ranks>
__device__ inline u64 push_queue(const Ranks& ranks, Rows frontier, Queue out, const Local& graph, Found found, int level,
                                 bool names, unsigned* seen) {
  u64 count = 0;
  for_each_edge(frontier, [&](const Edges& edges) {
    int target[K];
    bool fresh[K], mirror[K];
    each_k([&](int k) { target[k] = edges.active[k] ? graph.targets[edges.place[k]] : 0; });
    each_k([&](int k) { fresh[k] = edges.active[k] && !get_bit(seen, target[k]); });
    each_k([&](int k) {
      fresh[k] = fresh[k] && claim_bit(seen, target[k]);
      mirror[k] = fresh[k] && ranks.is_mirror(target[k]);
      if (fresh[k] && (!mirror[k] || found.parents || AHEAD)) found.hops[target[k]] = level;
      fresh[k] = fresh[k] && !mirror[k];
      if (!Ranks::ALONE && fresh[k]) count += graph.counted(target[k]);
    });
    for (int k = 0; names && k < K; k++)
      if (edges.active[k]) offer_parent(found.hops, found.parents, target[k], level, graph.gids[edges.node[k]]);
    append_all(out, fresh, target, graph.offsets);
    tell_masters(ranks, mirror, target, found.kept);
  });
  return count;
}

// A push from a queue to bits, whose sweep gives masters their hops and other ranks the bits of theirs. ``older`` becomes what
// was seen before. Returns the new masters << EDGE_BITS, of this thread.
__device__ inline u64 push_bits(const Together& ranks, Rows frontier, Queues queues, const Local& graph, Found found, int level,
                                const Bits& bits) {
  unsigned *seen = bits.seen, *older = bits.next;
  i64 masters = ranks.proxies.masters;
  for (i64 word = thread_id(); word < bits.words; word += num_threads()) older[word] = seen[word];
  queues.barrier();
  for_each_edge(frontier, [&](const Edges& edges) {
    int target[K];
    each_k([&](int k) { target[k] = edges.active[k] ? graph.targets[edges.place[k]] : -1; });
    each_k([&](int k) { if (target[k] >= 0) set_bit(seen, target[k]); });
  });
  queues.barrier();
  u64 count = 0, sent = 0;
  for (i64 word = thread_id() / 32; word * 32 < masters; word += num_threads() / 32) {
    i64 lid = word * 32 + lane_id();
    if (!((seen[word] & ~older[word]) >> lane_id() & 1) || lid >= masters) continue;
    found.hops[lid] = level, count += 1ull << EDGE_BITS;
  }
  for (int p = 0; p < ranks.peers.ranks; p++) {
    i64 half = (level & 1) * bit_words(ranks.proxies.mirrors_of(p));
    if (p != ranks.peers.rank) sent += give_bits(ranks.proxies, p, bits.out[p] + half, seen, older);
  }
  add_up(&ranks.sent()[ranks.peers.rank], sent);
  return count;
}

// A pull, from ``seen`` to ``next``. Returns the new masters << EDGE_BITS, of this thread.
template <class Ranks>
__device__ inline u64 pull(const Ranks& ranks, const Local& graph, Found found, int level, bool names, const Bits& bits) {
  u64 count = 0;
  pull_level(graph.rows, graph.first, graph.in_offsets, graph.in_sources, bits.seen, bits.next,
             [&](bool hit, int target, int source) {
    bool mirror[1] = {hit && ranks.is_mirror(target)};
    int lid[1] = {(int)target};
    if (hit && (!mirror[0] || found.parents || AHEAD)) found.hops[target] = level;
    if (hit && !mirror[0]) count += 1ull << EDGE_BITS;
    if (hit && names) found.parents[target] = graph.gids[source];
    tell_masters(ranks, mirror, lid, found.kept);
  });
  if (!Ranks::ALONE)
    for (i64 word = (graph.rows + 31) / 32 + thread_id(); word < bits.words; word += num_threads())
      bits.next[word] = bits.seen[word];
  return count;
}

// One step of a rank that runs ahead. All edges of ``frontier`` that lead below ``limit``, and in a narrow frontier what is found
// from there, for some rounds. Nodes with lower hops than before join ``out`` if their edges are still to be looked at, and the
// bits ``unsent`` if they are mirrors. Returns FAR_AHEAD - the lowest hops of what joined ``out``, as far as this thread knows.
__device__ inline u64 lower_hops(Rows frontier, Queue out, unsigned step, const Local& graph, int limit, i64 masters, int* hops,
                                 unsigned* unsent, int* stamps) {
  u64 best = 0;
  auto join = [&](bool chosen, int node) {
    int known = chosen ? *(const volatile int*)&hops[node] : 0;
    chosen = chosen && stamp(node, step, stamps);
    if (chosen) best = max(best, FAR_AHEAD - (u64)known);
    append(out, chosen, node, graph.offsets);
  };
  auto visit = [&](const Edges& edges, int before, bool (&fresh)[K], int (&target)[K], i64 (&begin)[K], i64 (&end)[K]) {
    int value[K];
    bool late[K];
    each_k([&](int k) { target[k] = edges.active[k] ? graph.targets[edges.place[k]] : -1; });
    each_k([&](int k) { value[k] = edges.active[k] ? *(const volatile int*)&hops[edges.node[k]] + 1 : 0; });
    // on the way while hops are written
    each_k([&](int k) {
      begin[k] = target[k] >= 0 ? graph.offsets[target[k]] : 0, end[k] = target[k] >= 0 ? graph.offsets[target[k] + 1] : 0;
    });
    each_k([&](int k) {  // as an unsigned number, no hops, -1, are the most
      late[k] = edges.active[k] && value[k] > limit;
      fresh[k] = edges.active[k] && !late[k] && atomicMin((unsigned*)&hops[target[k]], (unsigned)value[k]) > (unsigned)value[k];
      if (fresh[k] && target[k] >= masters) set_bit(unsent, target[k]);
    });
    each_k([&](int k) { if (before == 0 && __any_sync(FULL, late[k])) join(late[k], edges.node[k]); });
  };
  if (!is_narrow(frontier)) {
    for_each_edge(frontier, [&](const Edges& edges) {
      bool fresh[K];
      int target[K];
      i64 begin[K], end[K];
      visit(edges, 0, fresh, target, begin, end);
      each_k([&](int k) { if (__any_sync(FULL, fresh[k])) join(fresh[k], target[k]); });
    });
    return best;
  }
  __shared__ Burst burst;
  burst.run(frontier, IN_A_BURST, true, [&](const Edges& edges, BlockQueue found, int before) {
    bool fresh[K];
    int target[K];
    i64 begin[K], end[K];
    visit(edges, before, fresh, target, begin, end);
    found.add(fresh, target, begin, end);
  });
  int all = burst.found();
  for (int i = threadIdx.x; i - (int)lane_id() < all; i += blockDim.x) {
    int node = burst.entries[min(i, all - 1)].node;
    bool last = i < all && (i >= burst.first || *(const volatile int*)&hops[node] >= limit);
    join(last && graph.offsets[node] < graph.offsets[node + 1], node);
  }
  return best;
}

// The rest of a search where no mirror has out-edges and levels are narrow, without the order of levels: each rank goes on by itself
// for some rounds, then tells the masters of its mirrors which hops it has found.
//
// Hops are those of some path at any time, and are only ever lowered. Whoever lowers those of a node looks at its edges a round
// later, with the hops that it has then, or queues it for the next step; the rank of a mirror tells its master, which is queued if
// that is news. So when no queue has a node and no mail is under way, no edge leads to a node by a shorter path: all hops are
// right. That comes, since hops of a graph can be lowered only so often. What others find later by a shorter way is found
// twice; little is, as nobody looks more than WINDOW levels beyond the lowest node that waits on any rank. (Levels that are
// taken back, as take_levels does, would not do: where a search goes along a border, another rank has news in every level.)
template <class Ranks>
__device__ inline int run_ahead(Ranks& ranks, Rows frontier, Queue out, unsigned& step, const Local& graph, int level, Found found,
                                const Bits& bits, Queues queues) {
  unsigned* unsent = bits.next;
  int *hops = found.hops, *stamps = found.stamps, limit = level - 1 + WINDOW;
  u64 *counts = queues.progress->lowest, *below = &counts[step % 3];
  auto value = [&](int k) { return k == 0 ? peek(below) : 0ull; };
  for (i64 i = thread_id(); i < graph.proxies; i += num_threads()) stamps[i] = 0;
  for (i64 i = thread_id(); i < bits.words; i += num_threads()) unsent[i] = 0;
  queues.barrier();
  for (;;) {
    u64 best = lower_hops(frontier, out, step, graph, limit, ranks.proxies.masters, hops, unsent, stamps);
    queues.barrier();
    take_mirrors<K>(ranks.peers, ranks.proxies, unsent, [&](const bool (&lowered)[K], const int (&mirror)[K]) {
      ranks.tell_master(lowered, mirror, [&](int to, i64 at, int k) {
        ranks.template values_for<int>(to)[at] = hops[mirror[k]];
        best = max(best, FAR_AHEAD - (u64)hops[mirror[k]]);
      });
    });
    keep_highest(below, best);
    ranks.meet(value);
    bool came = ranks.template take<K>([&](int p, i64 at, const bool (&came)[K], const int (&entry)[K]) {
      bool lower[K];
      int lid[K];
      each_k([&](int k) {
        lid[k] = came[k] ? ranks.proxies.lists[p][entry[k]] : 0;
        unsigned sent = came[k] ? (unsigned)ranks.template values_from<int>(p)[at + 32 * k] : 0;
        lower[k] = came[k] && atomicMin((unsigned*)&hops[lid[k]], sent) > sent && stamp(lid[k], step, stamps);
      });
      append_all(out, lower, lid, graph.offsets);
    });
    u64 most = ranks.most(0, value);
    if (most == 0) break;
    if (came) queues.barrier();
    limit = (int)(FAR_AHEAD - most) + WINDOW;
    frontier = queues.rows(step, queues.total(step));
    out = queues.next(step);
    below = &counts[step % 3];
    if (thread_id() == 0) counts[(step + 1) % 3] = 0;
  }
  below = &counts[(step + 1) % 3];
  count_levels(ranks.proxies.masters, graph.offsets, hops, below, queues);
  ranks.meet(value);
  return (int)ranks.most(0, value);
}

// Hops from ``source``, -1 where there is no path, and parents likewise, if wanted: alone, the lowest on a shortest path; but in a
// pull of the first DEEP levels the first in-neighbour of the row. A level, on all ranks together:
//
//   1. Masters that other ranks found in the last level join the frontier.
//   2. Where mirrors need the frontier (a pull; a push where mirrors have out-edges), it is stored into their bitmaps.
//   3. Push or pull along this rank's edges. What is found is a master, or a mirror, which is sent to its master.
//   4. All tell how much they found. Nodes that were sent may have been found before, so a frontier is at most as large as the
//      sum: good enough to choose a direction; and when nothing was found or sent, the search is over.
//
// Where no mirror has out-edges and nothing is pulled, a level has one meeting. The rule that chooses is that of apps/bfs.py.
//
// Parents travel once, in the end: what a rank found for a mirror is the lowest then, whoever came first, and the master takes
// the lowest of all ranks that reached it in its level. So they do not depend on timing.
template <class Ranks>
__device__ inline void search_levels(Ranks& ranks, const u64* index, const int* table, i64 source, const Local& graph,
                                     const Whole& whole, Rule rule, Found found, Bits bits, Queues queues, i64* rounds) {
  u64 *counts = queues.progress->lowest, *counter = &counts[0];  // what this rank finds; three in turn, as the totals
  unsigned step = 0;
  queues.begin();
  ranks.begin(AHEAD && !found.parents ? 2 : 1);
  for (i64 i = thread_id(); i < graph.proxies; i += num_threads())
    if (found.parents || AHEAD || !ranks.is_mirror(i)) found.hops[i] = -1;
  for (i64 i = thread_id(); found.parents && i < graph.proxies; i += num_threads()) found.parents[i] = -1;
  for (i64 i = thread_id(); i < bits.words; i += num_threads()) bits.seen[i] = bits.next[i] = 0;
  queues.barrier();
  if (thread_id() < 32 && has_bit(index, source)) {  // every proxy of the source knows that it is one
    int lid = lid_of(index, table, source);
    bool one = lane_id() == 0;
    if (one) bits.seen[lid >> 5] = bits.next[lid >> 5] = 1u << (lid & 31);
    if (one && !ranks.is_mirror(lid)) {
      found.hops[lid] = 0;
      if (!Ranks::ALONE) *counter = graph.counted(lid);
      if (found.parents) found.parents[lid] = source;
    }
    append(queues.of_step(0), one, lid, graph.offsets);
  }
  if (Ranks::ALONE) counter = queues.of_step(0).counter;
  auto value = [&](int k) { return k == 0 ? peek(counter) : 0ull; };
  ranks.meet(value);

  Way way = QUEUED;  // of the last level
  i64 before = 0, unexplored = whole.edges, to_masters = 0, to_mirrors = 0;
  int level = 0, most = IN_A_BURST, bursts = 0;
  for (;;) {
    i64 nodes = 0, edges = 0;
    u64 total = 0;
    ranks.each(0, value, [&](u64 told) { nodes += queue_nodes(told), edges += queue_edges(told), total = told; });
    i64 sent = (i64)ranks.news, count = nodes + sent;
    if (count == 0) break;
    if constexpr (!Ranks::ALONE) {
      float mean = (float)whole.edges / whole.nodes;
      if (way == QUEUED && sent) edges += (i64)((float)sent * (nodes ? (float)edges / nodes : mean));
      if (way == SWEPT) edges = (i64)((float)count * mean);
    }
    bool pulling = way == PULLED;
    if (rule.direction != 1)
      pulling = rule.direction == 2 || (pulling ? count >= before || count > whole.nodes / rule.beta
                                                : edges > unexplored / rule.alpha);
    if (way != PULLED) unexplored -= edges;
    before = count;

    if constexpr (!Ranks::ALONE) {
      bool came = way == SWEPT && sent;
      for (int p = 0; came && p < ranks.peers.ranks; p++) {
        i64 half = (level & 1) * bit_words(ranks.proxies.sizes[p]);
        if (p != ranks.peers.rank) take_bits(ranks.proxies, p, bits.in[p] + half, bits.seen, found.hops, level);
      }
      came |= take_entries(ranks, graph, found, level, bits.seen, way == QUEUED, queues.of_step(step));
      if (came) queues.barrier();
      if (pulling || whole.mirrors_push) {
        to_mirrors += ranks.publish(bits.seen, bits.seen_of);
        ranks.meet(nothing_to_tell);
      }
    }
    if (!pulling && (way != QUEUED || whole.mirrors_push)) {  // no queue has what came as bits
      Queue fresh = Ranks::ALONE ? queues.next(step) : queues.of_step(step);
      i64 begin = 0;
      if constexpr (!Ranks::ALONE) begin = way == QUEUED ? ranks.proxies.masters : 0;
      queue_new(fresh, begin, graph.proxies, bits.seen, bits.next, graph.offsets);
      queues.barrier();
    }
    level++;
    if (!Ranks::ALONE || (way == PULLED && !pulling)) total = queues.total(step);
    Rows frontier = queues.rows(step, total);
    Queue out = queues.next(step);
    counter = Ranks::ALONE ? out.counter : &counts[step % 3];
    if (!Ranks::ALONE && thread_id() == 0) counts[(step + 1) % 3] = 0;
    bool names = found.parents && (!Ranks::ALONE || level <= DEEP), swept = false;
    if constexpr (!Ranks::ALONE) swept = !pulling && !found.parents && edges > whole.nodes / SWEPT_FROM;
    way = pulling ? PULLED : swept ? SWEPT : QUEUED;
    if (Ranks::ALONE && BURSTS && way == QUEUED && level > DEEP && is_narrow(frontier)) {
      u64* cut = &counts[bursts % 3];  // ``unexplored`` does not count their few edges
      bursts++;
      if (thread_id() == 0) counts[bursts % 3] = 0;
      int taken = take_levels(frontier, graph.offsets, graph.targets, level, most, found.hops, bits.seen, cut, queues, out);
      level += taken - 1;
      most = taken < most ? taken : min(2 * most, IN_A_BURST);
    } else {
      if constexpr (!Ranks::ALONE && AHEAD)
        if (way == QUEUED && level > DEEP && edges <= AHEAD_FROM && !found.parents && !whole.mirrors_push) {
          to_masters -= ranks.mailed() * sizeof(int);  // from here on entries have hops with them
          level = run_ahead(ranks, frontier, out, step, graph, level, found, bits, queues);
          to_masters += ranks.mailed() * sizeof(int);
          break;
        }
      u64 masters = 0;
      if (way == QUEUED) masters = push_queue(ranks, frontier, out, graph, found, level, names, bits.seen);
      else if (way == PULLED) masters = pull(ranks, graph, found, level, names, bits);
      else if constexpr (!Ranks::ALONE) masters = push_bits(ranks, frontier, queues, graph, found, level, bits);
      if (!Ranks::ALONE || way == PULLED) {
        masters = sum_of_warp(masters);
        if (lane_id() == 0 && masters) atomicAdd(counter, masters);
      }
      if (way == PULLED) swap(bits.seen, bits.next), swap(bits.seen_of, bits.next_of);
    }
    if constexpr (!Ranks::ALONE)
      for (int p = 0; way == SWEPT && p < ranks.peers.ranks; p++) to_masters += 4 * bit_words(ranks.proxies.mirrors_of(p));
    ranks.meet(value);
  }
  if constexpr (Ranks::ALONE) {
    if (bursts) level = count_levels(graph.proxies, graph.offsets, found.hops, &counts[bursts % 3], queues);
    if (found.parents && level > DEEP)
      find_parents(graph.proxies, graph.offsets, graph.targets, found.hops, graph.gids, found.parents, step, queues);
  } else {
    to_masters += ranks.mailed() * (found.parents ? 12 : 4);
    queues.barrier();
    if (found.parents) {
      tell_parents(ranks, found);
      ranks.meet(nothing_to_tell);
      take_parents(ranks, found.parents);
      queues.barrier();
    }
  }
  ranks.end(to_masters, to_mirrors);
  if (thread_id() == 0) *rounds = level;
}

// What all searches share.
struct Plan {
  Bits bits;
  const u64* index;
  const int* table;
  Local graph;
  Whole whole;
  Queues queues;
};

extern "C" __global__ void __launch_bounds__(512, RESIDENT)
search(RANKS::Given given, Plan plan, i64 source, i64 direction, i64 alpha, i64 beta, int* hops, i64* parents, int* kept,
       int* stamps, i64* rounds) {
  RANKS ranks(given);
  Found found = {hops, parents, kept, stamps};
  search_levels(ranks, plan.index, plan.table, source, plan.graph, plan.whole, Rule{direction, alpha, beta}, found, plan.bits,
                plan.queues, rounds);
}
