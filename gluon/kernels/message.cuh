// The form of a message, as message_cpu.py describes it: what extraction (device.cuh) writes and combining (combine.cuh) reads.
#include "cusp/kernels/warp.cuh"

enum Mode { NONE, ALL, BITSET, OFFSETS, SPREAD };

// The rank whose piece of the lists has entry i: ``starts`` ascends and has ranks + 1 entries.
__device__ inline int piece_of(i64 i, const i64* starts, int ranks) {
  int rank = 0;
  while (rank + 1 < ranks && i >= starts[rank + 1]) rank++;
  return rank;
}

__device__ inline i64 bit_words(i64 size) { return (size + 63) / 64; }
__device__ inline i64 words_of(i64 items, i64 width) { return (items * width + 7) / 8; }

// Words of positions, in a block about ``count`` of ``size`` entries.
__device__ inline i64 position_words(Mode mode, i64 count, i64 size) {
  if (mode == OFFSETS) return words_of(count, 4);
  return mode == BITSET || mode == SPREAD ? bit_words(size) : 0;
}

// Words of a block with values of ``width`` bytes, 0 if there are none.
__device__ inline i64 block_words(Mode mode, i64 count, i64 size, i64 width) {
  return 1 + position_words(mode, count, size) + words_of(mode == SPREAD ? size : count, width);
}

// The shortest of the modes that need no order among threads.
__device__ inline Mode mode_of(i64 count, i64 size, i64 width) {
  if (count == 0) return NONE;
  if (count == size) return ALL;
  return block_words(OFFSETS, count, size, width) < block_words(SPREAD, count, size, width) ? OFFSETS : SPREAD;
}

__device__ inline u64 header_of(Mode mode, i64 count) { return (u64)mode | (u64)count << 8; }
