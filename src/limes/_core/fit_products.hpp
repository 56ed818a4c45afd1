// The two matrix products of a fit: rows with columns, and the gradient of the columns.
#pragma once
#include "fit_room.hpp"

namespace limes {
namespace {

typedef float Vector __attribute__((vector_size(width * sizeof(float)), aligned(4), may_alias));

inline Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
inline void store(float* to, Vector vector) { *reinterpret_cast<Vector*>(to) = vector; }

inline float sum_of(Vector a) {
    float sum = 0;
    for (size_t i = 0; i < width; ++i) sum += a[i];
    return sum;
}

inline float least_of(Vector a) {
    float least = a[0];
    for (size_t i = 1; i < width; ++i) least = a[i] < least ? a[i] : least;
    return least;
}

inline float dot(const float* a, const float* b, size_t n) {
    Vector even = {}, odd = {};
    size_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + width) * load(b + i + width);
    }
    for (; i + width <= n; i += width) even += load(a + i) * load(b + i);
    float sum = sum_of(even + odd);
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

inline void add(float* to, const float* from, float scale, size_t n) {
    size_t i = 0;
    for (; i + width <= n; i += width) store(to + i, load(to + i) + scale * load(from + i));
    for (; i < n; ++i) to[i] += scale * from[i];
}

// A tile of sums, small enough for the registers.
struct Tile {
    Vector sums[abreast][vectors];

    inline void start(const float* from) {
        for (size_t r = 0; r < abreast; ++r)
            for (size_t v = 0; v < vectors; ++v) sums[r][v] = from ? load(from + v * width) : Vector{};
    }
    // Add the product of one number of each row with the same columns.
    inline void add(const float (&factors)[abreast], const float* columns) {
        Vector column[vectors];
        for (size_t v = 0; v < vectors; ++v) column[v] = load(columns + v * width);
        for (size_t r = 0; r < abreast; ++r)
            for (size_t v = 0; v < vectors; ++v) sums[r][v] += factors[r] * column[v];
    }
};

// out[row][column] = start[column] + sum over terms of row[term] panel[term][column], for rows that
// lie `stride` apart; `start` may be null. Fewer rows than abreast repeat the first.
inline void multiply(const float* rows, size_t stride, size_t n_rows, size_t n_terms,
                     const float* panel, size_t n_columns, const float* start, float* out) {
    const float* row[abreast];
    for (size_t r = 0; r < abreast; ++r) row[r] = rows + (r < n_rows ? r : 0) * stride;
    for (size_t first = 0; first < n_columns; first += lanes) {
        Tile tile;
        tile.start(start ? start + first : nullptr);
        for (size_t k = 0; k < n_terms; ++k)
            tile.add({row[0][k], row[1][k], row[2][k], row[3][k]}, panel + k * n_columns + first);
        for (size_t r = 0; r < abreast; ++r)
            for (size_t v = 0; v < vectors; ++v) store(out + r * n_columns + first + v * width, tile.sums[r][v]);
    }
}

// gradient[column][feature] += sum over rows of slack[row][column] row[feature], for the first
// n_columns, whose number is rounded up to abreast.
inline void multiply_back(const float* slack, size_t n_wide, size_t n_columns, const float* rows,
                          size_t n_features, size_t n_rows, float* gradient) {
    for (size_t first = 0; first < n_features; first += lanes)
        for (size_t c = 0; c < n_columns; c += abreast) {
            Tile tile;
            tile.start(nullptr);
            for (size_t r = 0; r < n_rows; ++r) {
                const float* by = slack + r * n_wide + c;
                tile.add({by[0], by[1], by[2], by[3]}, rows + r * n_features + first);
            }
            for (size_t s = 0; s < abreast; ++s)
                for (size_t v = 0; v < vectors; ++v) {
                    float* to = gradient + (c + s) * n_features + first + v * width;
                    store(to, load(to) + tile.sums[s][v]);
                }
        }
}

// Turn [column][term] into [term][column], negated where that is asked for.
inline void lay_out(const float* from, size_t stride, size_t n_columns, size_t n_terms, float sign,
                    float* panel, size_t panel_width) {
    for (size_t i = 0; i < n_columns; ++i)
        for (size_t k = 0; k < n_terms; ++k) panel[k * panel_width + i] = sign * from[i * stride + k];
}

}  // namespace
}  // namespace limes
