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

// What the values of a batch of rows are made of.
template <class Real>
struct Winners {
    const Real* rows;       // [row][near][width]: the row, times the weight of the point
    const int32_t* points;  // [row][near]
    const Real* weights;    // [row][near], or null where each row has one point
    size_t n_rows, n_near;
};

// One value: a function of the points near one row.
template <class Real>
struct Value {
    size_t row, number;

    inline const Real* slopes(const Functions<Real>& functions, const Winners<Real>& winners,
                              size_t near) const {
        const size_t point = size_t(winners.points[row * winners.n_near + near]);
        return functions.slopes + (point * functions.n_values + number) * functions.width;
    }
    inline Real offset(const Functions<Real>& functions, const Winners<Real>& winners) const {
        const int32_t* points = winners.points + row * winners.n_near;
        const Real* offsets = functions.offsets + number;
        if (!winners.weights) return offsets[size_t(points[0]) * functions.n_values];
        Real sum = 0;
        for (size_t i = 0; i < winners.n_near; ++i)
            sum += winners.weights[row * winners.n_near + i] *
                   offsets[size_t(points[i]) * functions.n_values];
        return sum;
    }
};

// Four values at once. Slopes are stored negated: the sums come from subtract_product.
template <class Real>
inline void sum_four(const Functions<Real>& functions, const Winners<Real>& winners,
                     const Value<Real> (&wanted)[4], Real* sums) {
    const size_t width = functions.width;
    Vector<Real> parts[4] = {};
    for (size_t near = 0; near < winners.n_near; ++near) {
        const Real *slopes[4], *rows[4];
        for (size_t i = 0; i < 4; ++i) {
            slopes[i] = wanted[i].slopes(functions, winners, near);
            rows[i] = winners.rows + (wanted[i].row * winners.n_near + near) * width;
        }
        for (size_t k = 0; k < width; k += lanes<Real>)
            for (size_t i = 0; i < 4; ++i)
                parts[i] = subtract_product(load(slopes[i] + k), load(rows[i] + k), parts[i]);
    }
    sum_lanes(parts, sums);
}

// values[row][number] = weighted sum over the near points of offset + slopes . row.
template <class Real>
inline void apply_functions(const Functions<Real>& functions, const Winners<Real>& winners,
                            Real* values) {
    const size_t n = winners.n_rows * functions.n_values;
    Value<Real> next{0, 0};
    for (size_t first = 0; first < n; first += 4) {
        Value<Real> wanted[4];
        Real sums[4];
        for (size_t i = 0; i < 4; ++i) {
            wanted[i] = next;
            // The last value fills up the last four.
            if (first + i + 1 < n && ++next.number == functions.n_values) next = {next.row + 1, 0};
        }
        sum_four(functions, winners, wanted, sums);
        const size_t count = n - first < 4 ? n - first : 4;
        for (size_t i = 0; i < count; ++i)
            values[first + i] = sums[i] + wanted[i].offset(functions, winners);
    }
}

}  // namespace
}  // namespace limes
