// What a compiled kernel and the runtime (runtime.cpp) know of each other.
#pragma once
#include <cstddef>
#include <cstdint>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

// Of the thread that runs now; the runtime sets them whenever it goes on with another.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

// The line of the kernel that calls a function whose last parameters are these: for messages.
#define CUDAEMU_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

// A function whose loads and stores are not those of a kernel.
#define CUDAEMU_UNWATCHED __attribute__((no_sanitize("thread")))

namespace cudaemu {

// What the lanes of a warp do together: each gives a value, each gets a result when all have come.
enum class Collective { sync, ballot, any, all, shuffle, match_any, match_all, add, min_signed, min_unsigned,
                        max_signed, max_unsigned, bit_and, bit_or, bit_xor };

// What the threads of a block do together: each gives a predicate, each gets the combination.
enum class Vote { none, count, any, all };

uint64_t warp(Collective what, unsigned mask, uint64_t value, unsigned source_lane, const char *file, int line);
int block(Vote vote, bool predicate, const char *file, int line);
void grid(const char *file, int line);  // all threads of a cooperative launch

// Let other threads run: this one waits for something that they write.
void let_others_run();

// Called by every atomic: its address is checked, and a loop of them that waits for others lets these run.
void begin_atomic(void *address, size_t bytes);

unsigned lane();         // of this thread in its warp
unsigned live_lanes();   // those of this warp that have not returned
unsigned thread_rank();  // in its block
bool is_cooperative();   // this launch
long long nanoseconds();

// A variable declared __shared__: where it lies in the shared memory of a block is found in each launch anew.
struct Slot {
    uint64_t launch;
    size_t offset;
};
void *shared(Slot &slot, size_t bytes);
void *dynamic_shared();

template <class T>
inline T &in_shared(Slot &slot) {
    return *static_cast<T *>(shared(slot, sizeof(T)));
}

// `extern __shared__ T name[]` outside of a function.
template <class T>
struct DynamicShared {
    operator T *() const { return static_cast<T *>(dynamic_shared()); }
};

// End the launch with an error.
[[noreturn]] void fail(const char *what, const char *file, int line);

}  // namespace cudaemu
