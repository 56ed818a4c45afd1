// Tiles of rows as the search reads them: centred, padded, transposed; and the test for rows whose
// numbers are too large for the sums or are not finite.
#pragma once
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// A number at any address. (A template argument would lose the attribute of a typedef.)
template <class Value>
struct __attribute__((packed, may_alias)) Unaligned {
    Value value;
};
typedef float Four __attribute__((vector_size(16), may_alias));
typedef float UnalignedFour __attribute__((vector_size(16), aligned(1), may_alias));

// Start of a row. Strides may be negative, hence the signed product.
inline const char* row_start(const Rows& rows, size_t row) {
    return rows.data + ptrdiff_t(row) * rows.row_stride;
}

template <class Real, class Wide, class Value>
inline void center_values(const char* from, ptrdiff_t stride, size_t n, const Real* center,
                          Real* to) {
    using Pointer = const Unaligned<Value>*;
    if (stride == ptrdiff_t(sizeof(Value))) {
        const Pointer values = reinterpret_cast<Pointer>(from);
        for (size_t k = 0; k < n; ++k) to[k] = Real(Wide(values[k].value) - Wide(center[k]));
    } else {
        for (size_t k = 0; k < n; ++k, from += stride)
            to[k] = Real(Wide(reinterpret_cast<Pointer>(from)->value) - Wide(center[k]));
    }
}

inline void center_values(const Rows& rows, const char* from, size_t n, const float* center,
                          float* to) {
    if (rows.is_double)
        center_values<float, double, double>(from, rows.column_stride, n, center, to);
    else
        center_values<float, float, float>(from, rows.column_stride, n, center, to);
}

inline void center_values(const Rows& rows, const char* from, size_t n, const double* center,
                          double* to) {
    if (rows.is_double)
        center_values<double, double, double>(from, rows.column_stride, n, center, to);
    else
        center_values<double, double, float>(from, rows.column_stride, n, center, to);
}

// Write one centred row, zero-padded.
template <class Real>
inline void center_row(const Model<Real>& model, const Rows& rows, size_t row, Real* to) {
    center_values(rows, row_start(rows, row), model.n_features, model.center, to);
    for (size_t k = model.n_features; k < model.n_padded; ++k) to[k] = 0;
}

// Copy the first `used` of `size` numbers; the rest is zero.
template <class Real>
inline void fill_tile(const Real* from, size_t used, size_t size, Real* to) {
    __builtin_memcpy(to, from, used * sizeof(Real));
    __builtin_memset(to + used, 0, (size - used) * sizeof(Real));
}

// Write a tile of centred rows; rows from n on are zero.
template <class Real>
inline void center_tile(const Model<Real>& model, const Rows& rows, size_t first, size_t n,
                        Real* tile) {
    for (size_t r = 0; r < n; ++r) center_row(model, rows, first + r, tile + r * model.n_padded);
    const size_t empty = (tile_rows<Real> - n) * model.n_padded;
    __builtin_memset(tile + n * model.n_padded, 0, empty * sizeof(Real));
}

inline void transpose_four(Four& a, Four& b, Four& c, Four& d) {
    const Four ac = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const Four ac_end = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const Four bd = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    const Four bd_end = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ac, bd, 0, 4, 1, 5);
    b = __builtin_shufflevector(ac, bd, 2, 6, 3, 7);
    c = __builtin_shufflevector(ac_end, bd_end, 0, 4, 1, 5);
    d = __builtin_shufflevector(ac_end, bd_end, 2, 6, 3, 7);
}

// Transpose four features of four rows, minus the centre, into four lines of a panel.
inline void transpose_square(const char* from, ptrdiff_t stride, Four center, float* panel) {
    Four a = *reinterpret_cast<const UnalignedFour*>(from) - center;
    Four b = *reinterpret_cast<const UnalignedFour*>(from + stride) - center;
    Four c = *reinterpret_cast<const UnalignedFour*>(from + 2 * stride) - center;
    Four d = *reinterpret_cast<const UnalignedFour*>(from + 3 * stride) - center;
    transpose_four(a, b, c, d);
    *reinterpret_cast<UnalignedFour*>(panel) = a;
    *reinterpret_cast<UnalignedFour*>(panel + tile_rows<float>) = b;
    *reinterpret_cast<UnalignedFour*>(panel + 2 * tile_rows<float>) = c;
    *reinterpret_cast<UnalignedFour*>(panel + 3 * tile_rows<float>) = d;
}

// Features that are transposed for all rows of a tile before the next ones: whole cache lines of
// the rows, and few enough that their part of the panel stays in the first-level cache.
constexpr size_t features_per_pass = 64;

// Transpose a full tile of contiguous float32 rows, minus the centre; n is a multiple of four.
inline void transpose_squares(const char* from, ptrdiff_t stride, size_t n, const float* center,
                              float* panel) {
    constexpr size_t height = tile_rows<float>;
    for (size_t first = 0; first < n; first += features_per_pass)
        for (size_t r = 0; r < height; r += 4)
            for (size_t k = first; k < n && k < first + features_per_pass; k += 4)
                transpose_square(from + ptrdiff_t(r) * stride + k * sizeof(float), stride,
                                 *reinterpret_cast<const UnalignedFour*>(center + k),
                                 panel + k * height + r);
}

// The same for any number of features, without reading past the last one.
inline void transpose_rows(const char* from, ptrdiff_t stride, size_t n, const float* center,
                           float* panel) {
    constexpr size_t height = tile_rows<float>;
    const size_t whole = n / 4 * 4;
    transpose_squares(from, stride, whole, center, panel);
    for (size_t k = whole; k < n; ++k)
        for (size_t r = 0; r < height; ++r) {
            const char* value = from + ptrdiff_t(r) * stride + k * sizeof(float);
            panel[k * height + r] =
                reinterpret_cast<const Unaligned<float>*>(value)->value - center[k];
        }
}

// Transpose centred rows: panel[feature][row of the tile].
inline void transpose_tile(const float* tile, size_t width, size_t n, float* panel) {
    const ptrdiff_t stride = ptrdiff_t(width * sizeof(float));
    constexpr size_t height = tile_rows<float>;
    const Four zero = {};
    const char* from = reinterpret_cast<const char*>(tile);
    for (size_t first = 0; first < n; first += features_per_pass)
        for (size_t r = 0; r < height; r += 4)
            for (size_t k = first; k < n && k < first + features_per_pass; k += 4)
                transpose_square(from + ptrdiff_t(r) * stride + k * sizeof(float), stride, zero,
                                 panel + k * height + r);
}

inline void transpose_tile(const double* tile, size_t width, size_t n, double* panel) {
    constexpr size_t height = tile_rows<double>;
    for (size_t k = 0; k < n; ++k)
        for (size_t r = 0; r < height; ++r) panel[k * height + r] = tile[r * width + k];
}

// The magnitude of a number as an integer: monotonic in the number, and largest for NaN.
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
inline auto largest_magnitude(const char* from, ptrdiff_t stride, size_t n) {
    using Pointer = const Unaligned<Value>*;
    decltype(magnitude(Value())) most = 0;
    if (stride == ptrdiff_t(sizeof(Value))) {
        const Pointer values = reinterpret_cast<Pointer>(from);
        for (size_t k = 0; k < n; ++k) {
            const auto size = magnitude(values[k].value);
            most = size > most ? size : most;
        }
        return most;
    }
    for (size_t k = 0; k < n; ++k, from += stride) {
        const auto size = magnitude(reinterpret_cast<Pointer>(from)->value);
        most = size > most ? size : most;
    }
    return most;
}

template <class Value>
inline bool is_in_range(const Rows& rows, size_t n_features, size_t first, size_t n, Value limit) {
    const ptrdiff_t width = ptrdiff_t(n_features * sizeof(Value));
    if (rows.column_stride == ptrdiff_t(sizeof(Value)) && rows.row_stride == width)
        return largest_magnitude<Value>(row_start(rows, first), rows.column_stride,
                                        n * n_features) <= magnitude(limit);
    for (size_t r = first; r < first + n; ++r)
        if (largest_magnitude<Value>(row_start(rows, r), rows.column_stride, n_features) >
            magnitude(limit))
            return false;
    return true;
}

template <class Value>
inline size_t first_out_of_range(const Rows& rows, size_t n_features, size_t first, size_t last,
                                 Value limit) {
    constexpr size_t some = 64;  // rows that are tested together
    for (; first < last; first += some) {
        const size_t n = last - first < some ? last - first : some;
        if (is_in_range(rows, n_features, first, n, limit)) continue;
        while (is_in_range(rows, n_features, first, 1, limit)) ++first;
        return first;
    }
    return last;
}

inline size_t first_row_out_of_range(const Rows& rows, size_t n_features, size_t first, size_t last,
                                     double limit) {
    if (rows.is_double) return first_out_of_range<double>(rows, n_features, first, last, limit);
    constexpr double most = __FLT_MAX__;
    return first_out_of_range<float>(rows, n_features, first, last,
                                     float(limit < most ? limit : most));
}

template <class Value>
inline void convert_values(const char* from, ptrdiff_t stride, size_t n, float* to, size_t step) {
    using Pointer = const Unaligned<Value>*;
    if (stride == ptrdiff_t(sizeof(Value)) && step == 1) {
        const Pointer values = reinterpret_cast<Pointer>(from);
        for (size_t k = 0; k < n; ++k) to[k] = float(values[k].value);
    } else if (stride == ptrdiff_t(sizeof(Value))) {
        const Pointer values = reinterpret_cast<Pointer>(from);
        for (size_t k = 0; k < n; ++k) to[k * step] = float(values[k].value);
    } else {
        for (size_t k = 0; k < n; ++k, from += stride)
            to[k * step] = float(reinterpret_cast<Pointer>(from)->value);
    }
}

// Along whichever axis is contiguous: the bands of an image are columns.
template <class Value>
inline void convert_rows(const IntegerRows& rows, size_t n_features, size_t first, size_t last,
                         float* to) {
    const char* from = rows.data + ptrdiff_t(first) * rows.row_stride;
    const size_t n = last - first;
    constexpr ptrdiff_t size = sizeof(Value);
    if (rows.column_stride == size && rows.row_stride == ptrdiff_t(n_features) * size)
        return convert_values<Value>(from, size, n * n_features, to, 1);
    if (rows.row_stride == size)
        for (size_t k = 0; k < n_features; ++k)
            convert_values<Value>(from + ptrdiff_t(k) * rows.column_stride, size, n, to + k,
                                  n_features);
    else
        for (size_t r = 0; r < n; ++r)
            convert_values<Value>(from + ptrdiff_t(r) * rows.row_stride, rows.column_stride,
                                  n_features, to + r * n_features, 1);
}

inline void convert_rows(const IntegerRows& rows, size_t n_features, size_t first, size_t last,
                         float* to) {
    switch (rows.type) {
        case IntegerType::uint8: return convert_rows<uint8_t>(rows, n_features, first, last, to);
        case IntegerType::int16: return convert_rows<int16_t>(rows, n_features, first, last, to);
        case IntegerType::uint16: return convert_rows<uint16_t>(rows, n_features, first, last, to);
    }
}

}  // namespace
}  // namespace limes
