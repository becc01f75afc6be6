// Labels on the GPU: the bits that say 'updated', and the values that messages carry.
// VALUE is the label's type. A list of local ids is one column of the sync plan: entry i of both sides is one node.
#include "gluon/kernels/message.cuh"

// One thread.
extern "C" __global__ void write_node(const u64* index, const int* table, i64 gid, VALUE value, VALUE* values,
                                      unsigned* updated) {
  if (thread_id() > 0 || !has_bit(index, gid)) return;
  int lid = lid_of(index, table, gid);
  values[lid] = value;
  set_bit(updated, lid);
}

extern "C" __global__ void set_bits(const int* places, i64 size, unsigned* words) {
  i64 i = thread_id();
  if (i < size) set_bit(words, places[i]);
}

extern "C" __global__ void count_bits(const unsigned* words, i64 size, u64* sums, u64* host) {
  u64 count = 0;
  for (i64 word = thread_id(); word * 32 < size; word += num_threads()) {
    unsigned bits = words[word];
    if (size - word * 32 < 32) bits &= (1u << (size & 31)) - 1;
    count += __popc(bits);
  }
  add_up(&sums[0], count);
  publish(sums, 1, host);
}

// Block ``number`` of the messages to all ranks at once, with one bit per entry, to buffers[r] for rank r: the updated bit of
// lids[i], 0 where that is -1. Nobody counts, see message_cpu.py. One lane per entry and one word per warp, so stores
// coalesce and none race.
extern "C" __global__ void extract_bits(i64 entries, const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                        i64 number, const unsigned* updated, u64* const* buffers) {
  i64 i = thread_id();
  bool chosen = i < entries && lids[i] >= 0 && get_bit(updated, lids[i]);
  unsigned bits = __ballot_sync(FULL, chosen);
  if (lane_id() > 0 || i >= entries) return;
  int rank = piece_of(i, starts, ranks);
  i64 words = bit_words(sizes[rank]), place = i - starts[rank];
  u64* block = buffers[rank] + number * (1 + words);
  if (place == 0) block[0] = header_of(SPREAD, 0);
  if (place < 64 * words) ((unsigned*)(block + 1))[place >> 5] = bits;
}

constexpr int TILE = 1024, EACH = 4, WARPS = TILE / EACH / 32;  // entries of a block and of a thread, warps of a block

// results[i] = values[i], or -1 where that is ``nothing``: all in one pass, by blocks of TILE.
template <class Result>
__device__ inline void make_signed(const VALUE* values, i64 size, VALUE nothing, Result* results) {
  VALUE found[EACH];
  i64 first = (i64)blockIdx.x * TILE + threadIdx.x;
  auto place = [&](int k) { return first + k * blockDim.x; };
  each_k<EACH>([&](int k) { if (place(k) < size) found[k] = values[place(k)]; });
  each_k<EACH>([&](int k) { if (place(k) < size) results[place(k)] = found[k] == nothing ? (Result)-1 : (Result)found[k]; });
}

extern "C" __global__ void signed_4(const VALUE* values, i64 size, VALUE nothing, int* results) {
  make_signed(values, size, nothing, results);
}
extern "C" __global__ void signed_8(const VALUE* values, i64 size, VALUE nothing, i64* results) {
  make_signed(values, size, nothing, results);
}

// What a thread has of the tile that begins at entry ``begin``: the bits say which of its warp's entries are updated.
struct Chosen {
  int lid[EACH];
  unsigned bits[EACH];
  __device__ bool here(int k) const { return bits[k] >> lane_id() & 1; }
};

__device__ inline Chosen chosen_of(i64 begin, const int* lids, const unsigned* updated) {
  Chosen chosen;
  each_k<EACH>([&](int k) { chosen.lid[k] = lids[begin + k * blockDim.x + threadIdx.x]; });
  each_k<EACH>([&](int k) {
    chosen.bits[k] = __ballot_sync(FULL, chosen.lid[k] >= 0 && get_bit(updated, chosen.lid[k]));
  });
  return chosen;
}

// counts[r] = updated entries of the piece for rank r, and ``taken`` becomes 0, in row ``number`` of both, that of a label. Its
// blocks begin where those of the labels before end, so they say where the next ones do. The host gets the words of the
// messages, which end with the last block that has an entry. Pieces begin at multiples of a tile, so a tile is inside one
// piece: one atomic per block of threads.
extern "C" __global__ void count_updated(i64 entries, const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                         const unsigned* updated, u64* sums, i64 number, i64 with_values, i64* begins,
                                         i64* counts, i64* taken, i64* lengths, u64* host) {
  for (i64 begin = (i64)blockIdx.x * TILE; begin < entries; begin += (i64)gridDim.x * TILE) {
    Chosen chosen = chosen_of(begin, lids, updated);
    u64 count = 0;
    each_k<EACH>([&](int k) { count += __syncthreads_count(chosen.here(k)); });
    if (threadIdx.x == 0 && count) atomicAdd(&sums[piece_of(begin, starts, ranks)], count);
  }
  if (!last_block((unsigned*)&sums[ranks])) return;
  for (i64 rank = threadIdx.x; rank < ranks; rank += blockDim.x) {
    i64 entry = number * ranks + rank, width = with_values ? sizeof(VALUE) : 0;
    i64 count = counts[entry] = (i64)atomicExch(&sums[rank], 0ull);
    taken[entry] = 0;
    i64 end = begins[entry] + block_words(mode_of(count, sizes[rank], width), count, sizes[rank], width);
    begins[entry + ranks] = end;
    if (count || number == 0) lengths[rank] = count ? end : 0;
    host[rank] = (u64)lengths[rank];
  }
}

// Block ``number`` of the messages to all ranks at once, with positions and values, one block of threads per tile; that for
// rank r begins ``begins`` words after buffers[r]. The slots of OFFSETS are given out by an atomic counter, so they are in
// any order; each position occurs once, hence what the receiver computes does not depend on the order. With ``reset`` a
// value that was sent goes back to ``identity``: its share must not count again. ``begins``, ``counts`` and ``taken`` come
// from count_updated.
extern "C" __global__ void extract_values(const int* lids, const i64* starts, const i64* sizes, i64 ranks,
                                          u64* const* buffers, i64 number, i64 with_values, const i64* begins,
                                          const i64* counts, i64* taken, VALUE* values, unsigned* updated, i64 reset,
                                          VALUE identity) {
  __shared__ i64 slots[EACH * WARPS];
  i64 begin = (i64)blockIdx.x * TILE;
  int rank = piece_of(begin, starts, ranks), warp = threadIdx.x / 32;
  i64 count = counts[number * ranks + rank], size = sizes[rank], first = begin - starts[rank];
  Mode mode = mode_of(count, size, with_values ? sizeof(VALUE) : 0);
  u64* block = buffers[rank] + begins[number * ranks + rank];
  if (first == 0 && threadIdx.x == 0) block[0] = header_of(mode, count);
  if (count == 0) return;
  unsigned* positions = (unsigned*)(block + 1);
  VALUE* items = (VALUE*)(block + 1 + position_words(mode, count, size));
  Chosen chosen = chosen_of(begin, lids, updated);
  if (mode == OFFSETS) {
    bool any = false;
    for (int k = 0; k < EACH; k++) any |= chosen.bits[k] != 0;
    if (!__syncthreads_or(any)) return;
    for (int k = 0; k < EACH; k++)
      if (lane_id() == 0) slots[k * WARPS + warp] = __popc(chosen.bits[k]);
    __syncthreads();
    if (warp == 0) {  // EACH * WARPS is 32
      i64 own = slots[lane_id()], upto = scan_of_warp(own), at = 0;
      if (lane_id() == 31) at = (i64)atomicAdd((u64*)&taken[number * ranks + rank], (u64)upto);
      slots[lane_id()] = __shfl_sync(FULL, at, 31) + upto - own;
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    i64 place = first + k * blockDim.x + threadIdx.x;
    int lid = chosen.lid[k];
    if (mode == SPREAD && lane_id() == 0 && place < 64 * bit_words(size)) positions[place >> 5] = chosen.bits[k];
    if (!chosen.here(k)) continue;
    i64 slot = place;
    if (mode == OFFSETS) {
      slot = slots[k * WARPS + warp] + __popc(chosen.bits[k] & below_lane());
      positions[slot] = (unsigned)place;
    }
    if (with_values) items[slot] = values[lid];
    if (reset) values[lid] = identity, clear_bit(updated, lid);
  }
}
