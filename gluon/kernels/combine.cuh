// Messages on the GPU are combined into labels: the kernels of one reduction. A list names a node once, so no two threads
// touch the same value.
#include "gluon/kernels/message.cuh"
#include "gluon/kernels/reduction.cuh"

// Applies a message of extract_values, one thread per entry of the list.
extern "C" __global__ void combine_values(i64 entries, const int* lids, const u64* buffer, VALUE* values,
                                          unsigned* updated) {
  i64 i = thread_id(), count = (i64)(buffer[0] >> 8);
  Mode mode = (Mode)(buffer[0] & 255);
  if (mode == BITSET) {
    if (i < entries && get_bit((const unsigned*)(buffer + 1), i))
      combine_one(lids[i], ((const VALUE*)(buffer + 1 + bit_words(entries)))[i], values, updated);
  } else if (i < count) {
    int lid = lids[((const unsigned*)(buffer + 1))[i]];
    combine_one(lid, ((const VALUE*)(buffer + 1 + words_of(count, 4)))[i], values, updated);
  }
}

// Applies the messages of extract_bits from all ranks at once. Every updated entry has the same, known value and the
// reduction is idempotent, so it does not matter which rank's is applied first.
extern "C" __global__ void combine_bits(i64 entries, const int* lids, const i64* starts, i64 ranks,
                                        const unsigned* const* buffers, VALUE implied, VALUE* values, unsigned* updated) {
  i64 i = thread_id();
  if (i >= entries || lids[i] < 0) return;
  int rank = piece_of(i, starts, ranks);
  if (get_bit(buffers[rank], i - starts[rank])) combine_one(lids[i], implied, values, updated);
}
