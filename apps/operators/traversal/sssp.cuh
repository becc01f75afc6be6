// Shortest paths in rounds: which nodes are pending. Types as in distances.cuh.
#include "cusp/apps/operators/traversal/distances.cuh"

extern "C" __global__ void find_pending(const unsigned* lowered, i64 size, const VALUE* values, const VALUE* relaxed_at,
                                        unsigned* pending, VALUE far, u64* sums, u64* host) {
  VALUE lowest = far;
  i64 words = (size + 31) / 32;
  for (i64 word = thread_id() / 32; word < words; word += num_threads() / 32) {
    unsigned fell = lowered[word], bits = pending[word];
    if ((fell | bits) == 0) continue;
    i64 lid = word * 32 + lane_id();
    unsigned more = __ballot_sync(FULL, fell >> lane_id() & 1 && values[lid] < relaxed_at[lid]) & ~bits;
    if (lane_id() == 0 && more) pending[word] = bits | more;
    if ((bits | more) >> lane_id() & 1) lowest = min(lowest, values[lid]);
  }
  keep_lowest(&sums[0], lowest, far);
  publish(sums, 1, host);
}
