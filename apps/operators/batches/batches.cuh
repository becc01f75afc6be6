// Levels of up to 64 searches at once, a bit of a word for each: see interfaces.py. A warp takes 32 proxies, whose bits are one
// word that no other warp touches; where none is set, that word is all it reads.
#include "cusp/kernels/warp.cuh"

extern "C" __global__ void end_level(i64 proxies, i64 masters, const unsigned* frontier, const unsigned* touched,
                                     const i64* degrees, u64* front, unsigned* updated, u64* arrived, u64* open_bits,
                                     u64* sums, u64* host) {
  u64 nodes = 0, edges = 0, alive = 0;
  for (i64 word = thread_id() / 32; word < (proxies + 31) / 32; word += num_threads() / 32) {
    unsigned before = frontier[word] >> lane_id(), now = touched[word] >> lane_id();
    if (!__any_sync(FULL, (before | now) & 1)) continue;
    i64 lid = word * 32 + lane_id();
    u64 left = (before | now) & 1 ? open_bits[lid] : 0, found = 0;
    if (before & 1) left &= ~front[lid], front[lid] = 0;
    if (now & 1) found = arrived[lid] & left, arrived[lid] = 0;
    if ((before | now) & 1) open_bits[lid] = left ^ found;
    bool fresh = found && lid < masters;
    if (fresh) front[lid] = found, nodes++, edges += (u64)degrees[lid], alive |= found;
    unsigned marks = __ballot_sync(FULL, fresh);
    if (marks && lane_id() == 0) updated[word] |= marks;
  }
  alive = reduce_warp(alive, [](u64 a, u64 b) { return a | b; });
  if (lane_id() == 0 && alive & ~peek(&sums[2])) atomicOr(&sums[2], alive);
  add_up(&sums[0], nodes);
  add_up(&sums[1], edges);
  publish(sums, 3, host);
}

extern "C" __global__ void add_hops(i64 masters, double hops, double inverse, const unsigned* updated, const u64* front,
                                    i64* reached, double* lengths, double* inverses) {
  i64 lid = thread_id();
  if (lid >= masters || !get_bit(updated, lid)) return;
  i64 searches = __popcll(front[lid]);
  reached[lid] += searches;
  lengths[lid] += (double)searches * hops;
  inverses[lid] += (double)searches * inverse;
}
