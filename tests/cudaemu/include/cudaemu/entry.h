// The table of a module's kernels: for each its parameters, so that a launch can be checked, and a way to call it.
#pragma once
#include <type_traits>
#include <utility>

#include "runtime.h"

namespace cudaemu {

// kind: i(nteger) u(nsigned) f(loat) b(ool) s(truct) p(ointer) v(oid). Python reads this as four bytes and a number.
struct Parameter {
    char kind, pointee;
    uint16_t pointee_size;
    uint32_t size;
};

template <class T>
constexpr char kind_of() {
    if (std::is_void_v<T>) return 'v';
    if (std::is_same_v<std::remove_cv_t<T>, bool>) return 'b';
    if (std::is_floating_point_v<T>) return 'f';
    if constexpr (std::is_enum_v<T>) return kind_of<std::underlying_type_t<T>>();
    if (std::is_integral_v<T>) return std::is_signed_v<T> ? 'i' : 'u';
    return std::is_pointer_v<T> ? 'p' : 's';
}

template <class T>
constexpr size_t size_of() {
    if constexpr (std::is_void_v<T>) return 0;
    else return sizeof(T);
}

template <class T>
constexpr Parameter parameter() {
    using Pointee = std::remove_pointer_t<T>;
    if constexpr (std::is_pointer_v<T>) return {'p', kind_of<Pointee>(), uint16_t(size_of<Pointee>()), sizeof(T)};
    else return {kind_of<T>(), ' ', 0, uint32_t(sizeof(T))};
}

struct Entry {
    const char *name;
    uint32_t num_parameters;
    uint32_t max_threads;  // of __launch_bounds__; 0: none
    const Parameter *parameters;
    void (*call)(void **arguments);
};

template <auto kernel, class... T>
struct Kernel {
    static constexpr Parameter parameters[sizeof...(T) + 1] = {parameter<T>()...};

    // Arguments are in the host's memory, which is not checked.
    CUDAEMU_UNWATCHED static void call(void **arguments) {
        call_with(arguments, std::index_sequence_for<T...>());
    }

    template <size_t... i>
    CUDAEMU_UNWATCHED static void call_with([[maybe_unused]] void **arguments, std::index_sequence<i...>) {
        kernel(*static_cast<std::remove_cv_t<T> *>(arguments[i])...);
    }
};

template <auto kernel, class... T>
constexpr Entry make_entry(const char *name, unsigned max_threads, void (*)(T...)) {
    return {name, sizeof...(T), max_threads, Kernel<kernel, T...>::parameters, Kernel<kernel, T...>::call};
}

template <auto kernel>
constexpr Entry entry(const char *name, unsigned max_threads = 0) {
    return make_entry<kernel>(name, max_threads, kernel);
}

}  // namespace cudaemu
