// k-core on the GPUs of several ranks, in one kernel on each: see gluon/kernels/peers.cuh.
#include "../kcore.cuh"
#include "../../../../gluon/kernels/peers.cuh"

// What the ranks tell each other at the end of a round: the last round in which a master was peeled, as the barrier before it;
// mirrors sent so far to the one that is told; what the scan found.
enum Told { LAST, FOR_YOU, BELOW };

// Mirrors of masters that were peeled, sent to their ranks. Each is sent once, so every entry has a place of its own.
struct Inboxes {
  int* const* out;       // memory of rank p for entries from this one
  const int* const* in;  // memory of this one for entries from rank p
  u64* sent;             // to each rank so far; in the place of this one, what is told as LAST
  const int* mirrors;    // local id at rank p of each master's mirror, rank by rank; -1 where there is none
};

// Ranks that take each round together. See struct Alone.
struct Together {
  const Peers& peers;
  const Inboxes& boxes;
  const Peeling& own;
  Queues queues;
  unsigned barriers;
  u64 (*told)[TOLD];  // shared by the threads of a block
  i64* taken;         // entries of each rank; the same

  __device__ void begin() {
    if (threadIdx.x < peers.ranks) taken[threadIdx.x] = 0;
    if (thread_id() < peers.ranks) boxes.sent[thread_id()] = 0;
    peers.barrier(barriers, told);  // partners have begun, too: before, others may use their memory
  }

  __device__ void tell(const bool (&chosen)[K], const int (&lid)[K]) const {
    if (lane_id() == 0) *(volatile u64*)&boxes.sent[peers.rank] = barriers;
    for (int to = 0; to < peers.ranks; to++) {
      int mirror[K];
      bool there[K];
      if (to == peers.rank) continue;
#pragma unroll
      for (int k = 0; k < K; k++) mirror[k] = chosen[k] ? boxes.mirrors[to * own.masters + lid[k]] : -1;
#pragma unroll
      for (int k = 0; k < K; k++) there[k] = mirror[k] >= 0;
      take_places(&boxes.sent[to], there, [&](i64 at, int k) { boxes.out[to][at] = mirror[k]; });
    }
  }

  // One warp of the rank tells the others while all wait: its loads do not depend on each other, so they take the time of one.
  __device__ Meeting meet(unsigned step, const u64* below) {
    unsigned round = barriers;
    peers.barrier(barriers, told, [&](int p, int k) {
      u64 last = peek(&boxes.sent[peers.rank]), for_you = p == peers.rank ? 0 : peek(&boxes.sent[p]), found = peek(below);
      return k == LAST ? last : k == FOR_YOU ? for_you : found;
    });
    Meeting met = {false, 0};
    for (int p = 0; p < peers.ranks; p++) met.busy |= told[p][LAST] == round, met.below = max(met.below, told[p][BELOW]);
    if (take(queues.of_step(step))) queues.barrier();
    return met;
  }

 private:
  // Mirrors that came join the queue. True if there are some. The first warp for each rank is another one, so that few entries
  // of many ranks do not wait for each other.
  __device__ bool take(Queue queue) const {
    i64 warps = num_threads() / 32, warp = thread_id() / 32, shift = (int)warps / (int)peers.ranks;
    bool came = false;
    for (int p = 0; p < peers.ranks; p++) {
      i64 end = (i64)told[p][FOR_YOU], first = warp >= p * shift ? warp - p * shift : warp + warps - p * shift;
      came |= end > taken[p];
      for (i64 base = taken[p] + first * TILE; base < end; base += warps * TILE) {
        int lid[K];
        bool active[K];
#pragma unroll
        for (int k = 0; k < K; k++) active[k] = base + 32 * k + lane_id() < end;
#pragma unroll
        for (int k = 0; k < K; k++) lid[k] = active[k] ? boxes.in[p][base + 32 * k + lane_id()] : 0;
        append_all(queue, active, lid, own.offsets);
      }
    }
    __syncthreads();
    if (threadIdx.x < peers.ranks) taken[threadIdx.x] = (i64)told[threadIdx.x][FOR_YOU];
    __syncthreads();
    return came;
  }
};

extern "C" __global__ void __launch_bounds__(512, RESIDENT)
peel_together(Peeling own, i64 level, i64 last, Queues queues, Peers peers, Inboxes boxes, i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  __shared__ i64 taken[MOST_PEERS];
  Together together = {peers, boxes, own, queues, peers.begin(), told, taken};
  i64 count = peel_levels(own, together, queues, level, last), bytes = 0;
  for (int p = 0; p < peers.ranks; p++) bytes += p == peers.rank ? 0 : (i64)(boxes.sent[p] * sizeof(int));
  queues.barrier();
  peers.end(together.barriers, 0, bytes);
  if (thread_id() == 0) *rounds = count;
}
