// Connected components on the GPUs of several ranks: see gluon/kernels/peers.cuh. VALUE is int.
//
// Every rank has united what its own edges connect. Here the trees of all ranks become one forest, in which threads of any GPU
// unite roots of any two as those of one GPU do (../cc.cuh): a parent is a word in the memory of the rank that has the root.
#include "../cc.cuh"
#include "../../../../gluon/kernels/peers.cuh"

// What the ranks tell each other: the component that each has left out + 1, or 0; at the end, their components and the largest.
enum Told { LEFT_OUT = 0, COMPONENTS = 0, LARGEST = 1 };
enum Sum { FOUND, MOST, STORED, SUMS };

// A root among those of all ranks: its local id, then its rank. In degree order hubs come first, so the parents of large trees
// are known soon.
__device__ inline u64 name_of(int lid, i64 rank) { return (u64)lid * MOST_PEERS + rank; }
constexpr u64 NOBODY = ~0ull;
constexpr i64 NO_GID = (i64)(NOBODY >> 1);

// The arrays of each rank in the memory of the peers. Entries of lids that are no roots are not used.
struct Trees {
  u64* const* parents;  // of roots, by their names
  i64* const* lowest;   // gid of a master
  u64* const* members;  // masters
  int* const* roots;    // of mirrors: the root that their master has on its rank
};

// The roots of all ranks; for each thread one. What is stored elsewhere is counted.
struct Forest {
  u64* const* parents;
  u64 rank, stored;

  __device__ u64* place(u64 root) const { return &parents[root % MOST_PEERS][root / MOST_PEERS]; }
  __device__ u64 elsewhere(u64 root) const { return root % MOST_PEERS != rank; }
  __device__ u64 parent(u64 root) const { return peek(place(root)); }
  __device__ void shorten(u64 root, u64 above) {
    *(volatile u64*)place(root) = above;
    stored += elsewhere(root) * sizeof(u64);
  }
  __device__ u64 join(u64 high, u64 low) {
    stored += elsewhere(high) * sizeof(u64);
    return atomicCAS_system(place(high), high, low);
  }
};

// Adds what trees have to their root, wherever it is. Most trees share one, so a thread keeps its sums until it meets another.
struct Tally {
  Trees trees;
  u64 rank, root = NOBODY, members = 0, stored = 0;
  i64 lowest = 0;

  __device__ Tally(Trees trees, u64 rank) : trees(trees), rank(rank) {}
  __device__ void add(u64 to, i64 gid, u64 count) {
    if (to != root) {
      flush();
      root = to, lowest = gid, members = 0;
    }
    lowest = min(lowest, gid), members += count;
  }
  // Where a thread ends. The whole warp calls it: of the lanes that have the root of the first, one adds the sum of all.
  __device__ void end() {
    u64 first = __shfl_sync(FULL, root, 0);
    bool same = root == first;
    u64 all = sum_of_warp(same ? members : 0ull);
    i64 least = least_of_warp(same ? lowest : NO_GID);
    if (lane_id() == 0) members = all, lowest = least;
    else if (same) root = NOBODY;
    flush();
  }

 private:
  __device__ void flush() {
    if (root == NOBODY) return;
    u64 owner = root % MOST_PEERS, lid = root / MOST_PEERS, size = owner == rank ? 0 : sizeof(u64);
    i64* place = &trees.lowest[owner][lid];
    if (lowest < *(volatile i64*)place) atomicMin_system(place, lowest), stored += size;
    if (members) atomicAdd_system(&trees.members[owner][lid], members), stored += size;
  }
};

// Every root becomes a tree of its own in the forest of all ranks.
__device__ inline void plant(i64 size, int* parents, const i64* gids, i64 rank, i64 masters, Trees trees) {
  u64 *names = trees.parents[rank], *members = trees.members[rank];
  i64* lowest = trees.lowest[rank];
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    int root = settled_root(Lids{parents}, (int)lid);
    parents[lid] = root;
    if (root != lid) continue;
    names[lid] = name_of(root, rank);
    lowest[lid] = lid < masters ? gids[lid] : NO_GID;
    members[lid] = lid < masters;
  }
}

// Masters are counted at their roots, which learn the lowest gid of them. Mirrors count as masters elsewhere.
__device__ inline void count_masters(const int* parents, const i64* gids, i64 rank, i64 masters, Trees trees) {
  Tally tally(trees, rank);
  for (i64 lid = thread_id(); lid < masters; lid += num_threads())
    if (parents[lid] != lid) tally.add(name_of(parents[lid], rank), gids[lid], 1);
  tally.end();
}

// A mirror and its master are one node, so their roots are united. Nearly all nodes share two roots: a lane leaves out the pair
// that it had before, and of the lanes of a warp that have the same pair, one unites it.
__device__ inline void unite_mirrors(const int* parents, const int* roots, const Peers& peers, const Proxies& proxies,
                                     Forest& forest) {
  for (int p = 0; p < peers.ranks; p++) {
    u64 held = NOBODY;
    for (i64 base = proxies.starts[p] + thread_id() / 32 * 32; base < proxies.starts[p + 1]; base += num_threads()) {
      i64 lid = base + lane_id();
      u64 pair = held;
      if (lid < proxies.starts[p + 1]) pair = (u64)parents[lid] << 32 | (unsigned)roots[lid];
      bool fresh = pair != held;
      if (!__any_sync(FULL, fresh)) continue;
      unsigned same = __match_any_sync(FULL, fresh ? pair : NOBODY);
      if (fresh && (same & below_lane()) == 0) unite(forest, name_of(parents[lid], peers.rank), name_of(roots[lid], p));
      held = pair;
    }
  }
}

// Local roots get the root of all ranks as their parent, which gets what they have. Nothing is united any more, and nobody but
// its own rank writes the parent of a root: one that another thread reads is up its path, old or new.
__device__ inline void gather_trees(i64 size, const int* parents, Trees trees, Forest& forest) {
  Tally tally(trees, forest.rank);
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    if (parents[lid] != lid) continue;
    u64 own = name_of((int)lid, forest.rank), root = settled_root(forest, own);
    if (root == own) continue;
    *(volatile u64*)forest.place(own) = root;
    tally.add(root, trees.lowest[forest.rank][lid], trees.members[forest.rank][lid]);
  }
  tally.end();
  forest.stored += tally.stored;
}

// Local roots learn the lowest gid of their component, and each component is counted where its root is.
__device__ inline void name_trees(i64 size, const int* parents, Trees trees, const Forest& forest, u64* sums) {
  u64 held = NOBODY, found = 0, most = 0;
  i64* lowest = trees.lowest[forest.rank];
  i64 lowest_held = 0;
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    if (parents[lid] != lid) continue;
    u64 root = *forest.place(name_of((int)lid, forest.rank));
    if (root == name_of((int)lid, forest.rank)) {
      found++, most = max(most, trees.members[forest.rank][lid]);
      continue;
    }
    if (root != held) held = root, lowest_held = *(volatile i64*)&trees.lowest[root % MOST_PEERS][root / MOST_PEERS];
    lowest[lid] = lowest_held;
  }
  add_up(&sums[FOUND], found);
  most = largest_of_warp(most);
  if (lane_id() == 0 && most) atomicMax(&sums[MOST], most);
}

// Bit p says that rank p has left out edges of a component that is not the one that others have left out. An edge that two ranks
// left out, each in its direction, may then join the two: all but the first of these ranks have to take theirs back.
__device__ inline u64 wrong_ranks(const Peers& peers, u64 (*told)[TOLD]) {
  u64 first = 0, wrong = 0;
  for (int p = 0; p < peers.ranks; p++) {
    u64 left_out = told[p][LEFT_OUT];
    if (!first) first = left_out;
    wrong |= (u64)(left_out && left_out != first) << p;
  }
  return wrong;
}

// Unites the trees of all ranks. ``found``, on the host, gets the ranks that were wrong; if there are none, then the components
// of the graph and the masters in the largest, and ``component`` of masters the lowest gid of theirs.
extern "C" __global__ void __launch_bounds__(512, 2)
unite_ranks(i64 size, int* parents, const i64* gids, const int* skipped, Trees trees, Peers peers, Proxies proxies,
            u64* sums, i64* component, u64* found) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  unsigned barriers = peers.begin();
  Forest forest = {trees.parents, (u64)peers.rank, 0};
  if (thread_id() < SUMS) sums[thread_id()] = 0;
  plant(size, parents, gids, peers.rank, proxies.masters, trees);
  peers.barrier(barriers, told);
  i64 to_mirrors = publish_values(peers, proxies, parents, trees.roots);
  count_masters(parents, gids, peers.rank, proxies.masters, trees);
  peers.barrier(barriers, told);
  unite_mirrors(parents, trees.roots[peers.rank], peers, proxies, forest);
  peers.barrier(barriers, told);
  gather_trees(size, parents, trees, forest);
  add_up(&sums[STORED], forest.stored);
  peers.barrier(barriers, told, [&](int, int k) {
    if (k != LEFT_OUT || *skipped < 0) return 0ull;
    return 1 + peek(forest.place(name_of(parents[*skipped], peers.rank)));
  });
  u64 wrong = wrong_ranks(peers, told);
  if (wrong == 0) {
    name_trees(size, parents, trees, forest, sums);
    peers.barrier(barriers, told, [&](int, int k) {
      return k == COMPONENTS ? peek(&sums[FOUND]) : k == LARGEST ? peek(&sums[MOST]) : 0ull;
    });
    for (i64 lid = thread_id(); lid < proxies.masters; lid += num_threads())
      component[lid] = trees.lowest[peers.rank][parents[lid]];
  }
  if (thread_id() > 0) return;
  found[0] = wrong, found[1] = peers.sum(told, COMPONENTS), found[2] = 0;
  for (int p = 0; p < peers.ranks; p++) found[2] = max(found[2], told[p][LARGEST]);
  peers.end(barriers, peek(&sums[STORED]), to_mirrors);
}
