// Relaxing by priority on the GPUs of several ranks, in one kernel on each: see relax.cuh.
//
// All ranks open a bucket together, but inside it none waits for another: it relaxes what it has, sends the values that changed
// to the ranks that have the node, too, and takes what has come, until all are idle (gluon/kernels/mail.cuh). A value
// that comes late only means that nodes are relaxed again: the result is the same.
#include "cusp/apps/operators/expressions/relax.cuh"
#include "gluon/kernels/mail.cuh"

// What the ranks exchange where a bucket opens: how far below the highest their lowest key is; with how many edges the last
// bucket began, and how many steps it took; whether a bound is met.
enum Told { BELOW, WORK, STEPS, MET };

// Times as long takes the way from one bucket to the next, since all ranks have to be idle: so buckets get wider.
constexpr unsigned LONGER = 4;

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

struct ManyRanks {
  static constexpr bool ALONE = false;
  struct Given {
    Peers peers;
    Proxies proxies;
    Mail mail;
    Inboxes inboxes;
    Ties ties;
    u64* marks;  // whether something is to be sent; three in turn
  };
  const Given& given;
  const Peers& peers;
  const Proxies& proxies;
  const Mail& mail;
  const Ties& ties;
  unsigned barriers = 0, phase = 0, pauses = 0;
  unsigned turn = 0;          // of the sets of changed nodes: the one that is written
  u64 work = 0, steps = 0;    // of the last bucket
  bool ended_by_bound = false;

  __device__ ManyRanks(const Given& given)
      : given(given), peers(given.peers), proxies(given.proxies), mail(given.mail), ties(given.ties) {}

  __device__ void begin() {
    barriers = peers.begin();
    for (i64 i = thread_id(); i < 3 * ties.words; i += num_threads()) ties.changed[i] = 0;
    if (thread_id() < 3) given.marks[thread_id()] = 0;
    mail.begin(peers);
  }

  // Also a barrier of all ranks, after which mail may come.
  __device__ u64 open(Queues, u64* most, const Bound& bound, Width& width) {
    __shared__ u64 told[MOST_PEERS][TOLD];
    u64 met = bound.met();
    peers.barrier(barriers, told, [&](int, int k) {
      return k == BELOW ? peek(most) : k == WORK ? work : k == STEPS ? steps : met;
    });
    u64 below = peers.most(told, BELOW);
    ended_by_bound = below > 0 && peers.most(told, MET);
    if (phase++ > 0) width.adapt((i64)peers.sum(told, WORK), (unsigned)peers.most(told, STEPS) / LONGER);
    return ended_by_bound ? 0 : below;
  }

  __device__ void write(const Nodes& nodes, int to, u64 at, int there, int lid) const {
    i64 slot = mail.slot(to, at);
    given.inboxes.out[to][slot] = there, given.inboxes.out_values[to][slot] = nodes.values[lid];
  }

  // Sends what changed: mirrors to their masters and, where mirrors have out-edges, masters to their mirrors.
  __device__ void send(const Nodes& nodes, unsigned* changed) const {
    u64 *sent = mail.state->sent, to_mirrors = 0;
    take_mirrors<K>(peers, proxies, changed, [&](const bool (&chosen)[K], const int (&mirror)[K]) {
      give_places(peers, proxies, sent, chosen, mirror, [&](int to, u64 at, int k) {
        write(nodes, to, at, ties.at_master[mirror[k] - proxies.masters], mirror[k]);
      });
    });
    if (!ties.mirrors_push) return;
    for (int p = 0; p < peers.ranks; p++) {
      i64 size = p == peers.rank ? 0 : proxies.sizes[p];
      for (i64 base = thread_id() / 32 * 32; base < size; base += num_threads()) {
        i64 place = base + lane_id();
        int lid = place < size ? proxies.lists[p][place] : 0;
        bool chosen[1] = {place < size && get_bit(changed, lid)};
        to_mirrors += chosen[0];
        take_places(&sent[p], chosen, [&](i64 at, int) { write(nodes, p, at, (int)(proxies.begins[p] + place), lid); });
      }
    }
    add_up(&sent[peers.rank], to_mirrors);
  }

  // A value changed here: others who have the node have to know.
  __device__ void mark(int lid, unsigned* changed, u64* any) const {
    if (lid < proxies.masters && !ties.mirrors_push) return;
    set_bit(changed, lid);
    if (!peek(any)) *(volatile u64*)any = 1;
  }

  // Takes what has come. What changes in the bucket joins ``out``, if ``relaxing``; otherwise it is pending.
  template <class Operator>
  __device__ void take(const Operator& op, const Nodes& nodes, Key last, bool relaxing, unsigned step, Queue out,
                       unsigned* changed, u64* any) const {
    for (int p = 0; p < peers.ranks; p++) {
      unsigned taken = mail.taken(p), count = mail.came(p) - taken;
      i64 capacity = mail.capacity_in[p];
      for (i64 base = thread_id() / 32 * 32; base < count; base += num_threads()) {
        i64 slot = (taken + base + lane_id()) & (capacity - 1);
        bool better = base + lane_id() < count;
        int lid = better ? given.inboxes.in[p][slot] : 0;
        Value value = better ? given.inboxes.in_values[p][slot] : Value();
        better = better && combine_atomic(lid, value, nodes.values[lid], nodes.values);
        if (better && lid < proxies.masters) mark(lid, changed, any);
        better = better && joins<Operator>(nodes, lid, relaxing && key_of(op, lid, value) <= last, step);
        append(out, better, lid, nodes.offsets);
      }
    }
  }

  // Relaxes what the queue holds, and what changes in the bucket on any rank, until all ranks are idle. In one step the edges
  // of the queue are relaxed, what changed in the last step is sent, and what has come is taken; in a burst, a rank goes on
  // alone for some rounds. A rank whose bound is met makes its queue, and what still comes, pending. All threads call it.
  template <class Operator>
  __device__ Drained relax_bucket(const Operator& op, const Nodes& nodes, Queues queues, unsigned& step, Key last,
                                  Bound& bound) {
    Drained done = {0, 0};
    unsigned known = 0;
    bool sent = false;  // in the last step
    for (steps = 0;;) {
      u64 total = queues.total(step);
      Rows rows = queues.rows(step, total);
      Queue out = queues.next(step);
      bool relaxing = !bound.met(), works = relaxing && rows.end > 0;
      bool news = known & Mail::NEWS, waits = known & Mail::UNSENT, sends = waits && known & Mail::ROOM;
      u64* any = &given.marks[step % 3];  // three in turn, as the totals
      if (thread_id() == 0) given.marks[(step + 1) % 3] = 0;
      if (sent && ties.mirrors_push) ties.clear_masters(ties.set(turn + 2), proxies.masters);
      if (sends) send(nodes, ties.set(turn));
      unsigned* changed = ties.set(turn + sends);
      if (news) take(op, nodes, last, relaxing, step, out, changed, any);
      auto note = [&](int node, bool, Value) { mark(node, changed, any); };
      auto visit = [&](const Edges& edges, auto found) { relax(op, nodes, edges, found, last, step, note); };
      auto claim = [&](int node) { return stamp(node, step, nodes.stamps); };
      bool burst = BURSTS && is_narrow(rows);
      if (works) done += {1, blockIdx.x == 0 ? rows.end : 0};
      if (works && burst) done += run_burst(rows, nodes.offsets, out, visit, claim), done.rounds--;
      else if (works) for_each_edge(rows, [&](const Edges& edges) { visit(edges, out); });
      else for (i64 i = thread_id(); i < rows.count; i += num_threads()) set_bit(nodes.pending, rows.lids[i]);
      if (works) bound.edges -= burst ? rows.end * IN_A_BURST : rows.end, bound.steps--, steps++;
      bool idle = rows.end == 0 && !news && !sends;
      known = mail.pause(peers, idle ? Mail::REST : sends ? Mail::GAVE : Mail::STEP, news, waits && !sends, any, phase, pauses);
      if (known & Mail::ENDED) return done;
      sent = sends, turn += sends;
    }
  }

  __device__ void close(i64 edges, unsigned, const Width&) { work = edges; }
  __device__ bool met(const Bound&) const { return ended_by_bound; }
  __device__ void end() const {
    i64 to_masters = 0, to_mirrors = mail.state->sent[peers.rank], bytes = sizeof(int) + sizeof(Value);
    for (int p = 0; p < peers.ranks; p++) to_masters += p == peers.rank ? -to_mirrors : mail.state->sent[p];
    peers.end(barriers, bytes * to_masters, bytes * to_mirrors);
  }
};

// The same from the pending nodes of all ranks on; values of mirrors are stale in the end. All threads of all ranks call it.
template <class Operator>
__device__ inline void relax_peers(const Operator& op, ManyRanks::Given given, Nodes nodes, Queues queues, Key until, Key delta,
                                   i64 edges, i64 steps, i64* done) {
  ManyRanks ranks(given);
  relax_in(ranks, op, nodes, queues, until, delta, edges, steps, done);
}
