// Loops of phases 3 and 4: rows by owner, numbering of the proxies, local CSR. Twins: cusp/kernels/build_cpu.py.
// Compiled for a type GID of global ids.
#include "walk.cuh"

__device__ __forceinline__ long long my_entry() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

// index.bits[gid] = 1 for each gid. Any order gives the same bits. One thread an entry; most bits are set
// already, and a plain read (which lives in the L2 cache) is cheaper than an atomic. A stale read only costs
// an atomic that changes nothing.
extern "C" __global__ void mark(Word *index, const GID *gids, long long size) {
    const long long i = my_entry();
    if (i >= size) return;
    const Word gid = Word(gids[i]), bit = Word(1) << (gid & 63);
    if (!(index[2 * (gid >> 6)] & bit)) atomicOr(index + 2 * (gid >> 6), bit);
}

// counts[word] = number of bits set in it; their running sum becomes the counts of the index. One thread a word.
extern "C" __global__ void count_bits(const Word *index, long long words, long long *counts) {
    const long long word = my_entry();
    if (word < words) counts[word] = __popcll(index[2 * word]);
}

// Global ids of the set bits, ascending: the count before a word says where its bits go. One thread a word.
extern "C" __global__ void list_marked(const Word *index, long long words, GID *gids) {
    const long long word = my_entry();
    if (word >= words) return;
    Word bits = index[2 * word];
    long long entry = (long long)index[2 * word + 1];
    for (; bits; bits &= bits - 1) gids[entry++] = (GID)(word * 64 + __ffsll((long long)bits) - 1);
}

// Clear the bits of the nodes first to last - 1. One thread a word that has some of them.
extern "C" __global__ void clear_range(Word *index, long long first, long long last) {
    const long long word = first / 64 + my_entry();
    if (word * 64 >= last) return;
    Word keep = 0;
    if (word * 64 < first) keep |= (Word(1) << (first - word * 64)) - 1;
    if (last - word * 64 < 64) keep |= ~Word(0) << (last - word * 64);
    index[2 * word] &= keep;
}

// found[i] = bit gids[i] of plain words. One thread an entry.
extern "C" __global__ void test_bits(const Word *words, const GID *gids, long long size, bool *found) {
    const long long i = my_entry();
    if (i < size) found[i] = words[Word(gids[i]) >> 6] >> (Word(gids[i]) & 63) & 1;
}

// lids[i] = local id of gids[i], or -1. One thread an entry.
extern "C" __global__ void look_up(const Word *index, const int *table, const GID *gids, long long size, int *lids) {
    const long long i = my_entry();
    if (i < size) lids[i] = has_bit(index, Word(gids[i])) ? table[bits_below(index, Word(gids[i]))] : -1;
}

// Every row goes to its place in lid order, its targets as local ids. lowest[row] becomes the lowest lid of
// the row and, below it, its first place in the row: the least pair of the two, so that the order of the atomics
// does not matter. A warp within one row finds its least pair first and needs one atomic; a read that is too old
// is too large, and costs an atomic that changes nothing.
extern "C" __global__ void relabel(const Word *index, const int *table, const int *row_lids,
                                   const long long *row_offsets, long long rows, const GID *arrived,
                                   const long long *offsets, int *targets, long long hubs_first, Word *lowest) {
    const Run run = my_run(row_offsets[0], row_offsets[rows]);
    if (run.begin >= run.end) return;
    long long row = row_of(row_offsets, rows, 0, run.begin);
    for (long long step = run.begin; step < run.end; step += 32) {
        const long long edge = step + run.lane;
        const bool live = edge < run.end;
        Word pair = ~Word(0);
        if (live) {
            row = row_of(row_offsets, rows, row, edge);
            const int lid = table[bits_below(index, Word(arrived[edge]))];
            const long long place = edge - row_offsets[row];
            targets[offsets[row_lids[row]] + place] = lid;
            pair = Word(lid) << 32 | Word(place);
        }
        if (!hubs_first) continue;
        const long long first_row = __shfl_sync(ALL_LANES, row, 0);
        if (__all_sync(ALL_LANES, !live || row == first_row)) {
            for (int half = 16; half; half /= 2) {
                const Word other = __shfl_xor_sync(ALL_LANES, pair, half);
                pair = other < pair ? other : pair;
            }
            if (run.lane == 0 && pair < lowest[row]) atomicMin(lowest + row, pair);
        } else if (live && pair < lowest[row]) {
            atomicMin(lowest + row, pair);
        }
    }
}

// Swap the target with the lowest lid to the front of its row; fronts[row] = where it was. One thread a row.
extern "C" __global__ void swap_hubs(const int *row_lids, long long rows, const Word *lowest, const long long *offsets,
                                     int *targets, long long *fronts) {
    const long long row = my_entry();
    if (row >= rows) return;
    const long long place = (long long)(lowest[row] & 0xffffffffu), begin = offsets[row_lids[row]];
    const int first = targets[begin];
    targets[begin] = targets[begin + place];
    targets[begin + place] = first;
    fronts[row] = place;
}

// sources[e - offsets[first]] = row of edge e, for the edges of the rows first to last - 1.
extern "C" __global__ void list_sources(const long long *offsets, long long first, long long last, unsigned *sources) {
    const Run run = my_run(offsets[first], offsets[last]);
    long long row = first;
    for (long long edge = run.begin + run.lane; edge < run.end; edge += 32) {
        row = row_of(offsets, last, row, edge);
        sources[edge - offsets[first]] = unsigned(row);
    }
}
