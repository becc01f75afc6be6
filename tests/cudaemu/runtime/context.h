// A second stack on the same thread, and the switch between two: 14 instructions on x86-64, ucontext elsewhere.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

// Of the address sanitizer, where it is in the process.
extern "C" void __asan_poison_memory_region(const volatile void *, size_t) __attribute__((weak));
extern "C" void __asan_unpoison_memory_region(const volatile void *, size_t) __attribute__((weak));

namespace cudaemu {

// From now on a sanitized kernel may not, or may again, touch these bytes.
inline void forbid(void *begin, size_t bytes) {
    if (__asan_poison_memory_region) __asan_poison_memory_region(begin, bytes);
}
inline void allow(void *begin, size_t bytes) {
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(begin, bytes);
}

constexpr size_t stack_bytes = 128 << 10;
constexpr size_t guard_bytes = 4 << 10;  // below each stack: who overflows it gets a fault

// Address space only: a page becomes memory when it is touched. `guard` bytes at the low end cannot be.
inline char *reserve(size_t bytes, size_t guard = 0) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (guard) mprotect(memory, guard, PROT_NONE);
    return static_cast<char *>(memory);
}

}  // namespace cudaemu

#ifdef __x86_64__

extern "C" void cudaemu_switch(void **save, void *load);
asm(R"(
    .text
    .type cudaemu_switch, @function
cudaemu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cudaemu_switch, .-cudaemu_switch
)");

namespace cudaemu {

struct Context {
    void *stack_pointer = nullptr;

    // The next switch to this context calls `function`, which never returns, on the stack that ends at `top`.
    void prepare(char *top, void (*function)()) {
        void **frame = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
        *--frame = nullptr;  // where a return address would be: keeps the stack aligned
        *--frame = reinterpret_cast<void *>(function);
        for (int saved = 0; saved < 6; ++saved) *--frame = nullptr;
        stack_pointer = frame;
    }
};

inline void switch_context(Context &from, Context &to) { cudaemu_switch(&from.stack_pointer, to.stack_pointer); }

}  // namespace cudaemu

#else
#include <ucontext.h>

namespace cudaemu {

struct Context {
    ucontext_t state;

    void prepare(char *top, void (*function)()) {
        getcontext(&state);
        state.uc_stack.ss_sp = top - (stack_bytes - guard_bytes);
        state.uc_stack.ss_size = stack_bytes - guard_bytes;
        state.uc_link = nullptr;
        makecontext(&state, function, 0);
    }
};

inline void switch_context(Context &from, Context &to) { swapcontext(&from.state, &to.state); }

}  // namespace cudaemu

#endif
