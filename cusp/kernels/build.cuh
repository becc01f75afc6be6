// Loops of phases 3 and 4: rows by owner, numbering of the proxies, local CSR. Twins: cusp/kernels/build_cpu.py.
// Compiled for a type GID of global ids.
#include "walk.cuh"

// Sets the bit of each gid in the index. Any order gives the same bits. One thread per entry; most bits are set already, and
// a plain read (from the L2 cache) is cheaper than an atomic. A stale read only costs an atomic that changes nothing.
extern "C" __global__ void mark(u64* index, const GID* gids, i64 size) {
  i64 i = thread_id();
  if (i >= size) return;
  u64 gid = (u64)gids[i];
  if (!has_bit(index, gid)) atomicOr(&index[2 * (gid >> 6)], 1ull << (gid & 63));
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

// lids[i] = local id of gids[i], or -1. One thread per entry.
extern "C" __global__ void look_up(const u64* index, const int* table, const GID* gids, i64 size, int* lids) {
  i64 i = thread_id();
  if (i < size) lids[i] = has_bit(index, (u64)gids[i]) ? lid_of(index, table, (u64)gids[i]) : -1;
}

// How many come before a node in its group: the last one that begins at its local id or below.
__device__ inline i64 place_in_group(int lid, const i64* starts, i64 groups) {
  i64 low = 0;
  for (i64 high = groups; high - low > 1;) {
    i64 middle = (low + high) / 2;
    if (starts[middle] <= lid) low = middle;
    else high = middle;
  }
  return lid - starts[low];
}

// Every row goes to its place in lid order, its targets as local ids. foremost[row] becomes the least place of a target in its
// group and, below it, the first place in the row of such a one: the least pair of the two, so that the order of the atomics
// does not matter. A warp within one row finds its least pair first and needs one atomic; a read that is too old is too large,
// and costs an atomic that changes nothing.
extern "C" __global__ void relabel(const u64* index, const int* table, const int* row_lids, const i64* row_offsets, i64 rows,
                                   const GID* arrived, const i64* offsets, int* targets, const i64* starts, i64 groups,
                                   u64* foremost) {
  for_each_edge_in(row_offsets, 0, rows, [&](i64 row, i64 edge, bool live) {
    u64 pair = ~0ull;
    if (live) {
      int lid = lid_of(index, table, (u64)arrived[edge]);
      i64 place = edge - row_offsets[row];
      targets[offsets[row_lids[row]] + place] = lid;
      if (groups) pair = (u64)place_in_group(lid, starts, groups) << 32 | (u64)place;
    }
    if (!groups) return;
    i64 first_row = __shfl_sync(FULL, row, 0);
    if (__all_sync(FULL, !live || row == first_row)) {
      pair = least_of_warp(pair);
      live = lane_id() == 0;
    }
    if (live && pair < foremost[row]) atomicMin(&foremost[row], pair);
  });
}

// Swaps the foremost target to the front of its row; fronts[row] = where it was. One thread per row.
extern "C" __global__ void swap_hubs(const int* row_lids, i64 rows, const u64* foremost, const i64* offsets,
                                     int* targets, i64* fronts) {
  i64 row = thread_id();
  if (row >= rows) return;
  i64 place = (i64)(foremost[row] & 0xffffffffu), begin = offsets[row_lids[row]];
  int first = targets[begin];
  targets[begin] = targets[begin + place];
  targets[begin + place] = first;
  fronts[row] = place;
}

// sources[e - offsets[first]] = row of edge e, for the edges of the rows first to last - 1.
extern "C" __global__ void list_sources(const i64* offsets, i64 first, i64 last, unsigned* sources) {
  for_each_edge_in(offsets, first, last, [&](i64 row, i64 edge, bool live) {
    if (live) sources[edge - offsets[first]] = (unsigned)row;
  });
}
