// Values of edges on their way, as bits of any width: compiled for an unsigned type VALUE.
#include "walk.cuh"

// Every row of values goes to its place in lid order; the value at fronts[row] and the first change places, as
// their targets did. Each edge is written once, by one lane.
extern "C" __global__ void move_rows(const int *row_lids, const long long *row_offsets, long long rows,
                                     const VALUE *arrived, const long long *offsets, const long long *fronts,
                                     VALUE *values) {
    const Run run = my_run(row_offsets[0], row_offsets[rows]);
    if (run.begin >= run.end) return;
    long long row = row_of(row_offsets, rows, 0, run.begin);
    for (long long edge = run.begin + run.lane; edge < run.end; edge += 32) {
        row = row_of(row_offsets, rows, row, edge);
        const long long front = fronts[row];
        long long place = edge - row_offsets[row];
        if (place == front) place = 0;
        else if (place == 0) place = front;
        values[offsets[row_lids[row]] + place] = arrived[edge];
    }
}

// Write a part of the edges, sorted by target, into the rows of the CSC. The i-th of them is edge order[i] of the
// part and the (i - starts[target])-th of its target in the part; places[target] edges are from parts before.
// Neighbouring lanes mostly write neighbouring entries of one row.
extern "C" __global__ void place_in_edges(const unsigned *order, const unsigned *targets, long long size,
                                          const long long *starts, const long long *places, const unsigned *part_sources,
                                          int *sources, long long weighted, const VALUE *part_weights,
                                          VALUE *in_weights) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const unsigned target = targets[i], edge = order[i];
    const long long at = places[target] + i - starts[target];
    sources[at] = int(part_sources[edge]);
    if (weighted) in_weights[at] = part_weights[edge];
}
