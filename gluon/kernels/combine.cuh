// Messages on the GPU are combined into labels: the kernels of one reduction. A list names a node once, so no two threads
// touch the same value.
#include "gluon/kernels/message.cuh"
#include "gluon/kernels/reduction.cuh"

// BITSET with values, which only CPUs write: a value is where the bits before its own put it. So a warp takes consecutive
// words and counts all bits before them; few warps do, or they would count more than they combine.
__device__ inline void combine_in_order(i64 entries, const int* lids, const unsigned* bits, const VALUE* items, VALUE* values,
                                        unsigned* updated) {
  i64 words = (entries + 31) / 32, warps = min(num_threads() / 32, (i64)1024), each = (words + warps - 1) / warps;
  i64 begin = thread_id() / 32 * each, end = min(begin + each, words);
  if (begin >= end) return;
  i64 before = 0;
  for (i64 word = lane_id(); word < begin; word += 32) before += __popc(bits[word]);
  before = sum_of_warp(before);
  for (i64 word = begin; word < end; word++) {
    unsigned chosen = bits[word];
    if (chosen >> lane_id() & 1)
      combine_one(lids[32 * word + lane_id()], items[before + __popc(chosen & below_lane())], values, updated);
    before += __popc(chosen);
  }
}

// Applies one block of a message of ``words``, that of label ``number``: it begins at cursors[number], the first one at 0. If
// values are implied, none are in the block.
extern "C" __global__ void combine_block(i64 entries, const int* lids, const u64* message, i64 words, i64 number, i64* cursors,
                                         i64 with_values, VALUE implied, VALUE* values, unsigned* updated) {
  i64 at = number ? cursors[number] : 0;
  u64 header = at < words ? message[at] : header_of(NONE, 0);
  Mode mode = (Mode)(header & 255);
  i64 count = (i64)(header >> 8), width = with_values ? sizeof(VALUE) : 0;
  if (thread_id() == 0) cursors[number + 1] = at + block_words(mode, count, entries, width);
  const unsigned* positions = (const unsigned*)(message + at + 1);
  const VALUE* items = (const VALUE*)(message + at + 1 + position_words(mode, count, entries));
  if (mode == BITSET && with_values) {
    combine_in_order(entries, lids, positions, items, values, updated);
    return;
  }
  bool bits = mode == BITSET || mode == SPREAD;
  for (i64 i = thread_id(); i < (bits ? entries : count); i += num_threads())
    if (!bits || get_bit(positions, i))
      combine_one(lids[mode == OFFSETS ? positions[i] : i], with_values ? items[i] : implied, values, updated);
}

// Applies the blocks of extract_bits from all ranks at once. Every updated entry has the same, known value and the
// reduction is idempotent, so it does not matter which rank's is applied first.
extern "C" __global__ void combine_bits(i64 entries, const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                        i64 number, const u64* const* buffers, VALUE implied, VALUE* values,
                                        unsigned* updated) {
  i64 i = thread_id();
  if (i >= entries || lids[i] < 0) return;
  int rank = piece_of(i, starts, ranks);
  const u64* block = buffers[rank] + number * (1 + bit_words(sizes[rank]));
  if (get_bit((const unsigned*)(block + 1), i - starts[rank])) combine_one(lids[i], implied, values, updated);
}
