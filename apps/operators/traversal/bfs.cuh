// Breadth-first search: push, pull, and a whole search in one kernel. VALUE, the label's type, is int or long long.
#include "../frontier.cuh"

// Where two write one node, the smaller value wins, whatever the order, so parents do not depend on timing. The queue is empty
// afterwards.
extern "C" __global__ void bfs_push(Queues queues, const int* targets, const i64* gids, i64 gid_mask, VALUE level,
                                    VALUE* values, unsigned* updated) {
  consume(queues, [&](const Edges& edges) {
    int target[K];
    VALUE old[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : 0;
#pragma unroll
    for (int k = 0; k < K; k++) old[k] = values[target[k]];
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (!edges.active[k]) continue;
      VALUE value = gid_mask ? (VALUE)(level | (gids[edges.node[k]] & gid_mask)) : level;
      if (old[k] > value && lower(&values[target[k]], value) > value) set_bit(updated, target[k]);
    }
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
// A warp has several words under way, as for_each_loaded. Nodes whose first in-neighbour misses are gathered from all of them, so
// that the rest of their rows is searched by full warps.
template <class Found>
__device__ inline void pull_level(i64 rows, const int* first, const i64* offsets, const int* sources, const unsigned* seen,
                                  unsigned* next, Found found) {
  constexpr int TOGETHER = 4, MOST_WARPS = 16;
  __shared__ unsigned char missed[MOST_WARPS][32 * TOGETHER];  // places in the warp's words
  __shared__ unsigned late[MOST_WARPS][TOGETHER];              // what is found for them
  int warp = threadIdx.x / 32;
  i64 words = (rows + 31) / 32, stride = num_threads() / 32;
  for (i64 base = thread_id() / 32; base < words; base += TOGETHER * stride) {
    unsigned old[TOGETHER], hits = 0;
    int source[TOGETHER], misses = 0;
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) old[k] = base + k * stride < words ? seen[base + k * stride] : FULL;
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
      i64 target = (base + k * stride) * 32 + lane_id();
      source[k] = target < rows && !(old[k] >> lane_id() & 1) ? first[target] : -1;
    }
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) hits |= (unsigned)(source[k] >= 0 && get_bit(seen, source[k])) << k;
    if (lane_id() < TOGETHER) late[warp][lane_id()] = 0;
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
      bool hit = hits >> k & 1, miss = source[k] >= 0 && !hit;
      found(hit, (base + k * stride) * 32 + lane_id(), source[k]);
      old[k] |= __ballot_sync(FULL, hit);
      unsigned others = __ballot_sync(FULL, miss);
      if (miss) missed[warp][misses + __popc(others & below_lane())] = (unsigned char)(32 * k + lane_id());
      misses += __popc(others);
    }
    __syncwarp();
    for (int at = lane_id(); at - (int)lane_id() < misses; at += 32) {
      int place = at < misses ? missed[warp][at] : 0;
      i64 target = (base + place / 32 * stride) * 32 + place % 32, begin = 0, end = 0;
      if (at < misses) begin = offsets[target] + 1, end = offsets[target + 1];
      int other = find_source(begin < end, begin, end, sources, seen);
      found(other >= 0, target, other);
      if (other >= 0) atomicOr(&late[warp][place / 32], 1u << place % 32);
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < TOGETHER; k++)
      if (lane_id() == 0 && base + k * stride < words) next[base + k * stride] = old[k] | late[warp][k];
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
    visit_bits(base, fresh, [&](const bool (&chosen)[K], const int (&node)[K]) { append_all(out, chosen, node, offsets); });
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
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : -1;
#pragma unroll
    for (int k = 0; k < K; k++)  // on the way while hops are written
      begin[k] = target[k] >= 0 ? offsets[target[k]] : 0, end[k] = target[k] >= 0 ? offsets[target[k] + 1] : 0;
#pragma unroll
    for (int k = 0; k < K; k++)  // as an unsigned number, no hops, -1, are the most
      fresh[k] = target[k] >= 0 && atomicMin((unsigned*)&hops[target[k]], (unsigned)value) > (unsigned)value;
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
#pragma unroll
    for (int k = 0; k < K; k++) node[k] = (int)(base + 32 * k + lane_id());
#pragma unroll
    for (int k = 0; k < K; k++) deep[k] = node[k] < proxies && hops[node[k]] >= DEEP;
    append_all(out, deep, node, offsets);
  }
  queues.barrier();
  for_each_edge(queues.rows(step, queues.total(step)), [&](const Edges& edges) {
    int target[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : 0;
#pragma unroll
    for (int k = 0; k < K; k++)
      if (edges.active[k] && hops[target[k]] == hops[edges.node[k]] + 1)
        atomicMin((u64*)&parents[target[k]], (u64)gids[edges.node[k]]);
  });
}

// The most hops of a node that has out-edges, plus 1; ``most`` is 0.
__device__ inline int count_levels(i64 proxies, const i64* offsets, const int* hops, u64* most, Queues queues) {
  u64 best = 0;
  for (i64 i = thread_id(); i < proxies; i += num_threads())
    if (hops[i] >= 0 && offsets[i] < offsets[i + 1]) best = max(best, (u64)hops[i] + 1);
  best = largest_of_warp(best);
  if (lane_id() == 0 && best > peek(most)) atomicMax(most, best);
  queues.barrier();
  return (int)peek(most);
}

// hops from ``source``, -1 where there is no path, and parents likewise, if wanted: the lowest on a shortest path; but in a pull
// of the first DEEP levels the first in-neighbour of the row. direction: 0 whichever is cheaper, 1 push, 2 pull. ``bitmaps`` are
// two of ``words`` words each. The rule that chooses is that of apps/bfs.py.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
bfs_drain(const u64* index, const int* table, i64 source, i64 proxies, i64 rows, i64 edges, const i64* offsets,
          const int* targets, const i64* in_offsets, const int* in_sources, const int* first, i64 direction, i64 alpha,
          i64 beta, int* hops, const i64* gids, i64 with_parents, i64* parents, unsigned* bitmaps, i64 words,
          Queues queues, i64* rounds) {
  unsigned *seen = bitmaps, *next = bitmaps + words;
  if (!with_parents) parents = 0;
  queues.begin();
  for (i64 i = thread_id(); i < proxies; i += num_threads()) hops[i] = -1;
  for (i64 i = thread_id(); parents && i < proxies; i += num_threads()) parents[i] = -1;
  for (i64 i = thread_id(); i < 2 * words; i += num_threads()) bitmaps[i] = 0;
  queues.barrier();
  unsigned step = 0;
  if (thread_id() < 32) {
    int lid = lid_of(index, table, source);
    if (lane_id() == 0) hops[lid] = 0, seen[lid >> 5] = 1u << (lid & 31);
    if (lane_id() == 0 && parents) parents[lid] = source;
    append(queues.of_step(step), lane_id() == 0, lid, offsets);
  }
  queues.barrier();
  bool pulling = false, queued = true;
  i64 before = 0, unexplored = edges;
  int level = 0, most = IN_A_BURST, bursts = 0;
  for (;;) {
    u64 total = queues.total(step);
    i64 count = queue_nodes(total);
    if (count == 0) break;
    if (direction != 1)
      pulling = direction == 2 || (pulling ? count >= before || count > rows / beta
                                           : queue_edges(total) > unexplored / alpha);
    if (queued) unexplored -= queue_edges(total);
    before = count;
    level++;
    if (!pulling && !queued) {  // what the last pull found becomes a queue
      queue_new(queues.next(step), 0, proxies, seen, next, offsets);
      queues.barrier();
      total = queues.total(step);
    }
    Queue out = queues.next(step);
    bool names = parents && level <= DEEP;
    Rows frontier = queues.rows(step - 1, total);
    if (BURSTS && !pulling && level > DEEP && is_narrow(frontier)) {  // ``unexplored`` does not count their few edges
      u64* cut = &queues.progress->lowest[bursts % 3];  // as the totals, three in turn
      bursts++;
      if (thread_id() == 0) queues.progress->lowest[bursts % 3] = 0;
      int taken = take_levels(frontier, offsets, targets, level, most, hops, seen, cut, queues, out);
      level += taken - 1;
      most = taken < most ? taken : min(2 * most, IN_A_BURST);
    } else if (pulling) {
      i64 hits = 0;
      pull_level(rows, first, in_offsets, in_sources, seen, next, [&](bool hit, i64 target, int source) {
        if (hit) hops[target] = level, hits++;
        if (hit && names) parents[target] = gids[source];
      });
      hits = sum_of_warp(hits);
      if (lane_id() == 0 && hits) atomicAdd(out.counter, (u64)hits << EDGE_BITS);
      unsigned* older = seen;
      seen = next, next = older;
    } else {
      for_each_edge(frontier, [&](const Edges& edges) {
        int target[K];
        bool fresh[K];
#pragma unroll
        for (int k = 0; k < K; k++) target[k] = edges.active[k] ? targets[edges.place[k]] : 0;
#pragma unroll
        for (int k = 0; k < K; k++) fresh[k] = edges.active[k] && !get_bit(seen, target[k]);
#pragma unroll
        for (int k = 0; k < K; k++) {
          fresh[k] = fresh[k] && claim_bit(seen, target[k]);
          if (fresh[k]) hops[target[k]] = level;
        }
        for (int k = 0; names && k < K; k++)
          if (edges.active[k]) offer_parent(hops, parents, target[k], level, gids[edges.node[k]]);
        append_all(out, fresh, target, offsets);
      });
    }
    queued = !pulling;
    queues.barrier();
  }
  if (bursts) level = count_levels(proxies, offsets, hops, &queues.progress->lowest[bursts % 3], queues);
  if (parents && level > DEEP) find_parents(proxies, offsets, targets, hops, gids, parents, step, queues);
  if (thread_id() == 0) *rounds = level;
}
