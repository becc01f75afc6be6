// PageRank: see interfaces.py. VALUE is the type of ranks.
#include "cusp/apps/operators/frontier.cuh"

constexpr double UNIT = 1152921504606846976.0;  // 2^60: floats are added up as whole numbers, so their order does not matter

struct Node {
  VALUE sum, teleport, rank, factor;
};

// The first ``senders`` masters have out-edges. Walks start at master m with ``teleport[m * each]``: ``each`` is 0 where
// one number is that of all. Publishes by how much the ranks changed and the sum of those of the other nodes, in units
// of 2^-60.
extern "C" __global__ void new_ranks(i64 masters, i64 senders, VALUE kept, i64 each, const VALUE* teleport,
                                     const VALUE* factors, VALUE* sums, VALUE* ranks, VALUE* contributions,
                                     u64* totals, u64* host) {
  double change = 0, dangling = 0;
  for_each_loaded(0, masters, [&](i64 at) {
    return Node{sums[at], teleport[at * each], ranks[at], at < senders ? factors[at] : 0};
  }, [&](i64 at, Node node, bool live) {
    if (!live) return;
    VALUE rank = node.sum + kept * node.teleport;
    change += fabs((double)rank - (double)node.rank);
    ranks[at] = rank;
    sums[at] = 0;
    if (at < senders)
      contributions[at] = node.factor * rank;
    else
      dangling += rank;
  });
  add_up(&totals[0], (u64)(change * UNIT));
  add_up(&totals[1], (u64)(dangling * UNIT));
  publish(totals, 2, host);
}

extern "C" __global__ void collect(i64 masters, double pending, i64 each, const double* teleport, i64* residuals,
                                   u64* totals, u64* host) {
  u64 total = 0;
  for (i64 node = thread_id(); node < masters; node += num_threads()) {
    i64 residual = residuals[node] + (i64)__dmul_rn(pending, teleport[node * each]);
    residuals[node] = residual;
    total += residual < 0 ? -residual : residual;
  }
  add_up(&totals[0], total);
  publish(totals, 1, host);
}

// The arithmetic is that of pagerank_cpu.py, to the bit.
extern "C" __global__ void settle(i64 masters, double threshold, double damping, const i64* degrees, i64* residuals,
                                  i64* settled, i64* shares, unsigned* updated, u64* totals, u64* host) {
  i64 total = 0, dangling = 0;
  for (i64 node = thread_id(); node < masters; node += num_threads()) {
    i64 residual = residuals[node], degree = degrees[node], moved = residual;
    if (degree == 0) {
      dangling += residual;
    } else {
      if (!((residual < 0 ? -residual : residual) > __dmul_rn(threshold, (double)degree))) continue;
      i64 share = (i64)(__dmul_rn(damping, (double)residual) / (double)degree);
      moved = (i64)((double)(share * degree) / damping);
      shares[node] = share;
      set_bit(updated, node);
    }
    residuals[node] = residual - moved;
    settled[node] += moved;
    total += moved;
  }
  add_up(&totals[0], (u64)total);
  add_up(&totals[1], (u64)dangling);
  publish(totals, 2, host);
}

// Whole numbers are added, in any order. The queue is empty afterwards.
extern "C" __global__ void push_shares(Queues queues, const int* targets, const i64* shares, i64* residuals) {
  consume(queues, targets,
          [&](int source, int target) { atomicAdd((u64*)&residuals[target], (u64)shares[source]); });
}

// Sets the bits of the proxies from ``first`` on whose value is not 0: one word per warp, so no atomics are needed.
extern "C" __global__ void mark_nonzero(i64 first, i64 size, const i64* values, unsigned* updated) {
  i64 words = (size + 31) / 32;
  for (i64 word = first / 32 + thread_id() / 32; word < words; word += num_threads() / 32) {
    i64 lid = word * 32 + lane_id();
    unsigned bits = __ballot_sync(FULL, lid >= first && lid < size && values[lid] != 0);
    if (lane_id() == 0 && bits) updated[word] |= bits;
  }
}
