// Values of edges, moved as bits of any width: compiled for an unsigned type VALUE.
#include "cusp/kernels/walk.cuh"

// Every row of values goes to its place in lid order; the value at fronts[row] and the first change places, as their
// targets did. Each edge is written once, by one lane.
extern "C" __global__ void move_rows(const int* row_lids, const i64* row_offsets, i64 rows, const VALUE* arrived,
                                     const i64* offsets, const i64* fronts, VALUE* values) {
  for_each_edge_in(row_offsets, 0, rows, [&](i64 row, i64 edge, bool live) {
    if (!live) return;
    i64 front = fronts[row], place = edge - row_offsets[row];
    if (place == front) place = 0;
    else if (place == 0) place = front;
    values[offsets[row_lids[row]] + place] = arrived[edge];
  });
}

// Writes a part of the edges, sorted by target, into the rows of the CSC. The i-th of them is edge order[i] of the
// part and the (i - starts[target])-th of its target in the part; places[target] edges are from parts before.
// Neighbouring lanes mostly write neighbouring entries of one row.
extern "C" __global__ void place_in_edges(const i64* order, const unsigned* targets, i64 size, const unsigned* starts,
                                          const i64* places, const unsigned* part_sources, int* sources, i64 weighted,
                                          const VALUE* part_weights, VALUE* in_weights) {
  i64 i = thread_id();
  if (i >= size) return;
  unsigned target = targets[i];
  i64 edge = order[i], at = places[target] + i - starts[target];
  sources[at] = (int)part_sources[edge];
  if (weighted) in_weights[at] = part_weights[edge];
}
