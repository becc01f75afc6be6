// The trees of a rank become components, alone or united with those of other ranks: RANKS, see gluon/kernels/link.cuh.
//
// Every rank has united what its own edges connect. Here the trees of all ranks become one forest, in which threads of any GPU
// unite roots of any two as those of one GPU do (cc.cuh): a parent is a word in the memory of the rank that has the root.
#include "cusp/apps/operators/structure/cc.cuh"
#include "gluon/kernels/link.cuh"

enum Sum { FOUND, MOST, STORED, SUMS };

// A root among those of all ranks: its local id, then its rank. In degree order hubs come first, so the parents of large trees
// are known soon.
__device__ inline u64 name_of(i64 lid, i64 rank) { return (u64)lid * MOST_PEERS + rank; }
constexpr u64 NOBODY = ~0ull;
constexpr i64 NO_GID = (i64)(NOBODY >> 1);

// Arrays of this rank, and of each rank in the memory of the peers. Entries of lids that are no roots are not used.
struct Trees {
  i64 *lowest, *const *lowest_of;    // gid of a master
  u64 *members, *const *members_of;  // masters
  u64 *names, *const *names_of;      // not alone: the parents of roots, by their names
  int *roots, *const *roots_of;      // of mirrors, not alone: the root that their master has on its rank
};

// What is in a rank's trees. All of it is of one rank.
struct Nodes {
  i64 size, rank, masters;
  int* parents;
  const i64* gids;
  const int* left_out;
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

// Adds what trees have to their root, wherever it is. Neighbours mostly share one, so a thread keeps its sums until it meets
// another root: atomics on one address follow each other.
template <class Ranks>
struct Tally {
  const Trees& trees;
  u64 rank, root, members = 0, stored = 0;
  i64 lowest = NO_GID;

  __device__ Tally(const Trees& trees, u64 rank, u64 root = NOBODY) : trees(trees), rank(rank), root(root) {}
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
    i64 lid = root / MOST_PEERS;
    if constexpr (Ranks::ALONE) {
      if (lowest < *(volatile i64*)&trees.lowest[lid]) atomicMin(&trees.lowest[lid], lowest);
      if (members) atomicAdd(&trees.members[lid], members);
    } else {
      u64 owner = root % MOST_PEERS, size = owner == rank ? 0 : sizeof(u64);
      i64* place = &trees.lowest_of[owner][lid];
      if (lowest < *(volatile i64*)place) atomicMin_system(place, lowest), stored += size;
      if (members) atomicAdd_system(&trees.members_of[owner][lid], members), stored += size;
    }
  }
};

// Roots become parents. A master that is a root becomes a tree of its own in the forest of all ranks. A mirror that is a root
// does not: nearly always its edges were left out, so that it is alone, and has nothing to unite. Its parent is NOBODY.
template <class Ranks>
__device__ inline void plant(const Ranks& ranks, const Nodes& own, const Trees& trees) {
  for_each_loaded(0, own.size, [&](i64 lid) { return own.parents[lid]; }, [&](i64 lid, int parent, bool live) {
    if (!live) return;
    if (parent != lid) {
      int root = settled_root(Lids{own.parents}, parent);
      if (root != parent) own.parents[lid] = root;
      return;
    }
    bool master = !ranks.is_mirror(lid);
    if (master) trees.lowest[lid] = own.gids[lid], trees.members[lid] = 1;
    if (!Ranks::ALONE) trees.names[lid] = master ? name_of(lid, own.rank) : NOBODY;
  });
}

// A mirror that is the root of other mirrors becomes a tree, too.
__device__ inline void plant_mirrors(const Nodes& own, const Trees& trees) {
  for_each_loaded(own.masters, own.size, [&](i64 lid) { return own.parents[lid]; }, [&](i64 lid, int root, bool live) {
    if (!live || root == lid || root < own.masters) return;
    trees.names[root] = name_of(root, own.rank), trees.lowest[root] = NO_GID, trees.members[root] = 0;
  });
}

// Masters are counted at their roots, which learn the lowest gid of them. Mirrors count as masters elsewhere. The tree that was
// left out, if there is one, is large, and has sums of its own.
struct Master {
  int root;
  i64 gid;
};
template <class Ranks>
__device__ inline void count_masters(const Nodes& own, const Trees& trees) {
  int top = *own.left_out < 0 ? -1 : own.parents[*own.left_out];
  Tally<Ranks> large(trees, own.rank, top < 0 ? NOBODY : name_of(top, own.rank)), other(trees, own.rank);
  for_each_loaded(0, own.masters, [&](i64 lid) { return Master{own.parents[lid], own.gids[lid]}; },
                  [&](i64 lid, Master master, bool live) {
    if (!live || master.root == lid) return;
    u64 root = name_of(master.root, own.rank);
    if (master.root == top) large.add(root, master.gid, 1);
    else other.add(root, master.gid, 1);
  });
  other.end();
  large.end();
}

// A mirror and its master are one node, so their roots are united. Nearly all mirrors share one pair of roots: a lane leaves out
// the pair that it had before, and a block that which it met last. (Roots are words that all ask for, one after the other.)
__device__ inline void unite_mirrors(const Together& ranks, const Nodes& own, const Trees& trees, Forest& forest) {
  __shared__ u64 met;
  for (int p = 0; p < ranks.peers.ranks; p++) {
    __syncthreads();
    if (threadIdx.x == 0) met = NOBODY;
    __syncthreads();
    u64 held = NOBODY;
    for_each_loaded(ranks.proxies.starts[p], ranks.proxies.starts[p + 1],
                    [&](i64 lid) { return (u64)own.parents[lid] << 32 | (unsigned)trees.roots[lid]; },
                    [&](i64 lid, u64 pair, bool live) {
      u64 root = name_of((int)(pair >> 32), own.rank);
      if (!live || pair == held || ((i64)(pair >> 32) == lid && forest.parent(root) == NOBODY)) return;
      held = pair;
      if (atomicExch(&met, pair) != pair) unite(forest, root, name_of((int)(unsigned)pair, p));
    });
  }
}

// Local roots get the root of all ranks as their parent, which gets what they have. Nothing is united any more, and nobody but
// its own rank writes the parent of a root: one that another thread reads is up its path, old or new.
struct Root {
  u64 parent, members;  // NOBODY: it is no root
};
__device__ inline void gather_trees(const Nodes& own, const Trees& trees, Forest& forest) {
  Tally<Together> tally(trees, own.rank);
  for_each_loaded(0, own.size, [&](i64 lid) {
    return own.parents[lid] == lid ? Root{peek(&trees.names[lid]), trees.members[lid]} : Root{NOBODY, 0};
  }, [&](i64 lid, Root root, bool live) {
    u64 name = name_of(lid, own.rank);
    if (!live || root.parent == NOBODY || root.parent == name) return;
    u64 top = settled_root(forest, root.parent);
    if (top != root.parent) *(volatile u64*)forest.place(name) = top;
    tally.add(top, trees.lowest[lid], root.members);
  });
  tally.end();
  forest.stored += tally.stored;
}

// Ranks, as bits, that left out the edges of another component than the first of those that left out any. An edge that joins
// the two may have been left out at both ends, so these ranks have to take theirs.
template <class Value>
__device__ inline u64 wrong_ranks(const Together& ranks, Value value) {
  u64 first = 0, wrong = 0;
  int rank = 0;
  ranks.each(0, value, [&](u64 root) {
    if (!first) first = root;
    wrong |= (u64)(root && root != first) << rank++;
  });
  return wrong;
}

// Masters take the lowest gid of their component, from where its root is; a thread keeps the last that it got from elsewhere.
// The roots of all ranks that are here are counted, and the largest is found.
struct Named {
  u64 root;
  i64 lowest;
};
template <class Ranks>
__device__ inline void name_masters(const Nodes& own, const Trees& trees, i64* component, u64* sums) {
  u64 found = 0, most = 0;
  Named held = {NOBODY, 0};
  for_each_loaded(0, own.size, [&](i64 lid) {
    i64 local = own.parents[lid];
    u64 root = Ranks::ALONE ? name_of(local, own.rank) : lid < own.masters || local == lid ? trees.names[local] : NOBODY;
    bool here = root != NOBODY && (Ranks::ALONE || root % MOST_PEERS == own.rank);
    return Named{root, here ? trees.lowest[root / MOST_PEERS] : 0};
  }, [&](i64 lid, Named named, bool live) {
    if (!live) return;
    if (named.root == name_of(lid, own.rank)) found++, most = max(most, trees.members[lid]);
    if (lid >= own.masters) return;
    u64 owner = named.root % MOST_PEERS;
    if (!Ranks::ALONE && owner != own.rank && named.root != held.root)
      held = {named.root, trees.lowest_of[owner][named.root / MOST_PEERS]};
    component[lid] = Ranks::ALONE || owner == own.rank ? named.lowest : held.lowest;
  });
  add_up(&sums[FOUND], found);
  most = largest_of_warp(most);
  if (lane_id() == 0 && most > peek(&sums[MOST])) atomicMax(&sums[MOST], most);
}

template <class Ranks>
__device__ inline void unite_all(Ranks& ranks, const Nodes& own, const Trees& trees, u64* sums, i64* component, u64* found) {
  u64 wrong = 0;
  i64 to_mirrors = 0;
  ranks.begin(1);
  if (thread_id() < SUMS) sums[thread_id()] = 0;
  plant(ranks, own, trees);
  ranks.meet(nothing_to_tell);
  if constexpr (!Ranks::ALONE) to_mirrors = ranks.publish(own.parents, trees.roots_of), plant_mirrors(own, trees);
  count_masters<Ranks>(own, trees);
  ranks.meet(nothing_to_tell);
  if constexpr (!Ranks::ALONE) {
    Forest forest = {trees.names_of, (u64)own.rank, 0};
    unite_mirrors(ranks, own, trees, forest);
    ranks.meet(nothing_to_tell);
    gather_trees(own, trees, forest);
    add_up(&sums[STORED], forest.stored);
    auto left_out = [&](int) {
      return *own.left_out < 0 ? 0 : 1 + settled_root(forest, name_of(own.parents[*own.left_out], own.rank));
    };
    ranks.meet(left_out);
    wrong = wrong_ranks(ranks, left_out);
  }
  if (wrong == 0) name_masters<Ranks>(own, trees, component, sums);
  auto value = [&](int k) { return peek(&sums[k]); };
  ranks.meet(value);
  if (thread_id() == 0) found[0] = wrong, found[1] = ranks.sum(FOUND, value), found[2] = ranks.most(MOST, value);
  ranks.end(peek(&sums[STORED]), to_mirrors);
}

// ``found``, on the host, gets the ranks that were wrong; if there are none, then the components of the graph and the masters in
// the largest, and ``component`` of masters the lowest gid of theirs.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
unite_trees(RANKS::Given given, Trees trees, Nodes own, u64* sums, i64* component, u64* found) {
  RANKS ranks(given);
  unite_all(ranks, own, trees, sums, component, found);
}
