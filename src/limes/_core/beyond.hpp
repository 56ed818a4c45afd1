// Rows with a number too large for the sums of the core, or with none at all.
#pragma once
#include "core.hpp"
#include "rows.hpp"

namespace limes {
namespace {

// The magnitude of a number as an integer: it grows with the number, and NaN is above all.
inline int32_t magnitude(float value) {
    int32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffff;
}
inline int64_t magnitude(double value) {
    int64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffffffffff;
}

// The largest magnitude of n numbers.
template <class Value>
inline auto largest(const char* from, ptrdiff_t stride, size_t n) {
    using Here = const Anywhere<Value>*;
    decltype(magnitude(Value())) most = 0;
    if (stride == ptrdiff_t(sizeof(Value))) {
        const Here values = reinterpret_cast<Here>(from);
        for (size_t k = 0; k < n; ++k) {
            const auto size = magnitude(values[k].value);
            most = size > most ? size : most;
        }
        return most;
    }
    for (size_t k = 0; k < n; ++k, from += stride) {
        const auto size = magnitude(reinterpret_cast<Here>(from)->value);
        most = size > most ? size : most;
    }
    return most;
}

template <class Value>
inline bool is_within(const Rows& rows, size_t n_features, size_t first, size_t n, Value limit) {
    const ptrdiff_t width = ptrdiff_t(n_features * sizeof(Value));
    if (rows.column_stride == ptrdiff_t(sizeof(Value)) && rows.row_stride == width)
        return largest<Value>(row_start(rows, first), rows.column_stride, n * n_features) <=
               magnitude(limit);
    for (size_t r = first; r < first + n; ++r)
        if (largest<Value>(row_start(rows, r), rows.column_stride, n_features) > magnitude(limit))
            return false;
    return true;
}

template <class Value>
inline size_t find_beyond(const Rows& rows, size_t n_features, size_t first, size_t last,
                          Value limit) {
    constexpr size_t some = 64;  // rows that are looked at together
    for (; first < last; first += some) {
        const size_t n = last - first < some ? last - first : some;
        if (is_within(rows, n_features, first, n, limit)) continue;
        while (is_within(rows, n_features, first, 1, limit)) ++first;
        return first;
    }
    return last;
}

size_t first_beyond(const Rows& rows, size_t n_features, size_t first, size_t last, double limit) {
    if (rows.is_double) return find_beyond<double>(rows, n_features, first, last, limit);
    constexpr double most = __FLT_MAX__;
    return find_beyond<float>(rows, n_features, first, last, float(limit < most ? limit : most));
}

}  // namespace
}  // namespace limes
