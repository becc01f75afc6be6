// Betweenness centrality: see interfaces.py. No two threads have the same one of lids[first] to lids[last - 1].
#include "cusp/kernels/warp.cuh"

extern "C" __global__ void mark(i64 first, i64 last, const int* lids, unsigned* updated) {
  i64 place = first + thread_id();
  if (place < last) set_bit(updated, lids[place]);
}

extern "C" __global__ void give_paths(i64 first, i64 last, i64 masters, const int* lids, double* sums, double* paths,
                                      unsigned* updated) {
  i64 place = first + thread_id();
  if (place >= last || lids[place] >= masters) return;
  int lid = lids[place];
  paths[lid] = sums[lid];
  sums[lid] = 0;
  set_bit(updated, lid);
}

extern "C" __global__ void give_shares(i64 first, i64 last, i64 masters, const int* lids, const double* paths,
                                       double* sums, double* centrality, double* shares, unsigned* updated) {
  i64 place = first + thread_id();
  if (place >= last || lids[place] >= masters) return;
  int lid = lids[place];
  centrality[lid] += paths[lid] * sums[lid];
  shares[lid] = 1 / paths[lid] + sums[lid];
  sums[lid] = 0;
  set_bit(updated, lid);
}
