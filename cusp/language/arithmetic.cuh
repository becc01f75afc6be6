// What expressions call on a GPU, see terms.py: arithmetic that means the same everywhere. Twins: the functions of
// arithmetic_cpu.py; rules, which wrap around and raise, need none, since numba compiles them as they are.
#include "cusp/kernels/warp.cuh"

typedef i64 Int;
typedef u64 Unsigned;
typedef double Float;
typedef bool Bool;
constexpr Int LOWEST_INT = (Int)(1ull << 63), LARGEST_INT = (Int)(~0ull >> 1);

template <class Yes, class No>
__device__ inline auto select(bool test, Yes yes, No no) { return test ? yes : no; }
template <class A, class B>
__device__ inline auto least(A a, B b) { return a < b ? a : b; }
template <class A, class B>
__device__ inline auto largest(A a, B b) { return a > b ? a : b; }
__device__ inline Int clipped(Int a, Int low, Int high) { return a < low ? low : a > high ? high : a; }
__device__ inline Int from_unsigned(Unsigned a) { return a <= (Unsigned)LARGEST_INT ? (Int)a : LARGEST_INT; }

__device__ inline Int wrapping_add(Int a, Int b) { return (Int)((Unsigned)a + (Unsigned)b); }
__device__ inline Int wrapping_sub(Int a, Int b) { return (Int)((Unsigned)a - (Unsigned)b); }
__device__ inline Int wrapping_mul(Int a, Int b) { return (Int)((Unsigned)a * (Unsigned)b); }
__device__ inline Int wrapping_abs(Int a) { return a < 0 ? wrapping_sub(0, a) : a; }
template <class T>
__device__ inline T shift_left(T a, T b) { return (T)((Unsigned)a << (b & 63)); }
template <class T>
__device__ inline T shift_right(T a, T b) { return a >> (b & 63); }

__device__ inline Int saturating_add(Int a, Int b) {
  Int total = wrapping_add(a, b);
  return ((a ^ total) & (b ^ total)) < 0 ? (b >= 0 ? LARGEST_INT : LOWEST_INT) : total;
}
__device__ inline Int saturating_sub(Int a, Int b) {
  Int total = wrapping_sub(a, b);
  return ((a ^ b) & (a ^ total)) < 0 ? (b < 0 ? LARGEST_INT : LOWEST_INT) : total;
}
__device__ inline Int saturating_mul(Int a, Int b) {
  Int low = wrapping_mul(a, b);
  return __mul64hi(a, b) == low >> 63 ? low : (a < 0) == (b < 0) ? LARGEST_INT : LOWEST_INT;
}
__device__ inline Int saturating_abs(Int a) { return a < 0 ? saturating_sub(0, a) : a; }

__device__ inline Float infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
// A product that is rounded before anything is added to it: a fused multiply-add would round differently.
__device__ inline Float multiply(Float a, Float b) { return __dmul_rn(a, b); }
__device__ inline Float divide(Float a, Float b) { return a / b; }
__device__ inline Int saturating_int(Float a) {
  if (a != a) return 0;
  return a >= 9223372036854775808.0 ? LARGEST_INT : a < -9223372036854775808.0 ? LOWEST_INT : (Int)a;
}
// As processors of the host do it: what does not fit becomes the lowest number.
__device__ inline Int wrapping_int(Float a) {
  return a >= -9223372036854775808.0 && a < 9223372036854775808.0 ? (Int)a : LOWEST_INT;
}

// Rounded down; 0 where b is 0.
__device__ inline Int floor_divide(Int a, Int b) {
  if (b == 0) return 0;
  if (b == -1) return saturating_sub(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
__device__ inline Int floor_modulo(Int a, Int b) {
  if (b == 0 || b == -1) return 0;
  Int rest = a % b;
  return rest + (rest != 0 && (rest < 0) != (b < 0) ? b : 0);
}
__device__ inline Unsigned floor_divide(Unsigned a, Unsigned b) { return b == 0 ? 0 : a / b; }
__device__ inline Unsigned floor_modulo(Unsigned a, Unsigned b) { return b == 0 ? 0 : a % b; }

// The same where a division by zero is an error: ``raised`` says what the first one was; 0: there was none. A division of
// 64 bits takes a GPU some 70 instructions, one of 32 bits 20; most numbers of rules are small.
enum { DIVISION = 1, MODULO = 2, RATIO = 3 };
__device__ inline void raise_if(bool zero, int& raised, int what) { raised = zero && !raised ? what : raised; }
__device__ inline bool small(Unsigned a, Unsigned b) { return b != 0 && ((a | b) >> 32) == 0; }
template <class T>
__device__ inline T floor_divide(int& raised, T a, T b) {
  raise_if(b == 0, raised, DIVISION);
  return small(a, b) ? (T)((unsigned)a / (unsigned)b) : floor_divide(a, b);
}
template <class T>
__device__ inline T floor_modulo(int& raised, T a, T b) {
  raise_if(b == 0, raised, MODULO);
  return small(a, b) ? (T)((unsigned)a % (unsigned)b) : floor_modulo(a, b);
}
__device__ inline Float divide(int& raised, Float a, Float b) {
  raise_if(b == 0, raised, RATIO);
  return divide(a, b);
}
