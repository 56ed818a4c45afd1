// Vectors, matrix products and the sorting network of the trainer.
//
// Never included together with simd.hpp: the trainer is compiled with other floating-point flags
// and has vector types of its own.
#pragma once
#include <math.h>
#include <string.h>

#include "types.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace limes {
namespace {

// Floats of a vector; shape of a tile of search scores, points x vectors of rows.
#if defined(__AVX512F__)
constexpr size_t width = 16, tile_points = 8;
#elif defined(__AVX2__)
constexpr size_t width = 8, tile_points = 4;
#else
constexpr size_t width = 4, tile_points = 4;
#endif
constexpr size_t block_vectors = 2, block_rows = block_vectors * width;

// Pairs, or terms, of a tile of local functions with so many vectors of outputs.
constexpr size_t max_local_tile = 8;
constexpr size_t local_tile(size_t n_vectors) {
    return width < 16 && n_vectors > 1 ? max_local_tile / 2 : max_local_tile;
}

template <size_t n>
struct Lanes {
    typedef float Floats __attribute__((vector_size(n * sizeof(float))));
    typedef int32_t Integers __attribute__((vector_size(n * sizeof(int32_t))));
};
template <size_t n>
using Floats = typename Lanes<n>::Floats;
template <size_t n>
using Integers = typename Lanes<n>::Integers;

template <size_t n>
inline Floats<n> load(const float* from) {
    Floats<n> vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}
template <size_t n>
inline void store(float* to, Floats<n> vector) {
    memcpy(to, &vector, sizeof vector);
}
template <size_t n>
inline Floats<n> broadcast(float x) {
    return Floats<n>{} + x;
}

// Lane i is lane i ^ flip of `b` where i & bit, of `a` elsewhere.
template <size_t n, size_t bit, size_t flip>
inline Floats<n> mix(Floats<n> a, Floats<n> b) {
#if defined(__clang__)
    Floats<n> mixed{};
    for (size_t i = 0; i < n; ++i) mixed[i] = i & bit ? b[i ^ flip] : a[i ^ flip];
    return mixed;
#else
    Integers<n> from{};
    for (size_t i = 0; i < n; ++i) from[i] = int32_t((i ^ flip) + (i & bit ? n : 0));
    return __builtin_shuffle(a, b, from);
#endif
}

// Lane i is the sum of the lanes of vectors[i]; the n vectors are overwritten.
template <size_t n, size_t bit = 1>
inline Floats<n> sums_of(Floats<n>* vectors) {
    if constexpr (bit == n) {
        return vectors[0];
    } else {
        for (size_t i = 0; i < n / bit / 2; ++i) {
            const Floats<n> a = vectors[2 * i], b = vectors[2 * i + 1];
            vectors[i] = mix<n, bit, 0>(a, b) + mix<n, bit, bit>(a, b);
        }
        return sums_of<n, 2 * bit>(vectors);
    }
}

// Exchange lane j of vectors[i] with lane i of vectors[j], for n vectors.
template <size_t n, size_t bit = 1>
inline void transpose(Floats<n>* vectors) {
    if constexpr (bit < n) {
        for (size_t i = 0; i < n; ++i) {
            if (i & bit) continue;
            const Floats<n> a = vectors[i], b = vectors[i + bit];
            vectors[i] = mix<n, bit, 0>(a, mix<n, 0, bit>(b, b));
            vectors[i + bit] = mix<n, bit, 0>(mix<n, 0, bit>(a, a), b);
        }
        transpose<n, 2 * bit>(vectors);
    }
}

// Every lane is the sum, or the maximum, of all.
template <size_t n, size_t bit = 1>
inline Floats<n> sum_of(Floats<n> a) {
    if constexpr (bit < n) return sum_of<n, 2 * bit>(a + mix<n, 0, bit>(a, a));
    return a;
}
template <size_t n, size_t bit = 1>
inline Floats<n> max_of(Floats<n> a) {
    if constexpr (bit < n) {
        const Floats<n> b = mix<n, 0, bit>(a, a);
        return max_of<n, 2 * bit>(a > b ? a : b);
    }
    return a;
}

// exp(x) of numbers that are not above zero, to within 2^-21; 2^-126 below -87, and for a NaN.
template <size_t n>
inline Floats<n> exponential(Floats<n> x) {
    const Floats<n> scaled = x * 1.44269504f, lowest = broadcast<n>(-126.0f);
    const Floats<n> y = scaled > lowest ? scaled : lowest;
    const Integers<n> whole = __builtin_convertvector(y - 0.5f, Integers<n>);  // towards zero
    const Floats<n> s = y - __builtin_convertvector(whole, Floats<n>);
    // 2^s: the polynomial of degree 5 with the least relative error on [-1/2, 1/2].
    constexpr float coefficients[] = {0.0096755413f, 0.055507133f, 0.2402212f, 0.69314697f,
                                      1.0000001f};
    Floats<n> sum = broadcast<n>(0.0013276472f);
    for (float coefficient : coefficients) sum = sum * s + coefficient;
    return Floats<n>(Integers<n>(sum) + whole * (1 << 23));
}

// 1 / sqrt(x) of positive numbers, to within 5e-6: a first guess from the exponent and two steps of
// Newton's method. The same on every processor, unlike its own approximations.
template <size_t n>
inline Floats<n> inverse_root(Floats<n> x) {
    Floats<n> y = Floats<n>(0x5f375a86 - (Integers<n>(x) >> 1));
    const Floats<n> half = 0.5f * x;
    y *= 1.5f - half * (y * y);
    return y * (1.5f - half * (y * y));
}

// ---- Products of rows with functions; all lengths are multiples of the width ----

// out[row][function] = rows[row] . functions[function] for n_rows x n_functions of a tile, whose
// other pointers repeat the first.
template <size_t n_tile, size_t n_columns>
inline void multiply_tile(const float* rows, size_t row_stride, size_t n_rows,
                          const float* functions, size_t function_stride, size_t n_functions,
                          size_t n_terms, float* out, size_t out_stride) {
    const float *row[n_tile], *function[n_columns];
    for (size_t r = 0; r < n_tile; ++r) row[r] = rows + (r < n_rows ? r : 0) * row_stride;
    for (size_t c = 0; c < n_columns; ++c)
        function[c] = functions + (c < n_functions ? c : 0) * function_stride;
    // The first terms start the sums: setting them to zero would cost as much.
    constexpr size_t n_sums = n_tile * n_columns, n_padded = round_up(n_sums, width);
    Floats<width> sums[n_padded];
    for (size_t s = n_sums; s < n_padded; ++s) sums[s] = Floats<width>{};
    for (size_t r = 0; r < n_tile; ++r)
        for (size_t c = 0; c < n_columns; ++c)
            sums[r * n_columns + c] = load<width>(row[r]) * load<width>(function[c]);
    for (size_t k = width; k < n_terms; k += width) {
        Floats<width> column[n_columns];
        for (size_t c = 0; c < n_columns; ++c) column[c] = load<width>(function[c] + k);
        for (size_t r = 0; r < n_tile; ++r) {
            const Floats<width> terms = load<width>(row[r] + k);
            for (size_t c = 0; c < n_columns; ++c) sums[r * n_columns + c] += terms * column[c];
        }
    }
    float totals[n_padded];
    for (size_t s = 0; s < n_padded; s += width) store<width>(totals + s, sums_of<width>(sums + s));
    for (size_t r = 0; r < n_tile && r < n_rows; ++r)
        for (size_t c = 0; c < n_columns && c < n_functions; ++c)
            out[r * out_stride + c] = totals[r * n_columns + c];
}

template <size_t n_tile, size_t n_columns>
inline void multiply_all(const float* rows, size_t row_stride, size_t n_rows,
                         const float* functions, size_t function_stride, size_t n_functions,
                         size_t n_terms, float* out, size_t out_stride) {
    for (size_t r = 0; r < n_rows; r += n_tile)
        for (size_t c = 0; c < n_functions; c += n_columns)
            multiply_tile<n_tile, n_columns>(
                rows + r * row_stride, row_stride, n_rows - r, functions + c * function_stride,
                function_stride, n_functions - c, n_terms, out + r * out_stride + c, out_stride);
}

inline void multiply(const float* rows, size_t row_stride, size_t n_rows, const float* functions,
                     size_t function_stride, size_t n_functions, size_t n_terms, float* out,
                     size_t out_stride) {
    constexpr size_t most = width == 16 ? 4 : width == 8 ? 3 : 2;
    const auto run = n_functions == 1   ? multiply_all<width, 1>
                     : n_functions == 2 ? multiply_all<width / 2, 2>
                                        : multiply_all<4, most>;
    run(rows, row_stride, n_rows, functions, function_stride, n_functions, n_terms, out,
        out_stride);
}

// update(function, term, g) with a vector g of the sum over rows of
// factors[row][function] * rows[row][term].
template <size_t n_columns, size_t n_vectors, class Update>
inline void multiply_back_tile(const float* factors, size_t factor_stride, size_t n_rows,
                               size_t function, size_t n_functions, const float* rows,
                               size_t row_stride, size_t term, const Update& update) {
    size_t column[n_columns];
    for (size_t c = 0; c < n_columns; ++c)
        column[c] = function + c < n_functions ? function + c : function;
    Floats<width> sums[n_columns][n_vectors];
    for (size_t c = 0; c < n_columns; ++c)
        for (size_t v = 0; v < n_vectors; ++v) sums[c][v] = Floats<width>{};
    for (size_t r = 0; r < n_rows; ++r) {
        const float *factor = factors + r * factor_stride, *row = rows + r * row_stride + term;
        Floats<width> terms[n_vectors];
        for (size_t v = 0; v < n_vectors; ++v) terms[v] = load<width>(row + v * width);
        for (size_t c = 0; c < n_columns; ++c)
            for (size_t v = 0; v < n_vectors; ++v) sums[c][v] += factor[column[c]] * terms[v];
    }
#pragma GCC unroll 6  // keeps the sums in registers
    for (size_t c = 0; c < n_columns; ++c)
#pragma GCC unroll 4
        for (size_t v = 0; v < n_vectors; ++v)
            if (function + c < n_functions) update(function + c, term + v * width, sums[c][v]);
}

template <size_t n_columns, size_t n_vectors, class Update>
inline void multiply_back_all(const float* factors, size_t factor_stride, size_t n_rows,
                              size_t n_functions, const float* rows, size_t row_stride,
                              size_t n_terms, const Update& update) {
    size_t term = 0;
    for (; term + n_vectors * width <= n_terms; term += n_vectors * width)
        for (size_t c = 0; c < n_functions; c += n_columns)
            multiply_back_tile<n_columns, n_vectors>(factors, factor_stride, n_rows, c, n_functions,
                                                     rows, row_stride, term, update);
    for (; term < n_terms; term += width)
        for (size_t c = 0; c < n_functions; c += n_columns)
            multiply_back_tile<n_columns, 1>(factors, factor_stride, n_rows, c, n_functions, rows,
                                             row_stride, term, update);
}

template <class Update>
inline void multiply_back(const float* factors, size_t factor_stride, size_t n_rows,
                          size_t n_functions, const float* rows, size_t row_stride, size_t n_terms,
                          const Update& update) {
    // Six functions fill the registers of AVX2, but a remainder of four costs less.
    constexpr size_t most = width == 8 ? 6 : 4, n_vectors = width == 16 ? 4 : 2;
    if (n_functions == 1)
        multiply_back_all<1, 4>(factors, factor_stride, n_rows, n_functions, rows, row_stride,
                                n_terms, update);
    else if (round_up(n_functions, most) <= round_up(n_functions, 4))
        multiply_back_all<most, n_vectors>(factors, factor_stride, n_rows, n_functions, rows,
                                           row_stride, n_terms, update);
    else
        multiply_back_all<4, n_vectors>(factors, factor_stride, n_rows, n_functions, rows,
                                        row_stride, n_terms, update);
}

// ---- The lowest keys of each lane ----

constexpr size_t n_sorted = 8;  // keys that stay in registers

#if defined(__AVX512F__)
inline Integers<width> min(Integers<width> a, Integers<width> b) {
    return Integers<width>(_mm512_min_epi32(__m512i(a), __m512i(b)));
}
inline Integers<width> max(Integers<width> a, Integers<width> b) {
    return Integers<width>(_mm512_max_epi32(__m512i(a), __m512i(b)));
}
#elif defined(__AVX2__)
inline Integers<width> min(Integers<width> a, Integers<width> b) {
    return Integers<width>(_mm256_min_epi32(__m256i(a), __m256i(b)));
}
inline Integers<width> max(Integers<width> a, Integers<width> b) {
    return Integers<width>(_mm256_max_epi32(__m256i(a), __m256i(b)));
}
#else
inline Integers<width> min(Integers<width> a, Integers<width> b) { return a < b ? a : b; }
inline Integers<width> max(Integers<width> a, Integers<width> b) { return a > b ? a : b; }
#endif

// Exchange keys[a] and keys[b] where they are out of order, for each pair a, b in turn.
template <size_t a, size_t b, size_t... more>
inline void exchange(Integers<width>* keys) {
    const Integers<width> low = min(keys[a], keys[b]);
    keys[b] = max(keys[a], keys[b]);
    keys[a] = low;
    if constexpr (sizeof...(more) > 0) exchange<more...>(keys);
}

// Replace the sorted keys by the lowest of them and as many others, sorted (Batcher's networks).
inline void keep_lowest(Integers<width>* sorted, Integers<width>* others) {
    exchange<0, 2, 1, 3, 4, 6, 5, 7, 0, 4, 1, 5, 2, 6, 3, 7, 0, 1, 2, 3, 4, 5, 6, 7>(others);
    exchange<2, 4, 3, 5, 1, 4, 3, 6, 1, 2, 3, 4, 5, 6>(others);
    for (size_t j = 0; j < n_sorted; ++j) sorted[j] = min(sorted[j], others[n_sorted - 1 - j]);
    exchange<0, 4, 1, 5, 2, 6, 3, 7, 0, 2, 1, 3, 4, 6, 5, 7, 0, 1, 2, 3, 4, 5, 6, 7>(sorted);
}

}  // namespace
}  // namespace limes
