// Connected components on the GPUs of several ranks: see gluon/kernels/peers.cuh. VALUE is int.
//
// Every rank has united what its own edges connect. Here the trees of all ranks become one forest, in which threads of any GPU
// unite roots of any two as those of one GPU do (../cc.cuh): a parent is a word in the memory of the rank that has the root.
#include "cusp/apps/operators/structure/cc.cuh"
#include "gluon/kernels/link.cuh"

// What the ranks tell each other: 1 + the root there of the tree with the most nodes, and whether its edges were left out; then how
// many roots of all ranks it has, and the most members that it knows one to have.
enum Told { LARGE, LEFT_OUT, COMPONENTS = 0, LARGEST };
// What a rank has found: roots, the most members of one, bytes stored elsewhere for roots and for mirrors; from SEEN on, of which
// ranks it has seen that the large trees meet.
enum Sum { FOUND, MOST, STORED, PUBLISHED, SEEN };

// A root among those of all ranks: its local id, then its rank. In degree order hubs come first, so the parents of large trees
// are known soon.
__device__ inline u64 name_of(int lid, i64 rank) { return (u64)lid * MOST_PEERS + rank; }
constexpr int AT_ONCE = 8;  // loads of a thread: so few threads are resident that fewer do not keep the memory busy
constexpr u64 NOBODY = ~0ull;
constexpr i64 NO_GID = (i64)(NOBODY >> 1);

// The arrays of each rank in the memory of the peers. Entries of lids that are no roots are not used.
struct Trees {
  u64* const* parents;      // of roots, by their names
  i64* const* lowest;       // gid of a master
  u64* const* members;      // masters
  int* const* roots;        // of mirrors: the root that their master has on its rank, if that is another than its large tree's
  unsigned* const* inside;  // bits of mirrors: it is that
  unsigned* own;            // the same bits of masters
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

// Adds what trees have to their root, wherever it is. Most have the ``large`` one, of which a block adds once: atomics on one address
// follow each other, and take longer on another GPU. Of others a thread adds when it meets the next.
struct Tally {
  struct Sums {
    u64 root, members = 0;
    i64 lowest = NO_GID;

    __device__ explicit Sums(u64 root) : root(root) {}
    __device__ void add(i64 gid, u64 count) { lowest = min(lowest, gid), members += count; }
  };
  const Trees& trees;
  u64 rank, stored = 0, most = 0;
  Sums large, other{NOBODY};

  __device__ Tally(const Trees& trees, u64 rank, u64 large) : trees(trees), rank(rank), large(large) {}
  __device__ void add(u64 to, i64 gid, u64 count) {
    if (to == large.root) return large.add(gid, count);
    if (to != other.root) tell(other), other = Sums(to);
    other.add(gid, count);
  }
  // Where threads end. The whole block calls it.
  __device__ void end() {
    __shared__ u64 members[32];
    __shared__ i64 lowest[32];
    tell(other);
    u64 sum = sum_of_warp(large.members);
    i64 least = least_of_warp(large.lowest);
    if (lane_id() == 0) members[threadIdx.x / 32] = sum, lowest[threadIdx.x / 32] = least;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    bool warp = threadIdx.x < blockDim.x / 32;
    large.members = sum_of_warp(warp ? members[threadIdx.x] : 0ull);
    large.lowest = least_of_warp(warp ? lowest[threadIdx.x] : NO_GID);
    if (threadIdx.x == 0) tell(large);
  }

 private:
  __device__ void tell(const Sums& sums) {
    if (sums.lowest == NO_GID) return;
    u64 owner = sums.root % MOST_PEERS, lid = sums.root / MOST_PEERS, size = owner == rank ? 0 : sizeof(u64);
    i64* place = &trees.lowest[owner][lid];
    if (sums.lowest < *(volatile i64*)place) atomicMin_system(place, sums.lowest), stored += size;
    if (!sums.members) return;
    most = max(most, sums.members + atomicAdd_system(&trees.members[owner][lid], sums.members)), stored += size;
  }
};

// A master that is a root becomes a tree of its own in the forest of all ranks. A mirror that is a root does not yet: nearly always
// its edges were left out, so that it is alone, and has nothing to unite. Its parent is NOBODY. Masters in the large tree get
// their bit; a word of a partner's bits that mirrors of several ranks share begins with none.
struct Path {
  int parent, above;
};
__device__ inline void plant(Nodes nodes, int* parents, const i64* gids, int large, const Peers& peers, const Proxies& proxies,
                             const Trees& trees) {
  i64 rank = peers.rank;
  u64 *names = trees.parents[rank], *members = trees.members[rank];
  i64* lowest = trees.lowest[rank];
  if (thread_id() <= peers.ranks) trees.inside[rank][proxies.starts[thread_id()] / 32] = 0;
  for_each_node<AT_ONCE>(nodes, [&](i64 lid) {
    int parent = parents[lid];
    return Path{parent, parents[parent]};
  }, [&](i64 lid, Path path, bool live) {
    int root = !live ? -1 : path.above == path.parent ? path.parent : settled_root(Lids{parents}, path.above);
    bool master = live && lid < nodes.masters;
    if (live && root != path.parent) parents[lid] = root;
    if (master && root == lid) names[lid] = name_of(root, rank), lowest[lid] = gids[lid], members[lid] = 1;
    else if (live && root == lid) names[lid] = NOBODY;
    else if (root >= nodes.masters) lowest[root] = NO_GID, members[root] = 0;
    i64 first = __shfl_sync(FULL, lid, 0);
    unsigned inside = __ballot_sync(FULL, master && root == large);
    if (lane_id() == 0 && first < nodes.masters) trees.own[first / 32] = inside;
  });
}

// Mirrors learn the root of their master, most of them by a bit: few masters are in another tree than the large one.
__device__ inline void publish_roots(const Peers& peers, const Proxies& proxies, const int* parents, int large, const Trees& trees,
                                     u64* sums) {
  i64 bytes = publish_bits(peers, proxies, trees.own, trees.inside);
  u64 stored = thread_id() == 0 ? bytes : 0;
  for (int p = 0; p < peers.ranks; p++) {
    if (p == peers.rank) continue;
    const int* list = proxies.lists[p];
    int* there = trees.roots[p] + proxies.begins[p];
    for_each_loaded<AT_ONCE>(0, proxies.sizes[p], [&](i64 i) { return parents[list[i]]; },
                             [&](i64 i, int root, bool live) { if (live && root != large) there[i] = root, stored += sizeof(int); });
  }
  add_up(&sums[PUBLISHED], stored);
}

// A mirror that is the root of others becomes a tree, too. Masters are counted at their roots, which learn the lowest gid of them.
// Mirrors count as masters elsewhere.
struct Member {
  int root;
  i64 gid;
};
__device__ inline void count_masters(Nodes nodes, const int* parents, const i64* gids, i64 rank, int large, const Trees& trees) {
  Tally tally(trees, rank, name_of(large, rank));
  for_each_node<AT_ONCE>(nodes, [&](i64 lid) { return Member{parents[lid], lid < nodes.masters ? gids[lid] : NO_GID}; },
                [&](i64 lid, Member member, bool live) {
    if (!live || member.root == lid) return;
    if (member.root >= nodes.masters) trees.parents[rank][member.root] = name_of(member.root, rank);
    if (lid < nodes.masters) tally.add(name_of(member.root, rank), member.gid, 1);
  });
  tally.end();
}

// Unites the trees of two ranks. The higher root gets the lower one as its parent, wherever that is by now: so a rank whose tree
// is the higher one has nothing to ask of the other, where all would ask for the parent of the same root.
__device__ inline void unite_apart(Forest& forest, u64 one, u64 other) {
  u64 low = min(one, other), high = max(one, other), parent = forest.join(high, low);
  if (parent != high && parent != low) unite(forest, parent, low);
}

// A mirror and its master are one node, so their roots are united. Nearly all mirrors are alone, see plant, or both roots are those
// of the large trees, which are united once; a lane leaves out the pair that it had before, and a block that which it met last.
// (Roots are words that all ask for, one after the other.)
struct Pair {
  int root, other;  // of the mirror here and of its master there
  bool alone;
};
__device__ inline void unite_mirrors(const int* parents, int large, const Trees& trees, const Peers& peers, const Proxies& proxies,
                                     u64 (*told)[TOLD], Forest& forest, u64* sums) {
  __shared__ u64 met;
  const int* roots = trees.roots[peers.rank];
  const unsigned* inside = trees.inside[peers.rank];
  const u64* names = trees.parents[peers.rank];
  for (int p = 0; p < peers.ranks; p++) {
    __syncthreads();
    if (threadIdx.x == 0) met = NOBODY;
    __syncthreads();
    int large_there = (int)((told[p][LARGE] - 1) / MOST_PEERS);
    u64 held = NOBODY;
    bool seen = false;
    for_each_loaded<AT_ONCE>(proxies.starts[p], proxies.starts[p + 1], [&](i64 lid) {
      int root = parents[lid];
      return Pair{root, get_bit(inside, (int)lid) ? large_there : roots[lid], root == lid && peek(&names[lid]) == NOBODY};
    }, [&](i64, Pair pair, bool live) {
      if (!live || pair.alone) return;
      u64 both = (u64)pair.root << 32 | (unsigned)pair.other;
      if (pair.root == large && pair.other == large_there) {
        seen = true;
      } else if (both != held) {
        held = both;
        if (atomicExch(&met, both) != both) unite_apart(forest, name_of(pair.root, peers.rank), name_of(pair.other, p));
      }
    });
    if (__syncthreads_or(seen) && threadIdx.x == 0 && !peek(&sums[SEEN + p]) && !atomicExch(&sums[SEEN + p], 1ull))
      unite_apart(forest, name_of(large, peers.rank), told[p][LARGE] - 1);
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
// its own rank writes the parent of a root: one that another thread reads is up its path, old or new. Most have the large tree of
// a rank as their parent, whose root of all ranks a block looks up once. Roots of all ranks are counted, and the largest is
// found: whoever adds to it last knows all of its members. Returns the ranks that were wrong.
struct Root {
  u64 parent, members;  // NOBODY: it is no root
};
__device__ inline u64 gather_trees(Nodes nodes, const int* parents, const Trees& trees, const Peers& peers, u64 (*told)[TOLD],
                                   Forest& forest, u64* sums) {
  __shared__ u64 tops[MOST_PEERS], left_out[MOST_PEERS];
  if (threadIdx.x < peers.ranks) {
    u64 large = told[threadIdx.x][LARGE];
    tops[threadIdx.x] = large ? settled_root(forest, large - 1) : NOBODY;
    left_out[threadIdx.x] = told[threadIdx.x][LEFT_OUT] ? 1 + tops[threadIdx.x] : 0;
  }
  __syncthreads();
  i64 rank = forest.rank;
  const u64 *names = trees.parents[rank], *members = trees.members[rank];
  u64 found = thread_id() == 0 ? nodes.masters - nodes.linked : 0, most = nodes.masters > 0;
  Tally tally(trees, rank, tops[rank]);
  for_each_node(nodes, [&](i64 lid) { return parents[lid] == lid ? Root{peek(&names[lid]), members[lid]} : Root{NOBODY, 0}; },
                [&](i64 lid, Root root, bool live) {
    if (!live || root.parent == NOBODY) return;
    u64 own = name_of((int)lid, rank);
    if (root.parent == own) {
      found++, most = max(most, root.members);
      return;
    }
    bool large = told[root.parent % MOST_PEERS][LARGE] == 1 + root.parent;
    u64 top = large ? tops[root.parent % MOST_PEERS] : settled_root(forest, root.parent);
    if (top != root.parent) *(volatile u64*)forest.place(own) = top;
    tally.add(top, trees.lowest[rank][lid], root.members);
  });
  tally.end();
  most = largest_of_warp(max(most, tally.most));
  if (lane_id() == 0 && most) atomicMax(&sums[MOST], most);
  add_up(&sums[FOUND], found);
  add_up(&sums[STORED], forest.stored + tally.stored);
  return wrong_ranks(peers.ranks, left_out);
}

// Masters take the lowest gid of their component, from where its root is; a thread keeps the last that it got from elsewhere.
struct Named {
  u64 root;
  i64 lowest;
};
__device__ inline void name_masters(Nodes nodes, const int* parents, i64 rank, const Trees& trees, i64* component) {
  const u64* names = trees.parents[rank];
  const i64* lowest = trees.lowest[rank];
  Named held = {NOBODY, 0};
  for_each_loaded<AT_ONCE>(0, nodes.linked, [&](i64 lid) {
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
// of the graph and the masters in the largest, and ``component`` of masters the lowest gid of theirs. The tree that was left out is
// taken for the one with the most nodes, or that of the first node.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
unite_ranks(Together::Given given, Trees trees, const Nodes* of, int* parents, const i64* gids, const int* left_out, u64* sums,
            i64* component, u64* found) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  const Nodes nodes = *of;
  const Peers peers = given.peers;
  const Proxies proxies = given.proxies;
  unsigned barriers = peers.begin();
  Forest forest = {trees.parents, (u64)peers.rank, 0};
  int large = nodes.linked == 0 ? -1 : settled_root(Lids{parents}, max(*left_out, 0));
  auto tell = [&](int, int k) {
    return k == LARGE && large >= 0 ? 1 + name_of(large, peers.rank) : (u64)(k == LEFT_OUT && *left_out >= 0);
  };
  if (thread_id() < SEEN + peers.ranks) sums[thread_id()] = 0;
  plant(nodes, parents, gids, large, peers, proxies, trees);
  peers.barrier(barriers, told, tell);
  publish_roots(peers, proxies, parents, large, trees, sums);
  count_masters(nodes, parents, gids, peers.rank, large, trees);
  name_alone(nodes, gids, component);
  peers.barrier(barriers, told, tell);
  unite_mirrors(parents, large, trees, peers, proxies, told, forest, sums);
  peers.barrier(barriers, told, tell);
  u64 wrong = gather_trees(nodes, parents, trees, peers, told, forest, sums);
  peers.barrier(barriers, told, [&](int, int k) { return peek(&sums[k == COMPONENTS ? FOUND : MOST]); });
  if (thread_id() == 0) found[0] = wrong, found[1] = peers.sum(told, COMPONENTS), found[2] = peers.most(told, LARGEST);
  if (wrong == 0) name_masters(nodes, parents, peers.rank, trees, component);
  peers.barrier(barriers, told);
  peers.end(barriers, peek(&sums[STORED]), peek(&sums[PUBLISHED]));
}
