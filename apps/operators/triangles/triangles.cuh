// Triangles: see interfaces.py. PLACE, the type of places, is unsigned or unsigned long long. WORDS is the size of the marks
// of a block, USERS and DRAWS are what it does.
#include "cusp/kernels/walk.cuh"

// First of the entries begin to end - 1 of an ascending list that is not below ``value``, or end.
__device__ inline i64 lower_bound(const int* list, i64 begin, i64 end, int value) {
  return first_where(begin, end, [&](i64 place) { return list[place] >= value; });
}

__device__ inline bool contains(const int* list, i64 begin, i64 end, int value) {
  i64 place = lower_bound(list, begin, end, value);
  return place < end && list[place] == value;
}

// splits[row] = where the targets above it begin; sums: squares of how many are below, and of about how many are before it by
// degree, then id, added up. A warp takes a row at a time; SAMPLE targets tell how many.
constexpr i64 SAMPLE = 1024;

extern "C" __global__ void split_rows(const i64* offsets, i64 size, const int* targets, i64* splits, u64* sums) {
  u64 work = 0, least = 0;
  for (i64 row = thread_id() / 32; row < size; row += num_threads() / 32) {
    i64 begin = offsets[row], end = offsets[row + 1], step = (end - begin + SAMPLE - 1) / SAMPLE, before = 0;
    for (i64 edge = begin + lane_id() * step; edge < end; edge += 32 * step) {
      i64 target = targets[edge], degree = offsets[target + 1] - offsets[target];
      before += degree > end - begin || (degree == end - begin && target < row);
    }
    before = step * sum_of_warp(before);
    i64 split = lower_bound(targets, begin, end, (int)row), below = split - begin;
    if (lane_id() == 0) splits[row] = split, work += below * below, least += before * before;
  }
  add_up(&sums[0], work);
  add_up(&sums[1], least);
}

// The targets of each row up to its split, from lower[begins[row]] on. A warp takes a row at a time.
extern "C" __global__ void copy_lower(const i64* offsets, i64 size, const int* targets, const i64* begins, int* lower) {
  for (i64 row = thread_id() / 32; row < size; row += num_threads() / 32)
    for (i64 to = begins[row] + lane_id(); to < begins[row + 1]; to += 32) lower[to] = targets[offsets[row] + to - begins[row]];
}

// kept[i + 1] = targets of row rows[i] that come before it. A block takes a row at a time.
extern "C" __global__ void count_before(const i64* rows, i64 size, const i64* begins, const i64* ends, const int* targets,
                                        const PLACE* places, i64* kept) {
  __shared__ int before;
  for (i64 i = blockIdx.x; i < size; i += gridDim.x) {
    if (threadIdx.x == 0) before = 0;
    __syncthreads();
    PLACE own = places[rows[i]];
    int count = 0;
    for (i64 edge = begins[rows[i]] + threadIdx.x; edge < ends[rows[i]]; edge += blockDim.x)
      count += places[targets[edge]] < own;
    count = __reduce_add_sync(FULL, count);
    if (lane_id() == 0 && count) atomicAdd(&before, count);
    __syncthreads();
    if (threadIdx.x == 0) kept[i + 1] = before;
  }
}

// Their places, from entries[kept[i]] on. A warp reserves places for what its lanes keep; where a
// block has several warps, a row is in any order.
extern "C" __global__ void write_before(const i64* rows, i64 size, const i64* begins, const i64* ends, const int* targets,
                                        const PLACE* places, const i64* kept, PLACE* entries) {
  __shared__ int filled;
  for (i64 i = blockIdx.x; i < size; i += gridDim.x) {
    if (kept[i] == kept[i + 1]) continue;  // all threads alike
    __syncthreads();
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    PLACE own = places[rows[i]];
    i64 end = ends[rows[i]];
    for (i64 group = begins[rows[i]] + threadIdx.x / 32 * 32; group < end; group += blockDim.x) {
      PLACE place = group + lane_id() < end ? places[targets[group + lane_id()]] : own;
      unsigned lower = __ballot_sync(FULL, place < own);
      int slot = 0;
      if (lane_id() == 0 && lower) slot = atomicAdd(&filled, __popc(lower));
      slot = __shfl_sync(FULL, slot, 0);
      if (place < own) entries[kept[i] + slot + __popc(lower & below_lane())] = place;
    }
  }
}

// Triangles u > v > w: a block marks the row of v, and each of its warps takes a u with an edge to v and counts which of
// its w < v are marked. Marks are bits in shared memory for the nodes of highest degree, which have the lowest numbers and
// are nearly all that is looked up; others are searched for at the end of v's row by bisection.
//
// An item of work is a v with up to USERS of its u. Item n belongs to marked[i] where items[i] <= n < items[i + 1]. A block
// draws DRAWS items, those of the highest degree first, and ends, so that what is urgent may begin. sums: items drawn,
// triangles.
constexpr int MARKED = 32 * WORDS;

extern "C" __global__ void __launch_bounds__(256)
count_triangles(const i64* marked, const i64* items, i64 size, const i64* row_begins, const i64* row_ends,
                const int* rows, const i64* in_begins, const i64* in_ends, const int* sources, const i64* begins,
                const i64* ends, const int* targets, i64 per_node, u64* counts, u64* sums) {
  __shared__ unsigned marks[WORDS];
  __shared__ i64 item, slot;
  for (int word = threadIdx.x; word < WORDS; word += blockDim.x) marks[word] = 0;
  i64 total = 0;
  for (int draw = 0; draw < DRAWS; draw++) {
    __syncthreads();
    if (threadIdx.x < 32) {
      i64 drawn = 0;
      if (lane_id() == 0) drawn = (i64)atomicAdd(&sums[0], 1ull);
      drawn = __shfl_sync(FULL, drawn, 0);
      i64 its_slot = slot_of(items, size, drawn);
      if (lane_id() == 0) item = drawn, slot = its_slot;
    }
    __syncthreads();
    if (item >= items[size]) break;
    int middle = (int)marked[slot];
    i64 row_begin = row_begins[middle], row_end = row_ends[middle];
    i64 far = rows[row_end - 1] < MARKED ? row_end : lower_bound(rows, row_begin, row_end, MARKED);
    for (i64 i = row_begin + threadIdx.x; i < far; i += blockDim.x) atomicOr(&marks[rows[i] >> 5], 1u << (rows[i] & 31));
    __syncthreads();
    i64 first = in_begins[middle] + (item - items[slot]) * USERS, last = min(first + USERS, in_ends[middle]);
    i64 at_middle = 0;
    for (i64 i = first + threadIdx.x / 32; i < last; i += blockDim.x / 32) {
      int user = sources[i], count = 0;
      for (i64 edge = begins[user] + lane_id(), end = ends[user];; edge += 32) {
        int node = edge < end ? targets[edge] : middle;
        bool closed = node < middle && (node < MARKED ? get_bit(marks, node) : contains(rows, far, row_end, node));
        count += closed;
        if (per_node && closed) atomicAdd(&counts[node], 1ull);
        if (__any_sync(FULL, node >= middle)) break;  // rows ascend, and the middle is in this one
      }
      if (per_node) {
        int at_user = __reduce_add_sync(FULL, count);
        if (lane_id() == 0 && at_user) atomicAdd(&counts[user], (u64)at_user);
      }
      at_middle += count;
    }
    total += at_middle;
    if (per_node) {
      at_middle = sum_of_warp(at_middle);
      if (lane_id() == 0 && at_middle) atomicAdd(&counts[middle], (u64)at_middle);
    }
    __syncthreads();
    for (i64 i = row_begin + threadIdx.x; i < far; i += blockDim.x) marks[rows[i] >> 5] = 0;
  }
  add_up(&sums[1], (u64)total);
}
