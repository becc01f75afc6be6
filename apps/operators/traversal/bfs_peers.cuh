// A whole breadth-first search on the GPUs of several ranks, in one kernel on each: see gluon/kernels/peers.cuh. VALUE is int.
#include "bfs.cuh"
#include "../../../gluon/kernels/peers.cuh"

// What the ranks tell each other at the end of a level.
enum Told { FOUND, SENT, FOR_YOU };  // new masters and their out-edges; nodes sent so far, to all ranks and to the one that is told

// How a level is done: by a queue, which tells the edges of the next one; by bits, which a sweep turns into hops, where there are so many
// that counters would be in the way; or by a pull.
enum Way { QUEUED, SWEPT, PULLED };
constexpr i64 SWEPT_FROM = 8;  // nodes of the graph for each edge of a frontier: more are swept

// Masters that are new get their hops. The grid calls it; returns how many there are << EDGE_BITS, of this thread.
__device__ inline u64 sweep(i64 masters, const unsigned* seen, const unsigned* older, int* hops, int level) {
  u64 count = 0;
  for (i64 word = thread_id() / 32; word * 32 < masters; word += num_threads() / 32) {
    i64 lid = word * 32 + lane_id();
    bool fresh = (seen[word] & ~older[word]) >> lane_id() & 1 && lid < masters;
    if (fresh) hops[lid] = level, count += 1ull << EDGE_BITS;
  }
  return count;
}

// The search of bfs_drain, with the same rule of directions, for any partition. A level, on all ranks together:
//
//   1. Masters that other ranks found in the last level join the frontier.
//   2. Where mirrors need the frontier (a pull; a push where mirrors have out-edges), it is stored into their bitmaps.
//   3. Push or pull along this rank's edges. What it finds is a master, or a mirror, which is sent to its master.
//   4. All tell how much they found. Nodes that were sent may have been found before, so a frontier is at most as large as its sum:
//      good enough to choose a direction, and when nothing was found or sent, the search is over.
//
// Where no mirror has out-edges and nothing is pulled, a level has one barrier of the GPUs.
extern "C" __global__ void __launch_bounds__(512, 2)
bfs_peers(const u64* index, const int* table, i64 source, i64 size, i64 rows, i64 nodes, i64 edges, i64 mirrors_push,
          const i64* offsets, const int* targets, const i64* in_offsets, const int* in_sources, const int* first,
          const i64* degrees, i64 direction, i64 alpha, i64 beta, int* hops, const i64* gids, i64 with_parents, i64* parents,
          unsigned* const* seen_of, unsigned* const* next_of, i64 words, Queues queues, Peers peers, Proxies proxies, Post post,
          i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  __shared__ i64 taken[MOST_PEERS];
  unsigned barriers = peers.begin(), step = 0;
  unsigned *seen = seen_of[peers.rank], *next = next_of[peers.rank];
  u64* found = queues.progress->lowest;  // new masters << EDGE_BITS | their out-edges; three in turn, as the totals
  if (!with_parents) parents = 0;
  for (i64 i = thread_id(); i < proxies.masters; i += num_threads()) hops[i] = -1;
  for (i64 i = thread_id(); parents && i < proxies.masters; i += num_threads()) parents[i] = -1;
  for (i64 i = thread_id(); i < words; i += num_threads()) seen[i] = next[i] = 0;
  if (threadIdx.x < peers.ranks) taken[threadIdx.x] = 0;
  if (thread_id() < peers.ranks) post.sent[thread_id()] = 0;
  queues.barrier();
  if (thread_id() < 32 && has_bit(index, source)) {  // every proxy of the source knows that it is one
    int lid = lid_of(index, table, source);
    bool one = lane_id() == 0;
    if (one) seen[lid >> 5] = next[lid >> 5] = 1u << (lid & 31);
    if (one && lid < proxies.masters) {
      hops[lid] = 0, found[0] = 1ull << EDGE_BITS | (u64)degrees[lid];
      if (parents) parents[lid] = source;
    }
    append(queues.of_step(0), one, lid, offsets);
  }
  peers.barrier(barriers, told, [&](int, int k) { return k == FOUND ? peek(&found[0]) : 0ull; });

  Way way = QUEUED;  // of the last level
  bool pulling = false;
  i64 before = 0, unexplored = edges, sent_before = 0;
  float mean = (float)edges / nodes;
  int level = 0;
  for (;;) {
    i64 here = 0, their_edges = 0, sent = (i64)peers.sum(told, SENT) - sent_before;
    for (int p = 0; p < peers.ranks; p++) here += queue_nodes(told[p][FOUND]), their_edges += queue_edges(told[p][FOUND]);
    i64 count = here + sent;
    if (count == 0) break;
    if (way == QUEUED && sent) their_edges += (i64)((float)sent * (here ? (float)their_edges / here : mean));
    if (way == SWEPT) their_edges = (i64)((float)count * mean);
    if (direction != 1) {
      bool again = way == PULLED && (count >= before || count > nodes / beta);
      pulling = direction == 2 || again || (way != PULLED && their_edges > unexplored / alpha);
    }
    if (way != PULLED) unexplored -= their_edges;
    before = count, sent_before += sent;
    level++;

    bool came = false;
    for (int p = 0; p < peers.ranks; p++) {
      if (p == peers.rank) continue;
      if (way == SWEPT && sent) take_bits(proxies, p, post.in_bits[p] + (level & 1 ? 0 : bit_words(proxies.sizes[p])), seen, hops, level - 1), came = true;
      i64 end = (i64)told[p][FOR_YOU];
      came |= end > taken[p];
      for (i64 base = taken[p] + thread_id() / 32 * TILE; base < end; base += num_threads() / 32 * TILE) {
        bool fresh[K];
        int lid[K];
#pragma unroll
        for (int k = 0; k < K; k++) fresh[k] = base + 32 * k + lane_id() < end;
#pragma unroll
        for (int k = 0; k < K; k++) lid[k] = fresh[k] ? post.in[p][base + 32 * k + lane_id()] : 0;
#pragma unroll
        for (int k = 0; k < K; k++) lid[k] = fresh[k] ? proxies.lists[p][lid[k]] : 0;
#pragma unroll
        for (int k = 0; k < K; k++) {
          unsigned bit = 1u << (lid[k] & 31);
          if (fresh[k]) fresh[k] = !(atomicOr(&seen[lid[k] >> 5], bit) & bit);
          if (fresh[k]) hops[lid[k]] = level - 1;
          if (fresh[k] && parents) parents[lid[k]] = post.in_marks[p][base + 32 * k + lane_id()];
        }
        if (way == QUEUED) append_all(queues.of_step(step), fresh, lid, offsets);
      }
    }
    __syncthreads();
    if (threadIdx.x < peers.ranks) taken[threadIdx.x] = (i64)told[threadIdx.x][FOR_YOU];
    if (came) queues.barrier();

    if (pulling || mirrors_push) {
      publish_bits(peers, proxies, seen, seen_of);
      peers.barrier(barriers, told);
    }
    if (!pulling && (way != QUEUED || mirrors_push)) {  // no queue has what came as bits
      queue_new(queues.of_step(step), way == QUEUED ? proxies.masters : 0, size, seen, next, offsets);
      queues.barrier();
    }
    u64 total = queues.total(step);
    Queue out = queues.next(step);
    u64* more = &found[step % 3];
    if (thread_id() == 0) found[(step + 1) % 3] = 0;
    u64 new_masters = 0;
    way = pulling ? PULLED : !parents && their_edges > nodes / SWEPT_FROM ? SWEPT : QUEUED;
    if (way == PULLED) {
      pull_level(rows, first, in_offsets, in_sources, seen, next, [&](bool hit, i64 target, int origin) {
        bool master = hit && target < proxies.masters;
        if (master) hops[target] = level, new_masters += 1ull << EDGE_BITS;
        if (master && parents) parents[target] = gids[origin];
        bool mirror[1] = {hit && !master};
        int lid[1] = {(int)target};
        i64 parent[1] = {hit && parents ? gids[origin] : 0};
        post.send(peers, proxies, mirror, lid, parent, parents);
      });
      for (i64 word = (rows + 31) / 32 + thread_id(); word < words; word += num_threads()) next[word] = seen[word];
      unsigned* older = seen;
      seen = next, next = older;
      unsigned* const* older_of = seen_of;
      seen_of = next_of, next_of = older_of;
    } else if (way == SWEPT) {
      for (i64 word = thread_id(); word < words; word += num_threads()) next[word] = seen[word];
      queues.barrier();
      for_each_edge(queues.rows(step - 1, total), [&](const Edges& at) {
        int target[K];
#pragma unroll
        for (int k = 0; k < K; k++) target[k] = at.active[k] ? targets[at.place[k]] : -1;
#pragma unroll
        for (int k = 0; k < K; k++)
          if (target[k] >= 0) set_bit(seen, target[k]);
      });
      queues.barrier();
      new_masters = sweep(proxies.masters, seen, next, hops, level);
      u64 out_bits = 0;
      for (int p = 0; p < peers.ranks; p++)
        if (p != peers.rank)
          out_bits += give_bits(proxies, p, post.out_bits[p] + (level & 1 ? bit_words(proxies.starts[p + 1] - proxies.starts[p]) : 0), seen, next);
      add_up(&post.sent[peers.rank], out_bits);
    } else {
      for_each_edge(queues.rows(step - 1, total), [&](const Edges& at) {
        int target[K];
        bool fresh[K], mirror[K];
        i64 parent[K];
#pragma unroll
        for (int k = 0; k < K; k++) target[k] = at.active[k] ? targets[at.place[k]] : 0;
#pragma unroll
        for (int k = 0; k < K; k++) fresh[k] = at.active[k] && !get_bit(seen, target[k]);
#pragma unroll
        for (int k = 0; k < K; k++) {
          unsigned bit = 1u << (target[k] & 31);
          if (fresh[k]) fresh[k] = !(atomicOr(&seen[target[k] >> 5], bit) & bit);
          mirror[k] = fresh[k] && target[k] >= proxies.masters;
          fresh[k] = fresh[k] && !mirror[k];
          if (fresh[k]) hops[target[k]] = level, new_masters += 1ull << EDGE_BITS | (u64)degrees[target[k]];
          parent[k] = parents && (fresh[k] || mirror[k]) ? gids[at.node[k]] : 0;
          if (fresh[k] && parents) parents[target[k]] = parent[k];
        }
        append_all(out, fresh, target, offsets);
        post.send(peers, proxies, mirror, target, parent, parents);
      });
    }
    add_up(more, new_masters);
    peers.barrier(barriers, told, [&](int p, int k) {
      if (k == FOUND) return peek(more);
      if (k == FOR_YOU) return peek(&post.sent[p]);
      u64 all = 0;
      for (int to = 0; to < peers.ranks; to++) all += peek(&post.sent[to]);
      return all;
    });
  }
  queues.barrier();
  peers.end(barriers);
  if (thread_id() == 0) *rounds = level;
}
