// The streaming loops of phases 1 and 2 around a user's rules, which cusp/policies/translate_rules.py appends to this file.
// Twins: the loops in cusp/policies/compile_rules.py. Compiled for types GID (targets), RANK (masters) and OWNER (of edges), and
// DST_MASTER, which says where the master of an edge's target comes from: 0: the rule does not ask; 1: computed; 2: stored.
#include "../kernels/walk.cuh"

// What rules may ask, see cusp/policies/prop.py. Every field has 8 bytes and is filled in by cusp/policies/rules_gpu.py, in this order.
struct Prop {
    long long num_nodes, num_edges, num_parts, rank, rows, columns, threshold, num_places, first_node;
    long long num_rows, shift, num_words, num_in_degrees, num_mapped;
    const int *guess;
    const long long *bounds, *indptr;
    const GID *targets;
    const Word *neighbor_index;
    const long long *neighbor_degrees, *in_degrees;
    const int *node_map;
    const RANK *own, *neighbor_masters;
};
static_assert(sizeof(Prop) == 8 * NUM_FIELDS, "as many fields as cusp/policies/rules_gpu.py fills in");

__device__ __forceinline__ long long prop_reader(const Prop &prop, long long node) {
    if (node < 0 || node >= prop.num_nodes) return -1;
    long long rank = prop.guess[node >> prop.shift];
    while (node >= prop.bounds[rank + 1]) ++rank;
    return rank;
}

__device__ __forceinline__ long long prop_out_degree(const Prop &prop, long long node) {
    const long long row = node - prop.first_node;
    return row < 0 || row >= prop.num_rows ? -1 : prop.indptr[row + 1] - prop.indptr[row];
}

__device__ __forceinline__ long long prop_place(const Prop &prop, long long node) {
    const long long row = node - prop.first_node;
    if (row >= 0 && row < prop.num_rows) return row;
    if (node < 0 || 2 * (node >> 6) >= prop.num_words || !has_bit(prop.neighbor_index, Word(node))) return -1;
    return prop.num_rows + bits_below(prop.neighbor_index, Word(node));
}

__device__ __forceinline__ long long prop_neighbor_degree(const Prop &prop, long long node) {
    const long long place = prop_place(prop, node);
    if (place >= prop.num_rows) return prop.neighbor_degrees[place - prop.num_rows];
    return place < 0 ? -1 : prop.indptr[place + 1] - prop.indptr[place];
}

__device__ __forceinline__ long long prop_in_degree(const Prop &prop, long long node) {
    const long long place = prop_place(prop, node);
    return place < 0 || place >= prop.num_in_degrees ? -1 : prop.in_degrees[place];
}

__device__ __forceinline__ long long prop_mapped(const Prop &prop, long long node) {
    const long long row = node - prop.first_node;
    return row < 0 || row >= prop.num_mapped ? -1 : prop.node_map[row];
}

// masters[node] of a node of the slice or one of its neighbours, once all are known.
__device__ __forceinline__ long long master_of(const Prop &prop, long long node) {
    const long long place = prop_place(prop, node);
    if (place < 0) return -1;
    return place < prop.num_rows ? prop.own[place] : prop.neighbor_masters[place - prop.num_rows];
}

// Arithmetic as in numba: whole numbers wrap around, // and % round down, and a division by zero raises.
typedef long long Int;
typedef unsigned long long Unsigned;

__device__ __forceinline__ Int int_add(Int a, Int b) { return Int(Unsigned(a) + Unsigned(b)); }
__device__ __forceinline__ Int int_sub(Int a, Int b) { return Int(Unsigned(a) - Unsigned(b)); }
__device__ __forceinline__ Int int_mul(Int a, Int b) { return Int(Unsigned(a) * Unsigned(b)); }
__device__ __forceinline__ Int int_left(Int a, Int b) { return Int(Unsigned(a) << (b & 63)); }
__device__ __forceinline__ Int int_right(Int a, Int b) { return a >> (b & 63); }

// What the first division by zero was; 0: there was none.
enum { DIVISION = 1, MODULO = 2, RATIO = 3 };
__device__ __forceinline__ void raise(int &raised, int what) { raised = raised ? raised : what; }

// A division of 64 bits takes a GPU some 70 instructions, one of 32 bits 20; most numbers here are small.
__device__ __forceinline__ bool small(Int a, Int b) { return ((a | b) >> 32) == 0; }

__device__ __forceinline__ Int int_floor_div(Int a, Int b, int &raised) {
    if (b == 0) raise(raised, DIVISION);
    if (b == 0 || b == -1) return b == 0 ? 0 : int_sub(0, a);
    if (small(a, b)) return Int(unsigned(a) / unsigned(b));
    const Int quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

__device__ __forceinline__ Int int_mod(Int a, Int b, int &raised) {
    if (b == 0) raise(raised, MODULO);
    if (b == 0 || b == -1) return 0;
    if (small(a, b)) return Int(unsigned(a) % unsigned(b));
    const Int rest = a % b;
    return rest + (rest != 0 && (rest < 0) != (b < 0) ? b : 0);
}

__device__ __forceinline__ Int int_abs(Int a) { return a < 0 ? int_sub(0, a) : a; }
__device__ __forceinline__ Int int_min(Int a, Int b) { return b < a ? b : a; }
__device__ __forceinline__ Int int_max(Int a, Int b) { return b > a ? b : a; }

__device__ __forceinline__ Unsigned unsigned_add(Unsigned a, Unsigned b) { return a + b; }
__device__ __forceinline__ Unsigned unsigned_sub(Unsigned a, Unsigned b) { return a - b; }
__device__ __forceinline__ Unsigned unsigned_mul(Unsigned a, Unsigned b) { return a * b; }
__device__ __forceinline__ Unsigned unsigned_left(Unsigned a, Unsigned b) { return a << (b & 63); }
__device__ __forceinline__ Unsigned unsigned_right(Unsigned a, Unsigned b) { return a >> (b & 63); }
__device__ __forceinline__ Unsigned unsigned_min(Unsigned a, Unsigned b) { return b < a ? b : a; }
__device__ __forceinline__ Unsigned unsigned_max(Unsigned a, Unsigned b) { return b > a ? b : a; }

__device__ __forceinline__ Unsigned unsigned_floor_div(Unsigned a, Unsigned b, int &raised) {
    if (b == 0) raise(raised, DIVISION);
    return b == 0 ? 0 : a / b;
}

__device__ __forceinline__ Unsigned unsigned_mod(Unsigned a, Unsigned b, int &raised) {
    if (b == 0) raise(raised, MODULO);
    return b == 0 ? 0 : a % b;
}

// A product that is rounded before anything is added to it: a fused multiply-add would round differently.
__device__ __forceinline__ double float_mul(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double float_add(double a, double b) { return a + b; }
__device__ __forceinline__ double float_sub(double a, double b) { return a - b; }
__device__ __forceinline__ double float_div(double a, double b, int &raised) {
    if (b == 0.0) raise(raised, RATIO);
    return a / b;
}

// As processors of the host do it: what does not fit becomes the lowest number.
__device__ __forceinline__ Int float_to_int(double a) {
    const double limit = 9223372036854775808.0;
    return a >= -limit && a < limit ? Int(a) : Int(Unsigned(1) << 63);
}

// The rules; defined below this file.
__device__ __forceinline__ Int get_master(const Prop &prop, Int node, int &raised);
__device__ __forceinline__ Int get_edge_owner(const Prop &prop, Int src, Int dst, Int src_master, Int dst_master,
                                              int &raised);

// own[row] = master of each row begin to end - 1. wrong[0]: the lowest 4 * row + raised of the rows whose rule raised
// or gave a rank that does not exist; the least does not depend on the order of the atomics. One thread per row.
extern "C" __global__ void assign_masters(const Prop *where, long long begin, long long end, RANK *own,
                                          long long *wrong) {
    const Prop &prop = *where;
    const long long row = begin + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= end) return;
    int raised = 0;
    const long long rank = get_master(prop, prop.first_node + row, raised);
    if (raised || rank < 0 || rank >= prop.num_parts) atomicMin(wrong, 4 * row + raised);
    else own[row] = (RANK)rank;
}

// masters[i] = master of nodes[i]. One thread per node.
extern "C" __global__ void masters_of(const Prop *where, const long long *nodes, long long size, RANK *masters) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    int raised = 0;
    if (i < size) masters[i] = (RANK)get_master(*where, nodes[i], raised);
}

// owners[e] = rank that stores edge e, for the edges of the rows begin to end - 1; wrong as above, with edges.
// A warp takes a run of consecutive edges: targets and owners move in full cache lines, every lane has the same work
// whatever the degrees, and a lane finds its row by a step from the one before.
extern "C" __global__ void assign_edges(const Prop *where, long long begin, long long end, const RANK *own,
                                        OWNER *owners, long long *wrong) {
    const Prop &prop = *where;
    const long long *indptr = prop.indptr;
    const Run run = my_run(indptr[begin], indptr[end]);
    long long row = begin;
    for (long long edge = run.begin + run.lane; edge < run.end; edge += 32) {
        row = row_of(indptr, end, row, edge);
        const long long source = prop.first_node + row, target = (long long)prop.targets[edge];
        int raised = 0;
        long long target_master = -1;
        if (DST_MASTER == 1) target_master = get_master(prop, target, raised);
        if (DST_MASTER == 2) target_master = master_of(prop, target);
        const long long rank = get_edge_owner(prop, source, target, own[row], target_master, raised);
        if (raised || rank < 0 || rank >= prop.num_parts) atomicMin(wrong, 4 * edge + raised);
        else owners[edge] = (OWNER)rank;
    }
}
