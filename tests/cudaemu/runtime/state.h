// What the parts of the runtime share: the launch that runs, its blocks, threads and fibers.
#pragma once
#include <string>
#include <vector>

#include "../include/cudaemu/runtime.h"
#include "context.h"

namespace cudaemu {

// An array on the device, or memory of the host that kernels may use.
struct Range {
    uintptr_t begin;
    size_t size;
};

// What Python asks for; stand_in/cupy/_launch.py has the same structure.
struct Launch {
    dim3 grid, block;
    uint32_t dynamic_shared;
    uint32_t resident_blocks;  // at most this many at a time
    uint32_t cooperative;
    uint32_t preempt;  // mean number of loads and stores between two interruptions; 0: none
    uint32_t check;    // that addresses are within arrays
    uint32_t num_ranges;
    const Range *ranges;  // ascending
    uint64_t seed;     // 0: threads go on in the order of their ids
    double seconds;    // without any progress
};

enum class State { not_begun, running, at_barrier, in_warp, at_grid, pausing, done };

struct Fiber {
    Context context;
    char *stack = reserve(stack_bytes, guard_bytes);
    unsigned color;  // in lines of the cache: stacks that begin at the same place of a page would share few of them

    char *top() const { return stack + stack_bytes - 64 * (color % 60); }
};

struct Thread {
    Fiber *fiber;
    struct Block *block;
    unsigned rank;  // in its block
    uint3 index;    // the same as threadIdx
    State state;
    // What it waits for, and where.
    Collective what;
    unsigned mask, source;
    uint64_t value, result;
    const char *file;
    int line;
};

struct Warp {
    unsigned live, waiting;  // lanes that have not returned; those of them that wait in a warp function
};

struct Block {
    uint3 index;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    unsigned begun, live, arrived, votes;
    char *shared = reserve(static_shared_bytes + shared_bytes);  // the variables of fixed size, then the others
    size_t filled;  // bytes of the former that were made `uninitialised`

    static constexpr size_t static_shared_bytes = 48 << 10;
    static constexpr size_t shared_bytes = 227 << 10;
};

constexpr unsigned atomics_in_a_row = 4096;
extern unsigned atomics_left;  // of the thread that runs now, until it lets others run

extern Launch launch;
extern uint64_t launches;
extern Thread *me;  // the thread that runs now
extern std::vector<Thread *> ready;
extern std::vector<Thread *> pausing, at_grid;
extern std::vector<Block *> resident;
extern uint64_t next_block, num_blocks;
extern uint64_t events;  // threads that began, ended or passed a barrier: progress

std::string name_of(const Thread &thread);
std::string place_of(const Thread &thread);

void wait(State state);      // to the scheduler, until it resumes this thread
void wake(Thread &thread);   // lets it run again
void leave(const std::string &message);  // ends the launch with an error; does not return

void prepare_dynamic_shared(Block &block);
void prepare_access();

// This thread has ended: those that waited only for it go on.
void end_thread();

}  // namespace cudaemu
