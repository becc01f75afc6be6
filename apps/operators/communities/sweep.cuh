// A sweep of communities on one rank: all turns in one kernel, see interfaces.py. JOB is Choose.
#include "cusp/apps/operators/communities/tables.cuh"

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
  i64 refines;
};

// A row that blocks share, PIECE edges each. Its table has ``room`` slots from ``first`` on, of which those in use are listed;
// between two turns none are.
struct Hub {
  i64 pieces;  // of it and all hubs before
  i64 first, room;
  u64 used, done;  // slots, and pieces
  double to_own;
};

// What a sweep works with. The longest rows are first; rows without edges are not there. The i-th block has room for the table of
// row hubs + i from slot begins[i] on, if that does not fit into shared memory.
struct Bench {
  const int* rows;
  i64 num_hubs, wide, all;  // rows: shared by blocks; of more than SHORT edges; in all
  Hub* hubs;
  const i64* begins;
  int* keys;
  double* sums;
  int* list;
  int* best;
  double* bounds;  // the totals, negative where a community is closed: null but in refinement
  u64* drawn;      // pieces, wide rows, and groups of others, in either half of a turn; then what arrived at barriers
  double* gained;  // and the number of rows that moved
};

// The turn that each has, as 2^(64 - shift) there are, and the lots of each.
struct Turns {
  u64 factor;
  i64 shift;
  u64 lots[8];
};

// What a node did in its last turn is settled; whose turn it is now looks for a better community. In refinement, nodes look that
// are on their own, and nobody joins those.
__device__ inline void begin_turn(const Sweep& of, const Bench& bench, const Turns& turns, u64 turn) {
  for (i64 row = thread_id(); row < of.masters; row += num_threads()) {
    unsigned char state = of.states[row];
    if (state & MOVED) of.seen[row] = of.numbers[row];
    bool looks = state & RESTLESS && (u64)of.gids[row] * turns.factor >> turns.shift == turn;
    unsigned char next = looks ? 0 : state & RESTLESS;
    if (of.refines) {
      double total = of.totals[row];
      looks = looks && total == of.strengths[row];
      bench.bounds[row] = looks ? -total : total;
    }
    of.states[row] = next | (looks ? LOOKS : 0);
  }
  if (thread_id() < 6) bench.drawn[thread_id()] = 0;
}

// A block has a piece of a row.
struct Piece : Block {};

// Calls visit(i) for numbers below ``end`` that are wanted. Blocks draw groups of up to 32, whose lowest numbers they find far
// apart: what takes long is at the front. No number that a block draws is below its own.
template <class Wanted, class Visit>
__device__ inline void for_each_drawn(u64* drawn, i64 end, Wanted wanted, Visit visit) {
  __shared__ i64 first;
  __shared__ unsigned found;
  i64 each = min(max(end / (4 * gridDim.x), 1ll), 32ll), groups = (end + each - 1) / each;
  for (i64 group = blockIdx.x; group < groups;) {
    if (threadIdx.x < 32) {
      i64 i = lane_id() * groups + group;
      unsigned wants = __ballot_sync(FULL, lane_id() < each && i < end && wanted(i));
      if (lane_id() == 0) found = wants, first = gridDim.x + (i64)atomicAdd(drawn, 1ull);
    }
    __syncthreads();
    i64 next = first;
    for (unsigned left = found; left; left &= left - 1) visit((__ffs(left) - 1) * groups + group);
    __syncthreads();  // all have read what is drawn next
    group = next;
  }
}

// The hub that a piece is of.
__device__ inline i64 hub_of(const Bench& bench, i64 piece) {
  return first_where(0, bench.num_hubs, [&](i64 hub) { return bench.hubs[hub].pieces > piece; });
}
__device__ inline i64 pieces_before(const Bench& bench, i64 hub) { return hub > 0 ? bench.hubs[hub - 1].pieces : 0; }

// Calls visit(team, i, begin, end) for rows[i] of nodes in a state, whose edges these are: for pieces of hubs and for wide rows,
// which blocks draw, and for the others, of which warps draw groups.
template <class Visit>
__device__ inline void for_each_row(const Sweep& of, const Bench& bench, unsigned char state, u64* drawn, Visit visit) {
  auto in_state = [&](i64 i) { return of.states[bench.rows[i]] & state; };
  auto in_hub = [&](i64 piece) { return in_state(hub_of(bench, piece)); };
  for_each_drawn(&drawn[0], pieces_before(bench, bench.num_hubs), in_hub, [&](i64 piece) {
    i64 hub = hub_of(bench, piece), row = bench.rows[hub];
    i64 begin = of.offsets[row] + (piece - pieces_before(bench, hub)) * PIECE;
    visit(Piece(), hub, begin, min(begin + PIECE, of.offsets[row + 1]));
  });
  auto is_wide = [&](i64 i) { return in_state(bench.num_hubs + i); };
  for_each_drawn(&drawn[1], bench.wide - bench.num_hubs, is_wide, [&](i64 i) {
    i64 row = bench.rows[bench.num_hubs + i];
    visit(Block(), bench.num_hubs + i, of.offsets[row], of.offsets[row + 1]);
  });
  i64 warps = num_threads() / 32, groups = (bench.all - bench.wide + 31) / 32, each = max(groups / (8 * warps), 1ll);
  while (true) {
    i64 first = 0;
    if (lane_id() == 0) first = (i64)atomicAdd(&drawn[2], (u64)each);
    first = __shfl_sync(FULL, first, 0);
    if (first >= groups) break;
    for (i64 group = first; group < min(first + each, groups); ++group) {
      i64 i = bench.wide + 32 * group;
      for (unsigned left = __ballot_sync(FULL, i + lane_id() < bench.all && in_state(i + lane_id())); left; left &= left - 1) {
        i64 row = bench.rows[i + __ffs(left) - 1];
        visit(Warp(), i + __ffs(left) - 1, of.offsets[row], of.offsets[row + 1]);
      }
    }
  }
}

// The slots of a hub that are in use, by their list.
struct Listed {
  int* keys;
  double* sums;
  const int* list;
  unsigned used;
  __device__ unsigned size() const { return used; }
  __device__ unsigned slot(unsigned i) const { return list[i]; }
};

// Those that look find the best community; nothing changes meanwhile.
struct Look {
  const Bench& bench;
  Rows rows;
  Choose choose;
  Table near;

  __device__ void operator()(Warp, i64 i, i64, i64) const {
    int row = bench.rows[i], first = threadIdx.x / 32 * (2 * SHORT);
    take_row<Warp>(rows, choose, row, row, {near.keys + first, near.sums + first, slots_of(rows, row)});
  }

  __device__ void operator()(Block, i64 i, i64, i64) const {
    int row = bench.rows[i];
    unsigned slots = slots_of(rows, row);
    i64 first = bench.begins[blockIdx.x];
    bool fits = slots <= near.slots;
    take_row<Block>(rows, choose, row, row, {fits ? near.keys : bench.keys + first, fits ? near.sums : bench.sums + first, slots});
  }

  // Who adds the last piece of a hub sees what all have added, chooses, and leaves the table empty.
  __device__ void operator()(Piece, i64 i, i64 begin, i64 end) const {
    Hub* hub = &bench.hubs[i];
    int row = bench.rows[i], own = rows.numbers[row], *list = bench.list + hub->first;
    Table table = {bench.keys + hub->first, bench.sums + hub->first, (unsigned)hub->room};
    double to_own = add_edges<Block>(rows, own, begin, end, [&](int community, double weight) {
      table.add(community, weight, [&](unsigned slot) { list[atomicAdd(&hub->used, 1ull)] = (int)slot; });
    });
    to_own = sum_of(Block(), to_own);
    if (threadIdx.x == 0 && to_own != 0) atomicAdd(&hub->to_own, to_own);
    i64 others = hub->pieces - pieces_before(bench, i) - 1;
    __threadfence();
    __syncthreads();
    if (!__syncthreads_or(threadIdx.x == 0 && (i64)atomicAdd(&hub->done, 1ull) == others)) return;
    __threadfence();
    Listed listed = {table.keys, table.sums, list, (unsigned)hub->used};
    choose.operator()<Block>(row, row, own, hub->to_own, listed);
    __syncthreads();
    for (unsigned k = threadIdx.x; k < listed.used; k += blockDim.x) table.keys[list[k]] = NONE, table.sums[list[k]] = 0;
    if (threadIdx.x == 0) hub->used = hub->done = 0, hub->to_own = 0;
  }
};

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
    double amount = moves ? of.strengths[row] : 0.0;
    add_warp(old, -amount, amount != 0, [&](int number, double sum) { atomicAdd(&of.totals[number], sum); });
    add_warp(best, amount, amount != 0, [&](int number, double sum) { atomicAdd(&of.totals[number], sum); });
  }
  return moved;
}

// Neighbours of those that have moved see it; returns what that adds to the weight inside of communities, by this thread.
__device__ inline double settle_all(const Sweep& of, const Bench& bench) {
  double gained = 0;
  for_each_row(of, bench, MOVED, bench.drawn + 3, [&](auto team, i64 i, i64 begin, i64 end) {
    using Team = decltype(team);
    int row = bench.rows[i], before = of.seen[row], after = of.numbers[row];
    double gain = 0;
    for (i64 edge = begin + Team::place(); edge < end; edge += Team::size())
      gain += gain_of(of.weights, edge, of.targets[edge], before, after, of.seen, of.numbers, of.states);
    gained += gain;
  });
  return gained;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT) sweep(Sweep of, Bench bench, Turns turns) {
  __shared__ int keys[SLOTS];
  __shared__ double sums[SLOTS];
  unsigned* arrived = (unsigned*)&bench.drawn[6];
  u64 moved = 0;
  double gained = 0;
  Rows rows = {nullptr, of.offsets, of.targets, of.weights, of.numbers, of.masters};
  for (u64 turn = 0; turn < 1ull << (64 - turns.shift); ++turn) {
    Choose choose = {of.strengths, of.refines ? bench.bounds : of.totals, {of.gids, turns.lots[turn]}, bench.best, of.scale};
    begin_turn(of, bench, turns, turn);
    grid_barrier(arrived);
    for_each_row(of, bench, LOOKS, bench.drawn, Look{bench, rows, choose, {keys, sums, SLOTS}});
    grid_barrier(arrived);
    moved += move(of, bench);
    grid_barrier(arrived);
    if (of.refines) continue;
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
