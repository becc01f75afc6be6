// Rows sorted by weight, and what is looked for in them. Types as in distances.cuh.
#include "distances.cuh"

__device__ inline u64 mix(u64 value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ value >> 27) * 0x94D049BB133111EBull;
  return value ^ value >> 31;
}

// *sum += over all edges, a hash of (source, target, weight) less that of (target, source, weight), modulo 2^64: over all
// ranks zero if every edge and its reverse weigh the same.
extern "C" __global__ void weight_asymmetry(i64 rows, const i64* gids, const i64* offsets, const int* targets,
                                            const WEIGHT* weights, u64* sum) {
  u64 total = 0;
  for (i64 row = thread_id() / 32; row < rows; row += num_threads() / 32) {
    for (i64 edge = offsets[row] + lane_id(); edge < offsets[row + 1]; edge += 32) {
      u64 weight = mix((u64)weights[edge]), source = (u64)gids[row], target = (u64)gids[targets[edge]];
      total += mix(mix(source + weight) ^ target) - mix(mix(target + weight) ^ source);
    }
  }
  total = sum_of_warp(total);
  if (lane_id() == 0 && total) atomicAdd(sum, total);
}

// First edge of a row, sorted by weight, that is not shorter than ``length``. It is near the begin, as a rule, and so are the
// places looked at: steps double, then halve.
__device__ inline i64 first_from(const WEIGHT* weights, i64 begin, i64 end, VALUE length) {
  i64 step = 8;
  for (; begin + step < end && (VALUE)weights[begin + step - 1] < length; step *= 2) begin += step;
  end = min(end, begin + step);
  while (begin < end) {
    i64 middle = (begin + end) / 2;
    if ((VALUE)weights[middle] < length) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// As append, for the threads of a block at once: one atomic for all of them. The whole block calls it.
__device__ inline void append_block(Queue queue, int node, i64 begin, i64 end) {
  __shared__ u64 of_warp[32];
  if (!__syncthreads_or(end > begin)) return;
  unsigned warp = threadIdx.x / 32;
  u64 own = end > begin ? 1ull << EDGE_BITS | (u64)(end - begin) : 0, upto = scan_of_warp(own);
  if (lane_id() == 31) of_warp[warp] = upto;
  __syncthreads();
  if (threadIdx.x == 0) {
    u64 all = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++) all += of_warp[i];
    u64 at = atomicAdd(queue.counter, all);
    for (unsigned i = 0; i < blockDim.x / 32; i++) {
      u64 next = at + of_warp[i];
      of_warp[i] = at, at = next;
    }
  }
  __syncthreads();
  u64 at = of_warp[warp] + upto - own;
  if (end > begin) write_entry(queue, queue_nodes(at), node, queue_edges(at), begin);
}

// The edges of a rank; each row is sorted by weight.
struct SortedRows {
  i64 size;
  const i64* offsets;
  const int* targets;
  const WEIGHT* weights;
};
