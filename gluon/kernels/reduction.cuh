// The reduction of a label on the GPU: JOINED and CHANGED are its texts, see Reduction in reduction.py. VALUE is the type
// of the label.
#include "cusp/language/arithmetic.cuh"

template <class T>
__device__ inline T joined(T old, T value) { return (T)(JOINED); }
__device__ inline bool changes(VALUE old, VALUE value, VALUE result) { return CHANGED; }

// Combines a value into that of a proxy, which no other thread touches.
__device__ inline void combine_one(i64 lid, VALUE value, VALUE* values, unsigned* updated) {
  VALUE old = values[lid], result = joined(old, value);
  if (!changes(old, value, result)) return;
  values[lid] = result;
  set_bit(updated, lid);
}
