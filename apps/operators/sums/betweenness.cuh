// Betweenness centrality: what the masters of a level do with sums over their rows. lids[first] to lids[last - 1] are the
// proxies of the level; no two threads have the same one.
#include "../../../cusp/kernels/warp.cuh"

// Sets the bits of the proxies.
extern "C" __global__ void mark(i64 first, i64 last, const int* lids, unsigned* updated) {
  i64 place = first + thread_id();
  if (place < last) set_bit(updated, lids[place]);
}

// As many shortest paths lead to a node as to all of its predecessors together: ``sums``, which are 0 afterwards.
extern "C" __global__ void give_paths(i64 first, i64 last, i64 masters, const int* lids, double* sums, double* paths,
                                      unsigned* updated) {
  i64 place = first + thread_id();
  if (place >= last || lids[place] >= masters) return;
  int lid = lids[place];
  paths[lid] = sums[lid];
  sums[lid] = 0;
  set_bit(updated, lid);
}

// A node's dependency is its paths times its sums, which add up the shares of its successors. Its own share is 1 + its
// dependency, divided by its paths. ``sums`` are 0 afterwards.
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
