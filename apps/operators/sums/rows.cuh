// Sums over rows of a CSR or CSC: sums[v] = sum of values[columns[e]] over the edges e of row v. VALUE is float or double.
// If edges have weights, of type WEIGHT, each value is multiplied by that of its edge.
#include "cusp/apps/operators/runs.cuh"

// For ``count`` rows from lids[first] on, which have edges: the other arrays are those of struct Rows. Pieces are added
// afterwards.
extern "C" __global__ void sum_rows(i64 first, i64 count, const int* lids, const i64* starts, const i64* shifts,
                                    const int* columns,
#ifdef WEIGHT
                                    const WEIGHT* weights,
#endif
                                    const VALUE* values, VALUE* sums, int* piece_lids, double* pieces) {
  Rows rows = {lids + first, starts + first, shifts + first, count, starts[first], starts[first + count]};
  int column[K];
  VALUE weight[K];  // 1 for all, which the compiler drops, if there are none
  reduce_rows(
      rows, (VALUE)0, Pieces<double>{piece_lids, pieces},
      [&](int k, i64 row, i64 place, bool active) {
        column[k] = active ? __ldcs(&columns[place]) : -1;
#ifdef WEIGHT
        weight[k] = active ? (VALUE)weights[place] : (VALUE)0;
#else
        weight[k] = 1;
#endif
      },
      [&](VALUE* value, bool all) {
        each_k([&](int k) { value[k] = all || column[k] >= 0 ? __ldg(&values[column[k]]) * weight[k] : (VALUE)0; });
      },
      [](VALUE a, VALUE b) { return a + b; }, [&](int lid, VALUE sum) { sums[lid] = sum; });
}

// Adds the pieces to the sums of the rows that they belong to: the thread of a row's first piece adds all of them, one after
// the other, as the ranks' last bits depend on the order.
extern "C" __global__ void add_pieces(i64 count, const int* lids, const double* pieces, VALUE* sums) {
  i64 first = thread_id();
  if (first >= count || lids[first] < 0 || (first > 0 && lids[first - 1] == lids[first])) return;
  double sum = sums[lids[first]];
  for (i64 i = first; i < count && lids[i] == lids[first]; i++) sum += pieces[i];
  sums[lids[first]] = (VALUE)sum;
}
