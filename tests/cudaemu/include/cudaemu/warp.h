// Barriers of a block and the functions of a warp, with CUDA's names.
#pragma once
#include <cstring>
#include <type_traits>

#include "runtime.h"

inline void __syncthreads(CUDAEMU_CALLER) { cudaemu::block(cudaemu::Vote::none, false, file, line); }
inline int __syncthreads_count(int predicate, CUDAEMU_CALLER) {
    return cudaemu::block(cudaemu::Vote::count, predicate, file, line);
}
inline int __syncthreads_or(int predicate, CUDAEMU_CALLER) {
    return cudaemu::block(cudaemu::Vote::any, predicate, file, line);
}
inline int __syncthreads_and(int predicate, CUDAEMU_CALLER) {
    return cudaemu::block(cudaemu::Vote::all, predicate, file, line);
}

inline unsigned __activemask() { return cudaemu::live_lanes(); }

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDAEMU_CALLER) {
    cudaemu::warp(cudaemu::Collective::sync, mask, 0, 0, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDAEMU_CALLER) {
    return unsigned(cudaemu::warp(cudaemu::Collective::ballot, mask, predicate != 0, 0, file, line));
}
inline int __any_sync(unsigned mask, int predicate, CUDAEMU_CALLER) {
    return int(cudaemu::warp(cudaemu::Collective::any, mask, predicate != 0, 0, file, line));
}
inline int __all_sync(unsigned mask, int predicate, CUDAEMU_CALLER) {
    return int(cudaemu::warp(cudaemu::Collective::all, mask, predicate != 0, 0, file, line));
}

namespace cudaemu {

template <class T>
inline uint64_t to_bits(T value) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "warps exchange numbers of at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
inline T from_bits(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, const char *file, int line) {
    return from_bits<T>(warp(Collective::shuffle, mask, to_bits(value), source, file, line));
}

}  // namespace cudaemu

// `width` lanes (a power of two) form a group of their own; who would read past its group reads itself.
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDAEMU_CALLER) {
    const unsigned first = cudaemu::lane() & ~(width - 1u);
    return cudaemu::shuffle(mask, value, first + (source & (width - 1u)), file, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDAEMU_CALLER) {
    const unsigned me = cudaemu::lane(), first = me & ~(width - 1u);
    return cudaemu::shuffle(mask, value, me - first >= delta ? me - delta : me, file, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDAEMU_CALLER) {
    const unsigned me = cudaemu::lane(), last = me | (width - 1u);
    return cudaemu::shuffle(mask, value, last - me >= delta ? me + delta : me, file, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, CUDAEMU_CALLER) {
    const unsigned me = cudaemu::lane(), source = me ^ unsigned(flip);
    return cudaemu::shuffle(mask, value, source <= (me | (width - 1u)) ? source : me, file, line);
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, CUDAEMU_CALLER) {
    return unsigned(cudaemu::warp(cudaemu::Collective::match_any, mask, cudaemu::to_bits(value), 0, file, line));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int *all_equal, CUDAEMU_CALLER) {
    const uint64_t bits = cudaemu::to_bits(value);
    const unsigned lanes = unsigned(cudaemu::warp(cudaemu::Collective::match_all, mask, bits, 0, file, line));
    *all_equal = lanes != 0;
    return lanes;
}

// sm_80 has these for int and unsigned only.
#define CUDAEMU_REDUCE(name, type, what)                                                        \
    inline type __reduce_##name##_sync(unsigned mask, type value, CUDAEMU_CALLER) {             \
        return type(cudaemu::warp(cudaemu::Collective::what, mask, uint64_t(value), 0, file, line)); \
    }
CUDAEMU_REDUCE(add, unsigned, add)
CUDAEMU_REDUCE(add, int, add)
CUDAEMU_REDUCE(min, unsigned, min_unsigned)
CUDAEMU_REDUCE(min, int, min_signed)
CUDAEMU_REDUCE(max, unsigned, max_unsigned)
CUDAEMU_REDUCE(max, int, max_signed)
CUDAEMU_REDUCE(and, unsigned, bit_and)
CUDAEMU_REDUCE(or, unsigned, bit_or)
CUDAEMU_REDUCE(xor, unsigned, bit_xor)
#undef CUDAEMU_REDUCE
