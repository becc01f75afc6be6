// The streaming loops of phases 1 and 2 around a user's rules, which translate_rules.py appends to this file. Twins: the loops
// in compile_rules.py. Compiled for types GID (targets), RANK (masters) and OWNER (of edges), and DST_MASTER, which says where
// the master of an edge's target comes from: 0: the rule does not ask; 1: computed; 2: stored.
#include "cusp/kernels/walk.cuh"
#include "cusp/language/arithmetic.cuh"

// What rules may ask, see prop.py. Every field has 8 bytes; rules_gpu.py fills them in, in this order.
struct Prop {
  i64 num_nodes, num_edges, num_parts, rank, rows, columns, threshold, slack, num_places, all_shares, has_shares;
  i64 first_node, num_rows, shift, num_words, num_in_degrees, num_mapped, num_share_starts;
  const int* guess;
  const i64 *bounds, *indptr;
  const GID* targets;
  const u64* neighbor_index;
  const i64 *neighbor_degrees, *in_degrees;
  const int* node_map;
  const i64* share_starts;
  const RANK *own, *neighbor_masters;
};
static_assert(sizeof(Prop) == 8 * NUM_FIELDS, "as many fields as cusp/policies/rules_gpu.py fills in");

__device__ inline i64 prop_reader(const Prop& prop, i64 node) {
  if (node < 0 || node >= prop.num_nodes) return -1;
  i64 rank = prop.guess[node >> prop.shift];
  while (node >= prop.bounds[rank + 1]) rank++;
  return rank;
}

__device__ inline i64 prop_share(const Prop& prop, i64 rank) {
  if (rank < 0 || rank >= prop.num_parts) return 0;
  return prop.num_share_starts ? prop.share_starts[rank + 1] - prop.share_starts[rank] : 1;
}

__device__ inline i64 prop_pick(const Prop& prop, i64 number) {
  bool narrow = ((number | prop.all_shares) >> 32) == 0;  // a division of 32 bits is much faster
  i64 rest = narrow ? (i64)((unsigned)number % (unsigned)prop.all_shares) : number % prop.all_shares;
  if (rest < 0) rest += prop.all_shares;
  if (!prop.num_share_starts) return rest;
  i64 rank = 0;
  while (rest >= prop.share_starts[rank + 1]) rank++;
  return rank;
}

__device__ inline i64 prop_out_degree(const Prop& prop, i64 node) {
  i64 row = node - prop.first_node;
  return row < 0 || row >= prop.num_rows ? -1 : prop.indptr[row + 1] - prop.indptr[row];
}

__device__ inline i64 prop_place(const Prop& prop, i64 node) {
  i64 row = node - prop.first_node;
  if (row >= 0 && row < prop.num_rows) return row;
  if (node < 0 || 2 * (node >> 6) >= prop.num_words || !has_bit(prop.neighbor_index, (u64)node)) return -1;
  return prop.num_rows + bits_below(prop.neighbor_index, (u64)node);
}

__device__ inline i64 prop_neighbor_degree(const Prop& prop, i64 node) {
  i64 place = prop_place(prop, node);
  if (place >= prop.num_rows) return prop.neighbor_degrees[place - prop.num_rows];
  return place < 0 ? -1 : prop.indptr[place + 1] - prop.indptr[place];
}

__device__ inline i64 prop_in_degree(const Prop& prop, i64 node) {
  i64 place = prop_place(prop, node);
  return place < 0 || place >= prop.num_in_degrees ? -1 : prop.in_degrees[place];
}

__device__ inline i64 prop_mapped(const Prop& prop, i64 node) {
  i64 row = node - prop.first_node;
  return row < 0 || row >= prop.num_mapped ? -1 : prop.node_map[row];
}

// masters[node] of a node of the slice or a neighbour of it, when all are known.
__device__ inline i64 master_of(const Prop& prop, i64 node) {
  i64 place = prop_place(prop, node);
  if (place < 0) return -1;
  return place < prop.num_rows ? prop.own[place] : prop.neighbor_masters[place - prop.num_rows];
}

// The rules; defined below this file.
__device__ inline Int get_master(int& raised, const Prop& prop, Int node);
__device__ inline Int get_edge_owner(int& raised, const Prop& prop, Int src, Int dst, Int src_master, Int dst_master);

// own[row] = master of each row begin to end - 1. wrong[0]: the lowest 4 * row + raised of the rows whose rule raised
// or gave a rank that does not exist; the least does not depend on the order of the atomics. One thread per row.
extern "C" __global__ void assign_masters(Prop prop, i64 begin, i64 end, RANK* own, i64* wrong) {
  i64 row = begin + thread_id();
  if (row >= end) return;
  int raised = 0;
  i64 rank = get_master(raised, prop, prop.first_node + row);
  if (raised || rank < 0 || rank >= prop.num_parts) atomicMin(wrong, 4 * row + raised);
  else own[row] = (RANK)rank;
}

// masters[i] = master of nodes[i]. One thread per node.
extern "C" __global__ void masters_of(Prop prop, const i64* nodes, i64 size, RANK* masters) {
  i64 i = thread_id();
  int raised = 0;
  if (i < size) masters[i] = (RANK)get_master(raised, prop, nodes[i]);
}

// owners[e] = rank that stores edge e, for the edges of the rows begin to end - 1; wrong as above, with edges. Targets and
// owners move in full lines, and every lane has the same work whatever the degrees.
extern "C" __global__ void assign_edges(Prop prop, i64 begin, i64 end, const RANK* own, OWNER* owners, i64* wrong) {
  for_each_edge_in(prop.indptr, begin, end, [&](i64 row, i64 edge, bool live) {
    if (!live) return;
    i64 source = prop.first_node + row, target = (i64)prop.targets[edge];
    int raised = 0;
    i64 target_master = -1;
    if (DST_MASTER == 1) target_master = get_master(raised, prop, target);
    if (DST_MASTER == 2) target_master = master_of(prop, target);
    i64 rank = get_edge_owner(raised, prop, source, target, own[row], target_master);
    if (raised || rank < 0 || rank >= prop.num_parts) atomicMin(wrong, 4 * edge + raised);
    else owners[edge] = (OWNER)rank;
  });
}
