// k-core on the GPUs of several ranks, in one kernel on each: see gluon/kernels/peers.cuh.
#include "../kcore.cuh"
#include "../../../../gluon/kernels/peers.cuh"

// What the ranks tell each other at the end of a round: mirrors sent so far, to all ranks and to the one that is told; twice
// what the scan found, and one more if a queue has nodes.
enum Told { SENT, FOR_YOU, STATE };

// Mirrors of masters that were peeled, sent to their ranks. Each is sent once, so every entry has a place of its own.
struct Inboxes {
  int* const* out;       // memory of rank p for entries from this one
  const int* const* in;  // memory of this one for entries from rank p
  u64* sent;             // to each rank so far
  const int* mirrors;    // local id at rank p of each master's mirror, rank by rank; -1 where there is none
};

// Ranks that take each round together. See struct Alone.
struct Together {
  const Peers& peers;
  const Inboxes& boxes;
  const Peeling& own;
  Queues queues;
  unsigned barriers;
  u64 sent;         // by all ranks
  u64 (*told)[TOLD];  // shared by the threads of a block
  i64* taken;       // entries of each rank; the same

  __device__ void begin() {
    if (threadIdx.x < peers.ranks) taken[threadIdx.x] = 0;
    if (thread_id() < peers.ranks) boxes.sent[thread_id()] = 0;
    peers.barrier(barriers, told);  // partners have begun, too: before, others may use their memory
  }

  __device__ void tell(const bool (&chosen)[K], const int (&lid)[K]) const {
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

  __device__ Meeting meet(unsigned step, const u64* below) {
    peers.barrier(barriers, told, [&](int p, int k) {
      if (k == STATE) return peek(below) * 2 + (queue_nodes(queues.total(step)) > 0);
      if (k == FOR_YOU) return peek(&boxes.sent[p]);
      u64 all = 0;
      for (int to = 0; to < peers.ranks; to++) all += peek(&boxes.sent[to]);
      return all;
    });
    u64 all = peers.sum(told, SENT);
    Meeting met = {all > sent, 0};
    sent = all;
    for (int p = 0; p < peers.ranks; p++) met.busy |= told[p][STATE] & 1, met.below = max(met.below, told[p][STATE] / 2);
    if (take(queues.of_step(step))) queues.barrier();
    return met;
  }

 private:
  // Mirrors that came join the queue. True if there are some.
  __device__ bool take(Queue queue) const {
    bool came = false;
    for (int p = 0; p < peers.ranks; p++) {
      i64 end = (i64)told[p][FOR_YOU];
      came |= end > taken[p];
      for (i64 base = taken[p] + thread_id() / 32 * TILE; base < end; base += num_threads() / 32 * TILE) {
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

extern "C" __global__ void __launch_bounds__(512, 2)
peel_together(Peeling own, i64 level, i64 last, Queues queues, Peers peers, Inboxes boxes, i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  __shared__ i64 taken[MOST_PEERS];
  Together together = {peers, boxes, own, queues, peers.begin(), 0, told, taken};
  i64 count = peel_levels(own, together, queues, level, last), bytes = 0;
  for (int p = 0; p < peers.ranks; p++) bytes += (i64)boxes.sent[p] * sizeof(int);
  queues.barrier();
  peers.end(together.barriers, 0, bytes);
  if (thread_id() == 0) *rounds = count;
}
