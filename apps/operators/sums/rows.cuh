// Sums over rows of a CSR or CSC: sums[v] = sum of values[columns[e]] over the edges e of row v. VALUE is float or double.
//
// The edges of the rows are numbered through, and each warp takes a run of consecutive ones, so hubs and leaves cost the
// same. Only what a warp has of a row that began in another one's run is a piece for itself; pieces are added afterwards, in
// their order. So there are no atomics, and the sums are the same bits in every run.
#include "../../../cusp/kernels/walk.cuh"

const i64 TILE = 32 * K;

// For ``count`` rows with edges from lids[first] on: row lids[i] has the edges starts[i] to starts[i + 1], and edge e stands
// at e + shifts[i] in ``columns``. Warp w leaves the row and the sum of its piece, or -1, in piece_lids[w] and pieces[w].
extern "C" __global__ void sum_rows(i64 first, i64 count, const int* lids, const i64* starts, const i64* shifts,
                                    const int* columns, const VALUE* values, VALUE* sums, int* piece_lids,
                                    double* pieces) {
  const i64 FAR = 1ll << 40;
  lids += first, starts += first, shifts += first;
  i64 warp = thread_id() / 32, end = starts[count];
  Run run = even_run(starts[0], end, TILE);
  i64 tile = run.begin, last = run.end;
  if (lane_id() == 0) piece_lids[warp] = -1;
  if (tile >= last) return;
  i64 slot = slot_of(starts, count, tile);
  i64 others = starts[slot] < tile ? slot : -1;  // began in another run
  VALUE open = 0;  // what each lane has of the row of ``slot``
  auto close = [&](i64 row, VALUE sum) {
    if (row == others)
      piece_lids[warp] = lids[row], pieces[warp] = sum;
    else
      sums[lids[row]] = sum;
  };
  for (; tile < last; tile += TILE) {
    int column[K];
    VALUE value[K];
    unsigned ends[K];  // lanes whose edge is the last of its row
    i64 base[K];       // row of the first lane
    i64 next = slot + 1 + lane_id() <= count ? starts[slot + 1 + lane_id()] - tile : FAR;
    if (tile + TILE <= last && !__any_sync(FULL, next <= TILE)) {  // inside a hub's row
      i64 place = tile + shifts[slot] + lane_id();
#pragma unroll
      for (int k = 0; k < K; k++) column[k] = __ldcs(&columns[place + 32 * k]);
#pragma unroll
      for (int k = 0; k < K; k++) value[k] = __ldg(&values[column[k]]);
#pragma unroll
      for (int k = 0; k < K; k++) open += value[k];
      continue;
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
      i64 left = last - tile - 32 * k;
      if (k > 0) next = slot + 1 + lane_id() <= count ? starts[slot + 1 + lane_id()] - tile - 32 * k : FAR;
      ends[k] = __reduce_or_sync(FULL, next <= 32 && next <= left ? 1u << (next - 1) : 0u);
      base[k] = slot;
      column[k] = -1;
      if (lane_id() < left) {
        i64 mine = slot + __popc(ends[k] & below_lane());
        column[k] = __ldcs(&columns[tile + 32 * k + lane_id() + shifts[mine]]);
      }
      slot += __popc(ends[k]);
    }
#pragma unroll
    for (int k = 0; k < K; k++) value[k] = column[k] >= 0 ? __ldg(&values[column[k]]) : (VALUE)0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (ends[k] == 0) {
        open += value[k];
        continue;
      }
      int head = 32 - __clz(ends[k] & below_lane());  // first lane of this one's row
      VALUE before = sum_of_warp(open), sum = scan_of_warp(value[k], head);
      if (ends[k] >> lane_id() & 1) close(base[k] + __popc(ends[k] & below_lane()), head == 0 ? before + sum : sum);
      open = lane_id() >= 32 - __clz(ends[k]) ? value[k] : (VALUE)0;
    }
  }
  if (slot < count && starts[slot] < last) {  // the row goes on in the next run
    VALUE sum = sum_of_warp(open);
    if (lane_id() == 0) close(slot, sum);
  }
}

// Adds the pieces to the sums of the rows that they belong to: the thread of a row's first piece adds all of them.
extern "C" __global__ void add_pieces(i64 count, const int* lids, const double* pieces, VALUE* sums) {
  i64 first = thread_id();
  if (first >= count || lids[first] < 0 || (first > 0 && lids[first - 1] == lids[first])) return;
  double sum = sums[lids[first]];
  for (i64 i = first; i < count && lids[i] == lids[first]; i++) sum += pieces[i];
  sums[lids[first]] = (VALUE)sum;
}
