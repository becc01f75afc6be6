// k-core: see interfaces.py. All levels in one kernel, on one rank or on peers; or a part of a level at a time, from the host.
#include "cusp/apps/operators/frontier.cuh"
#include "gluon/kernels/link.cuh"

constexpr i64 FAR = 1ll << 31;  // above all degrees; as in kcore_gpu.py

// What one rank peels. A proxy's row names those masters of this rank that are its neighbours. So who is peeled lowers degrees
// of masters only, which are true at any time, and of a node all that another rank has to learn is that it is gone.
struct Peeling {
  i64 masters;
  const i64* offsets;
  const int* neighbours;
  const i64* all;  // neighbours of each master in the whole graph
  int* degrees;    // those that are left, of a master that is left; at most its core number, of one that is not
  int* core;       // -1: is left
  int* lists;      // of masters, all that are left among them: two in turn
  u64* counts;     // of those left, as three scans in turn find them; from the host, see enum Count
};

// The chosen masters of every lane leave; their rows are from ``begin`` to ``end``, nothing where one is not chosen. The whole
// warp calls it.
template <class Ranks, class Out>
__device__ inline void leave(const Peeling& own, const Ranks& ranks, const bool (&chosen)[K], const int (&lid)[K],
                             const i64 (&begin)[K], const i64 (&end)[K], i64 level, Out out) {
  each_k([&](int k) { if (chosen[k]) own.core[lid[k]] = (int)level; });
  append_all(out, lid, begin, end);
  ranks.tell_mirrors(chosen, lid);
}
template <class Ranks>
__device__ inline void leave(const Peeling& own, const Ranks& ranks, const bool (&chosen)[K], const int (&lid)[K], i64 level,
                             Queue out) {
  bool any = false;
  i64 begin[K], end[K];
  each_k([&](int k) { any |= chosen[k]; });
  if (!__any_sync(FULL, any)) return;
  each_k([&](int k) {
    begin[k] = chosen[k] ? own.offsets[lid[k]] : 0;
    end[k] = chosen[k] ? own.offsets[lid[k] + 1] : 0;
  });
  leave(own, ranks, chosen, lid, begin, end, level, out);
}

// Of the masters in ``list``, those with more than ``before`` neighbours have not been peeled; those with at most ``level``
// leave. Of the others, counts how many there are, and finds the highest FAR - degree; they join ``kept``, if there is one.
template <class Ranks>
__device__ inline void scan_left(const Peeling& own, const Ranks& ranks, const int* list, i64 size, int* kept, i64 before,
                                 i64 level, Queue out, u64* count, u64* below) {
  u64 more = 0, best = 0;
  for (i64 base = thread_id() / 32 * TILE; base < size; base += num_threads() / 32 * TILE) {
    int lid[K], degree[K];
    bool leaves[K], stays[K];
    each_k([&](int k) { lid[k] = base + 32 * k + lane_id() < size ? list[base + 32 * k + lane_id()] : -1; });
    each_k([&](int k) { degree[k] = lid[k] >= 0 ? own.degrees[lid[k]] : -1; });
    each_k([&](int k) {
      leaves[k] = degree[k] > before && degree[k] <= level;
      stays[k] = degree[k] > level;
      if (stays[k]) more++, best = max(best, (u64)(FAR - degree[k]));
    });
    leave(own, ranks, leaves, lid, level, out);
    if (kept) take_places(count, stays, [&](i64 at, int k) { kept[at] = lid[k]; });
  }
  if (!kept) add_up(count, more);
  keep_highest(below, best);
}

// All edges of those that left in the last round: their neighbours lose one, and leave in this round with the last that they
// can spare; one thread takes that. A degree that is read may be an old one, which is higher: the atomic knows better. That of
// a node that has left is lowered in vain. So the order does not matter, and blocks may go on by themselves.
//
// Atomics on one address follow each other, and hubs, which come first, lose some in each of many edges: a block counts what
// they lose.
constexpr int HUBS = 2048;

template <class Ranks>
__device__ inline void lose_in_round(const Peeling& own, const Ranks& ranks, Rows rows, i64 level, Queue out) {
  __shared__ int lost[HUBS];
  int hubs = is_narrow(rows) ? 0 : HUBS;  // of which a block counts what they lose; whether they have left is seen at the end
  for (int hub = threadIdx.x; hub < hubs; hub += blockDim.x) lost[hub] = 0;
  __syncthreads();
  for_each_edge(rows, [&](const Edges& edges) {
    int target[K], degree[K];
    bool last[K];
    each_k([&](int k) { target[k] = edges.active[k] ? own.neighbours[edges.place[k]] : -1; });
    each_k([&](int k) { degree[k] = target[k] >= hubs ? own.degrees[target[k]] : -1; });
    each_k([&](int k) {
      bool counted = target[k] >= 0 && target[k] < hubs;
      if (counted) atomicAdd(&lost[target[k]], 1);
      last[k] = degree[k] > level && !counted && atomicSub(&own.degrees[target[k]], 1) == level + 1;
    });
    leave(own, ranks, last, target, level, out);
  });
  __syncthreads();
  for (int base = threadIdx.x; base < hubs; base += K * blockDim.x) {
    int hub[K];
    bool last[K];
    each_k([&](int k) {
      hub[k] = base + k * blockDim.x;
      int less = hub[k] < hubs ? lost[hub[k]] : 0, before = less ? atomicSub(&own.degrees[hub[k]], less) : 0;
      last[k] = less && before > level && before - less <= level;
    });
    leave(own, ranks, last, hub, level, out);
  }
}

// The same in a burst. Here every load is waited for: nothing is looked at first, and offsets are on the way meanwhile.
template <class Ranks>
__device__ inline void lose_in_burst(const Peeling& own, const Ranks& ranks, Rows rows, i64 level, Queue out) {
  auto lose = [&](const Edges& edges, BlockQueue found) {
    int target[K];
    i64 begin[K], end[K];
    bool last[K];
    each_k([&](int k) { target[k] = edges.active[k] ? own.neighbours[edges.place[k]] : -1; });
    each_k([&](int k) {
      begin[k] = target[k] >= 0 ? own.offsets[target[k]] : 0;
      end[k] = target[k] >= 0 ? own.offsets[target[k] + 1] : 0;
    });
    each_k([&](int k) {
      last[k] = target[k] >= 0 && atomicSub(&own.degrees[target[k]], 1) == level + 1;
      if (!last[k]) end[k] = begin[k];
    });
    leave(own, ranks, last, target, begin, end, level, found);
  };
  run_burst(rows, own.offsets, out, lose, [](int) { return true; });
}

// What ranks send each other at the end of a round: whether any master was peeled; of FAR - degree the highest that a scan
// found, 0 if no node was left there.
enum Sent { BUSY, BELOW };

// Ends a round. True if any rank has to go on with what was peeled: mirrors of what was peeled elsewhere join the queue.
template <class Ranks, class Value>
__device__ inline bool meet(const Peeling& own, Ranks& ranks, Queues queues, unsigned step, Value value) {
  ranks.meet(value);
  bool came = ranks.template take<K>([&](int, i64, const bool (&came)[K], const int (&mirror)[K]) {
    append_all(queues.of_step(step), came, mirror, own.offsets);
  });
  bool busy = ranks.sum(BUSY, value) > 0 || ranks.news > 0;
  if (came) queues.barrier();
  return busy;
}

// Peels from ``level`` on, up to level ``last``, and returns the number of rounds; with bursts, whose rounds nobody counts, that of
// scans. A level begins with a scan of what is left.
// It tries the next number, as there are few gaps among core numbers; if nobody has it, the scan has found the lowest. A list
// of which half has left is made anew.
template <class Ranks>
__device__ inline i64 peel_levels(const Peeling& own, Ranks& ranks, Queues queues, i64 level, i64 last) {
  unsigned step = 0;
  u64 *lowest = queues.progress->lowest, *below = &lowest[0];
  int *list = own.lists, *other = own.lists + own.masters;
  i64 size = own.masters, left = size, before = -1, rounds = 0;
  for (i64 lid = thread_id(); lid < size; lid += num_threads())
    own.degrees[lid] = (int)own.all[lid], own.core[lid] = -1, list[lid] = (int)lid;
  if (thread_id() == 0) own.counts[0] = 0;
  queues.begin();
  ranks.begin(1);
  ranks.meet(nothing_to_tell);
  auto value = [&](int k) { return k == BUSY ? (u64)queue_nodes(queues.total(step)) : peek(below); };
  for (unsigned scan = 0; level <= last; scan++) {
    u64* count = &own.counts[scan % 3];
    below = &lowest[scan % 3];
    if (thread_id() == 0) own.counts[(scan + 1) % 3] = lowest[(scan + 1) % 3] = 0;  // last read two meetings ago
    bool shrink = 2 * left < size;
    Queue out = queues.next(step);
    scan_left(own, ranks, list, size, shrink ? other : nullptr, before, level, out, count, below);
    bool busy = meet(own, ranks, queues, step, value);
    i64 found = (i64)ranks.most(BELOW, value);
    rounds++;
    left = (i64)peek(count);
    if (shrink) swap(list, other), size = left;
    before = level;
    level = busy ? level + 1 : FAR - found;
    for (; busy; rounds += !BURSTS) {
      Rows rows = queues.rows(step, queues.total(step));
      Queue next = queues.next(step);
      if (BURSTS && is_narrow(rows)) lose_in_burst(own, ranks, rows, before, next);
      else lose_in_round(own, ranks, rows, before, next);
      busy = meet(own, ranks, queues, step, value);
    }
    if (found == 0) break;
  }
  return rounds;
}

extern "C" __global__ void __launch_bounds__(512, RESIDENT)
peel_graph(RANKS::Given given, Peeling own, i64 level, i64 last, Queues queues, i64* rounds) {
  RANKS ranks(given);
  i64 count = peel_levels(own, ranks, queues, level, last);
  if (!RANKS::ALONE) queues.barrier();
  ranks.end(0, ranks.mailed() * sizeof(int));
  if (thread_id() == 0) *rounds = count;
}

// For ranks that the host lets peel at the same time: marks masters that leave, if they have mirrors, for the next broadcast.
struct Stepped {
  const unsigned* mirrored;
  unsigned* updated;
  u64* marked;  // 1: any

  template <int SIZE>
  __device__ void tell_mirrors(const bool (&chosen)[SIZE], const int (&master)[SIZE]) const {
    each_k<SIZE>([&](int k) {
      if (chosen[k] && get_bit(mirrored, master[k])) set_bit(updated, master[k]), *(volatile u64*)marked = 1;
    });
  }
};
enum Count { LEFT, LOWEST, FILLED, MARKED };  // masters left and FAR - the lowest degree, by a scan; whether any left; any mark

// Mirrors with a bit in ``updated`` have left elsewhere; all bits are taken. Above level ``before``, who has at most ``level``
// neighbours among ``list`` leaves. Then neighbours lose one, until all that are left have more, as far as this rank knows.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
peel(i64 level, i64 before, i64 proxies, Peeling own, const int* list, i64 size, int* kept, const unsigned* mirrored,
     unsigned* updated, Queues queues) {
  Stepped ranks = {mirrored, updated, &own.counts[MARKED]};
  unsigned step = 0;
  Queue out = queues.of_step(step);
  for (i64 word = thread_id() / 32; word < (proxies + 31) / 32; word += num_threads() / 32) {
    unsigned bits = updated[word];
    i64 lid = word * 32 + lane_id();
    if (bits) append(out, lid >= own.masters && bits >> lane_id() & 1, (int)lid, own.offsets);
    if (bits && lane_id() == 0) updated[word] = 0;
  }
  queues.barrier();
  if (level > before)
    scan_left(own, ranks, list, size, kept, before, level, out, &own.counts[LEFT], &own.counts[LOWEST]);
  queues.barrier();
  u64 total = queues.total(step);
  if (thread_id() == 0) own.counts[FILLED] = total;
  while (queue_nodes(total) > 0) {
    Queue next = queues.next(step);
    lose_in_round(own, ranks, queues.rows(step - 1, total), level, next);
    queues.barrier();
    total = queues.total(step);
  }
}
