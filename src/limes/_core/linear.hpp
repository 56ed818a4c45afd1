// The linear functions of the winners: many short inner products, summed four at a time.
#pragma once
#include "core.hpp"
#include "rows.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

inline Four fold(Vector<float> a) {
#if defined(__AVX512F__)
    typedef float Eight __attribute__((vector_size(32)));
    const Eight half = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
#elif defined(__AVX2__)
    return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
#else
    return a;
#endif
}

// Each vector's lanes are added in the same order, whichever of the four it is.
inline void sum_lanes(const Vector<float> (&parts)[4], float* sums) {
    Four a = fold(parts[0]), b = fold(parts[1]), c = fold(parts[2]), d = fold(parts[3]);
    transpose_four(a, b, c, d);
    *reinterpret_cast<LooseFour*>(sums) = (a + b) + (c + d);
}

inline void sum_lanes(const Vector<double> (&parts)[4], double* sums) {
    for (size_t i = 0; i < 4; ++i) {
        double sum = parts[i][0];
        for (size_t l = 1; l < lanes<double>; ++l) sum += parts[i][l];
        sums[i] = sum;
    }
}

// The rows of a batch and the nearest point of each.
template <class Real>
struct Winners {
    const Real* rows;       // [row][width]
    const int32_t* points;  // [row]
    size_t n_rows;
};

// One value of one row.
struct Value {
    size_t row, number;
};

// Give the values of n_rows rows to `take(first, count, four values)`, four at a time; the last value
// fills up the last four.
template <class Take>
inline void each_four(size_t n_rows, size_t n_values, Take take) {
    const size_t n = n_rows * n_values;
    Value next{0, 0};
    for (size_t first = 0; first < n; first += 4) {
        Value wanted[4];
        for (size_t i = 0; i < 4; ++i) {
            wanted[i] = next;
            if (first + i + 1 < n && ++next.number == n_values) next = {next.row + 1, 0};
        }
        take(first, n - first < 4 ? n - first : 4, wanted);
    }
}

// values[row][number] = offset + slopes . row. Slopes are stored negated: the sums come from
// subtract_product.
template <class Real>
inline void apply_functions(const Functions<Real>& functions, const Winners<Real>& winners,
                            Real* values) {
    const size_t width = functions.width, n_values = functions.n_values;
    each_four(winners.n_rows, n_values, [&](size_t first, size_t count, const Value (&wanted)[4]) {
        size_t numbers[4];
        const Real *slopes[4], *rows[4];
        for (size_t i = 0; i < 4; ++i) {
            numbers[i] = size_t(winners.points[wanted[i].row]) * n_values + wanted[i].number;
            slopes[i] = functions.slopes + numbers[i] * width;
            rows[i] = winners.rows + wanted[i].row * width;
        }
        Vector<Real> parts[4] = {};
        for (size_t k = 0; k < width; k += lanes<Real>)
            for (size_t i = 0; i < 4; ++i)
                parts[i] = subtract_product(load(slopes[i] + k), load(rows[i] + k), parts[i]);
        Real sums[4];
        sum_lanes(parts, sums);
        for (size_t i = 0; i < count; ++i)
            values[first + i] = functions.offsets[numbers[i]] + sums[i];
    });
}

// The rows of a batch, `stride` apart, and the points that are blended for each.
template <class Real>
struct Blends {
    const Real* rows;
    size_t stride;
    const int32_t* points;  // [row][near]
    const Real* weights;    // [row][near], summing to 1
    size_t n_rows, n_near;
};

// values[row][number] = weighted sum of the offsets of the near points.
template <class Real>
inline void blend_offsets(const Functions<Real>& functions, const Blends<Real>& blends,
                          Real* values) {
    const size_t n_values = functions.n_values;
    for (size_t r = 0; r < blends.n_rows; ++r, values += n_values) {
        for (size_t c = 0; c < n_values; ++c) values[c] = 0;
        for (size_t i = r * blends.n_near; i < (r + 1) * blends.n_near; ++i) {
            const Real weight = blends.weights[i];
            const Real* own = functions.offsets + size_t(blends.points[i]) * n_values;
            for (size_t c = 0; c < n_values; ++c) values[c] += weight * own[c];
        }
    }
}

// Blend the slopes of one value, then take their product with the row, negated, lane by lane.
template <class Real>
struct BlendedProduct {
    const Real* slopes;  // of the first point
    size_t step;         // from point to point
    const int32_t* points;
    const Real* weights;
    size_t n_near;
    const Real* row;
    Vector<Real> total{};

    // The n vectors of terms from `first` on.
    template <size_t n>
    inline void add(size_t first) {
        Vector<Real> sums[n] = {};
        for (size_t i = 0; i < n_near; ++i) {
            const Vector<Real> weight = spread(weights[i]);
            const Real* own = slopes + size_t(points[i]) * step + first;
            for (size_t v = 0; v < n; ++v)
                sums[v] = subtract_product(weight, load(own + v * lanes<Real>), sums[v]);
        }
        for (size_t v = 0; v < n; ++v)
            total = subtract_product(sums[v], load(row + first + v * lanes<Real>), total);
    }
    inline void add_all(size_t width) {
        size_t k = 0;
        for (; k + 4 * lanes<Real> <= width; k += 4 * lanes<Real>) add<4>(k);
        if (k + 2 * lanes<Real> <= width) add<2>(k), k += 2 * lanes<Real>;
        if (k < width) add<1>(k);
    }
};

// values[row][number] = weighted sum over the near points of offset + slopes . row.
template <class Real>
inline void blend_functions(const Functions<Real>& functions, const Blends<Real>& blends,
                            Real* values) {
    const size_t n_near = blends.n_near, width = functions.width, n_values = functions.n_values;
    blend_offsets(functions, blends, values);
    each_four(blends.n_rows, n_values, [&](size_t first, size_t count, const Value (&wanted)[4]) {
        Vector<Real> parts[4] = {};
        for (size_t i = 0; i < count; ++i) {
            const size_t row = wanted[i].row;
            BlendedProduct<Real> product{functions.slopes + wanted[i].number * width,
                                         n_values * width,
                                         blends.points + row * n_near,
                                         blends.weights + row * n_near,
                                         n_near,
                                         blends.rows + row * blends.stride};
            product.add_all(width);
            parts[i] = product.total;
        }
        Real sums[4];
        sum_lanes(parts, sums);
        for (size_t i = 0; i < count; ++i) values[first + i] -= sums[i];
    });
}

}  // namespace
}  // namespace limes
