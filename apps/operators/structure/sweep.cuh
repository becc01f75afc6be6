// A sweep of communities on one rank: all turns in one kernel, see interfaces.py. JOB is Choose.
#include "cusp/apps/operators/structure/communities.cuh"

constexpr unsigned char LOOKS = 4;  // of a node: it is restless, and this is its turn

// What Sweep of interfaces.py has.
struct Sweep {
  i64 masters;
  const i64* offsets;
  const int* targets;
  const double* weights;
  const i64* gids;
  const double* strengths;
  double scale;
  int* numbers;
  double* totals;
  unsigned char* states;
  int* seen;
  const double* within;  // null but in refinement, as are the next ones
  const double* wholes;
  double* outward;
  double share;
};

// What a sweep works with. Rows of more than SHORT edges are first, the longest at first; rows without edges are not there. The
// i-th block has room for the table of row i from slot begins[i] on, if that does not fit into shared memory.
struct Bench {
  const int* rows;
  i64 wide, all;  // rows of more than SHORT edges, and all
  const i64* begins;
  int* keys;
  double* sums;
  int* best;
  double* bounds;  // the totals, negative where a community is closed: null but in refinement
  u64* drawn;      // wide rows, and groups of others, in either half of a turn; then what arrived at barriers
  double* gained;  // and the number of rows that moved
};

// The turn that each has, as 2^(64 - shift) there are, and the lots of each.
struct Turns {
  u64 factor;
  i64 shift;
  u64 lots[8];
};

// What a node did in its last turn is settled; whose turn it is now looks for a better community. In refinement, nodes look that
// are on their own and well connected with the rest of the community that is refined, and nobody joins those; nor what is not
// well connected.
__device__ inline void begin_turn(const Sweep& of, const Bench& bench, const Turns& turns, u64 turn) {
  for (i64 row = thread_id(); row < of.masters; row += num_threads()) {
    unsigned char state = of.states[row];
    if (state & MOVED) of.seen[row] = of.numbers[row];
    bool looks = state & RESTLESS && (u64)of.gids[row] * turns.factor >> turns.shift == turn;
    unsigned char next = looks ? 0 : state & RESTLESS;
    if (of.outward) {
      double total = of.totals[row];
      double chance = __dmul_rn(__dmul_rn(of.share, total), of.wholes[row] - total);
      bool well = of.outward[row] >= chance;
      looks = looks && well && total == of.strengths[row];
      bench.bounds[row] = well && !looks ? total : -total;
    }
    of.states[row] = next | (looks ? LOOKS : 0);
  }
  if (thread_id() < 4) bench.drawn[thread_id()] = 0;
}

// Calls visit(Block(), row) for the wide rows of nodes in a state, and visit(Warp(), row) for the others. Blocks draw wide rows,
// warps groups of others.
template <class Visit>
__device__ inline void for_each_row(const Sweep& of, const Bench& bench, unsigned char state, u64* drawn, Visit visit) {
  __shared__ i64 next;
  auto in_state = [&](i64 i) { return of.states[bench.rows[i]] & state; };
  for (i64 i = blockIdx.x;;) {
    if (threadIdx.x == 0) {
      while (i < bench.wide && !in_state(i)) i = gridDim.x + (i64)atomicAdd(&drawn[0], 1ull);
      next = i;
    }
    __syncthreads();
    i = next;
    if (i >= bench.wide) break;
    visit(Block(), bench.rows[i]);
    __syncthreads();
    if (threadIdx.x == 0) i = gridDim.x + (i64)atomicAdd(&drawn[0], 1ull);
  }
  i64 warps = num_threads() / 32, groups = (bench.all - bench.wide + 31) / 32, each = max(groups / (8 * warps), 1ll);
  while (true) {
    i64 begin = 0;
    if (lane_id() == 0) begin = (i64)atomicAdd(&drawn[1], (u64)each);
    begin = __shfl_sync(FULL, begin, 0);
    if (begin >= groups) break;
    for (i64 group = begin; group < min(begin + each, groups); ++group) {
      i64 i = bench.wide + 32 * group + lane_id(), row = i < bench.all ? bench.rows[i] : 0;
      for (unsigned left = __ballot_sync(FULL, i < bench.all && of.states[row] & state); left; left &= left - 1)
        visit(Warp(), __shfl_sync(FULL, row, __ffs(left) - 1));
    }
  }
}

// Tables of a row, of a warp in shared memory or of a block where there is room.
__device__ inline Table table_of(Warp, const Bench&, Table near, unsigned slots) {
  int first = threadIdx.x / 32 * (2 * SHORT);
  return {near.keys + first, near.sums + first, slots};
}
__device__ inline Table table_of(Block, const Bench& bench, Table near, unsigned slots) {
  if (slots <= near.slots) return {near.keys, near.sums, slots};
  return {bench.keys + bench.begins[blockIdx.x], bench.sums + bench.begins[blockIdx.x], slots};
}

// Those that look find the best community; nothing changes meanwhile.
__device__ inline void look(const Sweep& of, const Bench& bench, u64 factor, Table near) {
  Rows rows = {nullptr, of.offsets, of.targets, of.weights, of.numbers, of.masters};
  Choose choose = {of.strengths, of.outward ? bench.bounds : of.totals, {of.gids, factor}, bench.best, of.scale};
  for_each_row(of, bench, LOOKS, bench.drawn, [&](auto team, i64 row) {
    take_row<decltype(team)>(rows, choose, row, row, table_of(team, bench, near, slots_of(rows, row)));
  });
}

// Those that have found one move there; returns how many this thread has moved.
__device__ inline u64 move(const Sweep& of, const Bench& bench) {
  u64 moved = 0;
  for (i64 group = thread_id() / 32 * 32; group < of.masters; group += num_threads()) {
    i64 row = group + lane_id();
    bool looks = row < of.masters && of.states[row] & LOOKS;
    int old = looks ? of.numbers[row] : NONE, best = looks ? bench.best[row] : NONE;
    bool moves = looks && best != old;
    if (looks) of.states[row] = moves ? MOVED : 0;
    if (moves) of.numbers[row] = best, moved++;
    auto shift = [&](double amount, double* sums) {
      add_warp(old, -amount, moves && amount != 0, [&](int number, double sum) { atomicAdd(&sums[number], sum); });
      add_warp(best, amount, moves && amount != 0, [&](int number, double sum) { atomicAdd(&sums[number], sum); });
    };
    shift(moves ? of.strengths[row] : 0.0, of.totals);
    if (of.outward) shift(moves ? of.within[row] : 0.0, of.outward);
  }
  return moved;
}

// Neighbours of those that have moved see it; returns what that adds to the weight inside of communities, by this thread.
__device__ inline double settle_all(const Sweep& of, const Bench& bench) {
  double gained = 0;
  for_each_row(of, bench, MOVED, bench.drawn + 2, [&](auto team, i64 row) {
    using Team = decltype(team);
    int before = of.seen[row], after = of.numbers[row];
    double gain = 0;
    for (i64 edge = of.offsets[row] + Team::place(); edge < of.offsets[row + 1]; edge += Team::size())
      gain += gain_of(of.weights, edge, of.targets[edge], before, after, of.seen, of.numbers, of.states);
    gained += gain;
    if (!of.outward) return;
    gain = sum_of_warp(gain);
    if (lane_id() == 0 && gain != 0) atomicAdd(&of.outward[after], -gain);
  });
  return gained;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT) sweep(Sweep of, Bench bench, Turns turns) {
  __shared__ int keys[SLOTS];
  __shared__ double sums[SLOTS];
  unsigned* arrived = (unsigned*)&bench.drawn[4];
  u64 moved = 0;
  double gained = 0;
  for (u64 turn = 0; turn < 1ull << (64 - turns.shift); ++turn) {
    begin_turn(of, bench, turns, turn);
    grid_barrier(arrived);
    look(of, bench, turns.lots[turn], {keys, sums, SLOTS});
    grid_barrier(arrived);
    moved += move(of, bench);
    grid_barrier(arrived);
    gained += settle_all(of, bench);
    grid_barrier(arrived);
  }
  for (i64 row = thread_id(); row < of.masters; row += num_threads()) {
    if (of.states[row] & MOVED) of.seen[row] = of.numbers[row];
    of.states[row] &= RESTLESS;
  }
  gained = sum_of_warp(gained);
  if (lane_id() == 0 && gained != 0) atomicAdd(&bench.gained[0], gained);
  add_up((u64*)&bench.gained[1], moved);
}
