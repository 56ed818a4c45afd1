// Blends of small maps. All functions of all points are evaluated, as the scores are, so that the
// lanes are rows from beginning to end: points that are not near have no weight.
#pragma once
#include "blend.hpp"
#include "core.hpp"
#include "search.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// Turn the scores of one row of a tile into weights that sum to 1, in their place.
template <class Real>
inline void spread_weights(const Map<Real>& map, Real* ranked, Real* column) {
    Real weights[dense_blended + 1];
    int32_t points[dense_blended + 1];
    Near<Real> near{weights, points, map.n_blended};
    const size_t n_points = map.points.n_columns;
    weigh_all(column, tile_rows<Real>, n_points, ranked, near);
    for (size_t i = 0; i < n_points; ++i) column[i * tile_rows<Real>] = 0;
    for (size_t i = 0; i < near.size; ++i)
        column[size_t(points[i]) * tile_rows<Real>] += weights[i];
}

// The same for all rows of a tile, the padding behind the last point included.
template <class Real>
inline void spread_tile(const Map<Real>& map, size_t n_padded, Real* ranked, Real* scores) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_points = map.points.n_columns;
    Vector<Real> limits[row_vectors], sums[row_vectors] = {};
    const auto weight = [&](size_t i, size_t r) {
        const Vector<Real> own = load(scores + i * height + r * lanes<Real>);
        return larger(limits[r] - own, Vector<Real>{});
    };
    for (size_t r = 0; r < row_vectors; ++r)
        limits[r] = bound_scores<Real, 1>(scores + r * lanes<Real>, n_points, map.n_blended + 1);
    for (size_t i = 0; i < n_points; ++i)
        for (size_t r = 0; r < row_vectors; ++r) sums[r] += weight(i, r);
    for (size_t r = 0; r < row_vectors; ++r) {
        Real* own = scores + r * lanes<Real>;
        bool is_even = false;
        for (size_t l = 0; l < lanes<Real>; ++l)
            is_even = is_even || !(sums[r][l] >= least_sum<Real>);
        const Vector<Real> parts = spread(Real(1)) / sums[r];
        if (is_even)
            for (size_t l = 0; l < lanes<Real>; ++l) spread_weights(map, ranked, own + l);
        else
            for (size_t i = 0; i < n_points; ++i) store(own + i * height, weight(i, r) * parts);
        for (size_t i = n_points; i < n_padded; ++i) store(own + i * height, Vector<Real>{});
    }
}

// values[row][value] of a tile.
template <class Real>
inline void blend_tile(const Map<Real>& map, const Real* panel, size_t n_rows, Real* partial,
                       const BlendRoom<Real>& room, Real* values) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_blocks = (map.points.n_columns + block - 1) / block;
    score_tile(panel, map, partial, room);
    spread_tile(map, n_blocks * block, room.ranked, room.scores);
    struct {
        Vector<Real> at[row_vectors];
    } sums = {};
    scan_points(panel, map.every, partial, [&](size_t b, const Scores<Real>& negated) {
        // In memory between two blocks: the registers are for the scores.
        asm("" : "+m"(sums));
        const size_t number = b / n_blocks, first = b % n_blocks * block;
        for (size_t p = 0; p < block; ++p)
            for (size_t r = 0; r < row_vectors; ++r)
                sums.at[r] = subtract_product(
                    load(room.scores + (first + p) * height + r * lanes<Real>), negated.at[r][p],
                    sums.at[r]);
        if (first + block < n_blocks * block) return;
        for (size_t r = 0; r < row_vectors; ++r) {
            for (size_t l = 0; l < lanes<Real> && r * lanes<Real> + l < n_rows; ++l)
                values[(r * lanes<Real> + l) * map.n_values + number] = sums.at[r][l];
            sums.at[r] = Vector<Real>{};
        }
    });
}

// values[value] of one row, by the same operations in the same order.
template <class Real>
inline void blend_row(const Map<Real>& map, const Real* search, const BlendRoom<Real>& room,
                      Real* values) {
    const size_t n_points = map.points.n_columns;
    const size_t n_padded = (n_points + block - 1) / block * block;
    score_row(search, map.points, room.scores);
    score_row(search, map.every, room.every);
    Near<Real> near{room.weights, room.near, map.n_blended};
    weigh_all(room.scores, 1, n_points, room.ranked, near);
    for (size_t c = 0; c < map.n_values; ++c) {
        Vector<Real> value{};
        for (size_t i = 0; i < near.size; ++i)
            value = subtract_product(spread(near.weights[i]),
                                     spread(room.every[c * n_padded + size_t(near.points[i])]),
                                     value);
        values[c] = value[0];
    }
}

}  // namespace
}  // namespace limes
