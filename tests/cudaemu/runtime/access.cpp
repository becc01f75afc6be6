// g++ calls these before every load and store of a kernel that was compiled to be checked: here an address outside of
// all arrays is found, and here a thread can be interrupted.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "state.h"

namespace cudaemu {

static uint64_t interruption_random;
static int until_interruption;

void prepare_access() {
    interruption_random = launch.seed;
    until_interruption = 1;
}

static void maybe_interrupt() {
    if (launch.preempt == 0 || --until_interruption > 0) return;
    interruption_random = interruption_random * 6364136223846793005u + 1442695040888963407u;
    until_interruption = 1 + int((interruption_random >> 33) % (2 * launch.preempt));
    let_others_run();
}

static inline bool within(uintptr_t address, size_t bytes, const void *begin, size_t size) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(begin);
    return address >= first && address + bytes <= first + size;
}

// The last array that begins at or before an address.
static const Range *range_before(uintptr_t address) {
    const Range *end = launch.ranges + launch.num_ranges;
    const Range *after = std::upper_bound(launch.ranges, end, address,
                                          [](uintptr_t address, const Range &range) { return address < range.begin; });
    return after == launch.ranges ? nullptr : after - 1;
}

static bool is_known(uintptr_t address, size_t bytes) {
    static Range last;
    static uint64_t last_launch;
    if (last_launch == launches && within(address, bytes, (void *)last.begin, last.size)) return true;
    if (within(address, bytes, me->fiber->stack, stack_bytes)) return true;
    if (within(address, bytes, &threadIdx, sizeof threadIdx) || within(address, bytes, &blockIdx, sizeof blockIdx) ||
        within(address, bytes, &blockDim, sizeof blockDim) || within(address, bytes, &gridDim, sizeof gridDim))
        return true;
    const char *shared = me->block->shared;
    if (within(address, bytes, shared, me->block->filled)) return true;
    if (within(address, bytes, shared + Block::static_shared_bytes, launch.dynamic_shared)) return true;
    const Range *range = range_before(address);
    Dl_info library;  // of a __device__ or __constant__ variable
    const bool in_array = range && within(address, bytes, (void *)range->begin, range->size);
    if (!in_array && dladdr((void *)address, &library) == 0) return false;
    last = in_array ? *range : Range{address, bytes};
    last_launch = launches;
    return true;
}

static void report(uintptr_t address, size_t bytes, bool store, void *caller) {
    char text[400];
    Dl_info library = {};
    dladdr(caller, &library);
    const Range *range = range_before(address);
    const bool in_shared = within(address, 1, me->block->shared, Block::static_shared_bytes + Block::shared_bytes);
    int length = snprintf(text, sizeof text, "%s of %zu bytes", store ? "store" : "load", bytes);
    if (in_shared) length += snprintf(text + length, sizeof text - length, " outside of the block's shared variables");
    else if (range)
        length += snprintf(text + length, sizeof text - length, " at byte %zu of an array of %zu bytes",
                           address - range->begin, range->size);
    else length += snprintf(text + length, sizeof text - length, " at address %p", (void *)address);
    snprintf(text + length, sizeof text - length, " by %s [%s+0x%zx]", name_of(*me).c_str(),
             library.dli_fname ? library.dli_fname : "", size_t((char *)caller - (char *)library.dli_fbase) - 1);
    leave(text);
}

static inline void access(void *address, size_t bytes, bool store, void *caller) {
    if (!me) return;
    if (launch.check && !is_known(reinterpret_cast<uintptr_t>(address), bytes))
        report(reinterpret_cast<uintptr_t>(address), bytes, store, caller);
    maybe_interrupt();
}

}  // namespace cudaemu

// g++ believes that it compiles for the thread sanitizer, which has these names.
#define WATCH(name, bytes, store)                                            \
    extern "C" void __tsan_##name##bytes(void *address) {                    \
        cudaemu::access(address, bytes, store, __builtin_return_address(0)); \
    }
#define WATCH_LOADS_AND_STORES(bytes)       \
    WATCH(read, bytes, false)               \
    WATCH(write, bytes, true)               \
    WATCH(unaligned_read, bytes, false)     \
    WATCH(unaligned_write, bytes, true)
WATCH_LOADS_AND_STORES(1)
WATCH_LOADS_AND_STORES(2)
WATCH_LOADS_AND_STORES(4)
WATCH_LOADS_AND_STORES(8)
WATCH_LOADS_AND_STORES(16)

extern "C" void __tsan_read_range(void *address, size_t bytes) {
    cudaemu::access(address, bytes, false, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void *address, size_t bytes) {
    cudaemu::access(address, bytes, true, __builtin_return_address(0));
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}

namespace cudaemu {

unsigned atomics_left;

void begin_atomic(void *address, size_t bytes) {
    if (!me) return;
    access(address, bytes, true, __builtin_return_address(0));
    if (--atomics_left == 0) let_others_run();
}

}  // namespace cudaemu
