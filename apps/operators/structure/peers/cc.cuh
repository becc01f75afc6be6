// Connected components on the GPUs of several ranks: see gluon/kernels/peers.cuh. VALUE is int.
//
// Every rank has united what its own edges connect. Here the trees of all ranks become one forest, in which threads of any GPU
// unite roots of any two as those of one GPU do (../cc.cuh): a parent is a word in the memory of the rank that has the root.
#include "cusp/apps/operators/structure/cc.cuh"
#include "gluon/kernels/link.cuh"

// What the ranks tell each other: 1 + the root there, and of all ranks, whose tree each has left out, or 0; then how many roots
// of all ranks it has, and the most members that it knows one to have.
enum Told { LEFT_OUT, COMPONENTS = 0, LARGEST };
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
  const Trees& trees;
  u64 rank, root = NOBODY, members = 0, stored = 0, most = 0;
  i64 lowest = 0;

  __device__ Tally(const Trees& trees, u64 rank) : trees(trees), rank(rank) {}
  __device__ void add(u64 to, i64 gid, u64 count) {
    if (to != root) {
      flush();
      root = to, lowest = gid, members = 0;
    }
    lowest = min(lowest, gid), members += count;
  }
  // Where threads end. The whole block calls it: of those with the same root one adds the sum of all, nearly always one of a block.
  __device__ void end() {
    __shared__ u64 roots[32], sums[32];
    __shared__ i64 least[32];
    unsigned warp = threadIdx.x / 32;
    bool first = join();
    __syncthreads();
    if (lane_id() == 0) roots[warp] = NOBODY;
    __syncwarp();
    if (first) roots[warp] = root, sums[warp] = members, least[warp] = lowest, root = NOBODY;
    flush();
    __syncthreads();
    if (warp > 0) return;
    root = lane_id() < blockDim.x / 32 ? roots[lane_id()] : NOBODY;
    if (root != NOBODY) members = sums[lane_id()], lowest = least[lane_id()];
    join();
    flush();
  }

 private:
  // Of the lanes of a warp with the same root, one gets the sums of all. True for one of these.
  __device__ bool join() {
    unsigned left = __ballot_sync(FULL, root != NOBODY), leader = __ffs(left) - 1;
    while (left) {
      int lane = __ffs(left) - 1;
      bool same = root == __shfl_sync(FULL, root, lane);
      u64 all = sum_of_warp(same ? members : 0ull);
      i64 low = least_of_warp(same ? lowest : NO_GID);
      left &= ~__ballot_sync(FULL, same);
      if ((int)lane_id() == lane) members = all, lowest = low;
      else if (same) root = NOBODY;
    }
    return lane_id() == leader;
  }

  __device__ void flush() {
    if (root == NOBODY) return;
    u64 owner = root % MOST_PEERS, lid = root / MOST_PEERS, size = owner == rank ? 0 : sizeof(u64);
    i64* place = &trees.lowest[owner][lid];
    if (lowest < *(volatile i64*)place) atomicMin_system(place, lowest), stored += size;
    if (members) most = max(most, members + atomicAdd_system(&trees.members[owner][lid], members)), stored += size;
  }
};

// A master that is a root becomes a tree of its own in the forest of all ranks. A mirror that is a root does not: nearly always
// its edges were left out, so that it is alone, and has nothing to unite. Its parent is NOBODY.
__device__ inline void plant(i64 size, int* parents, const i64* gids, i64 rank, i64 masters, const Trees& trees) {
  u64 *names = trees.parents[rank], *members = trees.members[rank];
  i64* lowest = trees.lowest[rank];
  for_each_loaded(0, size, [&](i64 lid) { return parents[lid]; }, [&](i64 lid, int parent, bool live) {
    if (!live) return;
    if (parent != lid) {
      int root = settled_root(Lids{parents}, parent);
      if (root != parent) parents[lid] = root;
    } else if (lid < masters) {
      names[lid] = name_of(parent, rank), lowest[lid] = gids[lid], members[lid] = 1;
    } else {
      names[lid] = NOBODY;
    }
  });
}

// A mirror that is the root of other mirrors becomes a tree, too.
__device__ inline void plant_mirrors(i64 size, const int* parents, i64 rank, i64 masters, const Trees& trees) {
  for_each_loaded(masters, size, [&](i64 lid) { return parents[lid]; }, [&](i64 lid, int root, bool live) {
    if (!live || root == lid || root < masters) return;
    trees.parents[rank][root] = name_of(root, rank);
    trees.lowest[rank][root] = NO_GID, trees.members[rank][root] = 0;
  });
}

// Masters are counted at their roots, which learn the lowest gid of them. Mirrors count as masters elsewhere.
struct Master {
  int root;
  i64 gid;
};
__device__ inline void count_masters(const int* parents, const i64* gids, i64 rank, i64 masters, const Trees& trees) {
  Tally tally(trees, rank);
  for_each_loaded(0, masters, [&](i64 lid) { return Master{parents[lid], gids[lid]}; },
                  [&](i64 lid, Master master, bool live) {
    if (live && master.root != lid) tally.add(name_of(master.root, rank), master.gid, 1);
  });
  tally.end();
}

// Unites the trees of two ranks. The higher root gets the lower one as its parent, wherever that is by now: so a rank whose tree
// is the higher one has nothing to ask of the other, where all would ask for the parent of the same root.
__device__ inline void unite_apart(Forest& forest, u64 one, u64 other) {
  u64 low = min(one, other), high = max(one, other), parent = forest.join(high, low);
  if (parent != high && parent != low) unite(forest, parent, low);
}

// A mirror and its master are one node, so their roots are united. Nearly all mirrors share one pair of roots: a lane leaves out
// the pair that it had before, and a block that which it met last. (Roots are words that all ask for, one after the other.) A
// mirror that is no tree, see plant, has nothing to unite.
struct Pair {
  u64 roots;  // of the mirror here and of its master there
  bool alone;
};
__device__ inline void unite_mirrors(const int* parents, const Trees& trees, const Peers& peers, const Proxies& proxies,
                                     Forest& forest) {
  __shared__ u64 met;
  const int* roots = trees.roots[peers.rank];
  const u64* names = trees.parents[peers.rank];
  for (int p = 0; p < peers.ranks; p++) {
    __syncthreads();
    if (threadIdx.x == 0) met = NOBODY;
    __syncthreads();
    u64 held = NOBODY;
    for_each_loaded(proxies.starts[p], proxies.starts[p + 1], [&](i64 lid) {
      int root = parents[lid];
      return Pair{(u64)root << 32 | (unsigned)roots[lid], root == lid && peek(&names[lid]) == NOBODY};
    }, [&](i64, Pair pair, bool live) {
      if (!live || pair.alone || pair.roots == held) return;
      held = pair.roots;
      if (atomicExch(&met, held) == held) return;
      unite_apart(forest, name_of((int)(held >> 32), peers.rank), name_of((int)(unsigned)held, p));
    });
  }
}

// Bit p says that rank p has left out the edges of another component than the first of those that left out any. An edge that
// joins the two may have been left out at both ends, so these ranks have to take theirs.
__device__ inline u64 wrong_ranks(i64 ranks, const u64* roots) {
  u64 first = 0, wrong = 0;
  for (int p = 0; p < ranks; p++) {
    if (!first) first = roots[p];
    wrong |= (u64)(roots[p] && roots[p] != first) << p;
  }
  return wrong;
}

// Local roots get the root of all ranks as their parent, which gets what they have. Nothing is united any more, and nobody but
// its own rank writes the parent of a root: one that another thread reads is up its path, old or new. Most have the tree that a
// rank left out as their parent, whose root of all ranks a block looks up once. Roots of all ranks are counted, and the largest is
// found: whoever adds to it last knows all of its members. Returns the ranks that were wrong.
struct Root {
  u64 parent, members;  // NOBODY: it is no root
};
__device__ inline u64 gather_trees(i64 size, const int* parents, const Trees& trees, const Peers& peers, u64 (*told)[TOLD],
                                   Forest& forest, u64* sums) {
  __shared__ u64 tops[MOST_PEERS];
  if (threadIdx.x < peers.ranks) {
    u64 large = told[threadIdx.x][LEFT_OUT];
    tops[threadIdx.x] = large ? 1 + settled_root(forest, large - 1) : 0;
  }
  __syncthreads();
  i64 rank = forest.rank;
  const u64 *names = trees.parents[rank], *members = trees.members[rank];
  u64 found = 0, most = 0;
  Tally tally(trees, rank);
  for_each_loaded(0, size,
                  [&](i64 lid) { return parents[lid] == lid ? Root{peek(&names[lid]), members[lid]} : Root{NOBODY, 0}; },
                  [&](i64 lid, Root root, bool live) {
    if (!live || root.parent == NOBODY) return;
    u64 own = name_of((int)lid, rank);
    if (root.parent == own) {
      found++, most = max(most, root.members);
      return;
    }
    bool large = told[root.parent % MOST_PEERS][LEFT_OUT] == 1 + root.parent;
    u64 top = large ? tops[root.parent % MOST_PEERS] - 1 : settled_root(forest, root.parent);
    if (top != root.parent) *(volatile u64*)forest.place(own) = top;
    tally.add(top, trees.lowest[rank][lid], root.members);
  });
  tally.end();
  most = largest_of_warp(max(most, tally.most));
  if (lane_id() == 0 && most) atomicMax(&sums[MOST], most);
  add_up(&sums[FOUND], found);
  add_up(&sums[STORED], forest.stored + tally.stored);
  return wrong_ranks(peers.ranks, tops);
}

// Masters take the lowest gid of their component, from where its root is; a thread keeps the last that it got from elsewhere.
struct Named {
  u64 root;
  i64 lowest;
};
__device__ inline void name_masters(const int* parents, i64 rank, i64 masters, const Trees& trees, i64* component) {
  const u64* names = trees.parents[rank];
  const i64* lowest = trees.lowest[rank];
  Named held = {NOBODY, 0};
  for_each_loaded(0, masters, [&](i64 lid) {
    u64 root = names[parents[lid]];
    return Named{root, root % MOST_PEERS == rank ? lowest[root / MOST_PEERS] : 0};
  }, [&](i64 lid, Named named, bool live) {
    if (!live) return;
    u64 owner = named.root % MOST_PEERS;
    if (owner != rank && named.root != held.root) held = {named.root, trees.lowest[owner][named.root / MOST_PEERS]};
    component[lid] = owner == rank ? named.lowest : held.lowest;
  });
}

// Unites the trees of all ranks. ``found``, on the host, gets the ranks that were wrong; if there are none, then the components
// of the graph and the masters in the largest, and ``component`` of masters the lowest gid of theirs.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
unite_ranks(Together::Given given, Trees trees, i64 size, int* parents, const i64* gids, const int* left_out, u64* sums,
            i64* component, u64* found) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  const Peers peers = given.peers;
  const Proxies proxies = given.proxies;
  unsigned barriers = peers.begin();
  Forest forest = {trees.parents, (u64)peers.rank, 0};
  if (thread_id() < SUMS) sums[thread_id()] = 0;
  plant(size, parents, gids, peers.rank, proxies.masters, trees);
  peers.barrier(barriers, told);
  i64 to_mirrors = publish_values(peers, proxies, parents, trees.roots);
  plant_mirrors(size, parents, peers.rank, proxies.masters, trees);
  count_masters(parents, gids, peers.rank, proxies.masters, trees);
  peers.barrier(barriers, told);
  unite_mirrors(parents, trees, peers, proxies, forest);
  peers.barrier(barriers, told, [&](int, int k) {
    return k == LEFT_OUT && *left_out >= 0 ? 1 + name_of(parents[*left_out], peers.rank) : 0;
  });
  u64 wrong = gather_trees(size, parents, trees, peers, told, forest, sums);
  peers.barrier(barriers, told, [&](int, int k) { return peek(&sums[k == COMPONENTS ? FOUND : MOST]); });
  if (thread_id() == 0) found[0] = wrong, found[1] = peers.sum(told, COMPONENTS), found[2] = peers.most(told, LARGEST);
  if (wrong == 0) name_masters(parents, peers.rank, proxies.masters, trees, component);
  peers.barrier(barriers, told);
  peers.end(barriers, peek(&sums[STORED]), to_mirrors);
}
