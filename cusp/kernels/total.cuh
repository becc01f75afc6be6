// The sum of whole numbers, or of a mask, of type VALUE. Neighbouring lanes read neighbouring entries.
#include "cusp/kernels/warp.cuh"

extern "C" __global__ void total(const VALUE* values, i64 size, u64* sums, u64* host) {
  i64 sum = 0;
  for (i64 i = thread_id(); i < size; i += num_threads()) sum += (i64)values[i];
  add_up(&sums[0], (u64)sum);
  publish(sums, 1, host);
}
