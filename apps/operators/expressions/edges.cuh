// Edge operators: passes over the edges of a CSR around an expression, which edges_gpu.py appends to this file as a struct
// Operator. VALUE is the type of the label that is written, WIDE that of sums over rows: Int for whole numbers,
// Float for others. The reduction is that of gluon/kernels/reduction.cuh, and ATOMIC says how threads that write the same
// node agree. Twins: the loops of edges_cpu.py.
#include "gluon/kernels/reduction.cuh"
#include "cusp/apps/operators/frontier.cuh"

typedef VALUE Value;
typedef WIDE Wide;
enum { SWAP, MINIMUM, MAXIMUM, SUM, BITS };  // ATOMIC: by comparing and swapping, or by what the GPU has

// The identity of the reduction; it is defined below this file.
__device__ inline Wide identity();
__device__ inline Wide joined_by_warp(Wide value) {
  return reduce_warp(value, [](Wide a, Wide b) { return joined(a, b); });
}

__device__ inline bool changes(Value old, Value value) { return changes(old, value, joined(old, value)); }

template <class To, class From>
__device__ inline To same_bits(From value) {
  union { From from; To to; } both;
  both.from = value;
  return both.to;
}

// The atomic minimum and maximum of floats: as integers, those below 0 are ordered backwards. They return the old value.
template <class T, class Signed, class Unsigned>
__device__ inline T atomic_extreme(T* place, T value) {
  Signed bits = same_bits<Signed>(value);
  bool as_signed = bits >= 0, least = ATOMIC == MINIMUM;
  if (as_signed && least) return same_bits<T>(atomicMin((Signed*)place, bits));
  if (as_signed) return same_bits<T>(atomicMax((Signed*)place, bits));
  if (least) return same_bits<T>(atomicMax((Unsigned*)place, (Unsigned)bits));
  return same_bits<T>(atomicMin((Unsigned*)place, (Unsigned)bits));
}
__device__ inline float native_join(float* place, float value) {
  return ATOMIC == SUM ? atomicAdd(place, value) : atomic_extreme<float, int, unsigned>(place, value);
}
__device__ inline double native_join(double* place, double value) {
  return ATOMIC == SUM ? atomicAdd(place, value) : atomic_extreme<double, i64, u64>(place, value);
}
__device__ inline i64 native_join(i64* place, i64 value) {
  if (ATOMIC == SUM) return (i64)atomicAdd((u64*)place, (u64)value);
  if (ATOMIC == BITS) return (i64)atomicOr((u64*)place, (u64)value);
  return ATOMIC == MINIMUM ? atomicMin(place, value) : atomicMax(place, value);
}
template <class T>
__device__ inline T native_join(T* place, T value) {
  if (ATOMIC == SUM) return atomicAdd(place, value);
  if (ATOMIC == BITS) return atomicOr(place, value);
  return ATOMIC == MINIMUM ? atomicMin(place, value) : atomicMax(place, value);
}

// Any reduction: compare and swap until no other thread comes between.
template <int SIZE> struct WordOf { typedef u64 type; };
template <> struct WordOf<4> { typedef unsigned type; };
__device__ inline Value join_by_swap(Value* place, Value value) {
  typedef WordOf<sizeof(Value)>::type Word;
  Word seen = same_bits<Word>(*(volatile Value*)place), assumed;
  do {
    assumed = seen;
    Value old = same_bits<Value>(seen);
    if (!changes(old, value)) return old;
    seen = atomicCAS((Word*)place, assumed, same_bits<Word>(joined(old, value)));
  } while (seen != assumed);
  return same_bits<Value>(seen);
}

// For a node that others may write at the same time. ``old`` is what was there a moment ago: a value that did not change it
// then would have changed nothing if it had come first, and the order does not matter. True if the node changed.
__device__ inline Value join_atomic(Value* place, Value value) {
  return ATOMIC == SWAP ? join_by_swap(place, value) : native_join(place, value);
}
__device__ inline bool combine_atomic(i64 node, Value value, Value old, Value* values) {
  return changes(old, value) && changes(join_atomic(&values[node], value), value);
}

// The candidates of a few edges, and which of them take part. All loads of one kind are under way before one is needed: edges
// that take no part look at edge 0 instead of branching.
struct Candidates {
  bool chosen[K];
  Value value[K];
};
template <bool CONDITIONAL, class Operator>
__device__ inline Candidates look(const Operator& op, const Edges& edges, const int* column, const unsigned* frontier) {
  Candidates result;
  each_k([&](int k) {
    bool on = edges.active[k];
    if (Operator::FILTERED) on = on && get_bit(frontier, column[k]);
    if (CONDITIONAL) on = op.where(on ? edges.node[k] : 0, on ? column[k] : 0, on ? edges.place[k] : 0) && on;
    result.chosen[k] = on;
  });
  each_k([&](int k) {
    bool on = result.chosen[k];
    result.value[k] = op.candidate(on ? edges.node[k] : 0, on ? column[k] : 0, on ? edges.place[k] : 0);
  });
  return result;
}

// Calls changed(column, which) with the columns of K edges and whether each was changed along them. Whole warps call it.
template <class Operator, class Changed>
__device__ inline void push(const Operator& op, const Edges& edges, const int* columns, Value* values, Changed changed) {
  int column[K];
  each_k([&](int k) { column[k] = edges.active[k] ? __ldcs(&columns[edges.place[k]]) : 0; });
  Candidates candidates = look<Operator::CONDITIONAL>(op, edges, column, nullptr);
  Value old[K];
  each_k([&](int k) { old[k] = values[column[k]]; });
  bool which[K];
  each_k([&](int k) { which[k] = candidates.chosen[k] && combine_atomic(column[k], candidates.value[k], old[k], values); });
  changed(column, which);
}
template <class Operator>
__device__ inline void push(const Operator& op, const Edges& edges, const int* columns, Value* values, unsigned* updated) {
  push(op, edges, columns, values, [&](const int (&column)[K], const bool (&which)[K]) {
    each_k([&](int k) { if (which[k]) set_bit(updated, column[k]); });
  });
}

// Along the edges of a queue, which is empty afterwards.
template <class Operator>
__device__ inline void push_queue(const Operator& op, Queues queues, const int* columns, Value* values, unsigned* updated) {
  consume(queues, [&](const Edges& edges) { push(op, edges, columns, values, updated); });
}

// Along all edges.
template <class Operator>
__device__ inline void push_all(const Operator& op, Rows rows, const int* columns, Value* values, unsigned* updated) {
  for_each_edge(rows, [&](const Edges& edges) { push(op, edges, columns, values, updated); });
}

// Reduces every row and combines the result into its node; join_pieces adds the pieces. Of rows that the condition leaves out,
// no edge is read.
template <class Operator>
__device__ inline void pull(const Operator& op, Rows rows, const int* columns, Value* values, unsigned* updated,
                            const unsigned* frontier, int* piece_rows, Wide* pieces) {
  Edges edges;
  int column[K];
  reduce_rows(
      rows, identity(), Pieces<Wide>{piece_rows, pieces},
      [&](int k, i64 row, i64 place, bool active) {
        edges.node[k] = active ? rows.lids[row] : 0, edges.place[k] = place;
        bool on = active && (!Operator::BY_ROW || op.where(edges.node[k], 0, 0));
        edges.active[k] = on, column[k] = on ? __ldcs(&columns[place]) : 0;
      },
      [&](Wide* value, bool all) {
        Candidates candidates = look<Operator::CONDITIONAL && !Operator::BY_ROW>(op, edges, column, frontier);
        each_k([&](int k) { value[k] = candidates.chosen[k] ? (Wide)candidates.value[k] : identity(); });
      },
      [](Wide a, Wide b) { return joined(a, b); },
      [&](int node, Wide total) { combine_one(node, (Value)total, values, updated); });
}

// Combines the pieces of each row, which follow each other, into its node. One warp per piece; that of the row's first one
// does the work, since a hub may have a piece from every warp.
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
  if (lane_id() == 0) combine_one(rows[first], (Value)total, values, updated);
}
