// Labels on the GPU: the bits that say 'updated', and values on their way into and out of messages.
// VALUE is the label's type. A list of local ids is one column of the sync plan: entry i of both sides is one node.
#include "../cusp/kernels/warp.cuh"

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
  publish(sums, 1, host);
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

constexpr int TILE = 1024, EACH = 4, WARPS = TILE / EACH / 32;  // entries of a block and of a thread, warps of a block

// What a thread has of the tile that begins at entry ``begin``: the bits say which of its warp's entries are updated.
struct Chosen {
  int lid[EACH];
  unsigned bits[EACH];
  __device__ bool here(int k) const { return bits[k] >> lane_id() & 1; }
};

__device__ inline Chosen chosen_of(i64 begin, const int* lids, const unsigned* updated) {
  Chosen found;
#pragma unroll
  for (int k = 0; k < EACH; k++) found.lid[k] = lids[begin + k * blockDim.x + threadIdx.x];
#pragma unroll
  for (int k = 0; k < EACH; k++)
    found.bits[k] = __ballot_sync(FULL, found.lid[k] >= 0 && get_bit(updated, found.lid[k]));
  return found;
}

// counts[r] = updated entries of the piece for rank r; the host is told the length of the message that they make, and
// ``taken`` becomes 0. Pieces begin at multiples of a tile, so a tile lies in one: one atomic a block.
extern "C" __global__ void count_updated(i64 entries, const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                         const unsigned* updated, u64* sums, i64* counts, i64* taken, u64* host) {
  for (i64 begin = (i64)blockIdx.x * TILE; begin < entries; begin += (i64)gridDim.x * TILE) {
    Chosen chosen = chosen_of(begin, lids, updated);
    u64 found = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) found += __syncthreads_count(chosen.here(k));
    if (threadIdx.x == 0 && found) atomicAdd(&sums[piece_of(begin, starts, ranks)], found);
  }
  if (!last_block((unsigned*)&sums[ranks])) return;
  for (i64 rank = threadIdx.x; rank < ranks; rank += blockDim.x) {
    counts[rank] = (i64)atomicExch(&sums[rank], 0ull);
    taken[rank] = 0;
    host[rank] = (u64)message_words(counts[rank], sizes[rank]);
  }
}

// Messages for all ranks at once, a block a tile. Rank r's begins at word boxes[r]: a header (mode + count << 8), then
//   OFFSETS  positions in the list and their values. Slots are given out by an atomic counter, so they stand in any
//            order; each position stands there once, hence what the receiver computes does not depend on it.
//   BITSET   a bit an entry, and the values of all entries: those without their bit are room, not values.
// With ``reset`` a value that was sent goes back to ``identity``: its share must not count again. ``taken`` and
// ``counts`` come from count_updated.
extern "C" __global__ void extract_values(const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                          const i64* boxes, const i64* counts, i64* taken, VALUE* values,
                                          unsigned* updated, i64 reset, VALUE identity, u64* words) {
  __shared__ i64 slots[EACH * WARPS];
  i64 begin = (i64)blockIdx.x * TILE;
  int rank = piece_of(begin, starts, ranks), warp = threadIdx.x / 32;
  i64 count = counts[rank], size = sizes[rank], first = begin - starts[rank];
  if (count == 0) return;
  Mode mode = mode_of(count, size);
  u64* box = words + boxes[rank];
  if (first == 0 && threadIdx.x == 0) box[0] = (u64)mode | (u64)count << 8;
  Chosen chosen = chosen_of(begin, lids, updated);
  if (mode == OFFSETS) {
    bool any = false;
    for (int k = 0; k < EACH; k++) any |= chosen.bits[k] != 0;
    if (!__syncthreads_or(any)) return;
    for (int k = 0; k < EACH; k++)
      if (lane_id() == 0) slots[k * WARPS + warp] = __popc(chosen.bits[k]);
    __syncthreads();
    if (warp == 0) {  // EACH * WARPS is 32
      i64 mine = slots[lane_id()], upto = mine, at = 0;
      for (int step = 1; step < 32; step *= 2) {
        i64 other = __shfl_up_sync(FULL, upto, step);
        if (lane_id() >= (unsigned)step) upto += other;
      }
      if (lane_id() == 31) at = (i64)atomicAdd((u64*)&taken[rank], (u64)upto);
      slots[lane_id()] = __shfl_sync(FULL, at, 31) + upto - mine;
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    i64 place = first + k * blockDim.x + threadIdx.x;
    int lid = chosen.lid[k];
    if (mode == BITSET && lane_id() == 0 && place < size) ((unsigned*)(box + 1))[place >> 5] = chosen.bits[k];
    if (!chosen.here(k)) continue;
    if (mode == BITSET) {
      ((VALUE*)(box + 1 + bit_words(size)))[place] = values[lid];
    } else {
      i64 slot = slots[k * WARPS + warp] + __popc(chosen.bits[k] & below_lane());
      ((unsigned*)(box + 1))[slot] = (unsigned)place;
      ((VALUE*)(box + 1 + words_of(count, 4)))[slot] = values[lid];
    }
    if (reset) {
      values[lid] = identity;
      atomicAnd(&updated[lid >> 5], ~(1u << (lid & 31)));
    }
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
