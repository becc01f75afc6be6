// A kernel for each thing that the stand-in for CuPy imitates: run by test_cudaemu.py, and compiled by NVRTC too,
// which shows that it is CUDA.
typedef long long i64;
typedef unsigned long long u64;

#ifndef SCALE
#define SCALE 1
#endif

__constant__ int factors[4] = {1, 10, 100, 1000};
__device__ int calls;

template <class T>
__device__ __forceinline__ T larger(T a, T b) {
  return a < b ? b : a;
}

// --- Plain threads --------------------------------------------------------------------------------------------

extern "C" __global__ void scale(const int* __restrict__ in, i64 size, float by, bool negate, double* out) {
  i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i < size) out[i] = (negate ? -1 : 1) * SCALE * (double)by * __ldg(in + i) * factors[i & 3];
}

extern "C" __global__ void place(int3* out) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = {(int)threadIdx.x, (int)threadIdx.y, (int)blockIdx.z};
}

struct Pair {
  int first;
  double second;
};

extern "C" {
__global__ void __launch_bounds__(64, 2) take_pair(Pair pair, double* out) {
  out[threadIdx.x] = pair.first * pair.second;
  atomicAdd(&calls, 1);
}
}

template <class T, int add>
__global__ void add_constant(T* values) {
  values[threadIdx.x] += add;
}

extern "C" __global__ void bits(unsigned word, u64 wide, i64* out) {
  out[0] = __popc(word), out[1] = __popcll(wide), out[2] = __ffs(word), out[3] = __ffsll(wide);
  out[4] = __clz(word), out[5] = __clzll(wide), out[6] = __brev(word), out[7] = __float_as_uint(1.0f);
  out[8] = (i64)__uint_as_float(0x40400000u), out[9] = __double_as_longlong(2.0), out[10] = min(3ll, 4ll);
  out[11] = max(5u, 4u), out[12] = __umulhi(1u << 31, 4), out[13] = __clz(0), out[14] = larger(2, 7);
}

// --- Atomics --------------------------------------------------------------------------------------------------

extern "C" __global__ void atomics(int* ints, unsigned* words, u64* wides, float* floats, double* doubles, i64* longs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&ints[0], 1), atomicMin(&ints[1], -i), atomicMax(&ints[2], i), atomicSub(&ints[3], 2);
  atomicOr(&words[0], 1u << (i & 31)), atomicAnd(&words[1], ~(1u << (i & 7))), atomicXor(&words[2], i);
  atomicAdd(&wides[0], 1ull << 33), atomicMax(&wides[1], (u64)i << 40), atomicAdd(&floats[0], 0.5f);
  atomicAdd(&doubles[0], 0.25), atomicMin(&longs[0], -(i64)i << 33), atomicInc(&words[3], 9u);
  if (atomicCAS(&ints[4], 0, i + 1) == 0) ints[5] = i + 1;
  atomicAdd(&ints[6], atomicExch(&ints[7], 0));
  __stcg(&ints[8], __ldcs(&ints[9]));
}

// --- Warps and blocks -----------------------------------------------------------------------------------------

extern "C" __global__ void warp_functions(const int* values, i64* out) {
  const unsigned all = 0xffffffffu;
  int lane = threadIdx.x & 31, value = values[threadIdx.x];
  i64* row = out + 16 * threadIdx.x;
  row[0] = __ballot_sync(all, value & 1), row[1] = __any_sync(all, value == 3), row[2] = __all_sync(all, value >= 0);
  row[3] = __shfl_sync(all, value, 5), row[4] = __shfl_up_sync(all, (i64)value << 40, 1);
  row[5] = __shfl_down_sync(all, value, 2, 8), row[6] = __shfl_xor_sync(all, value, 16);
  row[7] = __match_any_sync(all, value % 3), row[8] = __reduce_add_sync(all, (unsigned)value);
  row[9] = __reduce_min_sync(all, -value), row[10] = __reduce_max_sync(all, -value);
  row[11] = __reduce_or_sync(all, 1u << (value & 31)), row[12] = __activemask();
  __syncwarp();
  if (lane < 8) row[13] = __ballot_sync(0xffu, lane & 1);  // some lanes alone
  if (lane >= 16) return;                                  // the mask names lanes that are still there
  row[14] = __reduce_add_sync(0xffffu, 1u);
  __syncwarp(0xffffu);
  row[15] = __shfl_sync(0xffffu, row[14] * lane, 3, 4);
}

extern "C" __global__ void reverse_blocks(int* values, int* votes) {
  __shared__ int row[256], count;
  __shared__ __align__(16) unsigned char unwritten[64];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  row[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&count, 1);
  int odd = __syncthreads_count(row[threadIdx.x] & 1);
  values[blockIdx.x * blockDim.x + threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
  int any = __syncthreads_or(threadIdx.x == 3), every = __syncthreads_and(threadIdx.x != 3);
  if (threadIdx.x == 0) votes[4 * blockIdx.x] = odd, votes[4 * blockIdx.x + 1] = any;
  if (threadIdx.x == 0) votes[4 * blockIdx.x + 2] = every, votes[4 * blockIdx.x + 3] = count + 0 * unwritten[0];
}

extern __shared__ int outer_buffer[];

extern "C" __global__ void dynamic_shared(int* values) {
  extern __shared__ __align__(8) unsigned char buffer[];
  int* row = reinterpret_cast<int*>(buffer);
  row[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = outer_buffer[(threadIdx.x + 1) % blockDim.x];
}

template <int size>
__device__ int block_sum(int value) {
  __shared__ int parts[size];
  parts[threadIdx.x] = value;
  __syncthreads();
  for (int step = size / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
    __syncthreads();
  }
  return parts[0];
}

extern "C" __global__ void sums_of_two_sizes(int* out) {
  int small = block_sum<64>(1), large = block_sum<64>((int)threadIdx.x);
  if (threadIdx.x == 0) out[2 * blockIdx.x] = small, out[2 * blockIdx.x + 1] = large;
}

// --- The whole grid -------------------------------------------------------------------------------------------

// A barrier that all blocks of the grid pass together, made by hand.
__device__ void wait_for_all(unsigned* arrived, unsigned wanted) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < wanted) __nanosleep(20);
  }
  __syncthreads();
}

extern "C" __global__ void handmade_barrier(unsigned* arrived, int* values, int* sums) {
  values[blockIdx.x] = blockIdx.x;
  wait_for_all(arrived, gridDim.x);
  int sum = 0;
  for (int i = 0; i < gridDim.x; i++) sum += values[i];
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The last block waits for the first through a volatile read, in a loop that calls nothing.
extern "C" __global__ void volatile_flag(volatile int* flag, int* seen) {
  if (blockIdx.x == gridDim.x - 1) *flag = 7;
  while (*flag != 7) {
  }
  seen[blockIdx.x] = *flag;
}

// --- Mistakes -------------------------------------------------------------------------------------------------

extern "C" __global__ void divergent_barrier(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
    out[0] = 1;
  } else {
    __syncthreads();
    out[1] = 1;
  }
}

extern "C" __global__ void missing_lane(int* out) {
  if (threadIdx.x != 7) out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
  else __syncthreads();
}

extern "C" __global__ void waits_for_nobody(unsigned* arrived) {
  while (atomicAdd(arrived, 0u) < 1) __nanosleep(100);
}

extern "C" __global__ void outside(int* values, i64 index) { values[index] = 1; }

// Between the read and the write of a thread comes another: a lost update.
extern "C" __global__ void race(int* counter, i64 times) {
  for (i64 i = 0; i < times; i++) *(volatile int*)counter = *(volatile int*)counter + 1;
}

// Each thread reads its neighbour's entry without a barrier.
extern "C" __global__ void forgotten_barrier(int* out) {
  __shared__ int row[64];
  row[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = row[(threadIdx.x + 1) % 64];
}
