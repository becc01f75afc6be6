// Cooperative groups and atomic_ref, whose headers the stand-in imitates.
#include <cooperative_groups.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_sums(int* values, int* sums, int rounds) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  for (int round = 0; round < rounds; round++) {
    if (block.thread_rank() == 0) values[blockIdx.x] = round * (int)blockIdx.x;
    grid.sync();
    int sum = 0;
    for (int i = 0; i < gridDim.x; i++) sum += values[i];
    if (block.thread_rank() == 0) sums[blockIdx.x] += sum;
    grid.sync();
  }
}

extern "C" __global__ void tile_sums(const int* values, int* sums) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int sum = values[threadIdx.x];
  for (int step = 4; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
}

extern "C" __global__ void pass_on(int* flags, int* order) {
  using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
  // Blocks run in any order; each waits for the one after it.
  if (blockIdx.x + 1 < gridDim.x)
    while (Flag(flags[blockIdx.x + 1]).load(cuda::memory_order_acquire) == 0) {
    }
  order[blockIdx.x] = Flag(flags[gridDim.x]).fetch_add(1, cuda::memory_order_relaxed);
  Flag(flags[blockIdx.x]).store(1, cuda::memory_order_release);
}
