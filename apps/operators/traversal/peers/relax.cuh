// Relaxing by priority on the GPUs of several ranks, in one kernel on each: see relax.cuh, to which relax_gpu.py appends the
// operator.
//
// All ranks open a bucket together, but inside it none waits for another: it relaxes what it has, gives the values that changed
// to the ranks that have the node, too, and takes what has come, until all are at rest (gluon/kernels/mail.cuh). A value
// that comes late only means that nodes are relaxed again: the result is the same.
#include "cusp/apps/operators/expressions/relax.cuh"
#include "gluon/kernels/mail.cuh"

// What the ranks tell each other where a bucket opens: how far below the highest their lowest key is; with how many edges the
// last bucket began, and how many steps it took.
enum Told { BELOW, WORK, STEPS };

// Inboxes of values that changed, at each rank and here: the local id of the node there, and the value.
struct Inboxes {
  int* const* out;
  Value* const* out_values;
  const int* const* in;
  const Value* const* in_values;
};

// What proxies of a rank have to do with those of others.
struct Ties {
  i64 mirrors_push;      // whether any mirror of any rank has out-edges
  const int* at_master;  // of each mirror, its local id at its master's rank
  unsigned* changed;     // bits; three sets in turn: one is written, one given away, one cleared
  i64 words;             // of a set

  __device__ unsigned* set(unsigned turn) const { return changed + turn % 3 * words; }

  // take_mirrors clears the other bits.
  __device__ void clear_masters(unsigned* bits, i64 masters) const {
    for (i64 word = thread_id(); word * 32 < masters; word += num_threads())
      bits[word] = (word + 1) * 32 <= masters ? 0 : bits[word] & ~0u << (masters & 31);
  }
};

// What a rank has at hand. Of the nodes only masters count, if no mirror has out-edges.
struct Search {
  Peers peers;
  Proxies proxies;
  Mail mail;
  Inboxes inboxes;
  Ties ties;
  Nodes nodes;

  __device__ void write(int to, u64 at, int lid, Value value) const {
    i64 slot = mail.slot(to, at);
    inboxes.out[to][slot] = lid, inboxes.out_values[to][slot] = value;
  }
};

// Gives what changed: mirrors to their masters and, where mirrors have out-edges, masters to their mirrors.
__device__ inline void give(const Search& search, unsigned* changed) {
  const Peers& peers = search.peers;
  const Proxies& proxies = search.proxies;
  u64* sent = search.mail.state->sent;
  take_mirrors(peers, proxies, changed, [&](int lid, bool own) {
    bool chosen[1] = {own};
    int mirror[1] = {lid};
    give_places(peers, proxies, sent, chosen, mirror, [&](int to, u64 at, int) {
      search.write(to, at, search.ties.at_master[lid - proxies.masters], search.nodes.values[lid]);
    });
  });
  if (!search.ties.mirrors_push) return;
  u64 to_mirrors = 0;
  for (int p = 0; p < peers.ranks; p++) {
    i64 size = p == peers.rank ? 0 : proxies.sizes[p];
    for (i64 base = thread_id() / 32 * 32; base < size; base += num_threads()) {
      i64 place = base + lane_id();
      int lid = place < size ? proxies.lists[p][place] : 0;
      bool chosen[1] = {place < size && get_bit(changed, lid)};
      to_mirrors += chosen[0];
      take_places(&sent[p], chosen, [&](i64 at, int) {
        search.write(p, at, (int)(proxies.begins[p] + place), search.nodes.values[lid]);
      });
    }
  }
  add_up(&sent[peers.rank], to_mirrors);
}

// A value changed here: who else has the node has to know.
__device__ inline void mark(const Search& search, int lid, unsigned* changed, u64* any) {
  if (lid < search.proxies.masters && !search.ties.mirrors_push) return;
  set_bit(changed, lid);
  if (!peek(any)) *(volatile u64*)any = 1;
}

// Takes what has come. What changes in the bucket joins ``out``.
template <class Operator>
__device__ inline void take(const Operator& op, const Search& search, Key last, unsigned step, Queue out, unsigned* changed,
                            u64* any) {
  const Nodes& nodes = search.nodes;
  for (int p = 0; p < search.peers.ranks; p++) {
    unsigned taken = search.mail.taken(p), count = search.mail.came(p) - taken;
    i64 capacity = search.mail.capacity_in[p];
    for (i64 base = thread_id() / 32 * 32; base < count; base += num_threads()) {
      i64 slot = (taken + base + lane_id()) & (capacity - 1);
      bool better = base + lane_id() < count;
      int lid = better ? search.inboxes.in[p][slot] : 0;
      Value value = better ? search.inboxes.in_values[p][slot] : Value();
      better = better && combine_atomic(lid, value, nodes.values[lid], nodes.values);
      if (better && lid < search.proxies.masters) mark(search, lid, changed, any);
      better = better && joins<Operator>(nodes, lid, key_of(op, lid, value) <= last, step);
      append(out, better, lid, nodes.offsets);
    }
  }
}

// Relaxes what the queue holds, and what changes in the bucket on any rank, until all ranks are at rest. In one step the edges
// of the queue are relaxed, what changed in the last step is given away, and what has come is taken; in a burst, a rank goes on
// alone for some rounds. ``turn`` names the set of changed nodes that is written. Returns the steps with something to relax. All
// threads call it.
template <class Operator>
__device__ inline u64 relax_bucket(const Operator& op, const Search& search, Queues queues, unsigned& step, Key last,
                                   u64* marks, unsigned& turn, unsigned phase, unsigned& pauses) {
  const Nodes& nodes = search.nodes;
  const Ties& ties = search.ties;
  unsigned known = 0;
  bool gave = false;  // in the last step
  for (u64 busy = 0;;) {
    u64 total = queues.total(step);
    Rows rows = queues.rows(step, total);
    Queue out = queues.next(step);
    bool news = known & Mail::NEWS, owes = known & Mail::OWES, gives = owes && known & Mail::ROOM;
    u64* any = &marks[step % 3];  // three in turn, as the totals
    if (thread_id() == 0) marks[(step + 1) % 3] = 0;
    if (gave && ties.mirrors_push) ties.clear_masters(ties.set(turn + 2), search.proxies.masters);
    if (gives) give(search, ties.set(turn));
    unsigned* changed = ties.set(turn + gives);
    if (news) take(op, search, last, step, out, changed, any);
    auto tell = [&](int node, bool, Value) { mark(search, node, changed, any); };
    auto visit = [&](const Edges& edges, auto found) { relax(op, nodes, edges, found, last, step, tell); };
    auto claim = [&](int node) { return stamp(node, step, nodes.stamps); };
    if (BURSTS && rows.end > 0 && is_narrow(rows)) run_burst(rows, nodes.offsets, out, visit, claim);
    else for_each_edge(rows, [&](const Edges& edges) { visit(edges, out); });
    busy += rows.end > 0;
    bool rests = rows.end == 0 && !news && !gives;
    known = search.mail.pause(search.peers, rests ? Mail::REST : gives ? Mail::GAVE : Mail::STEP, news, owes && !gives, any,
                              phase, pauses);
    if (known & Mail::ENDED) return busy;
    gave = gives, turn += gives;
  }
}

// From the pending nodes on, until none is left on any rank. All threads of all ranks call it.
template <class Operator>
__device__ inline void relax_peers(const Operator& op, Nodes nodes, Ties ties, Key delta, Queues queues, Peers peers,
                                   Proxies proxies, Mail mail, Inboxes inboxes, u64* marks, i64* rounds) {
  __shared__ u64 told[MOST_PEERS][TOLD];
  Search search = {peers, proxies, mail, inboxes, ties, nodes};
  Progress* progress = queues.progress;
  unsigned barriers = peers.begin(), step = 0, turn = 0, pauses = 0;
  i64 buckets = 0;
  u64 work = 0, steps = 0;
  for (i64 i = thread_id(); i < nodes.size; i += num_threads()) nodes.stamps[i] = 0;
  for (i64 i = thread_id(); i < 3 * ties.words; i += num_threads()) ties.changed[i] = 0;
  if (thread_id() < 3) marks[thread_id()] = 0;
  mail.begin(peers);
  queues.begin();
  queues.barrier();
  Width width = {delta, delta, 0};
  for (;;) {
    u64* below = &progress->lowest[buckets % 3];
    if (thread_id() == 0) progress->lowest[(buckets + 1) % 3] = 0;
    keep_lowest(op, nodes, below);
    peers.barrier(barriers, told, [&](int, int k) { return k == BELOW ? peek(below) : k == WORK ? work : steps; });
    u64 most = peers.most(told, BELOW);
    if (most == 0) break;
    if (buckets > 0) width.adapt((i64)peers.sum(told, WORK), (unsigned)peers.most(told, STEPS));
    Key last = bucket_last(key_below(most), width.now);
    append_pending(op, nodes, queues.next(step), last);
    queues.barrier();
    work = (u64)queue_edges(queues.total(step));
    buckets++;
    steps = relax_bucket(op, search, queues, step, last, marks, turn, (unsigned)buckets, pauses);
  }
  i64 to_masters = 0, to_mirrors = mail.state->sent[peers.rank];
  for (int p = 0; p < peers.ranks; p++) to_masters += p == peers.rank ? -to_mirrors : mail.state->sent[p];
  queues.barrier();
  i64 bytes = sizeof(int) + sizeof(Value);
  peers.end(barriers, bytes * to_masters, bytes * to_mirrors);
  if (thread_id() == 0) *rounds = buckets;
}
