// Rows of a CSR walked through by edges: every warp takes a run of consecutive edges, however they are spread over rows. So
// hubs and leaves cost the same, and neighbouring lanes read neighbouring columns.
#include "cusp/kernels/walk.cuh"

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

// (Loops that hand on many bools, as those of relax.cuh, are written out: compiled from these they take 5 % longer.)
template <class Visit>
__device__ inline void each_k(Visit visit) {
  each_k<K>(visit);
}

struct Edges {
  bool active[K];
  int node[K];
  i64 place[K];  // in the CSR
};

constexpr i64 TILE = 32 * K;
constexpr i64 NEVER = 1ll << 40;  // more than any distance within a run

// How far behind ``edge`` each of the 32 starts after that of ``slot`` is, one per lane; starts[last] is the last of all.
__device__ inline i64 next_start(const i64* starts, i64 slot, i64 last, i64 edge) {
  i64 place = slot + 1 + lane_id();
  return place <= last ? starts[place] - edge : NEVER;
}

// Calls visit(edges) for all edges, by whole warps. From the first row of its run on, the next 32 starts say which row each of
// the next 32 edges belongs to.
template <class Visit>
__device__ inline void for_each_edge(Rows rows, Visit visit, i64 warp = thread_id() / 32) {
  Run run = even_run(rows.begin, rows.end, 32, warp);
  if (run.begin >= run.end) return;
  i64 slot = slot_of(rows.starts, rows.count, run.begin);
  for (i64 tile = run.begin; tile < run.end; tile += TILE) {
    Edges edges;
    i64 next = next_start(rows.starts, slot, rows.count - 1, tile);
    if (!__any_sync(FULL, next <= TILE)) {  // inside a hub's row
      int node = rows.lids[slot];
      i64 place = rows.shifts[slot] + tile + lane_id();
      each_k([&](int k) {
        edges.active[k] = tile + 32 * k + lane_id() < run.end;
        edges.node[k] = node;
        edges.place[k] = place + 32 * k;
      });
    } else {
      each_k([&](int k) {
        i64 group = tile + 32 * k;
        edges.active[k] = group + lane_id() < run.end;
        if (group >= run.end) return;
        if (k > 0) next = next_start(rows.starts, slot, rows.count - 1, group);
        unsigned begins = __reduce_or_sync(FULL, next < 32 ? 1u << next : 0u);
        i64 own = slot + __popc(begins & (below_lane() | 1u << lane_id()));
        edges.node[k] = rows.lids[own];
        edges.place[k] = group + lane_id() + rows.shifts[own];
        slot += __popc(__ballot_sync(FULL, next <= 32));
      });
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
    i64 next = next_start(rows.starts, slot, rows.count, tile);
    if (tile + TILE <= run.end && !__any_sync(FULL, next <= TILE)) {  // inside a hub's row
      i64 place = tile + rows.shifts[slot] + lane_id();
      each_k([&](int k) { start(k, slot, place + 32 * k, true); });
      values(value, true);
      each_k([&](int k) { open = join(open, value[k]); });
      continue;
    }
    each_k([&](int k) {
      i64 left = run.end - tile - 32 * k;
      if (k > 0) next = next_start(rows.starts, slot, rows.count, tile + 32 * k);
      ends[k] = __reduce_or_sync(FULL, next <= 32 && next <= left ? 1u << (next - 1) : 0u);
      base[k] = slot;
      i64 own = slot + __popc(ends[k] & below_lane());
      bool active = lane_id() < left;
      start(k, own, active ? tile + 32 * k + lane_id() + rows.shifts[own] : 0, active);
      slot += __popc(ends[k]);
    });
    values(value, false);
    each_k([&](int k) {
      if (ends[k] == 0) {
        open = join(open, value[k]);
        return;
      }
      int head = 32 - __clz(ends[k] & below_lane());  // first lane of this one's row
      T before = reduce_warp(open, join), upto = scan_warp(value[k], head, join);
      if (ends[k] >> lane_id() & 1)
        close_row(base[k] + __popc(ends[k] & below_lane()), head == 0 ? join(before, upto) : upto);
      open = lane_id() >= 32 - __clz(ends[k]) ? value[k] : identity;
    });
  }
  if (slot < rows.count && rows.starts[slot] < run.end) {  // the row goes on in the next run
    T value = reduce_warp(open, join);
    if (lane_id() == 0) close_row(slot, value);
  }
}
