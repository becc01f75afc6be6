// Connected components: see interfaces.py. VALUE, the type of labels, is int or long long.
//
// Threads unite trees at the same time, without locks (ECL-CC: Jaiganesh, Burtscher, HPDC 2018). Only a root gets a new
// parent, by atomicCAS, and always a lower one that is, or was, a root: so there are no cycles. (A node that begins below a
// mirror, see link_to_first, is never a root.) A node that is not a root may get any node further up its path as its parent,
// by plain stores: whichever wins, and however old the parent that a thread reads, it is up that path.
#include "cusp/apps/operators/frontier.cuh"

// The nodes of a rank that may have edges: the first masters, and mirrors. Others, up to half of a skewed graph, are alone. Kernels
// get its address: CuPy takes 5 us to copy a struct, as long as a launch.
struct Nodes {
  i64 linked, masters, proxies;

  __device__ i64 count() const { return linked + proxies - masters; }
  __device__ i64 lid(i64 place) const { return place < linked ? place : place + masters - linked; }
};

// As for_each_loaded, by lids.
template <int TOGETHER = 4, class Load, class Visit>
__device__ inline void for_each_node(Nodes nodes, Load load, Visit visit) {
  for_each_loaded<TOGETHER>(0, nodes.count(), [&](i64 i) { return load(nodes.lid(i)); },
                            [&](i64 i, auto loaded, bool live) { visit(nodes.lid(i), loaded, live); });
}

// The component of a node that is alone.
__device__ inline void name_alone(Nodes nodes, const i64* gids, i64* component) {
  for_each_loaded(nodes.linked, nodes.masters, [&](i64 lid) { return gids[lid]; },
                  [&](i64 lid, i64 gid, bool live) { if (live) component[lid] = gid; });
}

// The parents of a rank's nodes.
struct Lids {
  int* parents;

  __device__ int parent(int lid) const { return parents[lid]; }
  __device__ void shorten(int lid, int above) { parents[lid] = above; }
  __device__ int join(int high, int low) { return atomicCAS(&parents[high], high, low); }
};

// Root of a node at the time this thread looks; on the way, every other node gets its grandparent as its parent.
template <class Forest, class Node>
__device__ inline Node root_of(Forest& forest, Node node) {
  for (;;) {
    Node parent = forest.parent(node);
    if (parent == node) return node;
    Node above = forest.parent(parent);
    if (above == parent) return parent;
    forest.shorten(node, above);
    node = above;
  }
}

template <class Forest, class Node>
__device__ inline void unite(Forest& forest, Node one, Node other) {
  if (forest.parent(one) == forest.parent(other)) return;
  one = root_of(forest, one), other = root_of(forest, other);
  while (one != other) {
    Node low = min(one, other), high = max(one, other);
    Node parent = forest.join(high, low);
    if (parent == high) return;
    one = low, other = root_of(forest, parent);
  }
}

// Root of a node where nothing is united any more.
template <class Forest, class Node>
__device__ inline Node settled_root(const Forest& forest, Node node) {
  for (Node parent = forest.parent(node); parent != node; parent = forest.parent(node)) node = parent;
  return node;
}

// The parent of a node becomes the target of its first edge, if that is lower, or a mirror without edges, which stays a root: all
// neighbours of the node are mirrors then, and low ones have many. Nodes are still alone, so no atomics are needed.
extern "C" __global__ void link_to_first(const Nodes* of, const i64* offsets, const int* targets, int* parents) {
  Nodes nodes = *of;
  for (i64 source = thread_id(); source < nodes.proxies; source += num_threads()) {
    bool alone = source >= nodes.linked && source < nodes.masters;
    i64 begin = alone ? 0 : offsets[source];
    int target = alone || begin == offsets[source + 1] ? (int)source : targets[begin];
    bool stays = target > source && (target < nodes.masters || offsets[target] < offsets[target + 1]);
    parents[source] = stays ? (int)source : target;
  }
}

// Paths become short: while all threads climb, each halves the path of the others.
extern "C" __global__ void shorten(const Nodes* of, int* parents) {
  Nodes nodes = *of;
  Lids lids = {parents};
  for (i64 i = thread_id(); i < nodes.count(); i += num_threads()) root_of(lids, (int)nodes.lid(i));
}

// Unites nodes with the targets of their next few edges, one thread per node. If there is a large tree, only hubs, with many more
// from all of their row, which may be in the order of ranks: that joins what hangs on mirrors to it, so that few nodes are left to
// be looked at. A warp has a piece of a hub's row.
constexpr int HUBS = 512, PIECES = 16, PIECE = 256;
extern "C" __global__ void link_next(i64 edges, const int* large, const Nodes* of, const i64* offsets, const int* targets,
                                     int* parents) {
  Nodes nodes = *of;
  Lids lids = {parents};
  if (*large < 0) {
    for (i64 i = thread_id(); i < nodes.count(); i += num_threads()) {
      i64 source = nodes.lid(i), begin = offsets[source], end = min(offsets[source + 1], begin + edges);
      for (i64 edge = begin + 1; edge < end; edge++) unite(lids, (int)source, targets[edge]);
    }
  } else if (nodes.masters < nodes.proxies) {
    i64 hubs = min(nodes.linked, (i64)HUBS);
    for (i64 piece = thread_id() / 32; piece < hubs * PIECES; piece += num_threads() / 32) {
      i64 hub = piece % hubs, begin = offsets[hub], length = offsets[hub + 1] - begin;
      if (length == 0) continue;
      i64 first = (piece / hubs * length / PIECES + hub * PIECE) % length;
      i64 end = min(first + min((length + PIECES - 1) / PIECES, (i64)PIECE), length);
      for (i64 edge = first + lane_id(); edge < end; edge += 32) unite(lids, (int)hub, targets[begin + edge]);
    }
  }
}

// The root that most nodes of a sample have, or -1 if less than one in ``rare`` has it. One block; a thread has a node and
// counts the others of its root. Parents may be on the way to roots. If a root is known that had most, its tree has.
constexpr int SAMPLE = 512;
extern "C" __global__ void __launch_bounds__(SAMPLE)
most_frequent(i64 size, i64 rare, int* parents, const int* known, int* most) {
  __shared__ int roots[SAMPLE];
  __shared__ u64 best;
  int taken = (int)min(size, (i64)SAMPLE), own = threadIdx.x;
  if (known && *known >= 0) {
    if (own == 0) *most = settled_root(Lids{parents}, *known);
    return;
  }
  if (own < taken) roots[own] = settled_root(Lids{parents}, (int)(own * size / taken));
  if (own == 0) best = 0;
  __syncthreads();
  unsigned count = 0;
  for (int i = 0; i < taken; i++) count += own < taken && roots[i] == roots[own];
  if (count * rare > taken) atomicMax(&best, (u64)count << 32 | ~(unsigned)roots[own]);  // of equals the lowest
  __syncthreads();
  if (own == 0) *most = best ? (int)~(unsigned)best : -1;
}

// The nodes with edges that are not in the tree of root *left_out, as a queue for link_queue; roots become parents. One lane per
// node. Those of a warp wait until there are enough for all lanes: atomics on one address follow each other.
constexpr int WARPS = 8;
extern "C" __global__ void __launch_bounds__(32 * WARPS)
queue_others(const int* left_out, const Nodes* of, const i64* offsets, int* parents, Queues queues) {
  Nodes nodes = *of;
  __shared__ int waiting[WARPS][TILE + 32];
  int large = *left_out, count = 0, *own = waiting[threadIdx.x / 32];
  auto queue = [&] {
    bool chosen[K];
    int node[K];
    each_k([&](int k) { chosen[k] = 32 * k + (int)lane_id() < count, node[k] = chosen[k] ? own[32 * k + lane_id()] : 0; });
    append_all(queues.of_step(0), chosen, node, offsets);
  };
  if (offsets[nodes.masters] == offsets[nodes.proxies]) nodes.proxies = nodes.masters;  // no mirror has edges
  for_each_node(nodes, [&](i64 lid) { return parents[lid]; }, [&](i64 lid, int parent, bool live) {
    int root = live ? settled_root(Lids{parents}, parent) : large;
    if (live && root != parent) parents[lid] = root;
    unsigned others = __ballot_sync(FULL, root != large);
    if (root != large) own[count + __popc(others & below_lane())] = (int)lid;
    count += __popc(others);
    __syncwarp();
    if (count < TILE) return;
    queue();
    count -= TILE;
    int rest = own[TILE + lane_id()];
    __syncwarp();
    own[lane_id()] = rest;
    __syncwarp();
  });
  queue();
}

// Unites every node of the queue with all its out-neighbours, edges shared out among warps. The queue is empty afterwards. Where
// all edges are there in both directions and no node is left out, one of the two will do.
extern "C" __global__ void link_queue(const int* left_out, i64 both_ways, Queues queues, const int* targets, int* parents) {
  Lids lids = {parents};
  bool twice = both_ways && *left_out < 0;
  consume(queues, targets, [&](int source, int target) {
    if (!twice || target < source) unite(lids, source, target);
  });
}

extern "C" __global__ void flatten(i64 size, int* parents) {
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) parents[lid] = settled_root(Lids{parents}, (int)lid);
}

// The nodes of the tree of *large, if that is not below 0. Publishes ~v, where v is the lowest of their values, 0 or more; 0 if
// there is no such tree.
extern "C" __global__ void find_inside(i64 size, const int* large, const int* parents, const VALUE* values, bool* inside,
                                       u64* sums, u64* host) {
  int root = *large;
  u64 most = 0;
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    inside[lid] = parents[lid] == root;
    if (inside[lid]) most = max(most, ~(u64)values[lid]);
  }
  keep_highest(&sums[0], most);
  publish(sums, 1, host);
}

// Most nodes share a root, so a thread keeps its minimum until it meets another root. ``lowered``: bits of those that count, or null.
extern "C" __global__ void lower_roots(i64 size, const int* parents, VALUE* values, const unsigned* lowered, unsigned* updated) {
  int held = -1;
  VALUE lowest = 0;
  auto flush = [&] {
    if (held >= 0 && lowest < *(volatile VALUE*)&values[held]) atomicMin(&values[held], lowest), set_bit(updated, held);
  };
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    int root = parents[lid];
    if (root == lid || (lowered && !get_bit(lowered, lid))) continue;
    VALUE value = values[lid];
    if (root != held) {
      flush();
      held = root, lowest = value;
    }
    lowest = min(lowest, value);
  }
  flush();
}

// A warp has 32 nodes and with them one word of ``updated``, so no atomics are needed.
extern "C" __global__ void spread_roots(i64 size, const int* parents, VALUE* values, unsigned* updated) {
  for (i64 first = thread_id() / 32 * 32; first < size; first += num_threads()) {
    i64 lid = first + lane_id();
    bool lowered = false;
    if (lid < size) {
      VALUE value = values[parents[lid]];
      lowered = value < values[lid];
      if (lowered) values[lid] = value;
    }
    unsigned bits = __ballot_sync(FULL, lowered);
    if (lane_id() == 0 && bits) updated[first / 32] |= bits;
  }
}

// Of each root, whether it is one of the first ``size`` nodes itself.
extern "C" __global__ void count_roots(i64 proxies, i64 size, const int* parents, int* members) {
  for (i64 lid = thread_id(); lid < proxies; lid += num_threads()) members[lid] = lid < size && parents[lid] == lid;
}

// And the others. Atomics on one address follow each other, so lanes that end with the root of the first add up.
extern "C" __global__ void count_members(i64 size, const int* parents, int* members) {
  int held = -1, count = 0;
  for (i64 lid = thread_id(); lid < size; lid += num_threads()) {
    if (parents[lid] == lid) continue;
    if (parents[lid] != held) {
      if (count) atomicAdd(&members[held], count);
      held = parents[lid], count = 0;
    }
    count++;
  }
  bool same = held == __shfl_sync(FULL, held, 0);
  int all = sum_of_warp(same ? count : 0);
  if (same) count = lane_id() == 0 ? all : 0;
  if (count) atomicAdd(&members[held], count);
}

// What a thread knows of a tree: nodes other than the root, and the highest of their ``value``.
struct Members {
  int root, count = 0;
  VALUE highest = 0;

  __device__ explicit Members(int root) : root(root) {}
  __device__ void add(VALUE value) { highest = max(highest, value), count++; }
  __device__ void tell(VALUE* highest_of, int* members) const {
    if (!count) return;
    if (highest > *(volatile VALUE*)&highest_of[root]) atomicMax(&highest_of[root], highest);
    atomicAdd(&members[root], count);
  }
};

// Where nothing is left to unite: roots become parents, and learn of their other nodes how many there are, and the lowest gid,
// as ``size``, the number of nodes, less it: both begin with 0. Atomics on one address follow each other, so of the large tree,
// if there is one, a warp adds once, and of others a thread adds when it meets the next.
extern "C" __global__ void gather_members(const Nodes* of, i64 size, const i64* gids, const int* left_out, int* parents,
                                          VALUE* highest, int* members) {
  Nodes nodes = *of;
  struct Member {
    int parent;
    i64 gid;
  };
  Lids lids = {parents};
  Members large(*left_out < 0 ? -1 : settled_root(lids, *left_out)), other(-1);
  for_each_node(nodes, [&](i64 lid) { return Member{parents[lid], gids[lid]}; }, [&](i64 lid, Member own, bool live) {
    if (!live || own.parent == lid) return;
    int root = settled_root(lids, own.parent);
    if (root != own.parent) parents[lid] = root;
    if (root != large.root && root != other.root) other.tell(highest, members), other = Members(root);
    VALUE value = (VALUE)(size - own.gid);
    if (root == large.root) large.add(value);
    else other.add(value);
  });
  other.tell(highest, members);
  large.count = sum_of_warp(large.count), large.highest = largest_of_warp(large.highest);
  if (lane_id() == 0) large.tell(highest, members);
}

// Then every node gets the lowest gid of its tree. Publishes how many trees there are, and the nodes of the largest.
extern "C" __global__ void name_members(const Nodes* of, i64 size, const i64* gids, const int* parents, const VALUE* highest,
                                        const int* members, i64* component, u64* sums, u64* host) {
  Nodes nodes = *of;
  struct Named {
    int root;
    i64 gid, others;
  };
  u64 found = thread_id() == 0 ? nodes.masters - nodes.linked : 0, most = nodes.masters > 0;
  for_each_node(nodes, [&](i64 lid) {
    int root = parents[lid];
    return Named{root, gids[root], size - (i64)highest[root]};
  }, [&](i64 lid, Named own, bool live) {
    if (!live) return;
    component[lid] = min(own.gid, own.others);
    if (own.root == lid) found++, most = max(most, (u64)members[lid] + 1);
  });
  name_alone(nodes, gids, component);
  add_up(&sums[0], found);
  keep_highest(&sums[1], most);
  publish(sums, 2, host);
}
