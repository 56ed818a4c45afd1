// From rows as Python holds them to what the search reads: centred, padded, transposed.
#pragma once
#include "core.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// A number at any address. (A template argument would lose the attribute of a typedef.)
template <class Value>
struct __attribute__((packed, may_alias)) Anywhere {
    Value value;
};
typedef float Four __attribute__((vector_size(16), may_alias));
typedef float LooseFour __attribute__((vector_size(16), aligned(1), may_alias));

// Where one row begins. Strides may be negative: the product is taken as a signed number.
inline const char* row_start(const Rows& rows, size_t row) {
    return rows.data + ptrdiff_t(row) * rows.row_stride;
}

template <class Real, class Wide, class Value>
inline void center_values(const char* from, ptrdiff_t stride, size_t n, const Real* center,
                          Real* to) {
    using Here = const Anywhere<Value>*;
    if (stride == ptrdiff_t(sizeof(Value))) {
        const Here values = reinterpret_cast<Here>(from);
        for (size_t k = 0; k < n; ++k) to[k] = Real(Wide(values[k].value) - Wide(center[k]));
    } else {
        for (size_t k = 0; k < n; ++k, from += stride)
            to[k] = Real(Wide(reinterpret_cast<Here>(from)->value) - Wide(center[k]));
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

// Write one centred row, zero behind its last feature.
template <class Real>
inline void center_row(const Model<Real>& model, const Rows& rows, size_t row, Real* to) {
    center_values(rows, row_start(rows, row), model.n_features, model.center, to);
    for (size_t k = model.n_features; k < model.n_padded; ++k) to[k] = 0;
}

// Copy the first `used` of `size` numbers, and zeros behind them.
template <class Real>
inline void fill_tile(const Real* from, size_t used, size_t size, Real* to) {
    __builtin_memcpy(to, from, used * sizeof(Real));
    __builtin_memset(to + used, 0, (size - used) * sizeof(Real));
}

// Write a tile of centred rows, zero behind the last row.
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

// Turn four features of four rows, less the centre, into four lines of a panel.
inline void transpose_square(const char* from, ptrdiff_t stride, Four center, float* panel) {
    Four a = *reinterpret_cast<const LooseFour*>(from) - center;
    Four b = *reinterpret_cast<const LooseFour*>(from + stride) - center;
    Four c = *reinterpret_cast<const LooseFour*>(from + 2 * stride) - center;
    Four d = *reinterpret_cast<const LooseFour*>(from + 3 * stride) - center;
    transpose_four(a, b, c, d);
    *reinterpret_cast<LooseFour*>(panel) = a;
    *reinterpret_cast<LooseFour*>(panel + tile_rows<float>) = b;
    *reinterpret_cast<LooseFour*>(panel + 2 * tile_rows<float>) = c;
    *reinterpret_cast<LooseFour*>(panel + 3 * tile_rows<float>) = d;
}

// Features that are transposed for all rows of a tile before the next ones: whole cache lines of
// the rows, and few enough that their part of the panel stays in the first-level cache.
constexpr size_t stretch = 64;

// Lay a whole tile of contiguous float32 rows out by feature, less the centre: whole squares.
inline void transpose_squares(const char* from, ptrdiff_t stride, size_t n, const float* center,
                              float* panel) {
    constexpr size_t height = tile_rows<float>;
    for (size_t first = 0; first < n; first += stretch)
        for (size_t r = 0; r < height; r += 4)
            for (size_t k = first; k < n && k < first + stretch; k += 4)
                transpose_square(from + ptrdiff_t(r) * stride + k * sizeof(float), stride,
                                 *reinterpret_cast<const LooseFour*>(center + k),
                                 panel + k * height + r);
}

// The same, for any number of features, without reading behind the last one.
inline void transpose_rows(const char* from, ptrdiff_t stride, size_t n, const float* center,
                           float* panel) {
    constexpr size_t height = tile_rows<float>;
    const size_t whole = n / 4 * 4;
    transpose_squares(from, stride, whole, center, panel);
    for (size_t k = whole; k < n; ++k)
        for (size_t r = 0; r < height; ++r) {
            const char* value = from + ptrdiff_t(r) * stride + k * sizeof(float);
            panel[k * height + r] =
                reinterpret_cast<const Anywhere<float>*>(value)->value - center[k];
        }
}

// Lay centred rows out by feature: panel[feature][row of the tile].
inline void transpose_tile(const float* tile, size_t width, size_t n, float* panel) {
    const ptrdiff_t stride = ptrdiff_t(width * sizeof(float));
    constexpr size_t height = tile_rows<float>;
    const Four zero = {};
    const char* from = reinterpret_cast<const char*>(tile);
    for (size_t first = 0; first < n; first += stretch)
        for (size_t r = 0; r < height; r += 4)
            for (size_t k = first; k < n && k < first + stretch; k += 4)
                transpose_square(from + ptrdiff_t(r) * stride + k * sizeof(float), stride, zero,
                                 panel + k * height + r);
}

inline void transpose_tile(const double* tile, size_t width, size_t n, double* panel) {
    constexpr size_t height = tile_rows<double>;
    for (size_t k = 0; k < n; ++k)
        for (size_t r = 0; r < height; ++r) panel[k * height + r] = tile[r * width + k];
}

}  // namespace
}  // namespace limes
