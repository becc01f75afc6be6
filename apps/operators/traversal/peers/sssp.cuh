// Shortest paths on the GPUs of several ranks, in one kernel on each: see gluon/kernels/peers.cuh. Types as in distances.cuh.
#include "../sssp_sorted.cuh"
#include "../../../../gluon/kernels/peers.cuh"

// What the ranks tell each other: in an exchange, offers to all of them and to the one that is told, and whether the rank has
// relaxed anything; where a bucket opens, how far below ``far`` the next distance is, and the edges of settled nodes; after a
// pull, nodes that fell, and all that have edges.
enum Told { SENT, FOR_YOU, BUSY, BELOW = 0, SETTLED = 1, FELL = 0, ROWS = 1 };

// Distances of mirrors that fell, offered to the ranks of their masters: the place in the list of the sync plan, and the
// distance. Of every rank there is memory for two exchanges in turn; in one exchange a mirror is offered at most once.
struct Offers {
  int* const* out;
  VALUE* const* out_values;
  const int* const* in;
  const VALUE* const* in_values;
  u64* sent;   // offers to each rank, of even and odd exchanges
};

// What a search on several ranks has at hand.
struct Search {
  Peers peers;
  Proxies proxies;
  Offers offers;
  SortedRows rows;  // of masters: no mirror has any
  VALUE far;
  VALUE* values;
  unsigned* fallen;  // bits of proxies
  Queues queues;
  u64 offered;  // by this rank so far
};

// Offers all mirrors that fell, and clears their bits.
__device__ inline void offer_mirrors(const Search& search, unsigned exchange) {
  const Proxies& proxies = search.proxies;
  u64* sent = search.offers.sent + (exchange & 1) * search.peers.ranks;
  take_mirrors(search.peers, proxies, search.fallen, [&](int lid, bool fell) {
    bool chosen[1] = {fell};
    int mirror[1] = {lid};
    give_places(search.peers, proxies, sent, chosen, mirror, [&](int to, u64 at, int) {
      i64 place = (exchange & 1) * proxies.mirrors_of(to) + at;
      search.offers.out[to][place] = (int)(lid - proxies.starts[to]);
      search.offers.out_values[to][place] = search.values[lid];
    });
  });
}

// All ranks offer; masters take what is shorter, and get their bits. False if no rank was busy or offered anything.
__device__ inline bool exchange_offers(Search& search, bool busy, unsigned& exchange, unsigned& barriers,
                                       u64 (*told)[TOLD]) {
  const Peers& peers = search.peers;
  const Proxies& proxies = search.proxies;
  offer_mirrors(search, ++exchange);
  u64* sent = search.offers.sent + (exchange & 1) * peers.ranks;
  peers.barrier(barriers, told, [&](int p, int k) {
    if (k == FOR_YOU) return peek(&sent[p]);
    u64 all = k == BUSY && busy;
    for (int to = 0; k == SENT && to < peers.ranks; to++) all += peek(&sent[to]);
    return all;
  });
  if (thread_id() < peers.ranks) search.offers.sent[(exchange + 1 & 1) * peers.ranks + thread_id()] = 0;
  search.offered += told[peers.rank][SENT];
  if (peers.sum(told, SENT) + peers.sum(told, BUSY) == 0) return false;
  for (int p = 0; p < peers.ranks; p++) {
    i64 half = (exchange & 1) * proxies.sizes[p];
    for (i64 i = thread_id(); p != peers.rank && i < (i64)told[p][FOR_YOU]; i += num_threads()) {
      int lid = proxies.lists[p][search.offers.in[p][half + i]];
      VALUE value = search.offers.in_values[p][half + i];
      if (value < search.values[lid] && value < lower(&search.values[lid], value))
        atomicOr(&search.fallen[lid >> 5], 1u << (lid & 31));
    }
  }
  search.queues.barrier();
  return true;
}

// Relaxes what the queue of a step holds, and what falls below ``limit`` on any rank, until nothing does. All ranks take each
// step together: one that ran ahead would keep the others waiting for what it finds.
__device__ inline void relax_everywhere(Search& search, unsigned& step, VALUE limit, unsigned& exchange,
                                        unsigned& barriers, u64 (*told)[TOLD]) {
  for (;;) {
    u64 total = search.queues.total(step);
    relax(search.queues.rows(step, total), search.far, search.rows, search.values, search.fallen, nullptr);
    search.queues.barrier();
    if (!exchange_offers(search, queue_nodes(total) > 0, exchange, barriers, told)) break;
    collect(search.fallen, search.queues.next(step), limit, search.far, search.rows, search.values, nullptr);
    search.queues.barrier();
  }
}

// The search of settle_and_pull, where no mirror has out-edges. A bucket is settled on each rank; then mirrors whose distance
// fell offer it to their masters, and again, until no rank offers anything. Before each pull of nodes that are not
// settled, all mirrors get the distances of their masters.
extern "C" __global__ void __launch_bounds__(512, RESIDENT)
settle_and_pull_peers(i64 source, const u64* index, const int* table, SortedRows rows, i64 proxies, i64 enough,
                      i64 most_buckets, VALUE far, VALUE width, VALUE* const* values_of, unsigned* fallen, Queues queues,
                      Peers peers, Proxies others, Offers offers, i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  Search search = {peers, others, offers, rows, far, values_of[peers.rank], fallen, queues, 0};
  unsigned barriers = peers.begin(), step = 0, exchange = 0;
  i64 buckets = 0, words = (proxies + 31) / 32;
  queues.begin();
  for (i64 i = thread_id(); i < proxies; i += num_threads()) search.values[i] = far;
  for (i64 i = thread_id(); i < words; i += num_threads()) fallen[i] = 0;
  if (thread_id() < 2 * peers.ranks) offers.sent[thread_id()] = 0;
  queues.barrier();
  if (thread_id() == 0 && has_bit(index, source)) search.values[lid_of(index, table, source)] = 0;
  queues.barrier();
  Sums sums = {queues.progress->lowest};
  VALUE low = 0, nearest = 0;
  for (u64 settled = 0; buckets < most_buckets && low < far && (i64)settled < enough; buckets++) {
    VALUE high = far - low > width ? low + width : far;
    u64* below = sums.next();
    keep_lowest(below, append_windows(queues.next(step), low, high, far, rows, search.values), far);
    peers.barrier(barriers, told, [&](int, int k) { return k == BELOW ? peek(below) : 0ull; });
    low = value_below(far, peers.most(told, BELOW));
    if ((i64)settled < enough / RARE) nearest = low;
    if (low >= high) continue;
    relax_everywhere(search, step, high, exchange, barriers, told);
    low = high;
    u64* edges = sums.next();
    add_up(edges, settled_edges(low, rows, search.values));
    peers.barrier(barriers, told, [&](int, int k) { return k == SETTLED ? peek(edges) : 0ull; });
    settled = peers.sum(told, SETTLED);
  }
  if (thread_id() == 0) *rounds = buckets;
  if (nearest > 0 && low < far) {
    append_below(queues.next(step), nearest, rows, search.values);
    queues.barrier();
    relax(queues.rows(step, queues.total(step)), far, rows, search.values, fallen, nullptr);
    queues.barrier();
    exchange_offers(search, false, exchange, barriers, told);
  }
  i64 to_mirrors = 0;
  for (bool many = low < far; many; nearest = low) {
    to_mirrors += publish_values(peers, others, search.values, values_of);
    peers.barrier(barriers, told);
    u64* fell = sums.next();
    add_up(fell, pull(low, nearest, far, rows, search.values, fallen));
    peers.barrier(barriers, told, [&](int, int k) { return k == FELL ? peek(fell) : k == ROWS ? (u64)rows.size : 0ull; });
    many = peers.sum(told, FELL) > peers.sum(told, ROWS) / MANY;
  }
  collect(fallen, queues.next(step), far, far, rows, search.values, nullptr);
  queues.barrier();
  relax_everywhere(search, step, far, exchange, barriers, told);
  queues.barrier();
  peers.end(barriers, search.offered * (sizeof(int) + sizeof(VALUE)), to_mirrors);
}
