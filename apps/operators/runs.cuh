// Rows of a CSR walked through by edges: every warp takes a run of consecutive edges, however they are spread over rows. So
// hubs and leaves cost the same, and neighbouring lanes read neighbouring columns.
#include "../../cusp/kernels/walk.cuh"

// Rows that have edges, which are numbered through from ``begin`` to ``end`` - 1: those of lids[i] begin at starts[i], and
// edge e is edge e + shifts[i] of the CSR.
struct Rows {
  const int* lids;
  const i64* starts;
  const i64* shifts;
  i64 count, begin, end;
};

// Edges of a warp that are looked at together: lane i has edge i of each of K groups of 32, so that K loads are under way
// before one is needed.
constexpr int K = 4;
struct Edges {
  bool active[K];
  int node[K];
  i64 place[K];  // in the CSR
};

constexpr i64 TILE = 32 * K;
constexpr int NEVER = 1 << 30;  // more than any distance within a run

// How far behind ``edge`` each of the 32 starts after that of ``slot`` is, one per lane; starts[last] is the last of all.
__device__ inline int next_start(const i64* starts, i64 slot, i64 last, i64 edge) {
  i64 place = slot + 1 + lane_id();
  return place <= last ? (int)min(starts[place] - edge, (i64)NEVER) : NEVER;
}

// Where the rows after that of ``slot`` begin in a tile: the first 32 are known, the others are loaded together.
struct Starts {
  int later[K];

  __device__ Starts(const i64* starts, i64 slot, i64 last, i64 edge, int first) {
    bool more = __shfl_sync(FULL, first, 31) < TILE;
    later[0] = first;
#pragma unroll
    for (int k = 1; k < K; k++) later[k] = more ? next_start(starts, slot + 32 * k, last, edge) : NEVER;
  }
  // Bits of those of 32 edges, from ``begin`` of the tile on, with which a row begins.
  __device__ unsigned in_group(int begin) const {
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < K; k++)
      if ((unsigned)(later[k] - begin) < 32) bits |= 1u << (later[k] - begin);
    return __reduce_or_sync(FULL, bits);
  }
  // How many begin up to the end of the tile.
  __device__ i64 count() const {
    i64 sum = 0;
#pragma unroll
    for (int k = 0; k < K; k++) sum += __popc(__ballot_sync(FULL, later[k] <= TILE));
    return sum;
  }
};

// Calls visit(edges) for all edges, by whole warps. From the first row of its run on, the next starts say which row each of
// the next edges belongs to.
template <class Visit>
__device__ inline void for_each_edge(Rows rows, Visit visit, i64 warp = thread_id() / 32) {
  Run run = even_run(rows.begin, rows.end, 32, warp);
  if (run.begin >= run.end) return;
  i64 slot = slot_of(rows.starts, rows.count, run.begin);
  for (i64 tile = run.begin; tile < run.end; tile += TILE) {
    Edges edges;
    int next = next_start(rows.starts, slot, rows.count - 1, tile);
    if (!__any_sync(FULL, next <= TILE)) {  // inside a hub's row
      int node = rows.lids[slot];
      i64 place = rows.shifts[slot] + tile + lane_id();
#pragma unroll
      for (int k = 0; k < K; k++) {
        edges.active[k] = tile + 32 * k + lane_id() < run.end;
        edges.node[k] = node;
        edges.place[k] = place + 32 * k;
      }
    } else {
      Starts starts(rows.starts, slot, rows.count - 1, tile, next);
      i64 own = slot;
#pragma unroll
      for (int k = 0; k < K; k++) {
        i64 edge = tile + 32 * k + lane_id();
        unsigned begins = starts.in_group(32 * k);
        i64 row = own + __popc(begins & (below_lane() | 1u << lane_id()));
        own += __popc(begins);
        edges.active[k] = edge < run.end;
        if (!edges.active[k]) continue;
        edges.node[k] = rows.lids[row];
        edges.place[k] = edge + rows.shifts[row];
      }
      slot += starts.count();
    }
    visit(edges);
  }
}

// What warps have of a row that began in another one's run: the row, or -1, and the value.
template <class T>
struct Pieces {
  int* lids;
  T* values;
};

// Reduces every row to one value, with ``join`` from ``identity`` on. A row is closed by the warp in whose run it begins,
// with close(lid, value); what a later warp has of it is a piece, one per warp, to be added in their order. So there are no
// atomics, and sums of floats are the same bits in every run.
//
// start(k, row, place, active) begins to load edge ``place`` of the CSR for each lane; values(out, all) ends K such loads, where
// ``all`` says that no lane is inactive: inactive ones get the identity. Inside a long row each lane reduces for itself; where
// rows end, their edges are reduced by one scan. starts[count] is ``end``.
template <class T, class Piece, class Start, class Values, class Join, class Close>
__device__ inline void reduce_rows(Rows rows, T identity, Pieces<Piece> pieces, Start start, Values values, Join join,
                                   Close close) {
  i64 warp = scattered_warp();
  Run run = even_run(rows.begin, rows.end, TILE, warp);
  if (lane_id() == 0) pieces.lids[warp] = -1;
  if (run.begin >= run.end) return;
  i64 slot = slot_of(rows.starts, rows.count, run.begin);
  i64 others = rows.starts[slot] < run.begin ? slot : -1;  // began in another run
  T open = identity;                                       // what each lane has of the row of ``slot``
  auto close_row = [&](i64 row, T value) {
    if (row == others)
      pieces.lids[warp] = rows.lids[row], pieces.values[warp] = value;
    else
      close(rows.lids[row], value);
  };
  for (i64 tile = run.begin; tile < run.end; tile += TILE) {
    T value[K];
    unsigned ends[K];  // lanes whose edge is the last of its row
    i64 base[K];       // row of the first lane
    int next = next_start(rows.starts, slot, rows.count, tile);
    if (tile + TILE <= run.end && !__any_sync(FULL, next <= TILE)) {  // inside a hub's row
      i64 place = tile + rows.shifts[slot] + lane_id();
#pragma unroll
      for (int k = 0; k < K; k++) start(k, slot, place + 32 * k, true);
      values(value, true);
#pragma unroll
      for (int k = 0; k < K; k++) open = join(open, value[k]);
      continue;
    }
    Starts starts(rows.starts, slot, rows.count, tile, next);
#pragma unroll
    for (int k = 0; k < K; k++) {
      i64 left = run.end - tile - 32 * k;
      ends[k] = starts.in_group(32 * k + 1);
      if (left < 32) ends[k] &= left > 0 ? (1u << left) - 1 : 0;
      base[k] = slot;
      i64 own = slot + __popc(ends[k] & below_lane());
      bool active = lane_id() < left;
      start(k, own, active ? tile + 32 * k + lane_id() + rows.shifts[own] : 0, active);
      slot += __popc(ends[k]);
    }
    values(value, false);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (ends[k] == 0) {
        open = join(open, value[k]);
        continue;
      }
      int head = 32 - __clz(ends[k] & below_lane());  // first lane of this one's row
      T before = reduce_warp(open, join), upto = scan_warp(value[k], head, join);
      if (ends[k] >> lane_id() & 1)
        close_row(base[k] + __popc(ends[k] & below_lane()), head == 0 ? join(before, upto) : upto);
      open = lane_id() >= 32 - __clz(ends[k]) ? value[k] : identity;
    }
  }
  if (slot < rows.count && rows.starts[slot] < run.end) {  // the row goes on in the next run
    T value = reduce_warp(open, join);
    if (lane_id() == 0) close_row(slot, value);
  }
}
