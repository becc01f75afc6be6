// How many edges of each row each rank gets. Compiled for a type OWNER of ranks.
#include "cusp/kernels/walk.cuh"

// counts[owner * rows + row] += 1 for each edge. Of the lanes with the same row and owner the lowest adds for all.
extern "C" __global__ void count_by_owner(const i64* indptr, i64 rows, const OWNER* owners, unsigned* counts) {
  for_each_edge_in(indptr, 0, rows, [&](i64 row, i64 edge, bool live) {
    unsigned lanes = __ballot_sync(FULL, live);
    if (!live) return;
    i64 counter = owners[edge] * rows + row;
    unsigned peers = __match_any_sync(lanes, counter);
    if (lane_id() == (unsigned)__ffs(peers) - 1) atomicAdd(&counts[counter], (unsigned)__popc(peers));
  });
}
