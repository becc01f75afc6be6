// atomicAdd and its kin for the types that CUDA has them for: a missing overload is missing there too.
#pragma once
#include <cstring>

#include "runtime.h"

namespace cudaemu {

// One compare-and-swap at a time, which stays right wherever a thread is interrupted.
template <class T, class Operation>
CUDAEMU_UNWATCHED inline T update(T *address, Operation operation) {
    T old, wanted;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do wanted = operation(old);
    while (!__atomic_compare_exchange(address, &old, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

}  // namespace cudaemu

// The suffixes name a scope: a block is part of this device, and of this system.
#define CUDAEMU_ATOMIC(name, type, expression)                              \
    inline type name(type *address, type value) {                           \
        cudaemu::begin_atomic(address, sizeof(type));                       \
        return cudaemu::update(address, [=](type old) -> type { return expression; }); \
    }                                                                       \
    inline type name##_block(type *address, type value) { return name(address, value); }  \
    inline type name##_system(type *address, type value) { return name(address, value); }

#define CUDAEMU_ATOMIC_CAS(type)                                             \
    inline type atomicCAS(type *address, type compare, type value) {         \
        cudaemu::begin_atomic(address, sizeof(type));                        \
        return cudaemu::update(address, [=](type old) -> type { return old == compare ? value : old; }); \
    }                                                                        \
    inline type atomicCAS_block(type *address, type compare, type value) { return atomicCAS(address, compare, value); }   \
    inline type atomicCAS_system(type *address, type compare, type value) { return atomicCAS(address, compare, value); }

#define CUDAEMU_ATOMIC_SETS(type)                        \
    CUDAEMU_ATOMIC(atomicMin, type, value < old ? value : old) \
    CUDAEMU_ATOMIC(atomicMax, type, value > old ? value : old) \
    CUDAEMU_ATOMIC(atomicAnd, type, old & value)         \
    CUDAEMU_ATOMIC(atomicOr, type, old | value)          \
    CUDAEMU_ATOMIC(atomicXor, type, old ^ value)

CUDAEMU_ATOMIC(atomicAdd, int, int(unsigned(old) + unsigned(value)))
CUDAEMU_ATOMIC(atomicAdd, unsigned, old + value)
CUDAEMU_ATOMIC(atomicAdd, unsigned long long, old + value)
CUDAEMU_ATOMIC(atomicAdd, float, old + value)
CUDAEMU_ATOMIC(atomicAdd, double, old + value)
CUDAEMU_ATOMIC(atomicSub, int, int(unsigned(old) - unsigned(value)))
CUDAEMU_ATOMIC(atomicSub, unsigned, old - value)
CUDAEMU_ATOMIC(atomicExch, int, value)
CUDAEMU_ATOMIC(atomicExch, unsigned, value)
CUDAEMU_ATOMIC(atomicExch, unsigned long long, value)
CUDAEMU_ATOMIC(atomicExch, float, value)
CUDAEMU_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
CUDAEMU_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
CUDAEMU_ATOMIC_SETS(int)
CUDAEMU_ATOMIC_SETS(unsigned)
CUDAEMU_ATOMIC_SETS(unsigned long long)
CUDAEMU_ATOMIC(atomicMin, long long, value < old ? value : old)
CUDAEMU_ATOMIC(atomicMax, long long, value > old ? value : old)
CUDAEMU_ATOMIC_CAS(int)
CUDAEMU_ATOMIC_CAS(unsigned)
CUDAEMU_ATOMIC_CAS(unsigned short)
CUDAEMU_ATOMIC_CAS(unsigned long long)

#undef CUDAEMU_ATOMIC
#undef CUDAEMU_ATOMIC_CAS
#undef CUDAEMU_ATOMIC_SETS
