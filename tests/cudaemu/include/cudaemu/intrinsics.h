// Bits, casts, hints to the caches, fences and clocks, with CUDA's names.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime.h"

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }

inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
    return reversed;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((uint64_t(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
inline int __mulhi(int x, int y) { return int(int64_t(x) * y >> 32); }
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}

#define CUDAEMU_CAST(name, to, from)                                 \
    inline to name(from value) {                                     \
        static_assert(sizeof(to) == sizeof(from), "same number of bits"); \
        to result;                                                   \
        memcpy(&result, &value, sizeof result);                      \
        return result;                                               \
    }
CUDAEMU_CAST(__float_as_uint, unsigned, float)
CUDAEMU_CAST(__float_as_int, int, float)
CUDAEMU_CAST(__uint_as_float, float, unsigned)
CUDAEMU_CAST(__int_as_float, float, int)
CUDAEMU_CAST(__double_as_longlong, long long, double)
CUDAEMU_CAST(__longlong_as_double, double, long long)
#undef CUDAEMU_CAST

// Loads and stores with a hint to the caches are loads and stores.
#define CUDAEMU_LOAD(name) \
    template <class T>     \
    inline T name(const T *address) { return *address; }
#define CUDAEMU_STORE(name) \
    template <class T>      \
    inline void name(T *address, std::common_type_t<T> value) { *address = value; }
CUDAEMU_LOAD(__ldg)
CUDAEMU_LOAD(__ldca)
CUDAEMU_LOAD(__ldcg)
CUDAEMU_LOAD(__ldcs)
CUDAEMU_LOAD(__ldcv)
CUDAEMU_LOAD(__ldlu)
CUDAEMU_STORE(__stcg)
CUDAEMU_STORE(__stcs)
CUDAEMU_STORE(__stwb)
CUDAEMU_STORE(__stwt)
#undef CUDAEMU_LOAD
#undef CUDAEMU_STORE

// All threads run on one core, in turn: what was written before a fence is seen after it.
inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { cudaemu::let_others_run(); }
[[noreturn]] inline void __trap(CUDAEMU_CALLER) { cudaemu::fail("__trap()", file, line); }

inline long long clock64() { return cudaemu::nanoseconds(); }

// Just CUDA's overloads: other mixtures of types are ambiguous there, too.
#define CUDAEMU_MIN_MAX(result, a_type, b_type)                                       \
    constexpr result min(a_type a, b_type b) { return (result)b < (result)a ? (result)b : (result)a; } \
    constexpr result max(a_type a, b_type b) { return (result)a < (result)b ? (result)b : (result)a; }
#define CUDAEMU_MIN_MAX_OF_BOTH_SIGNS(type)                  \
    CUDAEMU_MIN_MAX(type, type, type)                        \
    CUDAEMU_MIN_MAX(unsigned type, unsigned type, unsigned type) \
    CUDAEMU_MIN_MAX(unsigned type, type, unsigned type)      \
    CUDAEMU_MIN_MAX(unsigned type, unsigned type, type)
CUDAEMU_MIN_MAX_OF_BOTH_SIGNS(int)
CUDAEMU_MIN_MAX_OF_BOTH_SIGNS(long)
CUDAEMU_MIN_MAX_OF_BOTH_SIGNS(long long)
CUDAEMU_MIN_MAX(float, float, float)
CUDAEMU_MIN_MAX(double, double, double)
CUDAEMU_MIN_MAX(double, float, double)
CUDAEMU_MIN_MAX(double, double, float)
#undef CUDAEMU_MIN_MAX
#undef CUDAEMU_MIN_MAX_OF_BOTH_SIGNS

inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long llmin(long long a, long long b) { return a < b ? a : b; }
inline long long llmax(long long a, long long b) { return a > b ? a : b; }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
inline double __dmul_rn(double a, double b) { return a * b; }  // never part of a fused multiply-add
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
