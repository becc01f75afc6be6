// Rows of edges to communities: weights are added up in hash tables, without a sort. SHORT is the number of edges up to which a
// warp takes a row; JOB is what follows: Choose or Join.
#include "cusp/kernels/walk.cuh"

constexpr int NONE = -1;                  // no community
constexpr unsigned char RESTLESS = 1, MOVED = 2;
constexpr int WARPS = 8;                  // of a block that takes short rows
constexpr int SLOTS = 2 * SHORT * WARPS;  // of a block's shared memory, 12 bytes each

// Weights of edges; all are 1 if there are none.
__device__ inline double weight_of(const double* weights, i64 edge) { return weights ? weights[edge] : 1.0; }

// Rows of a CSR, and the communities of all nodes: numbers below num_communities.
struct Rows {
  const i64* rows;
  const i64* offsets;
  const int* targets;
  const double* weights;
  const int* numbers;
  i64 num_communities;
};

// Calls add(community, weight) for the lanes of a warp that are ``live``. Atomics on one address follow each other, and in the
// end most nodes are in few communities: lanes of the same one are added up first, while at least FEW are alike.
template <class Add>
__device__ inline void add_warp(int community, double weight, bool live, Add add) {
  constexpr int FEW = 4;
  unsigned left = __ballot_sync(FULL, live);
  while (left) {
    int first = __ffs(left) - 1, common = __shfl_sync(FULL, community, first);
    bool same = live && community == common;
    unsigned alike = __ballot_sync(FULL, same);
    if (__popc(alike) < FEW) break;
    double sum = sum_of_warp(same ? weight : 0.0);
    if (lane_id() == first) add(common, sum);
    left &= ~alike;
    live = live && !same;
  }
  if (live) add(community, weight);
}

// A warp, or a block, works on a row: its size, this thread's place in it, and a barrier.
struct Warp {
  __device__ static unsigned size() { return 32; }
  __device__ static unsigned place() { return lane_id(); }
  __device__ static void sync() { __syncwarp(); }
};
struct Block {
  __device__ static unsigned size() { return blockDim.x; }
  __device__ static unsigned place() { return threadIdx.x; }
  __device__ static void sync() { __syncthreads(); }
};

// Slots for the communities of a row: twice as many as there can be, so that a search is short and always ends.
__device__ inline unsigned slots_of(const Rows& of, i64 row) {
  return (unsigned)(2 * min(of.offsets[row + 1] - of.offsets[row], of.num_communities));
}

// Weights by community, with open addressing.
struct Table {
  int* keys;
  double* sums;
  unsigned slots;

  template <class Team>
  __device__ void clear() {
    for (unsigned slot = Team::place(); slot < slots; slot += Team::size()) keys[slot] = NONE, sums[slot] = 0;
  }

  __device__ unsigned size() const { return slots; }
  __device__ unsigned slot(unsigned i) const { return i; }

  // A key never changes once it is there, so it is read before the atomic: most are there already. Calls come(slot) if this one
  // was not.
  template <class Come>
  __device__ void add(int community, double weight, Come come) {
    unsigned slot = __umulhi(community * 2654435769u, slots);  // Fibonacci hashing: neighbours are spread
    for (unsigned probes = 0; probes < slots; ++probes) {
      int held = *(volatile int*)&keys[slot];
      if (held == NONE) held = atomicCAS(&keys[slot], NONE, community);
      if (held == NONE || held == community) {
        atomicAdd(&sums[slot], weight);
        if (held == NONE) come(slot);
        return;
      }
      slot = slot + 1 < slots ? slot + 1 : 0;
    }
  }
};

struct Best {
  double score;
  int community;
};

// The lots of communities, by the nodes that they are named after.
struct Lots {
  const i64* gids;
  u64 factor;
  __device__ u64 operator[](int community) const { return (u64)gids[community] * factor; }
};

// Of different communities, the one of higher score, then of the higher lot.
__device__ inline Best better(Best a, Best b, const Lots& lots) {
  if (a.community == NONE || b.community == NONE) return a.community == NONE ? b : a;
  return b.score > a.score || (b.score == a.score && lots[b.community] > lots[a.community]) ? b : a;
}

__device__ inline Best best_of(Warp, Best best, const Lots& lots) {
  for (int step = 16; step > 0; step /= 2) {
    Best other = {__shfl_down_sync(FULL, best.score, step), __shfl_down_sync(FULL, best.community, step)};
    if (lane_id() + step < 32) best = better(best, other, lots);
  }
  return best;
}

// Only the first warp of a block has the result.
__device__ inline Best best_of(Block, Best best, const Lots& lots) {
  __shared__ double scores[32];
  __shared__ int communities[32];
  best = best_of(Warp(), best, lots);
  if (lane_id() == 0) scores[threadIdx.x / 32] = best.score, communities[threadIdx.x / 32] = best.community;
  __syncthreads();
  if (threadIdx.x >= 32) return best;
  bool there = threadIdx.x < blockDim.x / 32;
  return best_of(Warp(), {there ? scores[threadIdx.x] : 0.0, there ? communities[threadIdx.x] : NONE}, lots);
}

__device__ inline double sum_of(Warp, double value) { return sum_of_warp(value); }
__device__ inline double sum_of(Block, double value) {
  __shared__ double sums[32];
  value = sum_of_warp(value);
  if (lane_id() == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  return threadIdx.x < 32 ? sum_of_warp(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0) : value;
}

// A product is rounded before it is subtracted, as on the CPU: a fused multiply-add would find other equals.
__device__ inline double score_of(double scale, double to, double strength, double others) {
  return __dmul_rn(scale, to) - __dmul_rn(strength, others);
}

// The best community for each row.
struct Choose {
  const double* strengths;
  const double* totals;
  Lots lots;
  int* best;
  double scale;

  template <class Team, class Table>
  __device__ void operator()(i64 item, i64 row, int own, double to_own, const Table& table) const {
    double strength = strengths[row];
    Best found = {0, NONE};
    for (unsigned i = Team::place(); i < table.size(); i += Team::size()) {
      unsigned slot = table.slot(i);
      int community = table.keys[slot];
      if (community == NONE || totals[community] < 0) continue;
      found = better(found, {score_of(scale, table.sums[slot], strength, totals[community]), community}, lots);
    }
    found = best_of(Team(), found, lots);
    if (Team::place() > 0) return;
    bool moves = found.community != NONE && found.score > score_of(scale, to_own, strength, fabs(totals[own]) - strength);
    best[item] = moves ? found.community : own;
  }
};

// The weight to the own community; an entry for each other one from ends[own] on, which moves on, unless its weight is 0. So
// rows of the same community come together, in any order. Without ``entries`` they are only counted.
struct Join {
  u64* ends;
  int* entries;
  double* sums;
  double* inside;

  template <class Team>
  __device__ void operator()(i64 item, i64 row, int own, double to_own, const Table& table) const {
    if (Team::place() == 0) inside[item] = to_own;
    for (unsigned group = Team::place() / 32 * 32; group < table.slots; group += Team::size()) {
      unsigned slot = group + lane_id();
      bool there = slot < table.slots && table.keys[slot] != NONE && table.sums[slot] != 0;
      unsigned kept = __ballot_sync(FULL, there);
      u64 place = 0;
      if (lane_id() == 0 && kept) place = atomicAdd(&ends[own], (u64)__popc(kept));
      place = __shfl_sync(FULL, place, 0) + __popc(kept & below_lane());
      if (there && entries) entries[place] = table.keys[slot], sums[place] = table.sums[slot];
    }
  }
};

// Adds the edges from ``begin`` to ``end`` - 1 of a row up by community: its own, of which the sum is returned, in every thread's
// share, and others by add(community, weight). Edges to the own one are often the most.
template <class Team, class Add>
__device__ inline double add_edges(const Rows& of, int own, i64 begin, i64 end, Add add) {
  double to_own = 0;
  for (i64 group = begin + Team::place() / 32 * 32; group < end; group += Team::size()) {
    i64 edge = group + lane_id();
    int community = edge < end ? of.numbers[of.targets[edge]] : own;
    double weight = edge < end ? weight_of(of.weights, edge) : 0.0;
    if (community == own) to_own += weight;
    add_warp(community, weight, community != own, add);
  }
  return to_own;
}

// A table for a row, and what follows.
template <class Team>
__device__ inline void take_row(const Rows& of, const JOB& job, i64 item, i64 row, Table table) {
  int own = of.numbers[row];
  Team::sync();  // the row before has been read
  table.template clear<Team>();
  Team::sync();
  auto add = [&](int community, double weight) { table.add(community, weight, [](unsigned) {}); };
  double to_own = sum_of(Team(), add_edges<Team>(of, own, of.offsets[row], of.offsets[row + 1], add));
  Team::sync();
  job.template operator()<Team>(item, row, own, to_own, table);
}

// What an edge of a row that has moved from community ``old`` to ``now`` adds to the weight inside of communities; its target
// becomes restless unless it is there. Many write the same mark; whether a proxy has moved stays as it is meanwhile.
template <class Name>
__device__ inline double gain_of(const double* weights, i64 edge, int target, Name old, Name now, const Name* before,
                                 const Name* after, unsigned char* states) {
  unsigned char state = states[target];
  bool stays = after[target] == now;
  if (!stays && !(state & RESTLESS)) states[target] = state | RESTLESS;
  if ((before[target] == old) == stays) return 0;
  double weight = weight_of(weights, edge);
  return (stays ? weight : -weight) * (state & MOVED ? 1 : 2);
}
