// Messages between the kernels of peers that do not wait for each other. A rank stores entries into its inbox at a partner,
// which is filled in a circle, and goes on; the partner looks now and then how many have come. Only who has nothing to do
// waits.
//
// A rank publishes to all others what it has sent and taken; the number of the publication stands beside each word. A rank
// that has nothing to do says so in its publication. When the last publications of all ranks say so, and of every pair one has
// taken as many entries as the other has sent, then no entry is under way, and none of them can begin again: all know that by
// themselves (counters by channel: Mattern, Distributed Computing 2, 1987).
#include "gluon/kernels/peers.cuh"

struct MailState {
  unsigned arrived, publications;
  u64 released;                                  // the number of the last pause, and what there is to know after it
  unsigned came[MOST_PEERS], taken[MOST_PEERS];  // entries of each rank so far, modulo 2^32
  u64 sent[MOST_PEERS];                          // to each rank; in the place of this one, those for mirrors
};

struct Mail {
  u64* const* lines;       // in the memory of each rank, a line of each: sent to each, taken of each, and where it rests
  MailState* state;
  const i64* capacity;     // of the inbox at each rank, a power of two
  const i64* capacity_in;  // of those here
  const i64* most;         // entries that this rank gives each other at once

  enum Pause { STEP, GAVE, REST };
  enum Known : unsigned { ENDED = 1, ROOM = 2, NEWS = 4, UNSENT = 8 };  // after a pause

  // Where a kernel begins, before a barrier of its blocks and one of its peers.
  __device__ void begin(const Peers& peers) const {
    for (i64 i = thread_id(); i < peers.ranks * words(peers); i += num_threads()) lines[peers.rank][i] = 0;
    for (i64 i = thread_id(); i < (i64)(sizeof(MailState) / 4); i += num_threads()) ((unsigned*)state)[i] = 0;
  }

  // Where entry ``at`` to a rank is in the inbox there.
  __device__ i64 slot(int to, u64 at) const { return at & (capacity[to] - 1); }

  // All blocks wait for each other, and the last looks what has come; what was known to have come is taken now, if ``took``.
  // After entries were given (GAVE) it tells the partners, while the others go on. With nothing to do (REST) it says so, and
  // waits until something comes, or there is room for what is unsent, or all ranks rest in the same ``phase``, which
  // is counted from 1: then the phase has ended. Returns what there is to know; UNSENT, if ``marks`` is not 0 either. All threads
  // call it.
  __device__ unsigned pause(const Peers& peers, Pause kind, bool took, bool unsent, const u64* marks, unsigned phase,
                            unsigned& number) const {
    __shared__ unsigned known;
    number++;
    __syncthreads();
    if (threadIdx.x < 32) {
      if (comes_last(&state->arrived)) {
        __threadfence();
        if (took && lane_id() < peers.ranks) state->taken[lane_id()] = state->came[lane_id()];
        __syncwarp();
        unsent = unsent || peek(marks);
        if (kind == REST) tell(peers, publication(peers, unsent ? 0 : phase));
        unsigned result = look(peers, kind, unsent, phase);
        Publication given = publication(peers, 0);
        if (threadIdx.x == 0) known = result, *(volatile u64*)&state->released = (u64)number << 32 | result;
        if (kind == GAVE) tell(peers, given);
      } else if (threadIdx.x == 0) {
        u64 word = acquire(&state->released);
        for (; (unsigned)(word >> 32) != number; word = acquire(&state->released)) __nanosleep(20);
        known = (unsigned)word;
      }
    }
    __syncthreads();
    return known;
  }

  __device__ unsigned came(int p) const { return *(volatile unsigned*)&state->came[p]; }
  __device__ unsigned taken(int p) const { return *(volatile unsigned*)&state->taken[p]; }

 private:
  // The words of a line, as far as each lane has them.
  struct Publication {
    unsigned words[MOST_PEERS / 16 + 1];
  };

  __device__ i64 words(const Peers& peers) const { return 2 * peers.ranks + 1; }
  __device__ const u64* place_of(const Peers& peers, i64 of, i64 place) const {
    return &lines[peers.rank][of * words(peers) + place];
  }
  __device__ u64 word(const Peers& peers, i64 of, i64 place) const { return peek(place_of(peers, of, place)); }

  // What follows is done by the first warp of the last block.

  __device__ unsigned look(const Peers& peers, Pause kind, bool unsent, unsigned phase) const {
    i64 p = lane_id(), rank = peers.rank, ranks = peers.ranks;
    bool other = p < ranks && p != rank;
    unsigned came = 0, taken = other ? state->taken[p] : 0, sent = other ? (unsigned)state->sent[p] : 0;
    i64 free = other ? capacity[p] - most[p] : 0;
    bool room, news, ended = false;
    for (i64 began = clock64();;) {
      came = other ? (unsigned)word(peers, p, rank) : 0;
      unsigned arrived = other ? (unsigned)word(peers, p, ranks + rank) : 0;
      room = __all_sync(FULL, !other || sent - arrived <= free);
      news = __any_sync(FULL, came != taken);
      if (kind != REST || news || (unsent && room)) break;
      ended = !unsent && all_rest(peers, phase);
      if (ended) break;
      if (clock64() - began > peers.patience) peers.give_up(first_busy(peers, phase));
      __nanosleep(20);
    }
    if (news && other) came = (unsigned)acquire(place_of(peers, p, rank));  // what has come is seen
    if (other) state->came[p] = came;
    __syncwarp();
    __threadfence();
    return (ended ? ENDED : 0) | (room ? ROOM : 0) | (news ? NEWS : 0) | (unsent ? UNSENT : 0);
  }

  __device__ Publication publication(const Peers& peers, unsigned rest) const {
    Publication result;
    for (int k = 0; k < MOST_PEERS / 16 + 1; k++) {
      i64 place = 32 * k + lane_id(), ranks = peers.ranks;
      result.words[k] = place < ranks ? (unsigned)state->sent[place] : place < 2 * ranks ? state->taken[place - ranks] : rest;
    }
    return result;
  }

  __device__ void tell(const Peers& peers, const Publication& publication) const {
    unsigned number = state->publications + 1;
    __threadfence_system();
    __syncwarp();
    for (int to = 0; to < peers.ranks; to++) {
      for (int k = 0; k < MOST_PEERS / 16 + 1; k++) {
        i64 place = 32 * k + lane_id();
        if (place >= words(peers)) continue;
        *(volatile u64*)&lines[to][peers.rank * words(peers) + place] = (u64)number << 32 | publication.words[k];
      }
    }
    if (lane_id() == 0) state->publications = number;
    __syncwarp();
  }

  __device__ bool all_rest(const Peers& peers, unsigned phase) const {
    i64 ranks = peers.ranks;
    u64 rest = lane_id() < ranks ? word(peers, lane_id(), 2 * ranks) : phase;
    if (!__all_sync(FULL, (unsigned)rest == phase)) return false;
    bool same = true;
    for (i64 base = 0; base < ranks * ranks; base += 32) {
      i64 pair = min(base + lane_id(), ranks * ranks - 1), from = pair / ranks, to = pair % ranks;
      u64 sent = word(peers, from, to), taken = word(peers, to, ranks + from);
      unsigned sender = __shfl_sync(FULL, (unsigned)(rest >> 32), (int)from);
      unsigned receiver = __shfl_sync(FULL, (unsigned)(rest >> 32), (int)to);
      if (from == to) continue;
      same &= (unsigned)sent == (unsigned)taken && (unsigned)(sent >> 32) == sender && (unsigned)(taken >> 32) == receiver;
    }
    return __all_sync(FULL, same);
  }

  // A rank that others wait for: one that does not rest, if there is one.
  __device__ i64 first_busy(const Peers& peers, unsigned phase) const {
    i64 p = lane_id(), ranks = peers.ranks;
    bool busy = p < ranks && p != peers.rank && (unsigned)word(peers, p, 2 * ranks) != phase;
    unsigned all = __ballot_sync(FULL, busy);
    return all ? __ffs(all) - 1 : (peers.rank + 1) % ranks;
  }
};
