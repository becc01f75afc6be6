// The part of cooperative groups that needs no more than barriers, shuffles and ranks.
#pragma once
#include "cudaemu.h"

namespace cooperative_groups {

class thread_block {
   public:
    static void sync(CUDAEMU_CALLER) { cudaemu::block(cudaemu::Vote::none, false, file, line); }
    static unsigned thread_rank() { return cudaemu::thread_rank(); }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

class grid_group {
   public:
    static bool is_valid() { return cudaemu::is_cooperative(); }
    static void sync(CUDAEMU_CALLER) { cudaemu::grid(file, line); }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + cudaemu::thread_rank();
    }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 group_dim() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
};

// Lanes of one warp. Their functions are the __..._sync ones, with this group's mask.
class warp_group {
   protected:
    unsigned mask;

   public:
    explicit warp_group(unsigned mask) : mask(mask) {}
    void sync(CUDAEMU_CALLER) const { __syncwarp(mask, file, line); }
    unsigned num_threads() const { return __builtin_popcount(mask); }
    unsigned size() const { return num_threads(); }
    unsigned thread_rank() const { return __builtin_popcount(mask & ((1u << cudaemu::lane()) - 1u)); }
    int any(int predicate, CUDAEMU_CALLER) const { return __any_sync(mask, predicate, file, line); }
    int all(int predicate, CUDAEMU_CALLER) const { return __all_sync(mask, predicate, file, line); }
};

template <unsigned lanes>
class thread_block_tile : public warp_group {
    static_assert(lanes <= 32 && (lanes & (lanes - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 lanes");
    static unsigned first() { return cudaemu::lane() & ~(lanes - 1u); }

   public:
    thread_block_tile() : warp_group(unsigned(((1ull << lanes) - 1) << first())) {}
    static unsigned meta_group_rank() { return cudaemu::thread_rank() / lanes; }
    static unsigned meta_group_size() { return (thread_block::num_threads() + lanes - 1) / lanes; }
    unsigned ballot(int predicate, CUDAEMU_CALLER) const {
        return __ballot_sync(mask, predicate, file, line) >> first();
    }
    template <class T>
    T shfl(T value, int source, CUDAEMU_CALLER) const {
        return __shfl_sync(mask, value, source, lanes, file, line);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, CUDAEMU_CALLER) const {
        return __shfl_up_sync(mask, value, delta, lanes, file, line);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, CUDAEMU_CALLER) const {
        return __shfl_down_sync(mask, value, delta, lanes, file, line);
    }
    template <class T>
    T shfl_xor(T value, unsigned flip, CUDAEMU_CALLER) const {
        return __shfl_xor_sync(mask, value, int(flip), lanes, file, line);
    }
};

class coalesced_group : public warp_group {
   public:
    using warp_group::warp_group;
};

inline grid_group this_grid() { return {}; }
inline thread_block this_thread_block() { return {}; }
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }
template <unsigned lanes, class Parent>
inline thread_block_tile<lanes> tiled_partition(const Parent &) { return {}; }

template <class Group>
inline void sync(const Group &group, CUDAEMU_CALLER) { group.sync(file, line); }

}  // namespace cooperative_groups
