// Edge operators: passes over the edges of a CSR around an expression, which apps/operators/expressions/edges_gpu.py appends to this file
// as a struct Operator. VALUE is the type of the label that is written, WIDE that of sums over rows: Int for whole numbers,
// Float for others. REDUCTION is its code in gluon/reduction.py. Twins: the loops and functions of edges_cpu.py.
#include "../frontier.cuh"

typedef i64 Int;
typedef double Float;
typedef bool Bool;
typedef VALUE Value;
typedef WIDE Wide;
enum { MINIMUM = 1, MAXIMUM = 2, SUM = 3 };

// What expressions call.
#define LOWEST (Int)(1ull << 63)
#define LARGEST (Int)(~0ull >> 1)
__device__ inline Float infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
template <class T>
__device__ inline T select(Bool test, T yes, T no) { return test ? yes : no; }
template <class T>
__device__ inline T least(T a, T b) { return a < b ? a : b; }
template <class T>
__device__ inline T largest(T a, T b) { return a > b ? a : b; }
__device__ inline Int clipped(Int a, Int low, Int high) { return a < low ? low : a > high ? high : a; }
__device__ inline Int from_unsigned(u64 a) { return a <= (u64)LARGEST ? (Int)a : LARGEST; }
__device__ inline Int saturating_add(Int a, Int b) {
  Int total = (Int)((u64)a + (u64)b);
  return ((a ^ total) & (b ^ total)) < 0 ? (b >= 0 ? LARGEST : LOWEST) : total;
}
__device__ inline Int saturating_sub(Int a, Int b) {
  Int total = (Int)((u64)a - (u64)b);
  return ((a ^ b) & (a ^ total)) < 0 ? (b < 0 ? LARGEST : LOWEST) : total;
}
__device__ inline Int saturating_mul(Int a, Int b) {
  Int low = (Int)((u64)a * (u64)b);
  return __mul64hi(a, b) == low >> 63 ? low : (a < 0) == (b < 0) ? LARGEST : LOWEST;
}
__device__ inline Float multiply(Float a, Float b) { return __dmul_rn(a, b); }
__device__ inline Float divide(Float a, Float b) { return a / b; }
__device__ inline Int floor_divide(Int a, Int b) {
  if (b == 0) return 0;
  if (b == -1) return saturating_sub(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
__device__ inline Int floor_modulo(Int a, Int b) {
  if (b == 0 || b == -1) return 0;
  Int rest = a % b;
  return rest + (rest != 0 && (rest < 0) != (b < 0) ? b : 0);
}
__device__ inline Int int_abs(Int a) { return a < 0 ? saturating_sub(0, a) : a; }
__device__ inline Int to_int(Float a) {
  if (a != a) return 0;
  return a >= 9223372036854775808.0 ? LARGEST : a < -9223372036854775808.0 ? LOWEST : (Int)a;
}

// Reductions. ``identity`` is what changes nothing; it is defined below this file.
__device__ inline Wide identity();
template <class T>
__device__ inline T joined(T a, T b) {
  return REDUCTION == MINIMUM ? least(b, a) : REDUCTION == MAXIMUM ? largest(b, a) : (T)(a + b);
}
__device__ inline bool changes(Value old, Value value) {
  return REDUCTION == MINIMUM ? value < old : REDUCTION == MAXIMUM ? value > old : value != 0;
}
__device__ inline Wide joined_by_warp(Wide value) {
  return reduce_warp(value, [](Wide a, Wide b) { return joined(a, b); });
}

// For a node that no other thread writes.
__device__ inline void combine(i64 node, Value value, Value* values, unsigned* updated) {
  Value old = values[node];
  if (!changes(old, value)) return;
  values[node] = joined(old, value);
  set_bit(updated, node);
}

// The atomic minimum and maximum of floats: as integers, those below 0 are ordered backwards. They give back what was there.
__device__ inline int bits_of(float value) { return __float_as_int(value); }
__device__ inline i64 bits_of(double value) { return __double_as_longlong(value); }
__device__ inline float number_of(int bits) { return __int_as_float(bits); }
__device__ inline double number_of(i64 bits) { return __longlong_as_double(bits); }
template <class T, class Signed, class Unsigned>
__device__ inline T atomic_extreme(T* place, T value) {
  Signed bits = bits_of(value);
  bool as_signed = bits >= 0, least = REDUCTION == MINIMUM;
  if (as_signed && least) return number_of((Signed)atomicMin((Signed*)place, bits));
  if (as_signed) return number_of((Signed)atomicMax((Signed*)place, bits));
  if (least) return number_of((Signed)atomicMax((Unsigned*)place, (Unsigned)bits));
  return number_of((Signed)atomicMin((Unsigned*)place, (Unsigned)bits));
}
__device__ inline float atomic_join(float* place, float value) {
  return REDUCTION == SUM ? atomicAdd(place, value) : atomic_extreme<float, int, unsigned>(place, value);
}
__device__ inline double atomic_join(double* place, double value) {
  return REDUCTION == SUM ? atomicAdd(place, value) : atomic_extreme<double, i64, u64>(place, value);
}
__device__ inline i64 atomic_join(i64* place, i64 value) {
  if (REDUCTION == SUM) return (i64)atomicAdd((u64*)place, (u64)value);
  return REDUCTION == MINIMUM ? atomicMin(place, value) : atomicMax(place, value);
}
template <class T>
__device__ inline T atomic_join(T* place, T value) {
  if (REDUCTION == SUM) return atomicAdd(place, value);
  return REDUCTION == MINIMUM ? atomicMin(place, value) : atomicMax(place, value);
}

// For a node that others may write at the same time. ``old`` is what stood there a moment ago: a minimum only falls, so
// what does not change that changes nothing.
__device__ inline void combine_atomic(i64 node, Value value, Value old, Value* values, unsigned* updated) {
  if (changes(old, value) && changes(atomic_join(&values[node], value), value)) set_bit(updated, node);
}

// The columns and candidates of a few edges, and which of them take part. All loads of one kind are under way before one is
// needed: edges that take no part look at edge 0 instead of branching.
struct Found {
  int column[K];
  bool chosen[K];
  Value candidate[K];
};
template <class Operator>
__device__ inline Found look(const Operator& op, const Edges& edges, const int* columns, const unsigned* frontier) {
  Found found;
#pragma unroll
  for (int k = 0; k < K; k++) found.column[k] = edges.active[k] ? __ldcs(&columns[edges.place[k]]) : 0;
#pragma unroll
  for (int k = 0; k < K; k++) {
    bool on = edges.active[k];
    if (Operator::FILTERED) on = on && get_bit(frontier, found.column[k]);
    if (Operator::CONDITIONAL) on = op.where(on ? edges.node[k] : 0, on ? found.column[k] : 0, on ? edges.place[k] : 0) && on;
    found.chosen[k] = on;
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    bool on = found.chosen[k];
    found.candidate[k] = op.candidate(on ? edges.node[k] : 0, on ? found.column[k] : 0, on ? edges.place[k] : 0);
  }
  return found;
}

template <class Operator>
__device__ inline void push(const Operator& op, const Edges& edges, const int* columns, Value* values, unsigned* updated) {
  Found found = look(op, edges, columns, nullptr);
  Value old[K];
#pragma unroll
  for (int k = 0; k < K; k++) old[k] = values[found.column[k]];
#pragma unroll
  for (int k = 0; k < K; k++)
    if (found.chosen[k]) combine_atomic(found.column[k], found.candidate[k], old[k], values, updated);
}

// Along the edges of a queue, which is empty afterwards.
template <class Operator>
__device__ inline void push_queue(const Operator& op, Queues queues, const int* columns, Value* values, unsigned* updated) {
  consume(queues, [&](const Edges& edges) { push(op, edges, columns, values, updated); });
}

// Calls visit(edges) for the edges of a run, 32 * K at a time, in order. ``row`` holds the first. The rows of 32 consecutive
// edges are found by a search among the next 32 offsets, which the lanes hold; rows without edges repeat an offset. Lanes
// beyond the run are in the row of its last edge.
template <class Visit>
__device__ inline void for_edges_of(Run run, i64 row, i64 rows, const i64* offsets, Visit visit) {
  for (i64 tile = run.begin; tile < run.end; tile += 32 * K) {
    Edges found;
    bool in_one_row = offsets[row + 1] >= min(tile + 32 * K, run.end);
#pragma unroll
    for (int k = 0; k < K; k++) {
      i64 group = tile + 32 * k;
      found.place[k] = group + lane_id();
      found.active[k] = group + lane_id() < run.end;
      found.node[k] = (int)row;
      if (in_one_row || group >= run.end) continue;
      i64 edge = min(group + lane_id(), run.end - 1), mine = row;
      int behind;  // of the next 32 rows, how many begin at or before the edge
      do {
        i64 next = offsets[min(row + 1 + lane_id(), rows)] - group;
        int start = row + 1 + lane_id() <= rows ? (int)min(next, (i64)64) : 64;
        behind = 0;
        for (int step = 16; step > 0; step /= 2)
          if (__shfl_sync(FULL, start, behind + step - 1) <= edge - group) behind += step;
        if (__shfl_sync(FULL, start, behind) <= edge - group) behind++;
        mine += behind;
        row += 32;
      } while (__any_sync(FULL, behind == 32));
      found.node[k] = (int)mine;
      row = __shfl_sync(FULL, mine, 31);
    }
    visit(found);
  }
}

// Along all edges.
template <class Operator>
__device__ inline void push_all(const Operator& op, i64 rows, const i64* offsets, const int* columns, Value* values,
                                unsigned* updated) {
  Run run = even_run(0, offsets[rows], 32);
  if (run.begin >= run.end) return;
  for_edges_of(run, slot_of(offsets, rows, run.begin), rows, offsets,
               [&](const Edges& edges) { push(op, edges, columns, values, updated); });
}

// Reduces every row and combines the result into its node. A row belongs to the warp in whose run it begins; what a warp has
// of the row before that is a piece, which join_pieces adds later. So no row needs atomics, and sums of floats are the
// same bits in every run. Inside a long row each lane reduces for itself; where a row ends, the warp does so together, and
// rows that lie within 32 edges are reduced by one scan.
template <class Operator>
__device__ inline void pull(const Operator& op, i64 rows, const i64* offsets, const int* columns, Value* values,
                            unsigned* updated, const unsigned* frontier, int* piece_rows, Wide* pieces) {
  Run run = even_run(0, offsets[rows], 32);
  i64 warp = thread_id() / 32;
  if (lane_id() == 0) piece_rows[warp] = -1;
  if (run.begin >= run.end) return;
  i64 row = slot_of(offsets, rows, run.begin), others = offsets[row] < run.begin ? row : -1;
  Wide mine = identity();  // what this lane has of ``row``
  auto close = [&](i64 node, Wide total) {
    if (node == others)
      piece_rows[warp] = (int)node, pieces[warp] = total;
    else
      combine(node, (Value)total, values, updated);
  };
  for_edges_of(run, row, rows, offsets, [&](const Edges& edges) {
    Found found = look(op, edges, columns, frontier);
#pragma unroll
    for (int k = 0; k < K; k++) {
      Wide value = found.chosen[k] ? (Wide)found.candidate[k] : identity(), total = value;
      i64 node = edges.node[k];
      bool same = node == row;
      if (same) mine = joined(mine, value);
      if (__all_sync(FULL, same)) continue;
      Wide before = joined_by_warp(mine);
      if (lane_id() == 0) close(row, before);
      for (int step = 1; step < 32; step *= 2) {
        Wide other = __shfl_up_sync(FULL, total, step);
        i64 theirs = __shfl_up_sync(FULL, node, step);
        if (lane_id() >= (unsigned)step && theirs == node) total = joined(other, total);
      }
      i64 next = __shfl_down_sync(FULL, node, 1);
      if (!same && lane_id() < 31 && next != node) close(node, total);
      row = __shfl_sync(FULL, node, 31);
      mine = node == row ? value : identity();
    }
  });
  Wide total = joined_by_warp(mine);
  if (lane_id() == 0) close(row, total);
}

// Combines the pieces of each row, which stand one behind the other, into its node. One warp a piece; that of the row's
// first one works.
extern "C" __global__ void join_pieces(i64 count, const int* rows, const Wide* pieces, Value* values, unsigned* updated) {
  i64 first = thread_id() / 32;
  if (first >= count || rows[first] < 0 || (first > 0 && rows[first - 1] == rows[first])) return;
  Wide total = identity();
  bool on = true;
  for (i64 i = first + lane_id(); __all_sync(FULL, on); i += 32) {
    on = i < count && rows[i] == rows[first];
    if (on) total = joined(total, pieces[i]);
  }
  total = joined_by_warp(total);
  if (lane_id() == 0) combine(rows[first], (Value)total, values, updated);
}
