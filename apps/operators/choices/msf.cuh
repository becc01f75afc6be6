// Minimum spanning forests: see interfaces.py. WEIGHT is the type of weights, or of none.
#define VALUE int
#include "cusp/apps/operators/structure/cc.cuh"

// Edges between trees up to a pivot, or after it. A warp looks at a run of edges for how many there are, takes as many places,
// and looks again to fill them: one atomic for a run. Without ``sources`` they are only counted.
struct Listing {
  const i64* offsets;
  const int* targets;
  const WEIGHT* weights;  // or null
  const unsigned* order;
  const int* parents;
  i64 maximum, light, both_ways;
};

__device__ inline bool is_listed(const Listing& own, i64 row, i64 edge, WEIGHT weight, u64 number) {
  int target = own.targets[edge];
  bool equal = true, before = false;
  if (own.weights) {
    WEIGHT other = own.weights[edge];
    equal = other == weight, before = own.maximum ? other > weight : other < weight;
  }
  if (equal) {
    u64 one = own.order[row], other = own.order[target];
    if (!own.weights && own.both_ways && other < one) return false;
    before = (min(one, other) << 32 | max(one, other) << 1) <= number;
  }
  return before == (own.light != 0) && own.parents[row] != own.parents[target];
}

extern "C" __global__ void list_edges(i64 rows, Listing own, WEIGHT weight, u64 number, u64* count, int* sources, i64* places) {
  u64 found = 0;
  for_each_edge_in(own.offsets, 0, rows, [&](i64 row, i64 edge, bool live) {
    found += live && is_listed(own, row, edge, weight, number);
  });
  u64 upto = scan_of_warp(found), at = 0;
  if (lane_id() == 31 && upto) at = atomicAdd(count, upto);
  if (!sources) return;
  at = __shfl_sync(FULL, at, 31) + upto - found;
  for_each_edge_in(own.offsets, 0, rows, [&](i64 row, i64 edge, bool live) {
    if (live && is_listed(own, row, edge, weight, number)) sources[at] = (int)row, places[at++] = edge;
  });
}

struct alignas(16) Key {
  u64 weight, number;
};

struct Candidates {
  const Key* keys;
  const int* sources;
  const int* targets;
  const i64* places;

  __device__ bool comes_first(i64 one, i64 other) const {
    Key own = keys[one], held = keys[other];
    if (own.weight != held.weight) return own.weight < held.weight;
    return own.number != held.number ? own.number < held.number : places[one] < places[other];
  }

  // Offers an edge to a tree, which has a best one, or -1.
  __device__ void offer(i64 edge, i64* best) const {
    i64 held = *(volatile i64*)best;
    while (held < 0 || comes_first(edge, held)) {
      i64 found = (i64)atomicCAS((u64*)best, (u64)held, (u64)edge);
      if (found == held) return;
      held = found;
    }
  }
};

// Active edges between trees are kept, and offered to both.
extern "C" __global__ void choose(i64 size, const i64* active, Candidates edges, const int* trees, i64* best, i64* kept,
                                  u64* sums, u64* host) {
  for_each_loaded(0, size, [&](i64 place) { return active[place]; }, [&](i64, i64 edge, bool live) {
    int one = live ? trees[edges.sources[edge]] : 0, other = live ? trees[edges.targets[edge]] : 0;
    bool between[1] = {one != other};
    take_places(sums, between, [&](i64 at, int) { kept[at] = edge; });
    if (between[0]) edges.offer(edge, &best[one]), edges.offer(edge, &best[other]);
  });
  publish(sums, 1, host);
}

// Trees are united along the best edge of each. That may be the same of both.
extern "C" __global__ void join(i64 size, Candidates edges, i64* best, int* parents, unsigned char* in_forest) {
  Lids lids = {parents};
  for_each_loaded(0, size, [&](i64 tree) { return best[tree]; }, [&](i64 tree, i64 edge, bool live) {
    if (!live || edge < 0) return;
    best[tree] = -1, in_forest[edges.places[edge]] = 1;
    unite(lids, edges.sources[edge], edges.targets[edge]);
  });
}
