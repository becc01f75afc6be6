// Distances and what edges offer them. VALUE, the label's type, is int, long long or double; WEIGHT is that of the edges.
#include "cusp/apps/operators/frontier.cuh"

// Distances are not negative: their bits are integers of the same order.
__device__ inline i64 bits_of(int value) { return value; }
__device__ inline i64 bits_of(i64 value) { return value; }
__device__ inline i64 bits_of(double value) { return __double_as_longlong(value); }

__device__ inline int value_below(int far, u64 bits) { return far - (int)bits; }
__device__ inline i64 value_below(i64 far, u64 bits) { return far - (i64)bits; }
__device__ inline double value_below(double far, u64 bits) { return __longlong_as_double(bits_of(far) - (i64)bits); }

// *most = how far, in bits, the lowest ``value`` of all warps is below ``far``; 0, with which published sums begin, if none is.
// The whole warp calls it.
__device__ inline void keep_lowest(u64* most, VALUE value, VALUE far) {
  value = least_of_warp(value);
  u64 below = value < far ? (u64)(bits_of(far) - bits_of(value)) : 0;
  if (lane_id() == 0 && below > peek(most)) atomicMax(most, below);
}

// What edges offer their targets: a value, ``far`` where the sum would not stay below it. K loads are under way at once.
// Without LOOK, old values are not looked at.
struct Candidates {
  int target[K];
  VALUE value[K], old[K];

  // Lowers the target to the value; true for exactly one of those that offer it the same.
  __device__ bool apply(int k, VALUE* values) const {
    return value[k] < old[k] && value[k] < lower(&values[target[k]], value[k]);
  }
};

template <bool LOOK = true>
__device__ inline Candidates candidates(const Edges& edges, VALUE far, const int* targets, const WEIGHT* weights,
                                        const VALUE* values) {
  Candidates result;
#pragma unroll
  for (int k = 0; k < K; k++) {
    result.target[k] = 0, result.value[k] = far;
    if (!edges.active[k]) continue;
    result.target[k] = targets[edges.place[k]];
    VALUE value = values[edges.node[k]], weight = (VALUE)weights[edges.place[k]];
    if (weight < far - value) result.value[k] = value + weight;
  }
#pragma unroll
  for (int k = 0; k < K; k++) result.old[k] = LOOK ? values[result.target[k]] : far;
  return result;
}
