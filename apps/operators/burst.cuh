// Bursts: rounds that a block takes on its own.
//
// In a narrow frontier, as in road maps or at the end of a peeling, a round takes 5 us however few edges there are: a barrier of
// all blocks, the search for a warp's first row, and an append follow each other. So each block takes a share of such a
// frontier and goes on from there for some rounds. What it finds is in its shared memory, and it waits for nobody else: two
// or three loads in a row are left, 1.5 us. That is for operators whose result does not depend on the order, as no block
// knows how far the others have come.
#include "cusp/apps/operators/runs.cuh"

constexpr bool BURSTS = RESIDENT == 1;  // kernels that expect many narrow frontiers run one block per multiprocessor
constexpr int ROOM = 1024;              // nodes that a block can hold
constexpr i64 NARROW = ROOM;            // edges for each block, of which the first round finds as many nodes, at most
constexpr int IN_A_BURST = 16;          // rounds, until nodes are shared out anew
constexpr int BURST_EDGE_BITS = 21;     // of a counter; the nodes of a round are above
static_assert(ROOM * (ROOM + 1) < 1 << BURST_EDGE_BITS, "edges of one round, each row cut at ROOM + 1");

__device__ inline bool is_narrow(Rows rows) { return rows.end - rows.begin <= NARROW * gridDim.x; }

struct Entry {
  i64 begin;  // of the row
  int node;
  int start;  // the number of its first edge in this round
};

// Where a round of a block puts nodes; it takes what a Queue takes.
struct BlockQueue {
  static constexpr bool IN_BURST = true;
  Entry* entries;
  unsigned* counter;  // nodes << BURST_EDGE_BITS | edges
  int first;

  // Every lane adds those of its K nodes that are chosen. A row is counted with at most ROOM + 1 edges: the round after
  // such a one does not take place.
  __device__ void add(const bool (&chosen)[K], const int (&node)[K], const i64 (&begin)[K], const i64 (&end)[K]) const {
    unsigned entry[K], own = 0;
    each_k([&](int k) {
      entry[k] = chosen[k] ? 1u << BURST_EDGE_BITS | (unsigned)min(end[k] - begin[k], (i64)ROOM + 1) : 0;
      own += entry[k];
    });
    if (own == 0) return;
    unsigned at = atomicAdd(counter, own);
    each_k([&](int k) {
      if (chosen[k])
        entries[(first + (at >> BURST_EDGE_BITS)) % ROOM] = {begin[k], node[k], (int)(at & ((1u << BURST_EDGE_BITS) - 1))};
      at += entry[k];
    });
  }
};

__device__ inline void append_all(BlockQueue queue, const int (&node)[K], const i64 (&begin)[K], const i64 (&end)[K]) {
  bool chosen[K];
  each_k([&](int k) { chosen[k] = end[k] > begin[k]; });
  queue.add(chosen, node, begin, end);
}

// What a block holds: nodes in the order in which they were found, those of a round together.
struct Burst {
  Entry entries[ROOM];
  unsigned added[3];                // in each round; three counters in turn, so that one barrier is enough
  int rounds, first, count;         // taken; where the nodes of the last one are, and how many
  i64 later;                        // edges of all rounds but the first
  bool cut;                         // there was no room for another one
  unsigned short ends[IN_A_BURST];  // of the nodes of each round, with ``keeps``

  // All edges of ``rows``, which are narrow, and then those of the nodes found, for up to ``most`` rounds in all, as long as
  // there is room for what a round may find; with ``keeps``, behind all that was found before. Calls visit(edges, out, rounds
  // before). The whole block calls it.
  template <class Visit>
  __device__ void run(Rows rows, int most, bool keeps, Visit visit) {
    __syncthreads();
    if (threadIdx.x < 3) added[threadIdx.x] = 0;
    __syncthreads();
    BlockQueue out = {entries, &added[0], 0};
    for_each_edge(rows, [&](const Edges& edges) { visit(edges, out, 0); }, spread_warp());
    bool full;
    int done = 1, begin = 0, size, edges;
    i64 walked = 0;
    for (;; done++) {
      __syncthreads();
      size = (int)(*out.counter >> BURST_EDGE_BITS), edges = (int)(*out.counter & ((1u << BURST_EDGE_BITS) - 1));
      int end = begin + size;
      if (keeps && threadIdx.x == 0) ends[done - 1] = (unsigned short)end;
      full = edges > ROOM - (keeps ? end : size);
      if (edges == 0 || done == most || full) break;
      if (threadIdx.x == 0) added[(done + 1) % 3] = 0;
      out = {entries, &added[done % 3], end};
      for (int base = 0; base < edges; base += K * blockDim.x) visit(edges_from(base, begin, size, edges), out, done);
      begin = end, walked += edges;
    }
    if (threadIdx.x == 0) rounds = done, later = walked, first = begin, count = size, cut = full && done < most;
    __syncthreads();
  }

  // Edges of the ``size`` nodes from ``begin`` on: those of one load of all lanes follow each other.
  __device__ Edges edges_from(int base, int begin, int size, int all) const {
    Edges edges;
    each_k([&](int k) {
      int edge = base + k * blockDim.x + threadIdx.x, low = 0;
      edges.active[k] = edge < all;
      if (!edges.active[k]) return;
      for (int left = size; left > 1;) {  // the last that does not start behind this edge
        int half = left / 2;
        if (entries[(begin + low + half) % ROOM].start <= edge) low += half, left -= half;
        else left = half;
      }
      Entry entry = entries[(begin + low) % ROOM];
      edges.node[k] = entry.node;
      edges.place[k] = entry.begin + edge - entry.start;
    });
    return edges;
  }

  // With ``keeps``: how many nodes were found, in the first ``most`` rounds or in all.
  __device__ int found() const { return first + count; }
  __device__ int found(int most) const { return most <= rounds ? ends[most - 1] : found(); }

  // Appends those of the nodes found last that ``claim`` chooses. The whole block calls it.
  template <class Out, class Claim>
  __device__ void append_last(Out out, const i64* offsets, Claim claim) const {
    for (int i = threadIdx.x; i - (int)lane_id() < count; i += blockDim.x) {
      int node = i < count ? entries[(first + i) % ROOM].node : 0;
      append(out, i < count && claim(node), node, offsets);
    }
  }
};
