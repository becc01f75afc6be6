// int2, uint3, longlong4 ...: a few numbers together, and make_int2() ...
#pragma once
#include "runtime.h"

#define CUDAEMU_VECTOR(name, type)                                                      \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                            \
    inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }         \
    struct alignas(16) name##4 { type x, y, z, w; };                                    \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; }                    \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

struct int3 { int x, y, z; };
struct float3 { float x, y, z; };
struct double3 { double x, y, z; };
struct longlong3 { long long x, y, z; };
struct ulonglong3 { unsigned long long x, y, z; };

CUDAEMU_VECTOR(int, int)
CUDAEMU_VECTOR(uint, unsigned)
CUDAEMU_VECTOR(float, float)
CUDAEMU_VECTOR(double, double)
CUDAEMU_VECTOR(longlong, long long)
CUDAEMU_VECTOR(ulonglong, unsigned long long)
#undef CUDAEMU_VECTOR

struct alignas(4) uchar4 { unsigned char x, y, z, w; };
struct alignas(4) ushort2 { unsigned short x, y; };
struct alignas(8) ushort4 { unsigned short x, y, z, w; };
