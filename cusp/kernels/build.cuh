// Loops of phases 3 and 4: rows by owner, numbering of the proxies, local CSR. Twins: cusp/kernels/build_cpu.py.
// Compiled for a type GID of global ids.
#include "cusp/kernels/walk.cuh"

constexpr int EACH = 4;  // look-ups of a thread that are under way at once: see build_gpu.py

// Sets the bit of each gid in the index. Any order gives the same bits. A thread has EACH entries, as many apart as there are
// threads, and all its loads are under way at once. Most bits are set already, and a plain read (from the L2 cache) is cheaper
// than an atomic. A stale read only costs an atomic that changes nothing.
extern "C" __global__ void mark(u64* index, const GID* gids, i64 size) {
  i64 threads = num_threads(), first = thread_id();
  u64 gid[EACH];
  bool marked[EACH];
  each_k<EACH>([&](int k) { gid[k] = first + k * threads < size ? (u64)gids[first + k * threads] : 0; });
  each_k<EACH>([&](int k) { marked[k] = first + k * threads >= size || has_bit(index, gid[k]); });
  each_k<EACH>([&](int k) { if (!marked[k]) atomicOr(&index[2 * (gid[k] >> 6)], 1ull << (gid[k] & 63)); });
}

// counts[word] = number of bits set in it; their running sum becomes the counts of the index. One thread per word.
extern "C" __global__ void count_bits(const u64* index, i64 words, i64* counts) {
  i64 word = thread_id();
  if (word < words) counts[word] = __popcll(index[2 * word]);
}

// Global ids of the set bits, ascending: the count before a word says where its bits go. One thread per word.
extern "C" __global__ void list_marked(const u64* index, i64 words, GID* gids) {
  i64 word = thread_id();
  if (word >= words) return;
  u64 bits = index[2 * word];
  i64 entry = (i64)index[2 * word + 1];
  for (; bits; bits &= bits - 1) gids[entry++] = (GID)(word * 64 + __ffsll((i64)bits) - 1);
}

// Clears the bits of the nodes first to last - 1. One thread per word that has some of them.
extern "C" __global__ void clear_range(u64* index, i64 first, i64 last) {
  i64 word = first / 64 + thread_id();
  if (word * 64 >= last) return;
  u64 keep = 0;
  if (word * 64 < first) keep |= (1ull << (first - word * 64)) - 1;
  if (last - word * 64 < 64) keep |= ~0ull << (last - word * 64);
  index[2 * word] &= keep;
}

// result[i] = bit gids[i] of plain words. One thread per entry.
extern "C" __global__ void test_bits(const u64* words, const GID* gids, i64 size, bool* result) {
  i64 i = thread_id();
  if (i < size) result[i] = words[(u64)gids[i] >> 6] >> ((u64)gids[i] & 63) & 1;
}

// lids[i] = local id of gids[i], or -1, also if that is no node: the index has so many words. One thread per entry.
extern "C" __global__ void look_up(
    const u64* index, i64 words, const int* table, const GID* gids, i64 size, int* lids) {
  i64 i = thread_id();
  if (i >= size) return;
  u64 gid = (u64)gids[i];
  lids[i] = gid >> 6 < (u64)words && has_bit(index, gid) ? lid_of(index, table, gid) : -1;
}

// Joins (lid, place in the row) with lowest[row], the least such pair of a row: the order of the atomics does not matter. A warp
// within one row finds its least pair first and needs one atomic; a read that is too old is too large, and costs an atomic
// that changes nothing. Lanes that are not live pass ~0.
__device__ inline void keep_lowest(u64* lowest, i64 row, u64 pair, bool live) {
  i64 first_row = __shfl_sync(FULL, row, 0);
  if (__all_sync(FULL, !live || row == first_row)) {
    pair = least_of_warp(pair);
    live = lane_id() == 0;
  }
  if (live && pair < lowest[row]) atomicMin(&lowest[row], pair);
}

// Every row goes to its place in lid order, its targets as local ids; lowest[row] becomes the least pair of the row. A look-up
// is three dependent loads of which most miss the L1 cache, or one where ``every`` node has a proxy, so each lane has EACH of
// them under way before it writes.
extern "C" __global__ void relabel(i64 every, const u64* index, const int* table, const int* row_lids, const i64* row_offsets,
                                   i64 rows, const GID* arrived, const i64* offsets, int* targets, i64 hubs_first, u64* lowest) {
  Run run = run_of_warp(row_offsets[0], row_offsets[rows], RUN);
  if (run.begin >= run.end) return;
  i64 row = slot_of(row_offsets, rows, run.begin);
  for (i64 group = run.begin + lane_id(); group - lane_id() < run.end; group += EACH * 32) {
    u64 gid[EACH];
    int lid[EACH];
    each_k<EACH>([&](int k) { gid[k] = (u64)arrived[min(group + k * 32, run.end - 1)]; });
    each_k<EACH>([&](int k) { lid[k] = every ? table[gid[k]] : lid_of(index, table, gid[k]); });
    each_k<EACH>([&](int k) {
      i64 edge = group + k * 32, place = 0;
      bool live = edge < run.end;
      if (live) {
        row = row_of(row_offsets, rows, row, edge);
        place = edge - row_offsets[row];
        targets[offsets[row_lids[row]] + place] = lid[k];
      }
      if (hubs_first) keep_lowest(lowest, row, live ? (u64)lid[k] << 32 | (u64)place : ~0ull, live);
    });
  }
}

// Swaps the target with the lowest lid to the front of its row; fronts[row] = where it was. One thread per row.
extern "C" __global__ void swap_hubs(const int* row_lids, i64 rows, const u64* lowest, const i64* offsets,
                                     int* targets, i64* fronts) {
  i64 row = thread_id();
  if (row >= rows) return;
  i64 place = (i64)(lowest[row] & 0xffffffffu), begin = offsets[row_lids[row]];
  swap(targets[begin], targets[begin + place]);
  fronts[row] = place;
}

// sources[e - offsets[first]] = row of edge e, for the edges of the rows first to last - 1.
extern "C" __global__ void list_sources(const i64* offsets, i64 first, i64 last, unsigned* sources) {
  for_each_edge_in(offsets, first, last, [&](i64 row, i64 edge, bool live) {
    if (live) sources[edge - offsets[first]] = (unsigned)row;
  });
}

// starts[key] = where the entries with this key begin, of keys that ascend. One thread per entry.
extern "C" __global__ void find_runs(const unsigned* keys, i64 size, unsigned* starts) {
  i64 i = thread_id();
  if (i < size && (i == 0 || keys[i] != keys[i - 1])) starts[keys[i]] = (unsigned)i;
}

// places[key] moves on by the entries with this key. One thread per entry; the last one with a key writes.
extern "C" __global__ void pass_runs(const unsigned* keys, i64 size, const unsigned* starts, i64* places) {
  i64 i = thread_id();
  if (i < size && (i + 1 == size || keys[i] != keys[i + 1])) places[keys[i]] += i + 1 - starts[keys[i]];
}
