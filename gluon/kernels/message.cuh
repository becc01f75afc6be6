// The form of a message: what extraction (device.cuh) writes and combining (combine.cuh) reads.
#include "cusp/kernels/warp.cuh"

enum Mode { NONE, ALL, BITSET, OFFSETS };  // as in device_cpu.py

// The rank whose piece of the lists has entry i: ``starts`` ascends and has ranks + 1 entries.
__device__ inline int piece_of(i64 i, const i64* starts, int ranks) {
  int rank = 0;
  while (rank + 1 < ranks && i >= starts[rank + 1]) rank++;
  return rank;
}

__device__ inline i64 bit_words(i64 size) { return (size + 63) / 64; }
__device__ inline i64 words_of(i64 items, i64 width) { return (items * width + 7) / 8; }

// The cheaper way to send ``count`` of ``size`` values.
__device__ inline Mode mode_of(i64 count, i64 size) {
  if (count == 0) return NONE;
  i64 all = bit_words(size) * 8 + size * (i64)sizeof(VALUE);
  return count * (4 + (i64)sizeof(VALUE)) < all ? OFFSETS : BITSET;
}

// Length in words of the message that carries ``count`` of ``size`` values.
__device__ inline i64 message_words(i64 count, i64 size) {
  Mode mode = mode_of(count, size);
  if (mode == NONE) return 0;
  if (mode == OFFSETS) return 1 + words_of(count, 4) + words_of(count, sizeof(VALUE));
  return 1 + bit_words(size) + words_of(size, sizeof(VALUE));
}
