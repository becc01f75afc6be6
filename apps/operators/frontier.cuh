// Frontiers of operators: from the bits of a label to a queue, and the counters of a drain.
//
// An operator runs in rounds, which the host starts, or in a drain: a kernel in which rounds follow each other until
// nothing is left to do, with a barrier of all blocks (1 us) where a host would launch and read back (15 us).
#include "../../cusp/kernels/warp.cuh"

// The frontier's nodes as a queue. One lane a node of the bitmap; words without bits cost one load.
extern "C" __global__ void queue_bits(const unsigned* frontier, i64 size, const i64* offsets, u64* counter, int* nodes,
                                      i64* starts, i64* rows) {
  Queue queue = {counter, nodes, starts, rows};
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned bits = frontier[word];
    if (bits) append(queue, bits >> lane_id() & 1, (int)(word * 32 + lane_id()), offsets);
  }
}

// Hands over how many masters are updated, and how many out-edges those have in the whole graph.
extern "C" __global__ void frontier_size(const unsigned* updated, i64 masters, const i64* degrees, u64* sums, u64* host) {
  u64 nodes = 0, edges = 0;
  i64 words = (masters + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned bits = updated[word];
    if (bits == 0) continue;
    i64 lid = word * 32 + lane_id();
    if (bits >> lane_id() & 1 && lid < masters) nodes++, edges += degrees[lid];
  }
  add_up(&sums[0], nodes);
  add_up(&sums[1], edges);
  hand_over(sums, 2, host);
}

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
