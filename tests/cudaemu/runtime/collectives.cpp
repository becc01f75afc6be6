// What threads of a block, a warp or the grid do together: the last one to come finds the results and wakes the others.
#include <cstdio>
#include <cstring>

#include "state.h"

namespace cudaemu {

// --- Blocks and the grid --------------------------------------------------------------------------------------

static bool same(const char *a, const char *b) { return a == b || strcmp(a, b) == 0; }

// The block's barrier is complete when all threads that have not returned are there.
static void pass_barrier(Block &block) {
    const Thread *first = nullptr;
    for (Thread &thread : block.threads) {
        if (thread.state != State::at_barrier) continue;
        if (!first) first = &thread;
        if (first->line != thread.line || !same(first->file, thread.file))
            leave("divergent barrier: " + place_of(*first) + ", " + place_of(thread));
    }
    for (Thread &thread : block.threads) {
        if (thread.state != State::at_barrier) continue;
        switch (Vote(thread.source)) {
            case Vote::count: thread.result = block.votes; break;
            case Vote::any: thread.result = block.votes > 0; break;
            default: thread.result = block.votes == block.arrived;
        }
        if (&thread == me) thread.state = State::running;
        else wake(thread);
    }
    block.arrived = block.votes = 0;
    ++events;
}

int block(Vote vote, bool predicate, const char *file, int line) {
    Block &block = *me->block;
    me->state = State::at_barrier;
    me->file = file, me->line = line, me->source = unsigned(vote);
    block.votes += predicate;
    if (++block.arrived == block.live) pass_barrier(block);
    if (me->state == State::at_barrier) wait(State::at_barrier);
    return int(me->result);
}

static void pass_grid() {
    uint64_t live = (num_blocks - next_block) * launch.block.x * launch.block.y * launch.block.z;
    for (Block *block : resident) live += block->live;
    if (at_grid.size() != live) return;
    for (Thread *thread : at_grid) {
        if (thread == me) thread->state = State::running;
        else wake(*thread);
    }
    at_grid.clear();
    ++events;
}

void grid(const char *file, int line) {
    if (!launch.cooperative) fail("grid barrier in a launch that is not cooperative", file, line);
    me->state = State::at_grid;
    me->file = file, me->line = line;
    at_grid.push_back(me);
    pass_grid();
    if (me->state == State::at_grid) wait(State::at_grid);
}

// --- Warps ----------------------------------------------------------------------------------------------------

unsigned lane() { return me->rank % 32; }
unsigned thread_rank() { return me->rank; }
bool is_cooperative() { return launch.cooperative; }

static Warp &warp_of(const Thread &thread) { return thread.block->warps[thread.rank / 32]; }

unsigned live_lanes() { return warp_of(*me).live; }

static uint64_t combine(Collective what, uint64_t a, uint64_t b) {
    switch (what) {
        case Collective::any: return a | b;
        case Collective::all: return a & b;
        case Collective::add: return a + b;
        case Collective::min_signed: return int64_t(b) < int64_t(a) ? b : a;
        case Collective::max_signed: return int64_t(b) > int64_t(a) ? b : a;
        case Collective::min_unsigned: return b < a ? b : a;
        case Collective::max_unsigned: return b > a ? b : a;
        case Collective::bit_and: return a & b;
        case Collective::bit_or: return a | b;
        case Collective::bit_xor: return a ^ b;
        default: return 0;
    }
}

// Results of the lanes in `group`, all of which have given their values.
static void exchange(Thread *first, unsigned group, Collective what) {
    const Thread &lowest = first[__builtin_ctz(group)];
    uint64_t all = lowest.value;
    unsigned ballot = 0, equal = 0;
    for (unsigned left = group; left; left &= left - 1) {
        const Thread &lane = first[__builtin_ctz(left)];
        const unsigned bit = left & -left;
        if (lane.value & 1) ballot |= bit;
        if (lane.value == lowest.value) equal |= bit;
        if (bit != (group & -group)) all = combine(what, all, lane.value);
    }
    for (unsigned left = group; left; left &= left - 1) {
        Thread &lane = first[__builtin_ctz(left)];
        if (what == Collective::ballot) lane.result = ballot;
        else if (what == Collective::match_all) lane.result = equal == group ? group : 0;
        else if (what == Collective::shuffle)
            lane.result = group >> lane.source & 1 ? first[lane.source].value : 0xCBCBCBCBCBCBCBCBu;
        else if (what == Collective::match_any) {
            lane.result = 0;
            for (unsigned other = group; other; other &= other - 1)
                if (first[__builtin_ctz(other)].value == lane.value) lane.result |= other & -other;
        } else lane.result = all;
    }
}

// Whether all lanes that `thread` waits for are there; if so, they go on.
static bool pass_warp(Thread &thread) {
    Warp &warp = warp_of(thread);
    const unsigned group = thread.mask & warp.live;
    if ((warp.waiting & group) != group) return false;
    Thread *first = &thread - thread.rank % 32;
    for (unsigned left = group; left; left &= left - 1) {
        const Thread &other = first[__builtin_ctz(left)];
        if (other.mask != thread.mask) return false;
        if (other.what != thread.what)
            leave("lanes of one mask call different warp functions: " + place_of(thread) + ", " + place_of(other));
    }
    exchange(first, group, thread.what);
    for (unsigned left = group; left; left &= left - 1) {
        Thread &other = first[__builtin_ctz(left)];
        if (&other == me) me->state = State::running;
        else wake(other);
    }
    warp.waiting &= ~group;
    ++events;
    return true;
}

uint64_t warp(Collective what, unsigned mask, uint64_t value, unsigned source, const char *file, int line) {
    if (!(mask >> lane() & 1)) fail("the mask of a warp function lacks the lane that calls it", file, line);
    me->state = State::in_warp, me->what = what, me->mask = mask, me->source = source, me->value = value;
    me->file = file, me->line = line;
    warp_of(*me).waiting |= 1u << lane();
    if (!pass_warp(*me)) wait(State::in_warp);
    return me->result;
}

// --- The end of a thread --------------------------------------------------------------------------------------

void end_thread() {
    Block &block = *me->block;
    me->state = State::done;
    --block.live;
    ++events;
    if (block.arrived && block.arrived == block.live) pass_barrier(block);
    if (!at_grid.empty()) pass_grid();
    Warp &warp = warp_of(*me);
    warp.live &= ~(1u << lane());
    for (unsigned left = warp.waiting; left; left &= left - 1) {
        Thread &other = *(me - lane() + __builtin_ctz(left));
        if (warp.waiting & left & -left && other.mask >> lane() & 1) pass_warp(other);
    }
}

}  // namespace cudaemu
