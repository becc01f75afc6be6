// Triangles that go with an edge: see interfaces.py. PLACE, the type of places, is unsigned or unsigned long long.
#include "cusp/kernels/walk.cuh"

// As EdgeRows in interfaces.py.
struct EdgeRows {
  const i64* offsets;
  const int *targets, *edges, *removed;
  int* support;
  unsigned* updated;
};

__device__ inline void lose_one(const EdgeRows& rows, int edge) {
  atomicSub(&rows.support[edge], 1);
  set_bit(rows.updated, edge);
}

// Entry ``edge`` of the work, from begins[pair] on, is one of the row of the low end of a pair: its node is searched for in the
// row of the high end. Lanes take entries that follow each other. ``removed`` does not change meanwhile, and what is subtracted
// in any order is the same in the end.
extern "C" __global__ void remove_triangles(i64 turn, const PLACE* places, const int* highs, const int* lows, const i64* rows,
                                            const i64* begins, i64 pairs, EdgeRows own, EdgeRows table) {
  for_each_edge_in(begins, 0, pairs, [&](i64 pair, i64 edge, bool live) {
    if (!live) return;
    int high = highs[pair], low = lows[pair];
    i64 entry = table.offsets[rows[pair]] + edge - begins[pair], first = own.offsets[high], last = own.offsets[high + 1];
    int node = table.targets[entry];
    i64 place = first_where(first, last, [&](i64 place) { return own.targets[place] >= node; });
    if (place == last || own.targets[place] != node) return;
    int to_high = own.edges[place], to_low = table.edges[entry];
    i64 high_ends = own.removed[to_high], low_ends = table.removed[to_low];
    if (high_ends < turn || low_ends < turn) return;
    if (low_ends > turn && (high_ends > turn || places[node] < places[low])) lose_one(table, to_low);
    if (high_ends > turn && (low_ends > turn || places[node] < places[high])) lose_one(own, to_high);
  });
}
