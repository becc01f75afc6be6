// CUDA C++ as g++ can compile it. Included before each kernel source, whose text is left as it is but for variables
// declared __shared__ (see stand_in/cupy/_translate.py). All threads of a launch run on one core, in turn.
#pragma once
#include <cassert>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cudaemu/runtime.h"
#include "cudaemu/atomics.h"
#include "cudaemu/entry.h"
#include "cudaemu/intrinsics.h"
#include "cudaemu/vectors.h"
#include "cudaemu/warp.h"

#define CUDAEMU 1
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_RTC__ 1

// After the headers above, some of which use these words themselves.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) \
    ((condition) ? (void)0 : cudaemu::fail("assertion failed: " #condition, __FILE__, __LINE__))
#endif
