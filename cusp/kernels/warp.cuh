// What all kernels share: integers, lanes, bits, local ids, and sums over warps and blocks.
// No host headers: the files also run under the CPU shim in tests. Every file is included once, see cuda.py.

typedef unsigned long long u64;
typedef long long i64;
constexpr unsigned FULL = 0xffffffffu;  // all lanes of a warp

#ifndef RESIDENT  // blocks per multiprocessor of kernels whose blocks wait for each other, see cuda.py
#define RESIDENT 2
#endif

__device__ inline unsigned lane_id() { return threadIdx.x & 31; }
__device__ inline unsigned below_lane() { return (1u << lane_id()) - 1; }
__device__ inline i64 thread_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 num_threads() { return (i64)gridDim.x * blockDim.x; }

// As in cusp/kernels/bits.py.
constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;
__device__ inline u64 mix(u64 value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ value >> 27) * 0x94D049BB133111EBull;
  return value ^ value >> 31;
}

__device__ inline bool get_bit(const unsigned* words, i64 place) { return words[place >> 5] >> (place & 31) & 1; }

// Look before the atomic: most bits that are set in a traversal have been set already.
__device__ inline void set_bit(unsigned* words, i64 place) {
  unsigned bit = 1u << (place & 31);
  if (!(words[place >> 5] & bit)) atomicOr(&words[place >> 5], bit);
}

__device__ inline void clear_bit(unsigned* words, i64 place) { atomicAnd(&words[place >> 5], ~(1u << (place & 31))); }

// Sets a bit; true for the one thread that does.
__device__ inline bool claim_bit(unsigned* words, i64 place) {
  unsigned bit = 1u << (place & 31);
  return !(atomicOr(&words[place >> 5], bit) & bit);
}

// The index of a LidMap (cusp/lid_map.py): the bits of 64 nodes and, beside them, how many bits are set before.
__device__ inline bool has_bit(const u64* index, u64 gid) { return index[2 * (gid >> 6)] >> (gid & 63) & 1; }

// A word of the index and its count: one load of 16 bytes brings both.
struct alignas(16) Counted {
  u64 bits, before;
};

__device__ inline i64 bits_below(const u64* index, u64 gid) {
  Counted word = ((const Counted*)index)[gid >> 6];
  return (i64)(word.before + __popcll(word.bits & ((1ull << (gid & 63)) - 1)));
}

// Local id of a node that has a proxy here.
__device__ inline int lid_of(const u64* index, const int* table, u64 gid) { return table[bits_below(index, gid)]; }

// All values of a warp joined in pairs; every lane gets the result. The whole warp calls these.
template <class T, class Join>
__device__ inline T reduce_warp(T value, Join join) {
  for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(FULL, value, step));
  return value;
}
template <class T>
__device__ inline T sum_of_warp(T value) {
  return reduce_warp(value, [](T a, T b) { return a + b; });
}
template <class T>
__device__ inline T least_of_warp(T value) {
  return reduce_warp(value, [](T a, T b) { return b < a ? b : a; });
}
template <class T>
__device__ inline T largest_of_warp(T value) {
  return reduce_warp(value, [](T a, T b) { return b > a ? b : a; });
}

// The values of the lanes from ``head`` to this one joined, each lane naming the first of its group; and the sum of those from lane 0
// on. The whole warp calls these.
template <class T, class Join>
__device__ inline T scan_warp(T value, int head, Join join) {
  for (int step = 1; step < 32; step *= 2) {
    T other = __shfl_up_sync(FULL, value, step);
    if ((int)lane_id() - step >= head) value = join(other, value);
  }
  return value;
}
template <class T>
__device__ inline T scan_of_warp(T value) {
  return scan_warp(value, 0, [](T a, T b) { return a + b; });
}

template <class T>
__device__ inline void swap(T& a, T& b) {
  T old = a;
  a = b, b = old;
}

// visit(k) for k from 0 to SIZE - 1, unrolled: so small arrays are registers, and SIZE loads are under way before one is needed.
template <int SIZE, class Visit>
__device__ inline void each_k(Visit visit) {
#pragma unroll
  for (int k = 0; k < SIZE; k++) visit(k);
}

// Calls visit(chosen, places) for the set bits of a warp's words, the lanes' ``bits``, of which lane 0 has ``word``: bit b of
// word w has place 32 * w + b. All lanes get some, up to SIZE at a time, however few bits a word has. Words without bits cost
// little. The whole warp, of a block of at most MOST_WARPS, calls it.
constexpr int MOST_WARPS = 16, BITS_AT_ONCE = 256;
__device__ inline unsigned short* places_of_warp() {
  __shared__ unsigned short places[MOST_WARPS][BITS_AT_ONCE];
  return places[threadIdx.x / 32];
}
template <int SIZE, class Visit>
__device__ inline void for_each_bit(i64 word, unsigned bits, Visit visit) {
  if (!__any_sync(FULL, bits != 0)) return;
  int count = __popc(bits), upto = scan_of_warp(count), at = upto - count, total = __shfl_sync(FULL, upto, 31);
  unsigned short* places = places_of_warp();
  for (int first = 0; first < total; first += BITS_AT_ONCE) {
    int last = min(total, first + BITS_AT_ONCE);
    for (; bits && at < last; bits &= bits - 1) places[at++ - first] = (unsigned short)(32 * lane_id() + __ffs(bits) - 1);
    __syncwarp();
    for (int base = first; base < last; base += 32 * SIZE) {
      bool chosen[SIZE];
      int place[SIZE];
      each_k<SIZE>([&](int k) {
        int i = base + 32 * k + (int)lane_id();
        chosen[k] = i < last, place[k] = (int)(word * 32) + (chosen[k] ? places[i - first] : 0);
      });
      visit(chosen, place);
    }
    __syncwarp();
  }
}

// Every lane takes consecutive places of what ``counter`` counts, one for each of its SIZE things that is chosen, and calls
// take(place, k) for it. One atomic does for a warp, all of which calls this.
template <int SIZE, class Take>
__device__ inline void take_places(u64* counter, const bool (&chosen)[SIZE], Take take) {
  u64 own = 0;
#pragma unroll
  for (int k = 0; k < SIZE; k++) own += chosen[k];
  if (!__any_sync(FULL, own > 0)) return;
  u64 upto = scan_of_warp(own), at = 0;
  if (lane_id() == 31) at = atomicAdd(counter, upto);
  at = __shfl_sync(FULL, at, 31) + upto - own;
#pragma unroll
  for (int k = 0; k < SIZE; k++)
    if (chosen[k]) take((i64)at++, k);
}

// The first place from ``begin`` to ``end`` - 1 where ``test`` holds, or ``end``, by bisection: it holds at all places behind it.
template <class Test>
__device__ inline i64 first_where(i64 begin, i64 end, Test test) {
  while (begin < end) {
    i64 middle = (begin + end) / 2;
    if (!test(middle)) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// Asks for the line of what will be read a little later, and waits for nothing.
__device__ inline void prefetch(const void* place) {
#ifndef CUDAEMU
  asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}

// A load that sees what other blocks have stored.
__device__ inline u64 peek(const u64* place) { return *(const volatile u64*)place; }

// The same of memory of any GPU; what was stored there, or seen, before the word that it finds, is seen by all that follows.
// That takes half as long as a fence after it.
__device__ inline u64 acquire(const u64* place) {
#ifndef CUDAEMU
  u64 value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(place) : "memory");
  return value;
#else
  return peek(place);  // loads of the CPU shim are in order
#endif
}

// *most becomes the highest ``value`` of all threads, if that is more: one atomic for a warp, all of which calls it, or none.
__device__ inline void keep_highest(u64* most, u64 value) {
  value = largest_of_warp(value);
  if (lane_id() == 0 && value > peek(most)) atomicMax(most, value);
}

// Calls visit(place, load(place), live) for the places from ``begin`` to ``end`` - 1, shared out among all threads of the grid,
// by whole warps; lanes beyond the end are not live. A thread has several loads under way before it needs one: few blocks, or
// stores in between, do not hide the way to memory otherwise.
template <int TOGETHER = 4, class Load, class Visit>
__device__ inline void for_each_loaded(i64 begin, i64 end, Load load, Visit visit) {
  using Loaded = decltype(load(begin));
  for (i64 base = begin + thread_id(); base - lane_id() < end; base += TOGETHER * num_threads()) {
    Loaded loaded[TOGETHER];
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) loaded[k] = base + k * num_threads() < end ? load(base + k * num_threads()) : Loaded();
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) visit(base + k * num_threads(), loaded[k], base + k * num_threads() < end);
  }
}

// *sum += ``value`` of all threads, with one atomic per block: atomics on one address follow each other. All threads call it.
__device__ inline void add_up(u64* sum, u64 value) {
  __shared__ u64 of_warp[32];
  value = sum_of_warp(value);
  __syncthreads();  // the call before has read them
  if (lane_id() == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  value = sum_of_warp(threadIdx.x < (blockDim.x + 31) / 32 ? of_warp[threadIdx.x] : 0ull);
  if (threadIdx.x == 0 && value) atomicAdd(sum, value);
}

// True in all threads of the block that ends last, which sees all that the others did before. ``ended`` is 0 before and
// after. All threads call it.
__device__ inline bool last_block(unsigned* ended) {
  __threadfence();
  __syncthreads();
  bool last = threadIdx.x == 0 && atomicInc(ended, gridDim.x - 1) == gridDim.x - 1;
  last = __syncthreads_or(last);
  __threadfence();
  return last;
}

// Adds to a count of arrivals, and looks at it: what a block has stored or seen before it arrives is seen by who finds that it
// did. A fence for each would take half a microsecond more at every barrier.
__device__ inline unsigned arrive(unsigned* arrived, unsigned more) {
#ifndef CUDAEMU
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(arrived), "r"(more) : "memory");
  return before;
#else
  return atomicAdd(arrived, more);
#endif
}
__device__ inline unsigned arrivals(const unsigned* arrived) {
#ifndef CUDAEMU
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(arrived) : "memory");
  return value;
#else
  return *(const volatile unsigned*)arrived;
#endif
}

// All blocks wait for each other. Together they add 2^31 to ``arrived``, so its top bit changes when the last one comes, and
// the other bits are 0 again: however often, nothing overflows. Only for kernels whose blocks are all resident.
__device__ inline void grid_barrier(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned before = arrive(arrived, blockIdx.x == 0 ? (1u << 31) - (gridDim.x - 1) : 1u);
    while (!((arrivals(arrived) ^ before) >> 31)) __nanosleep(20);
  }
  __syncthreads();
}

// The last block gives the host ``size`` sums to which all blocks have added, and leaves them at 0; the word behind them
// counts blocks.
__device__ inline void publish(u64* sums, int size, u64* host) {
  if (last_block((unsigned*)&sums[size]) && threadIdx.x < size) host[threadIdx.x] = atomicExch(&sums[threadIdx.x], 0ull);
}
