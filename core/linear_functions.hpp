// Linear functions of the nearest points: of one point, of a blend of several, or (dense blends of
// small maps) of all points with a weight of zero for those that are not near.
#pragma once
#include "blend_weights.hpp"
#include "nearest.hpp"
#include "row_tiles.hpp"
#include "simd.hpp"
#include "types.hpp"

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
    *reinterpret_cast<UnalignedFour*>(sums) = (a + b) + (c + d);
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
struct NearestPoints {
    const Real* rows;       // [row][width]
    const int32_t* points;  // [row]
    size_t n_rows;
};

// Position of one value.
struct Value {
    size_t row, number;
};

// Call `take(first, count, four values)` for all values of n_rows rows, four at a time; the last
// value is repeated to fill the last four.
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

// values[row][number] = offset + slopes . row. Slopes are stored negated, because
// fnmadd subtracts.
template <class Real>
inline void apply_functions(const Functions<Real>& functions, const NearestPoints<Real>& nearest,
                            Real* values) {
    const size_t width = functions.width, n_values = functions.n_values;
    each_four(nearest.n_rows, n_values, [&](size_t first, size_t count, const Value(&wanted)[4]) {
        size_t numbers[4];
        const Real *slopes[4], *rows[4];
        for (size_t i = 0; i < 4; ++i) {
            numbers[i] = size_t(nearest.points[wanted[i].row]) * n_values + wanted[i].number;
            slopes[i] = functions.slopes + numbers[i] * width;
            rows[i] = nearest.rows + wanted[i].row * width;
        }
        Vector<Real> parts[4] = {};
        for (size_t k = 0; k < width; k += lanes<Real>)
            for (size_t i = 0; i < 4; ++i)
                parts[i] = fnmadd(load(slopes[i] + k), load(rows[i] + k), parts[i]);
        Real sums[4];
        sum_lanes(parts, sums);
        for (size_t i = 0; i < count; ++i)
            values[first + i] = functions.offsets[numbers[i]] + sums[i];
    });
}

// The rows of a batch, `stride` apart, and the points that are blended for each.
template <class Real>
struct BlendRows {
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
        // Vectors of terms whose sums fit the registers.
        constexpr size_t most = count == 1 ? 4 : 2;
        const size_t width = functions.width;
        size_t k = 0;
        for (; k + most * lanes<Real> <= width; k += most * lanes<Real>)
            add<count, most>(number, k, totals);
        if (most > 2 && k + 2 * lanes<Real> <= width)
            add<count, 2>(number, k, totals), k += 2 * lanes<Real>;
        if (k < width) add<count, 1>(number, k, totals);
    }
    // The blended offsets of the same values.
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
            const Vector<Real> weight = broadcast(weights[i]);
            const Real* own = slopes + size_t(points[i]) * step;
            for (size_t c = 0; c < count; ++c)
                for (size_t v = 0; v < n; ++v)
                    sums[c][v] =
                        fnmadd(weight, load(own + c * width + v * lanes<Real>), sums[c][v]);
        }
        for (size_t v = 0; v < n; ++v) {
            const Vector<Real> terms = load(row + first + v * lanes<Real>);
            for (size_t c = 0; c < count; ++c) totals[c] = fnmadd(sums[c][v], terms, totals[c]);
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
    for (; number + 4 <= n_values; number += 4)
        blend_some<Real, 4>(blended, number, values + number);
    values += number;
    switch (n_values - number) {
        case 1: return blend_some<Real, 1>(blended, number, values);
        case 2: return blend_some<Real, 2>(blended, number, values);
        case 3: return blend_some<Real, 3>(blended, number, values);
    }
}

// values[row][number] = weighted sum over the near points of offset + slopes . row.
template <class Real>
inline void blend_functions(const Functions<Real>& functions, const BlendRows<Real>& blends,
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

// Replace the scores of one row of a tile by weights that sum to 1.
template <class Real>
inline void scores_to_weights(const Map<Real>& map, Real* ranked, Real* column) {
    Real weights[max_dense_blended + 1];
    int32_t points[max_dense_blended + 1];
    BlendedPoints<Real> near{weights, points, map.n_blended};
    const size_t n_points = map.points.n_columns;
    weigh_all(column, tile_rows<Real>, n_points, ranked, near);
    for (size_t i = 0; i < n_points; ++i) column[i * tile_rows<Real>] = 0;
    for (size_t i = 0; i < near.size; ++i)
        column[size_t(points[i]) * tile_rows<Real>] += weights[i];
}

// The same for all rows of a tile, with weights of zero for the padding after the last point.
template <class Real>
inline void tile_scores_to_weights(const Map<Real>& map, size_t n_padded, Real* ranked,
                                   Real* scores) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_points = map.points.n_columns;
    Vector<Real> limits[row_vectors], sums[row_vectors] = {};
    const auto weight = [&](size_t i, size_t r) {
        const Vector<Real> own = load(scores + i * height + r * lanes<Real>);
        return max(limits[r] - own, Vector<Real>{});
    };
    for (size_t r = 0; r < row_vectors; ++r)
        limits[r] = bound_scores<Real, 1>(scores + r * lanes<Real>, n_points, map.n_blended + 1);
    for (size_t i = 0; i < n_points; ++i)
        for (size_t r = 0; r < row_vectors; ++r) sums[r] += weight(i, r);
    for (size_t r = 0; r < row_vectors; ++r) {
        Real* own = scores + r * lanes<Real>;
        bool is_even = false;
        for (size_t l = 0; l < lanes<Real>; ++l)
            is_even = is_even || !(sums[r][l] >= min_weight_sum<Real>);
        const Vector<Real> parts = broadcast(Real(1)) / sums[r];
        if (is_even)
            for (size_t l = 0; l < lanes<Real>; ++l) scores_to_weights(map, ranked, own + l);
        else
            for (size_t i = 0; i < n_points; ++i) store(own + i * height, weight(i, r) * parts);
        for (size_t i = n_points; i < n_padded; ++i) store(own + i * height, Vector<Real>{});
    }
}

// Dense blend of a tile: values[row][value]. All functions are evaluated as the scores are, so that
// the lanes are rows throughout.
template <class Real>
inline void blend_tile(const Map<Real>& map, const Real* panel, size_t n_rows, Real* partial,
                       const BlendWorkspace<Real>& workspace, Real* values) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_blocks = (map.points.n_columns + block - 1) / block;
    score_tile(panel, map, partial, workspace);
    tile_scores_to_weights(map, n_blocks * block, workspace.ranked, workspace.scores);
    struct {
        Vector<Real> at[row_vectors];
    } sums = {};
    scan_points(panel, map.all_functions, partial,
                [&](size_t b, const Scores<Real>& negated) __attribute__((always_inline)) {
                    // Kept in memory between two blocks: the scores need all registers.
                    asm("" : "+m"(sums));
                    const size_t number = b / n_blocks, first = b % n_blocks * block;
                    for (size_t p = 0; p < block; ++p)
                        for (size_t r = 0; r < row_vectors; ++r)
                            sums.at[r] = fnmadd(
                                load(workspace.scores + (first + p) * height + r * lanes<Real>),
                                negated.at[r][p], sums.at[r]);
                    if (first + block < n_blocks * block) return;
                    for (size_t r = 0; r < row_vectors; ++r) {
                        for (size_t l = 0; l < lanes<Real> && r * lanes<Real> + l < n_rows; ++l)
                            values[(r * lanes<Real> + l) * map.n_values + number] = sums.at[r][l];
                        sums.at[r] = Vector<Real>{};
                    }
                });
}

// Dense blend of one row, by the same operations in the same order.
template <class Real>
inline void blend_row(const Map<Real>& map, const Real* search,
                      const BlendWorkspace<Real>& workspace, Real* values) {
    const size_t n_points = map.points.n_columns;
    const size_t n_padded = round_up(n_points, block);
    score_row(search, map.points, workspace.scores);
    score_row(search, map.all_functions, workspace.all_values);
    BlendedPoints<Real> near{workspace.weights, workspace.near, map.n_blended};
    weigh_all(workspace.scores, 1, n_points, workspace.ranked, near);
    for (size_t c = 0; c < map.n_values; ++c) {
        Vector<Real> value{};
        for (size_t i = 0; i < near.size; ++i)
            value = fnmadd(broadcast(near.weights[i]),
                           broadcast(workspace.all_values[c * n_padded + size_t(near.points[i])]),
                           value);
        values[c] = value[0];
    }
}

}  // namespace
}  // namespace limes
