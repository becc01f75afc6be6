// Runs a kernel: every CUDA thread that has to wait for others is a fiber, all on one core, in turn.
//
// A fiber runs threads of its block one after another. As long as none waits, a block is a plain loop on one stack;
// when one waits, the next thread begins on another fiber. Blocks begin in turn too, and a further one begins only
// when all threads that have begun wait. So a barrier across the grid needs no mode of its own.
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <numeric>

#include "../include/cudaemu/entry.h"
#include "state.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cudaemu {

Launch launch;
uint64_t launches;
Thread *me;
std::vector<Thread *> ready;  // from first_ready on
std::vector<Thread *> pausing, at_grid;
std::vector<Block *> resident;
uint64_t next_block, num_blocks;
uint64_t events;

static void (*kernel)(void **);
static void **arguments;
static Context scheduler;
static sigjmp_buf fault_return;
static size_t first_ready;
static Block *newest;  // the only block that may have threads which have not begun
static std::vector<Fiber *> idle_fibers, all_fibers;
static std::vector<Block *> idle_blocks;
static std::string error;
static uint64_t random_state;

static unsigned random_below(uint64_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return unsigned((random_state >> 33) % bound);
}

// The i-th of n, in an order that depends on the seed.
static uint64_t shuffled(uint64_t i, uint64_t n) {
    if (launch.seed == 0) return i;
    uint64_t stride = launch.seed % n | 1;
    while (std::gcd(stride, n) != 1) stride += 2;
    return (i * stride + launch.seed) % n;
}

static uint3 unrank(uint64_t rank, dim3 shape) {
    return {unsigned(rank % shape.x), unsigned(rank / shape.x % shape.y), unsigned(rank / shape.x / shape.y)};
}

std::string name_of(const Thread &thread) {
    const uint3 t = thread.index, b = thread.block->index;
    char text[128];
    snprintf(text, sizeof text, "thread (%u, %u, %u) of block (%u, %u, %u)", t.x, t.y, t.z, b.x, b.y, b.z);
    return text;
}

std::string place_of(const Thread &thread) {
    return name_of(thread) + " waits at " + thread.file + ":" + std::to_string(thread.line);
}

// --- Threads --------------------------------------------------------------------------------------------------

static void become(Thread *thread) {
    me = thread;
    me->state = State::running;
    threadIdx = thread->index;
    blockIdx = thread->block->index;
    atomics_left = atomics_in_a_row;
}

void wait(State state) {
    me->state = state;
    switch_context(me->fiber->context, scheduler);
}

void wake(Thread &thread) { ready.push_back(&thread); thread.state = State::running; }

void let_others_run() {
    pausing.push_back(me);
    wait(State::pausing);
}

void leave(const std::string &message) {
    error = message;
    Context abandoned;
    switch_context(abandoned, scheduler);
}

void fail(const char *what, const char *file, int line) {
    leave(std::string(what) + " at " + file + ":" + std::to_string(line) + ", " + name_of(*me));
    abort();
}

long long nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// Take threads of the newest block until all have begun, then sleep until there is another block.
static void run_threads() {
    for (;;) {
        Block *block = newest;
        Fiber *self = idle_fibers.back();
        idle_fibers.pop_back();
        while (block->begun < block->threads.size()) {
            Thread &thread = block->threads[shuffled(block->begun++, block->threads.size())];
            thread.fiber = self;
            ++events;
            become(&thread);
            kernel(arguments);
            end_thread();
        }
        idle_fibers.push_back(self);
        switch_context(self->context, scheduler);
    }
}

static Fiber *idle_fiber() {
    if (idle_fibers.empty()) {
        Fiber *fiber = new Fiber;
        fiber->color = unsigned(7 * all_fibers.size());
        fiber->context.prepare(fiber->top(), run_threads);
        all_fibers.push_back(fiber);
        idle_fibers.push_back(fiber);
    }
    return idle_fibers.back();
}

// --- Blocks ---------------------------------------------------------------------------------------------------

static void begin_block() {
    if (idle_blocks.empty()) idle_blocks.push_back(new Block);
    newest = idle_blocks.back();
    idle_blocks.pop_back();
    resident.push_back(newest);
    newest->index = unrank(shuffled(next_block++, num_blocks), launch.grid);
    newest->begun = newest->arrived = newest->votes = newest->filled = 0;
    newest->threads.assign(launch.block.x * launch.block.y * launch.block.z, Thread{});
    newest->live = unsigned(newest->threads.size());
    newest->warps.assign((newest->live + 31) / 32, Warp{});
    for (unsigned rank = 0; rank < newest->live; ++rank) {
        newest->threads[rank].rank = rank;
        newest->threads[rank].index = unrank(rank, launch.block);
        newest->threads[rank].block = newest;
        newest->warps[rank / 32].live |= 1u << rank % 32;
    }
    prepare_dynamic_shared(*newest);
}

static void retire_blocks() {
    for (size_t i = 0; i < resident.size();) {
        if (resident[i]->live) {
            ++i;
            continue;
        }
        if (resident[i] == newest) newest = nullptr;
        idle_blocks.push_back(resident[i]);
        resident[i] = resident.back();
        resident.pop_back();
    }
}

// --- The launch -----------------------------------------------------------------------------------------------

static std::string describe_deadlock(const char *what) {
    std::map<std::string, std::pair<unsigned, std::string>> places;
    for (Block *block : resident)
        for (Thread &thread : block->threads) {
            if (thread.state == State::done) continue;
            const bool known = thread.state != State::pausing && thread.file;
            auto &place = places[known ? std::string(thread.file) + ":" + std::to_string(thread.line)
                                       : std::string("an atomic or __nanosleep")];
            if (place.first++ == 0) place.second = name_of(thread);
        }
    std::string text = what;
    for (auto &[place, who] : places)
        text += "; " + std::to_string(who.first) + " waiting at " + place + ", the first of them " + who.second;
    return text;
}

// Those that paused may go on. False after a long time in which that was all that happened.
static bool wake_pausing() {
    static uint64_t last_events;
    static long long since;
    const long long now = nanoseconds();
    if (events != last_events) last_events = events, since = now;
    if (now - since > launch.seconds * 1e9) return false;
    if (now - since > 20000) usleep(50);  // what they wait for comes from another process
    for (Thread *thread : pausing) wake(*thread);
    pausing.clear();
    return true;
}

static void resume_one() {
    if (launch.seed) std::swap(ready[first_ready], ready[first_ready + random_below(ready.size() - first_ready)]);
    become(ready[first_ready++]);
    if (first_ready == ready.size()) ready.clear(), first_ready = 0;
    switch_context(scheduler, me->fiber->context);
}

// Until all blocks have ended, or none of their threads can go on.
static void schedule() {
    while (error.empty()) {
        if (!ready.empty()) {
            resume_one();
        } else if (newest && newest->begun < newest->threads.size()) {
            switch_context(scheduler, idle_fiber()->context);
        } else if (retire_blocks(); next_block < num_blocks && resident.size() < launch.resident_blocks) {
            begin_block();
        } else if (pausing.empty()) {
            break;
        } else if (!wake_pausing()) {
            error = describe_deadlock("the launch does not end: every thread waits for another");
        }
    }
    if (error.empty() && !resident.empty()) error = describe_deadlock("deadlock: threads wait for others that do not come");
}

static void on_fault(int signal, siginfo_t *info, void *) {
    char text[200];
    const char *what = signal == SIGFPE ? "division by zero" : "illegal memory access";
    snprintf(text, sizeof text, "%s at address %p by %s", what, info->si_addr, me ? name_of(*me).c_str() : "the host");
    error = text;
    siglongjmp(fault_return, 1);
}

// While it lives, a fault inside a kernel ends the launch and not the process.
class CatchFaults {
    static constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
    static inline char stack[64 << 10];
    struct sigaction old_actions[3];
    stack_t old_stack;

   public:
    CatchFaults() {
        stack_t mine = {stack, 0, sizeof stack};
        sigaltstack(&mine, &old_stack);
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        for (int i = 0; i < 3; ++i) sigaction(signals[i], &action, &old_actions[i]);
    }
    ~CatchFaults() {
        for (int i = 0; i < 3; ++i) sigaction(signals[i], &old_actions[i], nullptr);
        sigaltstack(&old_stack, nullptr);
    }
};

static void clean_up() {
    me = nullptr;
    newest = nullptr;
    first_ready = 0;
    idle_blocks.insert(idle_blocks.end(), resident.begin(), resident.end());
    resident.clear(), ready.clear(), pausing.clear(), at_grid.clear();
    if (error.empty()) return;
    idle_fibers = all_fibers;  // those that were abandoned begin anew
    for (Fiber *fiber : all_fibers) {
        allow(fiber->stack + guard_bytes, stack_bytes - guard_bytes);
        fiber->context.prepare(fiber->top(), run_threads);
    }
}

}  // namespace cudaemu

using namespace cudaemu;

extern "C" const char *cudaemu_run(const Entry *entry, void **values, const Launch *wanted) {
    launch = *wanted;
    ++launches;
    kernel = entry->call;
    arguments = values;
    gridDim = launch.grid, blockDim = launch.block;
    num_blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
    next_block = 0;
    random_state = launch.seed;
    prepare_access();
    error.clear();
    {
        CatchFaults catch_faults;
        if (sigsetjmp(fault_return, 1) == 0) schedule();
    }
    clean_up();
    return error.empty() ? nullptr : error.c_str();
}
