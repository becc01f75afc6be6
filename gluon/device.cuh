// Labels on the GPU: the bits that say 'updated', and values on their way into and out of messages.
// VALUE is the label's type. A list of local ids is one column of the sync plan: entry i of both sides is one node.
#include "../cusp/warp.cuh"

enum Mode { NONE, ALL, BITSET, OFFSETS };  // as in device_cpu.py

// One thread: gives a node a value if it has a proxy here, else does nothing.
extern "C" __global__ void write_node(const u64* index, const int* table, i64 gid, VALUE value, VALUE* values,
                                      unsigned* updated) {
  if (thread_id() > 0 || !(index[2 * (gid >> 6)] >> (gid & 63) & 1)) return;
  int lid = lid_of(index, table, gid);
  values[lid] = value;
  set_bit(updated, lid);
}

// Hands over how many of the first ``size`` bits are set.
extern "C" __global__ void count_bits(const unsigned* words, i64 size, u64* sums, u64* host) {
  u64 found = 0;
  for (i64 word = thread_id(); word * 32 < size; word += num_threads()) {
    unsigned bits = words[word];
    if (size - word * 32 < 32) bits &= (1u << (size & 31)) - 1;
    found += __popc(bits);
  }
  add_up(&sums[0], found);
  hand_over(sums, 1, host);
}

// Bit i = updated bit of lids[i], 0 where that is -1: one lane an entry, one word a warp, so stores coalesce and none race.
extern "C" __global__ void extract_bits(i64 entries, const int* lids, const unsigned* updated, unsigned* bits) {
  i64 i = thread_id();
  bool chosen = i < entries && lids[i] >= 0 && get_bit(updated, lids[i]);
  unsigned word = __ballot_sync(FULL, chosen);
  if (lane_id() == 0 && i < entries) bits[i >> 5] = word;
}

// Which rank's piece of the lists entry i lies in: ``starts`` ascends and has ranks + 1 entries.
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

// counts[r] = updated entries of the piece for rank r; the host is told the length of the message that they make, and
// ``taken`` becomes 0. Pieces begin at multiples of 64, so 32 entries lie in one. A warp goes through a stretch of the lists
// and adds what it found when a piece ends: few atomics on few addresses.
extern "C" __global__ void count_updated(i64 entries, const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                         const unsigned* updated, u64* sums, i64* counts, i64* taken, u64* host) {
  i64 warps = num_threads() / 32, stretch = ((entries / 32 + warps - 1) / warps) * 32;
  i64 first = thread_id() / 32 * stretch, last = min(first + stretch, entries);
  if (first < last) {
    int rank = piece_of(first, starts, ranks);
    u64 found = 0;
    for (i64 i = first + lane_id(); i < last; i += 32) {
      if (rank + 1 < ranks && i >= starts[rank + 1]) {
        if (lane_id() == 0 && found) atomicAdd(&sums[rank], found);
        rank = piece_of(i, starts, ranks), found = 0;
      }
      found += __popc(__ballot_sync(FULL, lids[i] >= 0 && get_bit(updated, lids[i])));
    }
    if (lane_id() == 0 && found) atomicAdd(&sums[rank], found);
  }
  if (!last_block((unsigned*)&sums[ranks])) return;
  for (i64 rank = threadIdx.x; rank < ranks; rank += blockDim.x) {
    counts[rank] = (i64)atomicExch(&sums[rank], 0ull);
    taken[rank] = 0;
    host[rank] = (u64)message_words(counts[rank], sizes[rank]);
  }
}

// Messages for all ranks at once. Rank r's begins at word boxes[r]: a header (mode + count << 8), then
//   OFFSETS  positions in the list and their values. Slots are given out by an atomic counter, so they stand in any
//            order; each position stands there once, hence what the receiver computes does not depend on it.
//   BITSET   a bit an entry, and the values of all entries: those without their bit are room, not values.
// With ``reset`` a value that was sent goes back to ``identity``: its share must not count again. ``taken`` and
// ``counts`` come from count_updated.
extern "C" __global__ void extract_values(i64 entries, const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                          const i64* boxes, const i64* counts, i64* taken, VALUE* values,
                                          unsigned* updated, i64 reset, VALUE identity, u64* words) {
  i64 i = thread_id();
  int lid = i < entries ? lids[i] : -1;
  bool chosen = lid >= 0 && get_bit(updated, lid);
  unsigned bits = __ballot_sync(FULL, chosen);
  if (i >= entries) return;
  int rank = piece_of(i, starts, ranks);
  i64 place = i - starts[rank], count = counts[rank], size = sizes[rank];
  Mode mode = mode_of(count, size);
  u64* box = words + boxes[rank];
  if (place == 0) box[0] = (u64)mode | (u64)count << 8;
  if (mode == BITSET) {
    if (lane_id() == 0 && place < size) ((unsigned*)(box + 1))[place >> 5] = bits;
    if (chosen) ((VALUE*)(box + 1 + bit_words(size)))[place] = values[lid];
  } else if (bits) {
    i64 slot = 0;
    if (lane_id() == 0) slot = atomicAdd((u64*)&taken[rank], (u64)__popc(bits));
    slot = __shfl_sync(FULL, slot, 0) + __popc(bits & below_lane());
    if (!chosen) return;
    ((unsigned*)(box + 1))[slot] = (unsigned)place;
    ((VALUE*)(box + 1 + words_of(count, 4)))[slot] = values[lid];
  }
  if (chosen && reset) {
    values[lid] = identity;
    atomicAnd(&updated[lid >> 5], ~(1u << (lid & 31)));
  }
}

// One value meets what stands there; nodes are told apart by lid, and a list names a node once, so no other thread
// touches values[lid]. The codes are those of gluon/reduction.py.
__device__ inline void combine_one(int lid, VALUE value, VALUE* values, unsigned* updated, i64 code) {
  VALUE old = values[lid];
  bool changed = code == 0 ? value != old : code == 1 ? value < old : code == 2 ? value > old : value != 0;
  if (!changed) return;
  values[lid] = code == 3 ? (VALUE)(old + value) : value;
  set_bit(updated, lid);
}

// Applies a message of extract_values, one thread an entry of the list.
extern "C" __global__ void combine_values(i64 entries, const int* lids, const u64* box, i64 code, VALUE* values,
                                          unsigned* updated) {
  i64 i = thread_id(), count = (i64)(box[0] >> 8);
  Mode mode = (Mode)(box[0] & 255);
  if (mode == BITSET) {
    if (i < entries && get_bit((const unsigned*)(box + 1), i))
      combine_one(lids[i], ((const VALUE*)(box + 1 + bit_words(entries)))[i], values, updated, code);
  } else if (i < count) {
    int lid = lids[((const unsigned*)(box + 1))[i]];
    combine_one(lid, ((const VALUE*)(box + 1 + words_of(count, 4)))[i], values, updated, code);
  }
}

// Applies the messages of extract_bits from all ranks at once: every updated entry has the same, known value, so it does
// not matter which rank's is applied first. Entry i of the joined lists has bit i of the joined messages.
extern "C" __global__ void combine_bits(i64 entries, const int* lids, const unsigned* bits, VALUE implied, i64 code,
                                        VALUE* values, unsigned* updated) {
  i64 i = thread_id();
  if (i < entries && lids[i] >= 0 && get_bit(bits, i)) combine_one(lids[i], implied, values, updated, code);
}
