// A kernel does not know whether it is alone: it runs in a world of ranks, RANKS, which is Alone, or Together with the kernels of
// partners that take each round at the same time. Both have the same interface; alone, most of it is nothing, and vanishes:
//
//   begin(turns)          where a kernel begins: nothing is exchanged before the first meeting
//   is_mirror(lid)        whether a node has its master on another rank
//   tell_master(...)      appends mirrors to the mail of the ranks of their masters: place in the list of the sync plan
//   tell_mirrors(...)     appends masters to the mail of the ranks that have mirrors of them: local id there
//   meet(value)           ends a round: all blocks of all ranks have come, and know value(0) and value(1) of each rank;
//                         then ``news`` is how much mail all ranks sent in the round
//   each(k, value, use)   calls use(value(k)) for every rank, as exchanged at the last meeting; sum and most likewise. Alone,
//                         that is value(k) as it is now: nobody may change it before the next meeting
//   take(visit)           visits the mail that came at the last meeting; false if there was none. A grid barrier has to follow
//   publish(bits, ...)    stores bits, or values, of masters as those of their mirrors; returns the bytes. A meeting has to follow
//   mailed()              entries of this rank up to the last meeting
//   end(...)              where a kernel ends, after a barrier: the host learns what was sent
//
// Mail of a round is read before the next meeting ends. So it is in two halves in turn, with ``turns`` of 2; where each node is
// sent at most once in a kernel, with ``turns`` of 1, every entry has a place of its own, and none is overwritten.
#include "gluon/kernels/peers.cuh"

#ifndef RANKS  // see Link in gluon/peers/link_gpu.py
#define RANKS Alone
#endif

// One rank on its own.
struct Alone {
  static constexpr bool ALONE = true;
  static constexpr u64 news = 0;
  struct Given {
    unsigned* arrived;  // at barriers of the grid
  };
  const Given& given;

  __device__ Alone(const Given& given) : given(given) {}
  __device__ void begin(i64) const {}
  __device__ bool is_mirror(i64) const { return false; }
  template <int SIZE, class Also>
  __device__ void tell_master(const bool (&)[SIZE], const int (&)[SIZE], Also) const {}
  template <int SIZE>
  __device__ void tell_mirrors(const bool (&)[SIZE], const int (&)[SIZE]) const {}
  template <class Value>
  __device__ void meet(Value) const {
    grid_barrier(given.arrived);
  }
  template <class Value, class Use>
  __device__ void each(int k, Value value, Use use) const {
    use(value(k));
  }
  template <class Value>
  __device__ u64 sum(int k, Value value) const {
    return value(k);
  }
  template <class Value>
  __device__ u64 most(int k, Value value) const {
    return value(k);
  }
  template <int SIZE, class Visit>
  __device__ bool take(Visit) const {
    return false;
  }
  template <class T>
  __device__ i64 publish(const T*, T* const*) const {
    return 0;
  }
  __device__ i64 mailed() const { return 0; }
  __device__ void end(i64, i64) const {}
};

// Entries for partners, appended to memory of theirs, and a value for each if wanted; how many, is exchanged at meetings.
struct Mailbox {
  int* const* out;  // memory of rank p for entries from this one
  int* const* in;   // memory of this one for entries from rank p
  void* const* out_values;
  void* const* in_values;
  u64* sent;           // entries to each rank, of each half; in the place of this one, what else was sent
  const int* mirrors;  // local id at rank p of each master's mirror, rank by rank; -1 where there is none
};

struct Together {
  static constexpr bool ALONE = false;
  enum Told { MAIL = TOLD - 2, SENT };  // entries so far for the one that is told, or, for oneself, for others; all that was sent
  struct Given {
    Peers peers;
    Proxies proxies;
    Mailbox mail;
  };
  const Peers& peers;
  const Proxies& proxies;
  const Mailbox& mail;
  i64 turns = 1;
  unsigned barriers = 0;
  u64 sent_before = 0, news = 0, mailed_before = 0;

  __device__ Together(const Given& given) : peers(given.peers), proxies(given.proxies), mail(given.mail) {}
  static __device__ u64 (*told())[TOLD] {
    __shared__ u64 numbers[MOST_PEERS][TOLD];
    return numbers;
  }
  static __device__ i64* taken() {  // entries of each rank so far, with ``turns`` of 1
    __shared__ i64 numbers[MOST_PEERS];
    return numbers;
  }

  __device__ void begin(i64 wanted) {
    turns = wanted;
    barriers = peers.begin();
    if (threadIdx.x < peers.ranks) taken()[threadIdx.x] = 0;
    if (thread_id() < 2 * peers.ranks) mail.sent[thread_id()] = 0;
  }
  __device__ bool is_mirror(i64 lid) const { return lid >= proxies.masters; }

  __device__ i64 half(unsigned meeting) const { return turns == 1 ? 0 : (i64)(meeting & 1); }
  __device__ u64* sent() const { return mail.sent + half(barriers) * peers.ranks; }
  template <class T>
  __device__ T* values_for(int p) const {
    return (T*)mail.out_values[p];
  }
  template <class T>
  __device__ T* values_from(int p) const {
    return (T*)mail.in_values[p];
  }

  // Calls also(rank, place, k) for every entry: its value has that place, too. The whole warp calls it.
  template <int SIZE, class Also>
  __device__ void tell_master(const bool (&chosen)[SIZE], const int (&mirror)[SIZE], Also also) const {
    give_places(peers, proxies, sent(), chosen, mirror, [&](int to, u64 at, int k) {
      i64 place = half(barriers) * proxies.mirrors_of(to) + at;
      mail.out[to][place] = (int)(mirror[k] - proxies.starts[to]);
      also(to, place, k);
    });
  }

  template <int SIZE>
  __device__ void tell_mirrors(const bool (&chosen)[SIZE], const int (&master)[SIZE]) const {
    for (int to = 0; to < peers.ranks; to++) {
      int mirror[SIZE];
      bool there[SIZE];
      if (to == peers.rank) continue;
      each_k<SIZE>([&](int k) { mirror[k] = chosen[k] ? mail.mirrors[to * proxies.masters + master[k]] : -1; });
      each_k<SIZE>([&](int k) { there[k] = mirror[k] >= 0; });
      take_places(&sent()[to], there, [&](i64 at, int k) { mail.out[to][at] = mirror[k]; });
    }
  }

  // One warp of the rank tells the others while all wait: its loads do not depend on each other, so they take the time of one.
  template <class Value>
  __device__ void meet(Value value) {
    const u64* counts = sent();
    peers.barrier(barriers, told(), [&](int p, int k) {
      u64 all = 0;
      if (k < MAIL) return (u64)value(k);
      if (k == MAIL && p != peers.rank) return peek(&counts[p]);
      for (int to = 0; to < peers.ranks; to++) all += k == MAIL && to == peers.rank ? 0 : peek(&counts[to]);
      return all;
    });
    u64 all = peers.sum(told(), SENT);
    news = all - sent_before;
    mailed_before = (turns == 1 ? 0 : mailed_before) + told()[peers.rank][MAIL];
    if (turns == 1) sent_before = all;
    else if (thread_id() < peers.ranks) mail.sent[half(barriers + 1) * peers.ranks + thread_id()] = 0;  // the partners know it
  }
  template <class Value, class Use>
  __device__ void each(int k, Value, Use use) const {
    for (int p = 0; p < peers.ranks; p++) use(told()[p][k]);
  }
  template <class Value>
  __device__ u64 sum(int k, Value) const {
    return peers.sum(told(), k);
  }
  template <class Value>
  __device__ u64 most(int k, Value) const {
    return peers.most(told(), k);
  }

  // Calls visit(rank, place of the lane's first entry, which came, entries), SIZE of each lane at a time, 32 places apart. The
  // first warp for each rank is another one, so that few entries of many ranks do not wait for each other.
  template <int SIZE, class Visit>
  __device__ bool take(Visit visit) const {
    i64 warps = num_threads() / 32, warp = thread_id() / 32, shift = (int)warps / (int)peers.ranks;
    bool any = false;
    for (int p = 0; p < peers.ranks; p++) {
      i64 base = half(barriers - 1) * proxies.sizes[p], begin = turns == 1 ? taken()[p] : 0, end = p == peers.rank ? 0 : (i64)told()[p][MAIL];
      i64 first = warp >= p * shift ? warp - p * shift : warp + warps - p * shift;
      any |= end > begin;
      for (i64 at = begin + first * 32 * SIZE + lane_id(); at - lane_id() < end; at += warps * 32 * SIZE) {
        bool came[SIZE];
        int entry[SIZE];
        each_k<SIZE>([&](int k) { came[k] = at + 32 * k < end; });
        each_k<SIZE>([&](int k) { entry[k] = came[k] ? mail.in[p][base + at + 32 * k] : 0; });
        visit(p, base + at, came, entry);
      }
    }
    __syncthreads();
    if (threadIdx.x < peers.ranks) taken()[threadIdx.x] = (i64)told()[threadIdx.x][MAIL];
    return any;
  }

  __device__ i64 publish(const unsigned* bits, unsigned* const* bitmaps) const {
    return publish_bits(peers, proxies, bits, bitmaps);
  }
  template <class T>
  __device__ i64 publish(const T* values, T* const* values_of) const {
    return publish_values(peers, proxies, values, values_of);
  }
  __device__ i64 mailed() const { return (i64)mailed_before; }
  __device__ void end(i64 to_masters, i64 to_mirrors) const { peers.end(barriers, to_masters, to_mirrors); }
};

__device__ inline u64 nothing_to_tell(int) { return 0; }
