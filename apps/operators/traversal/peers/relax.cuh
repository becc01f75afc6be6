// Shortest paths by buckets on the GPUs of several ranks, in one kernel on each. Types as in distances.cuh.
//
// All ranks open a bucket together, but inside it none waits for another: it relaxes what it has, gives the distances that fell
// to the ranks that have the node, too, and takes what has come, until all are at rest (gluon/kernels/mail.cuh). A distance
// that comes late only means that nodes are relaxed again: the result is the same.
#include "../sssp.cuh"
#include "../../../../gluon/kernels/mail.cuh"

// What the ranks tell each other where a bucket opens: how far below ``far`` the next distance is, and with how many edges the
// last bucket began.
enum Told { BELOW, WORK };

// Inboxes of distances that fell, at each rank and here: the local id of the node there, and the distance.
struct Inboxes {
  int* const* out;
  VALUE* const* out_values;
  const int* const* in;
  const VALUE* const* in_values;
};

// The graph of one rank, and what is known of its proxies.
struct Local {
  i64 proxies, mirrors_push;  // the latter: whether any mirror of any rank has out-edges
  const i64* offsets;
  const int *targets, *at_master;  // the latter: of each mirror, its local id at its master's rank
  VALUE* values;
  unsigned *pending, *fallen;  // bits; of ``fallen`` three sets in turn: one is written, one given away, one cleared
  int* stamps;

  __device__ i64 words() const { return (proxies + 31) / 32; }
  __device__ unsigned* set(unsigned turn) const { return fallen + turn % 3 * words(); }

  // take_mirrors clears the other bits.
  __device__ void clear_masters(unsigned* bits, i64 masters) const {
    for (i64 word = thread_id(); word * 32 < masters; word += num_threads())
      bits[word] = (word + 1) * 32 <= masters ? 0 : bits[word] & ~0u << (masters & 31);
  }
};

// What a search on several ranks has at hand.
struct Search {
  Peers peers;
  Proxies proxies;
  Mail mail;
  Inboxes inboxes;
  Local local;
  VALUE far;
  const WEIGHT* weights;

  __device__ void write(int to, u64 at, int lid, VALUE value) const {
    i64 slot = mail.slot(to, at);
    inboxes.out[to][slot] = lid, inboxes.out_values[to][slot] = value;
  }
};

// Gives what fell: mirrors to their masters and, where mirrors have out-edges, masters to their mirrors.
__device__ inline void give(const Search& search, unsigned* fallen) {
  const Peers& peers = search.peers;
  const Proxies& proxies = search.proxies;
  u64* sent = search.mail.state->sent;
  take_mirrors(peers, proxies, fallen, [&](int lid, bool fell) {
    bool chosen[1] = {fell};
    int mirror[1] = {lid};
    give_places(peers, proxies, sent, chosen, mirror, [&](int to, u64 at, int) {
      search.write(to, at, search.local.at_master[lid - proxies.masters], search.local.values[lid]);
    });
  });
  if (!search.local.mirrors_push) return;
  u64 to_mirrors = 0;
  for (int p = 0; p < peers.ranks; p++) {
    i64 size = p == peers.rank ? 0 : proxies.sizes[p];
    for (i64 base = thread_id() / 32 * 32; base < size; base += num_threads()) {
      i64 place = base + lane_id();
      int lid = place < size ? proxies.lists[p][place] : 0;
      bool chosen[1] = {place < size && get_bit(fallen, lid)};
      to_mirrors += chosen[0];
      take_places(&sent[p], chosen, [&](i64 at, int) {
        search.write(p, at, (int)(proxies.begins[p] + place), search.local.values[lid]);
      });
    }
  }
  add_up(&sent[peers.rank], to_mirrors);
}

// A distance fell here: who else has the node has to know.
__device__ inline void mark(const Search& search, int lid, unsigned* fallen, u64* any) {
  if (lid < search.proxies.masters && !search.local.mirrors_push) return;
  set_bit(fallen, lid);
  if (!peek(any)) *(volatile u64*)any = 1;
}

// Takes what has come. What falls below the limit joins ``out``.
__device__ inline void take(const Search& search, VALUE limit, unsigned step, Queue out, unsigned* fallen, u64* any) {
  for (int p = 0; p < search.peers.ranks; p++) {
    unsigned taken = search.mail.taken(p), count = search.mail.came(p) - taken;
    i64 capacity = search.mail.capacity_in[p];
    for (i64 base = thread_id() / 32 * 32; base < count; base += num_threads()) {
      i64 slot = (taken + base + lane_id()) & (capacity - 1);
      bool fell = base + lane_id() < count;
      int lid = fell ? search.inboxes.in[p][slot] : 0;
      VALUE value = fell ? search.inboxes.in_values[p][slot] : search.far;
      fell = fell && value < search.local.values[lid] && value < lower(&search.local.values[lid], value);
      if (fell && lid < search.proxies.masters) mark(search, lid, fallen, any);
      fell = fell && joins(lid, value < limit, step, search.local.stamps, search.local.pending);
      append(out, fell, lid, search.local.offsets);
    }
  }
}

// Relaxes what the queue holds, and what falls below the limit on any rank, until all ranks are at rest. In one step the edges
// of the queue are relaxed, what fell in the last step is given away, and what has come is taken. ``turn`` names the set of
// ``fallen`` that is written. All threads call it.
__device__ inline void relax_bucket(const Search& search, Queues queues, unsigned& step, VALUE limit, u64* marks,
                                    unsigned& turn, unsigned phase, unsigned& pauses) {
  const Local& local = search.local;
  i64 masters = search.proxies.masters;
  unsigned known = 0;
  bool gave = false;  // in the last step
  for (;;) {
    u64 total = queues.total(step);
    Rows rows = queues.rows(step, total);
    Queue out = queues.next(step);
    bool news = known & Mail::NEWS, owes = known & Mail::OWES, gives = owes && known & Mail::ROOM;
    u64* any = &marks[step % 3];  // three in turn, as the totals
    if (thread_id() == 0) marks[(step + 1) % 3] = 0;
    if (gave && local.mirrors_push) local.clear_masters(local.set(turn + 2), masters);
    if (gives) give(search, local.set(turn));
    unsigned* fallen = local.set(turn + gives);
    if (news) take(search, limit, step, out, fallen, any);
    for_each_edge(rows, [&](const Edges& edges) {
      Candidates offers = candidates(edges, search.far, local.targets, search.weights, local.values);
#pragma unroll
      for (int k = 0; k < K; k++) {
        int target = offers.target[k];
        bool again = false;
        if (offers.apply(k, local.values)) {
          mark(search, target, fallen, any);
          if (target < masters || local.mirrors_push)
            again = joins(target, offers.value[k] < limit, step, local.stamps, local.pending);
        }
        if (__any_sync(FULL, again)) append(out, again, target, local.offsets);
      }
    });
    bool rests = queue_nodes(total) == 0 && !news && !gives;
    known = search.mail.pause(search.peers, rests ? Mail::REST : gives ? Mail::GAVE : Mail::STEP, news, owes && !gives, any,
                              phase, pauses);
    if (known & Mail::ENDED) break;
    gave = gives, turn += gives;
  }
}

extern "C" __global__ void __launch_bounds__(512, RESIDENT)
relax_peers(i64 source, const u64* index, const int* table, Local local, const WEIGHT* weights, VALUE far, VALUE delta,
            Queues queues, Peers peers, Proxies proxies, Mail mail, Inboxes inboxes, u64* marks, i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  Search search = {peers, proxies, mail, inboxes, local, far, weights};
  Progress* progress = queues.progress;
  unsigned barriers = peers.begin(), step = 0, turn = 0, pauses = 0;
  i64 words = local.words(), buckets = 0, work = 0;
  for (i64 i = thread_id(); i < local.proxies; i += num_threads()) local.values[i] = far, local.stamps[i] = 0;
  for (i64 i = thread_id(); i < words; i += num_threads())
    local.pending[i] = local.fallen[i] = local.fallen[words + i] = local.fallen[2 * words + i] = 0;
  if (thread_id() < 3) marks[thread_id()] = 0;
  mail.begin(peers);
  queues.begin();
  queues.barrier();
  if (thread_id() == 0 && has_bit(index, source)) {
    int lid = lid_of(index, table, source);
    local.values[lid] = 0;
    if (lid < proxies.masters || local.mirrors_push) local.pending[lid >> 5] = 1u << (lid & 31);
  }
  queues.barrier();
  Width width = {delta, delta, 0};
  for (;;) {
    u64* below = &progress->lowest[buckets % 3];
    if (thread_id() == 0) progress->lowest[(buckets + 1) % 3] = 0;
    keep_lowest(below, lowest_pending(local.pending, words, local.values, far), far);
    peers.barrier(barriers, told, [&](int, int k) { return k == BELOW ? peek(below) : k == WORK ? (u64)work : 0ull; });
    u64 most = peers.most(told, BELOW);
    if (most == 0) break;
    if (buckets > 0) width.adapt(peers.sum(told, WORK), 0, far);
    VALUE limit = bucket_end(value_below(far, most), far, width.now);
    append_pending(queues.next(step), limit, local.pending, words, local.values, nullptr, local.offsets);
    queues.barrier();
    work = queue_edges(queues.total(step));
    buckets++;
    relax_bucket(search, queues, step, limit, marks, turn, (unsigned)buckets, pauses);
  }
  i64 to_masters = 0, to_mirrors = mail.state->sent[peers.rank];
  for (int p = 0; p < peers.ranks; p++) to_masters += p == peers.rank ? -to_mirrors : mail.state->sent[p];
  queues.barrier();
  i64 bytes = sizeof(int) + sizeof(VALUE);
  peers.end(barriers, bytes * to_masters, bytes * to_mirrors);
  if (thread_id() == 0) *rounds = buckets;
}
