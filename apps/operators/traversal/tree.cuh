// Parents in a tree of shortest paths. VALUE is the type of hops or distances, WEIGHT that of the weights of edges.
#include "cusp/kernels/warp.cuh"

// Whether a value and a length add up to another value, where sums must not overflow; a length that was above all VALUEs is
// below 0.
template <class Whole>
__device__ inline bool adds_up(Whole before, Whole length, Whole value) {
  return 0 <= length && length <= value && before == value - length;
}
__device__ inline bool adds_up(double before, double length, double value) { return before + length == value; }

// An edge from ``source`` explains the value of a node if it is tight; if its length is 0, only when the source has a
// parent already, so that no two nodes explain each other.
__device__ inline bool explains(int source, VALUE length, VALUE value, const VALUE* values, const i64* known,
                                i64 nobody) {
  VALUE before = values[source];
  return adds_up(before, length, value) && (before < value || known[source] != nobody);
}

// A lane looks at the first in-edge of a node, which is mostly enough for hops, since hubs come first; then the warp goes
// through the rows of those that are left one after the other, 32 edges at a time, so loads coalesce.
extern "C" __global__ void find_parents(i64 rows, const i64* offsets, const int* sources, const WEIGHT* weights,
                                        i64 weighted, const i64* gids, const VALUE* values, VALUE far, const i64* known,
                                        i64 nobody, i64* parents, unsigned* updated) {
  for (i64 first = thread_id() / 32 * 32; first < rows; first += num_threads()) {
    i64 node = first + lane_id(), begin = 0, end = 0;
    VALUE value = far;
    if (node < rows && parents[node] == nobody) {
      value = values[node];
      if (value != far) begin = offsets[node], end = offsets[node + 1];
    }
    if (begin < end) {
      int source = sources[begin];
      if (explains(source, weighted ? (VALUE)weights[begin] : (VALUE)1, value, values, known, nobody)) {
        parents[node] = gids[source], set_bit(updated, node);
        end = begin;
      }
    }
    for (unsigned left = __ballot_sync(FULL, end - begin > 1); left; left &= left - 1) {
      int lane = __ffs(left) - 1;
      i64 last = __shfl_sync(FULL, end, lane);
      VALUE wanted = __shfl_sync(FULL, value, lane);
      for (i64 group = __shfl_sync(FULL, begin, lane) + 1; group < last; group += 32) {
        i64 edge = group + lane_id();
        int source = 0;
        bool explained = false;
        if (edge < last) {
          source = sources[edge];
          explained = explains(source, weighted ? (VALUE)weights[edge] : (VALUE)1, wanted, values, known, nobody);
        }
        unsigned who = __ballot_sync(FULL, explained);
        if (who == 0) continue;
        if (lane_id() == (unsigned)__ffs(who) - 1) parents[first + lane] = gids[source], set_bit(updated, first + lane);
        break;
      }
    }
  }
}
