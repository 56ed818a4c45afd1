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

template <class Real>
inline void multiply_four(const Real* const (&functions)[4], const Real* const (&rows)[4],
                          size_t n, Real* sums) {
    Vector<Real> parts[4] = {};
    for (size_t k = 0; k < n; k += lanes<Real>)
        for (size_t i = 0; i < 4; ++i)
            parts[i] = subtract_product(load(functions[i] + k), load(rows[i] + k), parts[i]);
    sum_lanes(parts, sums);
}

// Steps through the values asked for: value of a point, point of a row, row.
template <class Real>
struct Cursor {
    const Map<Real>& map;
    const int32_t* point;
    const Real* row;
    size_t width, n_near, value = 0, near = 0;

    inline size_t place() const { return size_t(*point) * map.n_values + value; }
    inline void advance() {
        if (++value < map.n_values) return;
        value = 0;
        ++point;
        if (++near < n_near) return;
        near = 0;
        row += width;
    }
};

// values[row][near][value] = offset + function . row, for n_near points of each row.
// Functions are stored negated: the sums come from subtract_product.
template <class Real>
inline void apply_functions(const Map<Real>& map, const Real* rows, size_t width, size_t n_rows,
                            const int32_t* points, size_t n_near, Real* values) {
    const size_t n = n_rows * n_near * map.n_values;
    Cursor<Real> cursor{map, points, rows, width, n_near};
    for (size_t first = 0; first < n; first += 4) {
        const size_t count = n - first < 4 ? n - first : 4;
        const Real *functions[4], *at[4];
        Real offsets[4], sums[4];
        for (size_t i = 0; i < 4; ++i) {
            functions[i] = map.functions + cursor.place() * width;
            offsets[i] = map.offsets[cursor.place()];
            at[i] = cursor.row;
            if (i + 1 < count || first + 4 < n) cursor.advance();
        }
        multiply_four(functions, at, width, sums);
        for (size_t i = 0; i < count; ++i) values[first + i] = sums[i] + offsets[i];
    }
}

}  // namespace
}  // namespace limes
