// Compiled for a type OWNER of ranks.
#include "walk.cuh"

// counts[owner * rows + row] += 1 for each edge. Lanes with the same row and owner let the lowest of them add.
extern "C" __global__ void count_by_owner(const long long *indptr, long long rows, const OWNER *owners,
                                          unsigned *counts) {
    const Run run = my_run(indptr[0], indptr[rows]);
    if (run.begin >= run.end) return;
    long long row = row_of(indptr, rows, 0, run.begin);
    for (long long step = run.begin; step < run.end; step += 32) {
        const long long edge = step + run.lane;
        const bool live = edge < run.end;
        const unsigned lanes = __ballot_sync(ALL_LANES, live);
        if (!live) continue;
        row = row_of(indptr, rows, row, edge);
        const long long counter = owners[edge] * rows + row;
        const unsigned peers = __match_any_sync(lanes, counter);
        if (run.lane == __ffs(int(peers)) - 1) atomicAdd(counts + counter, unsigned(__popc(peers)));
    }
}
