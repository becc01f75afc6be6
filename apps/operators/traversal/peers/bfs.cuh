// A whole breadth-first search on the GPUs of several ranks, in one kernel on each: see gluon/kernels/peers.cuh. VALUE is int.
#include "../bfs.cuh"
#include "../../../../gluon/kernels/peers.cuh"

// What the ranks tell each other at the end of a level: new masters and their out-edges; nodes sent so far, to all ranks and
// to the one that is told.
enum Told { FOUND, SENT, FOR_YOU };

// How a level is done: by a queue, which knows the edges of the next one; by bits, which are swept into hops, where there are
// so many new nodes that counters would be in the way; or by a pull.
enum Way { QUEUED, SWEPT, PULLED };
constexpr i64 SWEPT_FROM = 8;  // nodes of the graph for each edge of a frontier: with fewer it is swept

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

// The graph of all ranks.
struct Whole {
  i64 nodes, edges;  // nodes with out-edges; edges as they are counted
  i64 mirrors_push;  // whether any mirror has out-edges
};

// The answer for the masters of one rank. With parents, also what this rank knows of mirrors: the levels at which it reached
// them, the lowest parent that it has for them, and which it has sent. These are null if parents are not wanted.
struct Found {
  int* hops;
  i64* parents;
  int* kept;

  // A mirror was reached here.
  __device__ void reach_mirror(int lid, int level) const {
    if (parents) hops[lid] = level;
  }
};

// An entry that is not needed any more: its node was reached in an earlier level.
constexpr int LATE = -1;

// Masters that other ranks found by queues in the last level: those entries of each rank from taken[rank] to end(rank) - 1.
// They join ``queue``, if that is wanted. With parents, those that come late are struck out. True if there are some.
template <class End>
__device__ inline bool take_entries(const Peers& peers, const Proxies& proxies, const Post& post, const i64* taken, End end,
                                    Local graph, Found found, int level, unsigned* seen, bool queued, Queue queue) {
  bool came = false;
  for (int p = 0; p < peers.ranks; p++) {
    i64 stop = p == peers.rank ? 0 : end(p);
    came |= stop > taken[p];
    for (i64 base = taken[p] + thread_id() / 32 * TILE; base < stop; base += num_threads() / 32 * TILE) {
      bool fresh[K];
      int lid[K];
#pragma unroll
      for (int k = 0; k < K; k++) fresh[k] = base + 32 * k + lane_id() < stop;
#pragma unroll
      for (int k = 0; k < K; k++) lid[k] = fresh[k] ? post.in[p][base + 32 * k + lane_id()] : 0;
#pragma unroll
      for (int k = 0; k < K; k++) lid[k] = fresh[k] ? proxies.lists[p][lid[k]] : 0;
#pragma unroll
      for (int k = 0; k < K; k++) {
        bool came = fresh[k];
        fresh[k] = came && claim_bit(seen, lid[k]);
        if (came && !fresh[k] && found.parents && !in_level(found.hops, lid[k], level))
          post.in[p][base + 32 * k + lane_id()] = LATE;
        if (fresh[k]) found.hops[lid[k]] = level;
      }
      if (queued) append_all(queue, fresh, lid, graph.offsets);
    }
  }
  return came;
}

// The lowest parent that any rank has for a master becomes its parent. All who reached it in its level have one.
__device__ inline void take_parents(const Peers& peers, const Proxies& proxies, const Post& post, const i64* sizes,
                                    i64* parents) {
  for (int p = 0; p < peers.ranks; p++)
    for (i64 i = thread_id(); p != peers.rank && i < sizes[p]; i += num_threads()) {
      int place = post.in[p][i];
      if (place != LATE) atomicMin((u64*)&parents[proxies.lists[p][place]], (u64)post.in_marks[p][i]);
    }
}

// A push from queue to queue. New mirrors are sent to their masters. Returns the new masters << EDGE_BITS | their out-edges, of
// this thread.
__device__ inline u64 push_queue(const Peers& peers, const Proxies& proxies, const Post& post, Rows frontier, Queue out,
                                 Local graph, Found found, int level, unsigned* seen) {
  u64 count = 0;
  for_each_edge(frontier, [&](const Edges& at) {
    int target[K];
    bool fresh[K], mirror[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = at.active[k] ? graph.targets[at.place[k]] : 0;
#pragma unroll
    for (int k = 0; k < K; k++) fresh[k] = at.active[k] && !get_bit(seen, target[k]);
#pragma unroll
    for (int k = 0; k < K; k++) {
      fresh[k] = fresh[k] && claim_bit(seen, target[k]);
      mirror[k] = fresh[k] && target[k] >= proxies.masters;
      fresh[k] = fresh[k] && !mirror[k];
      if (fresh[k]) found.hops[target[k]] = level, count += graph.counted(target[k]);
      if (mirror[k]) found.reach_mirror(target[k], level);
    }
    for (int k = 0; found.parents && k < K; k++)
      if (at.active[k]) offer_parent(found.hops, found.parents, target[k], level, graph.gids[at.node[k]]);
    append_all(out, fresh, target, graph.offsets);
    post.send(peers, proxies, mirror, target, found.kept);
  });
  return count;
}

// A push from a queue to bits, whose sweep gives masters their hops and other ranks the bits of theirs. ``older`` becomes what
// was seen before. Returns the new masters << EDGE_BITS, of this thread.
__device__ inline u64 push_bits(const Peers& peers, const Proxies& proxies, const Post& post, Rows frontier, Queues queues,
                                Local graph, Found found, int level, unsigned* seen, unsigned* older, i64 words) {
  for (i64 word = thread_id(); word < words; word += num_threads()) older[word] = seen[word];
  queues.barrier();
  for_each_edge(frontier, [&](const Edges& at) {
    int target[K];
#pragma unroll
    for (int k = 0; k < K; k++) target[k] = at.active[k] ? graph.targets[at.place[k]] : -1;
#pragma unroll
    for (int k = 0; k < K; k++)
      if (target[k] >= 0) set_bit(seen, target[k]);
  });
  queues.barrier();
  u64 count = 0, sent = 0;
  for (i64 word = thread_id() / 32; word * 32 < proxies.masters; word += num_threads() / 32) {
    i64 lid = word * 32 + lane_id();
    if (!((seen[word] & ~older[word]) >> lane_id() & 1) || lid >= proxies.masters) continue;
    found.hops[lid] = level, count += 1ull << EDGE_BITS;
  }
  for (int p = 0; p < peers.ranks; p++)
    if (p != peers.rank) sent += give_bits(proxies, p, post.bits_for(proxies, p, level), seen, older);
  add_up(&post.sent[peers.rank], sent);
  return count;
}

// A pull, from ``seen`` to ``next``. Returns the new masters << EDGE_BITS, of this thread.
__device__ inline u64 pull(const Peers& peers, const Proxies& proxies, const Post& post, Local graph, Found found, int level,
                           const unsigned* seen, unsigned* next, i64 words) {
  u64 count = 0;
  pull_level(graph.rows, graph.first, graph.in_offsets, graph.in_sources, seen, next, [&](bool hit, i64 target, int source) {
    bool master = hit && target < proxies.masters, mirror[1] = {hit && !master};
    int lid[1] = {(int)target};
    if (master) found.hops[target] = level, count += 1ull << EDGE_BITS;
    if (mirror[0]) found.reach_mirror(lid[0], level);
    if (hit && found.parents) found.parents[target] = graph.gids[source];
    post.send(peers, proxies, mirror, lid, found.kept);
  });
  for (i64 word = (graph.rows + 31) / 32 + thread_id(); word < words; word += num_threads()) next[word] = seen[word];
  return count;
}

template <class T>
__device__ inline void exchange(T& a, T& b) {
  T old = a;
  a = b, b = old;
}

// The search of bfs_drain, with the same rule of directions, for any partition. A level, on all ranks together:
//
//   1. Masters that other ranks found in the last level join the frontier.
//   2. Where mirrors need the frontier (a pull; a push where mirrors have out-edges), it is stored into their bitmaps.
//   3. Push or pull along this rank's edges. What is found is a master, or a mirror, which is sent to its master.
//   4. All tell how much they found. Nodes that were sent may have been found before, so a frontier is at most as large as the
//      sum: good enough to choose a direction; and when nothing was found or sent, the search is over.
//
// Where no mirror has out-edges and nothing is pulled, a level has one barrier of the GPUs.
//
// Parents travel once, in the end: what a rank found for a mirror is the lowest then, whoever came first, and the master takes
// the lowest of all ranks that reached it in its level. So they do not depend on timing.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
bfs_peers(const u64* index, const int* table, i64 source, Local graph, Whole whole, i64 direction, i64 alpha, i64 beta,
          Found found, unsigned* const* seen_of, unsigned* const* next_of, i64 words, Queues queues, Peers peers,
          Proxies proxies, Post post, i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  __shared__ i64 taken[MOST_PEERS];
  unsigned barriers = peers.begin(), step = 0;
  unsigned *seen = seen_of[peers.rank], *next = next_of[peers.rank];
  u64* counts = queues.progress->lowest;  // what this rank finds; three in turn, as the totals
  queues.begin();
  for (i64 i = thread_id(); i < (found.parents ? graph.proxies : proxies.masters); i += num_threads()) found.hops[i] = -1;
  for (i64 i = thread_id(); found.parents && i < graph.proxies; i += num_threads()) found.parents[i] = -1;
  for (i64 i = thread_id(); i < words; i += num_threads()) seen[i] = next[i] = 0;
  if (threadIdx.x < peers.ranks) taken[threadIdx.x] = 0;
  if (thread_id() < peers.ranks) post.sent[thread_id()] = 0;
  queues.barrier();
  if (thread_id() < 32 && has_bit(index, source)) {  // every proxy of the source knows that it is one
    int lid = lid_of(index, table, source);
    bool one = lane_id() == 0;
    if (one) seen[lid >> 5] = next[lid >> 5] = 1u << (lid & 31);
    if (one && lid < proxies.masters) {
      found.hops[lid] = 0, counts[0] = graph.counted(lid);
      if (found.parents) found.parents[lid] = source;
    }
    append(queues.of_step(0), one, lid, graph.offsets);
  }
  peers.barrier(barriers, told, [&](int, int k) { return k == FOUND ? peek(&counts[0]) : 0ull; });

  Way way = QUEUED;  // of the last level
  i64 before = 0, unexplored = whole.edges, sent_before = 0, to_masters = 0, to_mirrors = 0;
  float mean = (float)whole.edges / whole.nodes;
  int level = 0;
  for (;;) {
    i64 nodes = 0, edges = 0, sent = (i64)peers.sum(told, SENT) - sent_before;
    for (int p = 0; p < peers.ranks; p++) nodes += queue_nodes(told[p][FOUND]), edges += queue_edges(told[p][FOUND]);
    i64 count = nodes + sent;
    if (count == 0) break;
    if (way == QUEUED && sent) edges += (i64)((float)sent * (nodes ? (float)edges / nodes : mean));
    if (way == SWEPT) edges = (i64)((float)count * mean);
    bool cheaper = way == PULLED ? count >= before || count > whole.nodes / beta : edges > unexplored / alpha;
    bool pulling = direction == 2 || (direction == 0 && cheaper);
    if (way != PULLED) unexplored -= edges;
    before = count, sent_before += sent;

    bool came = way == SWEPT && sent;
    for (int p = 0; came && p < peers.ranks; p++)
      if (p != peers.rank) take_bits(proxies, p, post.bits_from(proxies, p, level), seen, found.hops, level);
    came |= take_entries(peers, proxies, post, taken, [&](int p) { return (i64)told[p][FOR_YOU]; }, graph, found, level, seen,
                         way == QUEUED, queues.of_step(step));
    __syncthreads();
    if (threadIdx.x < peers.ranks) taken[threadIdx.x] = (i64)told[threadIdx.x][FOR_YOU];
    if (came) queues.barrier();

    if (pulling || whole.mirrors_push) {
      to_mirrors += publish_bits(peers, proxies, seen, seen_of);
      peers.barrier(barriers, told);
    }
    if (!pulling && (way != QUEUED || whole.mirrors_push)) {  // no queue has what came as bits
      queue_new(queues.of_step(step), way == QUEUED ? proxies.masters : 0, graph.proxies, seen, next, graph.offsets);
      queues.barrier();
    }
    level++;
    Rows frontier = queues.rows(step, queues.total(step));
    Queue out = queues.next(step);
    u64 *counter = &counts[step % 3], new_masters;
    if (thread_id() == 0) counts[(step + 1) % 3] = 0;
    way = pulling ? PULLED : !found.parents && edges > whole.nodes / SWEPT_FROM ? SWEPT : QUEUED;
    if (way == QUEUED) {
      new_masters = push_queue(peers, proxies, post, frontier, out, graph, found, level, seen);
    } else if (way == SWEPT) {
      new_masters = push_bits(peers, proxies, post, frontier, queues, graph, found, level, seen, next, words);
      for (int p = 0; p < peers.ranks; p++) to_masters += 4 * bit_words(proxies.mirrors_of(p));
    } else {
      new_masters = pull(peers, proxies, post, graph, found, level, seen, next, words);
      exchange(seen, next);
      exchange(seen_of, next_of);
    }
    add_up(counter, new_masters);
    peers.barrier(barriers, told, [&](int p, int k) {
      if (k == FOUND) return peek(counter);
      if (k == FOR_YOU) return peek(&post.sent[p]);
      u64 all = 0;
      for (int to = 0; to < peers.ranks; to++) all += peek(&post.sent[to]);
      return all;
    });
  }
  for (int p = 0; p < peers.ranks; p++) to_masters += p == peers.rank ? 0 : post.sent[p] * (found.parents ? 12 : 4);
  queues.barrier();
  if (found.parents) {
    post.send_marks(peers, proxies, found.kept, found.parents);
    peers.barrier(barriers, told);
    take_parents(peers, proxies, post, taken, found.parents);
    queues.barrier();
  }
  peers.end(barriers, to_masters, to_mirrors);
  if (thread_id() == 0) *rounds = level;
}
