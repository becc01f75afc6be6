// GPUs whose kernels store into each other's memory: one kernel on each, all of whose blocks are resident, in lockstep by
// barriers.
//
// What is stored before a barrier is seen after it, on every GPU: blocks fence for their GPU and arrive, the last of them
// fences for the system, which covers what it has seen of the others, and tells all partners; who waits acquires what they tell,
// which takes 2 us less than a fence after it. A word of 8 bytes is stored whole, so a number and the barrier that it belongs to
// travel together, and telling takes one trip (as NCCL's LL protocol does).
#include "cusp/kernels/warp.cuh"

constexpr int TOLD = 4, MOST_PEERS = 32;  // numbers that ranks exchange at a barrier; as in peers/memory_gpu.py

// Of each rank in the memory of each: halves of the numbers with the barrier's number above, of even and odd barriers. A rank
// is at most one barrier ahead of another, so what is read is not yet overwritten.
struct Line {
  u64 words[2][2 * TOLD];
};

// True in the first warp of the block that comes last. The first warps of all blocks call it, each after its block has met.
__device__ inline bool comes_last(unsigned* arrived) {
  bool last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  return __shfl_sync(FULL, (int)last, 0);
}

struct PeerState {
  unsigned arrived, barriers;
};

struct Peers {
  i64 rank, ranks;
  Line* const* lines;
  PeerState* state;
  i64 patience;  // clock cycles
  u64* missing;  // on the host: 1 + the rank that did not come
  u64* report;   // on the host: see end

  // Where a kernel begins: the number of the last barrier.
  __device__ unsigned begin() const { return *(volatile unsigned*)&state->barriers; }

  // All blocks of all ranks wait for each other. Rank p gets value(p, k) as number k of this one; told[p] becomes what this one
  // got from p. ``told`` is in shared memory; blocks read it until the next barrier. All threads call it.
  template <class Value>
  __device__ void barrier(unsigned& number, u64 (*told)[TOLD], Value value) const {
    number++;
    __syncthreads();
    if (threadIdx.x < 32 && comes_last(&state->arrived)) {
      if (threadIdx.x == 0) __threadfence_system();
      __syncwarp();
      tell(number, value);
    }
    for (i64 i = threadIdx.x; i < ranks * 2 * TOLD; i += blockDim.x) {
      i64 other = i / (2 * TOLD), half = i % (2 * TOLD);
      const u64* word = &lines[rank][other].words[number & 1][half];
      u64 came = acquire(word);
      for (i64 began = clock64(); (unsigned)(came >> 32) != number; came = acquire(word)) {
        if (clock64() - began > patience) give_up(other);
        __nanosleep(20);
      }
      ((volatile unsigned*)told[other])[half] = (unsigned)came;
    }
    __syncthreads();
  }

  __device__ void barrier(unsigned& number, u64 (*told)[TOLD]) const {
    barrier(number, told, [](int, int) { return 0ull; });
  }

  // Where a kernel ends, after a barrier of its blocks. The host learns how many barriers there were, and how many bytes this
  // rank has stored for masters and for mirrors of others.
  __device__ void end(unsigned number, i64 to_masters, i64 to_mirrors) const {
    if (thread_id() > 0) return;
    report[0] = number - state->barriers, report[1] = to_masters, report[2] = to_mirrors;
    state->barriers = number;
  }

  // Number k of all ranks added up.
  __device__ u64 sum(u64 (*told)[TOLD], int k) const {
    u64 result = 0;
    for (int p = 0; p < ranks; p++) result += told[p][k];
    return result;
  }

  // The highest number k of all ranks.
  __device__ u64 most(u64 (*told)[TOLD], int k) const {
    u64 result = 0;
    for (int p = 0; p < ranks; p++) result = max(result, told[p][k]);
    return result;
  }

  // The kernel ends with an error, and the host says which rank did not come.
  __device__ void give_up(i64 other) const {
    *(volatile u64*)missing = (u64)other + 1;
    __threadfence_system();
    __trap();
  }

 private:
  // This rank gets its own numbers last: until then none of its blocks goes on, so none changes what is still to be sent.
  template <class Value>
  __device__ void tell(unsigned number, Value value) const {
    for (int first = 0; first < ranks * 2 * TOLD; first += 32) {
      int i = first + (int)lane_id(), half = i % (2 * TOLD), other = (int)rank + 1 + i / (2 * TOLD);
      if (other >= ranks) other -= (int)ranks;
      bool active = i < ranks * 2 * TOLD;
      unsigned part = active ? (unsigned)(value(other, half / 2) >> (32 * (half & 1))) : 0;
      __syncwarp();
      if (active) *(volatile u64*)&lines[other][rank].words[number & 1][half] = (u64)number << 32 | part;
    }
  }
};

// The proxies of one rank as the others see them, from the lists of the sync plan (gluon/plan.py).
struct Proxies {
  i64 masters;              // local ids from here on are mirrors
  const i64* starts;        // the mirrors of rank p's masters begin here, in the order of ...
  const i64* begins;        // local id at rank p of the first mirror of a master of this rank
  const i64* sizes;         // how many there are
  const int* const* lists;  // and those masters

  __device__ int owner_of(i64 mirror) const {
    int rank = 0;
    while (mirror >= starts[rank + 1]) rank++;
    return rank;
  }
  __device__ i64 mirrors_of(int rank) const { return starts[rank + 1] - starts[rank]; }
};

// Stores the bits of masters as those of their mirrors into the bitmaps of all other ranks. Bits are only ever set there, so a
// word that has bits of others, too, is joined. The grid calls it; a warp has 8 words at a time, which go over the link
// together. Returns the bytes that the grid stores.
__device__ inline i64 publish_bits(const Peers& peers, const Proxies& proxies, const unsigned* bits,
                                    unsigned* const* bitmaps) {
  constexpr int TOGETHER = 8;
  i64 bytes = 0;
  for (int p = 0; p < peers.ranks; p++) {
    if (p == peers.rank || proxies.sizes[p] == 0) continue;
    i64 begin = proxies.begins[p], size = proxies.sizes[p];
    i64 first = (begin >> 5) / TOGETHER * TOGETHER, last = (begin + size - 1) >> 5;
    bytes += 4 * (last - (begin >> 5) + 1);
    for (i64 base = first + thread_id() / 32 * TOGETHER; base <= last; base += num_threads() / 32 * TOGETHER) {
      int lid[TOGETHER];
      unsigned own = 0;
      each_k<TOGETHER>([&](int k) {
        i64 place = (base + k) * 32 + lane_id() - begin;
        lid[k] = place >= 0 && place < size ? proxies.lists[p][place] : -1;
      });
      each_k<TOGETHER>([&](int k) {
        unsigned word = __ballot_sync(FULL, lid[k] >= 0 && get_bit(bits, lid[k]));
        if ((int)lane_id() == k) own = word;
      });
      i64 word = base + lane_id();
      if (lane_id() >= TOGETHER || word < (begin >> 5) || word > last) continue;
      bool whole = word * 32 >= begin && word * 32 + 32 <= begin + size;
      if (whole) ((volatile unsigned*)bitmaps[p])[word] = own;
      else if (own) atomicOr_system(&bitmaps[p][word], own);
    }
  }
  return bytes;
}

// Stores the values of masters as those of their mirrors on all other ranks. The grid calls it. Returns the bytes that the grid
// stores.
template <class T>
__device__ inline i64 publish_values(const Peers& peers, const Proxies& proxies, const T* values, T* const* values_of) {
  i64 count = 0;
  for (int p = 0; p < peers.ranks; p++) {
    if (p == peers.rank) continue;
    const int* list = proxies.lists[p];
    T* there = values_of[p] + proxies.begins[p];
    for_each_loaded(0, proxies.sizes[p], [&](i64 i) { return values[list[i]]; },
                    [&](i64 i, T value, bool live) { if (live) there[i] = value; });
    count += proxies.sizes[p];
  }
  return count * sizeof(T);
}

// Every lane gets places for those of its mirrors that are chosen, in memory of the ranks of their masters: sent[p] counts
// those of rank p, and one atomic does for a warp. Calls write(rank, place, k) for mirror k. The whole warp calls it.
template <int SIZE, class Write>
__device__ inline void give_places(const Peers& peers, const Proxies& proxies, u64* sent, const bool (&chosen)[SIZE],
                                   const int (&mirror)[SIZE], Write write) {
  int owner[SIZE];
  bool any = false;
  each_k<SIZE>([&](int k) { owner[k] = chosen[k] ? proxies.owner_of(mirror[k]) : -1, any |= chosen[k]; });
  if (!__any_sync(FULL, any)) return;
  for (int to = 0; to < peers.ranks; to++) {
    bool theirs[SIZE];
    each_k<SIZE>([&](int k) { theirs[k] = owner[k] == to; });
    take_places(&sent[to], theirs, [&](i64 at, int k) { write(to, at, k); });
  }
}

// Takes the bits of mirrors: clears them, and calls visit(chosen, mirrors) for those that were set, up to SIZE of each lane at a
// time. A lane looks at a word, so words without bits cost little. The grid calls it.
template <int SIZE, class Visit>
__device__ inline void take_mirrors(const Peers& peers, const Proxies& proxies, unsigned* bits, Visit visit) {
  i64 masters = proxies.masters, last = (proxies.starts[peers.ranks] + 31) / 32;
  for (i64 base = masters / 32 + thread_id() / 32 * 32; base < last; base += num_threads()) {
    i64 word = base + lane_id();
    unsigned own = word < last ? bits[word] : 0;
    if (word * 32 < masters) own &= ~0u << (masters & 31);
    if (own) bits[word] &= ~own;
    for_each_bit<SIZE>(base, own, visit);
  }
}
