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

// The functions of one row's near points, blended.
template <class Real>
struct BlendedRow {
    const Functions<Real>& functions;
    const int32_t* points;
    const Real* weights;
    size_t n_near;
    const Real* row;

    // Their products with the row, negated, lane by lane, of `count` values from `number` on.
    template <size_t count>
    inline void multiply(size_t number, Vector<Real>* totals) const {
        // Registers for the sums of as many vectors of terms.
        constexpr size_t most = count == 1 ? 4 : 2;
        const size_t width = functions.width;
        size_t k = 0;
        for (; k + most * lanes<Real> <= width; k += most * lanes<Real>)
            add<count, most>(number, k, totals);
        if (most > 2 && k + 2 * lanes<Real> <= width)
            add<count, 2>(number, k, totals), k += 2 * lanes<Real>;
        if (k < width) add<count, 1>(number, k, totals);
    }
    // The blended offsets of the same.
    template <size_t count>
    inline void blend_offsets(size_t number, Real* offsets) const {
        Real sums[count] = {};
        for (size_t i = 0; i < n_near; ++i) {
            const Real* own = functions.offsets + size_t(points[i]) * functions.n_values + number;
            for (size_t c = 0; c < count; ++c) sums[c] += weights[i] * own[c];
        }
        for (size_t c = 0; c < count; ++c) offsets[c] = sums[c];
    }

private:
    // Blend the slopes of n vectors of terms from `first` on, then multiply them with the row.
    template <size_t count, size_t n>
    inline void add(size_t number, size_t first, Vector<Real>* totals) const {
        const size_t width = functions.width, step = functions.n_values * width;
        const Real* slopes = functions.slopes + number * width + first;
        Vector<Real> sums[count][n] = {};
        for (size_t i = 0; i < n_near; ++i) {
            const Vector<Real> weight = spread(weights[i]);
            const Real* own = slopes + size_t(points[i]) * step;
            for (size_t c = 0; c < count; ++c)
                for (size_t v = 0; v < n; ++v)
                    sums[c][v] = subtract_product(
                        weight, load(own + c * width + v * lanes<Real>), sums[c][v]);
        }
        for (size_t v = 0; v < n; ++v) {
            const Vector<Real> terms = load(row + first + v * lanes<Real>);
            for (size_t c = 0; c < count; ++c)
                totals[c] = subtract_product(sums[c][v], terms, totals[c]);
        }
    }
};

// Some values of one row, four at most.
template <class Real, size_t count>
inline void blend_some(const BlendedRow<Real>& blended, size_t number, Real* values) {
    Vector<Real> parts[4] = {};
    Real offsets[count], sums[4];
    blended.template multiply<count>(number, parts);
    blended.template blend_offsets<count>(number, offsets);
    sum_lanes(parts, sums);
    for (size_t c = 0; c < count; ++c) values[c] = offsets[c] - sums[c];
}

// All values of one row.
template <class Real>
inline void blend_values(const BlendedRow<Real>& blended, Real* values) {
    const size_t n_values = blended.functions.n_values;
    size_t number = 0;
    for (; number + 4 <= n_values; number += 4) blend_some<Real, 4>(blended, number, values + number);
    values += number;
    switch (n_values - number) {
        case 1: return blend_some<Real, 1>(blended, number, values);
        case 2: return blend_some<Real, 2>(blended, number, values);
        case 3: return blend_some<Real, 3>(blended, number, values);
    }
}

// values[row][number] = weighted sum over the near points of offset + slopes . row.
template <class Real>
inline void blend_functions(const Functions<Real>& functions, const Blends<Real>& blends,
                            Real* values) {
    const size_t n_near = blends.n_near, n_values = functions.n_values;
    const auto blended = [&](size_t row) {
        return BlendedRow<Real>{functions, blends.points + row * n_near,
                                blends.weights + row * n_near, n_near,
                                blends.rows + row * blends.stride};
    };
    size_t r = 0;
    // Lanes are summed four at a time: with a single value, those of four rows.
    for (; n_values == 1 && r + 4 <= blends.n_rows; r += 4) {
        Vector<Real> parts[4] = {};
        Real offsets[4], sums[4];
        for (size_t i = 0; i < 4; ++i) {
            blended(r + i).template multiply<1>(0, parts + i);
            blended(r + i).template blend_offsets<1>(0, offsets + i);
        }
        sum_lanes(parts, sums);
        for (size_t i = 0; i < 4; ++i) values[r + i] = offsets[i] - sums[i];
    }
    for (; r < blends.n_rows; ++r) blend_values(blended(r), values + r * n_values);
}

}  // namespace
}  // namespace limes
