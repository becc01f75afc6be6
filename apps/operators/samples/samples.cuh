// Draw edges, and take steps of walks: see interfaces.py. A thread takes a node, or a walker: what it draws depends on no other.
#include "cusp/kernels/warp.cuh"

struct Graph {
  const i64* offsets;
  const i64* ends;
  const i64* sums;  // of weights; null where all edges are as likely as each other
  const u64* index;
  const int* table;
};

__device__ inline i64 below(u64 number, i64 bound) { return (i64)((double)(i64)(number >> 11) * 0x1p-53 * (double)bound); }

// The first place from ``begin`` on whose mark is above this one, or ``end``.
__device__ inline i64 first_above(const i64* marks, i64 begin, i64 end, i64 mark) {
  return first_where(begin, end, [&](i64 place) { return marks[place] > mark; });
}

extern "C" __global__ void cut_rows(i64 count, i64* ends, const i64* begins, const i64* marks, const i64* until) {
  i64 i = thread_id();
  if (i < count) ends[i] = first_above(marks, begins[i], ends[i], until[i]);
}

extern "C" __global__ void count_draws(i64 count, const i64* begins, const i64* ends, i64 fan_out, i64 replace, i64* sizes) {
  i64 i = thread_id();
  if (i >= count) return;
  i64 size = ends[i] - begins[i];
  sizes[i] = fan_out < 0 || size == 0 || (size <= fan_out && !replace) ? size : fan_out;
}

// Where the share of an edge begins in its row, and how much that is.
struct Span {
  i64 start, width;
};

__device__ inline Span span_of(const i64* sums, i64 begin, i64 edge) {
  if (!sums) return {edge - begin, 1};
  i64 start = edge > begin ? sums[edge - 1] : 0;
  return {start, sums[edge] - start};
}

extern "C" __global__ void draw_edges(i64 count, Graph graph, const i64* begins, const i64* ends, const u64* keys, i64 replace,
                                      const i64* offsets, i64* edges) {
  i64 i = thread_id();
  if (i >= count) return;
  const i64* sums = graph.sums;
  i64 begin = begins[i], end = ends[i], first = offsets[i], last = offsets[i + 1];
  if (!replace && end - begin == last - first) {
    for (i64 place = begin; place < end; place++) edges[first + place - begin] = place;
    return;
  }
  i64 whole = sums && begin < end ? sums[end - 1] : end - begin;
  u64 key = keys[i];
  for (i64 to = first; to < last; to++) {
    key += GOLDEN;
    i64 lot = below(mix(key), whole), slot = replace ? to : first;
    for (; slot < to; slot++) {  // as if the edges that are taken were not there
      Span taken = span_of(sums, begin, edges[slot]);
      if (lot < taken.start) break;
      lot += taken.width;
    }
    i64 edge = sums ? first_above(sums, begin, end, lot) : begin + lot;
    for (i64 place = to; place > slot; place--) edges[place] = edges[place - 1];
    edges[slot] = edge;
    if (!replace) whole -= span_of(sums, begin, edge).width;
  }
}

struct Row {
  i64 begin, end;
};

__device__ inline Row row_of(Graph graph, i64 gid) {
  i64 lid = lid_of(graph.index, graph.table, (u64)gid);
  return {graph.offsets[lid], graph.offsets[lid + 1]};
}

__device__ inline bool has(const i64* ends, Row row, i64 gid, i64 mask) {
  i64 place = first_where(row.begin, row.end, [&](i64 place) { return (ends[place] & mask) >= gid; });
  return place < row.end && (ends[place] & mask) == gid;
}

// The walkers from ``away`` on write to ``own``, whose first row is that of walker ``first``; those before to ``log``.
extern "C" __global__ void walk(i64 count, Graph graph, i64* walkers, i64 length, u64 seed, double back, double far, i64 bits,
                                i64 rank, i64* own, i64 first, i64* log, i64 away) {
  i64 i = thread_id();
  if (i >= count) return;
  i64* walker = walkers + i * WALKER;
  i64 step = walker[1], before = walker[2], here = walker[3], drawn = walker[4], tries = walker[5], mask = (1ll << bits) - 1;
  u64 key = mix(seed + (u64)walker[0] * GOLDEN);
  double near = far > 1 ? far : 1, most = back > near ? back : near;
  for (int steps = 0; steps < ROUND && step < length;) {
    bool asks = drawn >= 0;
    if ((asks ? before : here) >> bits != rank) break;
    u64 lot = key + (u64)((step << 32) + 2 * tries + 1) * GOLDEN;
    if (!asks) {
      Row row = row_of(graph, here & mask);
      if (row.begin == row.end) {
        step = length;
        break;
      }
      i64 place = below(mix(lot), graph.sums ? graph.sums[row.end - 1] : row.end - row.begin);
      drawn = graph.ends[graph.sums ? first_above(graph.sums, row.begin, row.end, place) : row.begin + place];
    }
    bool taken = true;
    if (before >= 0 && !(back == 1 && far == 1)) {  // rejection sampling (Yang et al., SOSP 2019, section 4.1)
      double share = (double)(i64)(mix(lot + GOLDEN) >> 11) * 0x1p-53 * most;
      taken = share < (drawn == before ? back : far < 1 ? far : 1.0);
      if (!taken && drawn != before && share < near) {  // it matters whether there is an edge
        if (before >> bits != rank) break;
        taken = has(graph.ends, row_of(graph, before & mask), drawn & mask, mask) == (far < 1);
      }
    }
    if (taken) {
      if (i < away) log[i * ROUND + steps] = drawn & mask;
      else own[(walker[0] - first) * (length + 1) + step + 1] = drawn & mask;
      before = here, here = drawn, tries = 0;
      step++, steps++;
    } else {
      tries++;
    }
    drawn = -1;
  }
  walker[1] = step, walker[2] = before, walker[3] = here, walker[4] = drawn, walker[5] = tries;
}
