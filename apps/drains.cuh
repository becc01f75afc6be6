// Whole traversals in one kernel: rounds follow each other on the device until nothing is left to do, with a barrier of
// all blocks (1 us) where a host would launch and read back (15 us). For what one rank can do without asking others.
#include "operators.cuh"

// Counters of a drain. Step s adds up in total[s % 3], which step s - 1 has cleared and step s + 1 reads: one barrier a
// step is enough, since nobody clears what somebody may still read.
struct Progress {
  unsigned arrived;
  unsigned steps;
  u64 total[3];
  u64 lowest[3];
};

__device__ inline u64 peek(const u64* place) { return *(const volatile u64*)place; }

struct Queues {
  int* nodes;
  i64* starts;
  i64* rows;
  i64 room;  // of each of two
  Progress* progress;
  __device__ Queue written_in(unsigned step) const {
    i64 at = (step & 1) * room;
    return {&progress->total[step % 3], nodes + at, starts + at, rows + at};
  }
};

__device__ inline void count_found(u64* total, i64 found) {
  for (int step = 16; step > 0; step /= 2) found += __shfl_down_sync(FULL, found, step);
  if (lane_id() == 0 && found) atomicAdd(total, (u64)found << EDGE_BITS);
}

// One pull level: every node below ``rows`` that is not in ``seen`` looks for an in-neighbour that is. Whoever was seen
// before the last level would have been found by then, so one that is seen is in the frontier: no frontier is needed.
// A warp writes whole words of ``next``; ``seen`` stays as it is, so this level's finds are not taken for earlier ones.
// The first in-neighbour, which is the one with the most edges, stands in an array of its own: it decides nearly always,
// and reading it is one stream.
__device__ inline i64 pull_level(i64 rows, const int* first, const i64* offsets, const int* sources,
                                 const unsigned* seen, unsigned* next, int level, int* hops) {
  i64 count = 0, words = (rows + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned old = seen[word];
    i64 target = word * 32 + lane_id();
    bool looking = target < rows && !(old >> lane_id() & 1);
    int source = looking ? first[target] : -1;
    bool hit = source >= 0 && get_bit(seen, source);
    bool on = source >= 0 && !hit;
    if (__any_sync(FULL, on)) {
      i64 begin = 0, end = 0;
      if (on) begin = offsets[target] + 1, end = offsets[target + 1];
      hit |= find_source(on, begin, end, sources, seen) >= 0;
    }
    if (hit) hops[target] = level, count++;
    unsigned found = __ballot_sync(FULL, hit);
    if (lane_id() == 0) next[word] = old | found;
  }
  return count;
}

// hops from ``source``, -1 where there is no path. direction: 0 whichever is cheaper, 1 push, 2 pull.
// ``seen`` has room for two bitmaps of ``words`` words. The rule that chooses is that of apps/bfs.py.
extern "C" __global__ void __launch_bounds__(512, 2)
bfs_drain(const u64* index, const int* table, i64 source, i64 proxies, i64 rows, i64 edges, const i64* offsets,
          const int* targets, const i64* in_offsets, const int* in_sources, const int* first, i64 direction, i64 alpha,
          i64 beta, int* hops, unsigned* bitmaps, i64 words, int* nodes, i64* starts, i64* queue_rows, i64 room,
          u64* progress_words, i64* rounds) {
  Progress* progress = (Progress*)progress_words;
  Queues queues = {nodes, starts, queue_rows, room, progress};
  unsigned *seen = bitmaps, *next = bitmaps + words;
  for (i64 i = thread_id(); i < proxies; i += num_threads()) hops[i] = -1;
  for (i64 i = thread_id(); i < 2 * words; i += num_threads()) bitmaps[i] = 0;
  grid_barrier(&progress->arrived);
  unsigned step = 0;
  if (thread_id() < 32) {
    u64 bits = index[2 * (source >> 6)];
    u64 below = bits & ((1ull << (source & 63)) - 1);
    int lid = table[index[2 * (source >> 6) + 1] + __popcll(below)];
    if (lane_id() == 0) hops[lid] = 0, seen[lid >> 5] = 1u << (lid & 31);
    append(queues.written_in(step), lane_id() == 0, lid, offsets);
  }
  grid_barrier(&progress->arrived);
  bool pulling = false, queued = true;
  i64 before = 0, unexplored = edges;
  int level = 0;
  for (;;) {
    u64 total = peek(&progress->total[step % 3]);
    i64 count = queue_nodes(total);
    if (count == 0) break;
    if (direction != 1)
      pulling = direction == 2 || (pulling ? count >= before || count > rows / beta
                                           : queue_edges(total) > unexplored / alpha);
    if (queued) unexplored -= queue_edges(total);
    before = count;
    level++;
    if (!pulling && !queued) {  // what the last pull found becomes a queue
      step++;
      if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
      for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
        unsigned bits = seen[word] & ~next[word];
        if (bits) append(queues.written_in(step), bits >> lane_id() & 1, (int)(word * 32 + lane_id()), offsets);
      }
      grid_barrier(&progress->arrived);
      total = peek(&progress->total[step % 3]);
    }
    step++;
    if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
    if (pulling) {
      i64 found = pull_level(rows, first, in_offsets, in_sources, seen, next, level, hops);
      count_found(&progress->total[step % 3], found);
      unsigned* older = seen;
      seen = next, next = older;
    } else {
      Queue out = queues.written_in(step);
      for_each_edge(queues.written_in(step - 1), total, [&](bool active, int, i64 edge) {
        int target = active ? targets[edge] : 0;
        bool fresh = active && !get_bit(seen, target);
        if (fresh) fresh = !(atomicOr(&seen[target >> 5], 1u << (target & 31)) >> (target & 31) & 1);
        if (fresh) hops[target] = level;
        if (__any_sync(FULL, fresh)) append(out, fresh, target, offsets);
      });
    }
    queued = !pulling;
    grid_barrier(&progress->arrived);
  }
  if (thread_id() == 0) *rounds = level;
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
      limit = bucket_end(begin, far, delta);
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
    for (;;) {
      u64 total = peek(&progress->total[step % 3]);
      if (queue_nodes(total) == 0) break;
      step++;
      if (thread_id() == 0) progress->total[(step + 1) % 3] = 0;
      Queue out = queues.written_in(step);
      for_each_edge(queues.written_in(step - 1), total, [&](bool active, int node, i64 edge) {
        bool again = false;
        int target = 0;
        if (active) {
          target = targets[edge];
          VALUE value = values[node], weight = (VALUE)weights[edge];
          VALUE candidate = weight < far - value ? value + weight : far;
          if (candidate < values[target] && candidate < lower(&values[target], candidate)) {
            if (!whole) set_bit(updated, target);
            if (candidate < limit) {
              again = atomicExch(&stamps[target], (int)step) != (int)step;
              if (get_bit(pending, target)) atomicAnd(&pending[target >> 5], ~(1u << (target & 31)));
              if (!whole) lower(&relaxed_at[target], candidate);
            } else {
              set_bit(pending, target);
            }
          }
        }
        if (__any_sync(FULL, again)) append(out, again, target, offsets);
      });
      grid_barrier(&progress->arrived);
    }
    buckets++;
    if (!whole) break;
  }
  grid_barrier(&progress->arrived);  // nobody reads ``steps`` any more
  if (thread_id() == 0) progress->steps = step, *rounds = buckets;
}
