// Blends of small maps. All functions of all points are evaluated, as the scores are, so that the
// lanes are rows from beginning to end: no ranking, no gathering.
//
// The weight of a point is by how much its score is below that of the next one after the k nearest;
// for all others that is nothing.
#pragma once
#include "blend.hpp"
#include "core.hpp"
#include "search.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

template <class Real>
inline Vector<Real> below(Vector<Real> limit, Vector<Real> score) {
    return larger(limit - score, Vector<Real>{});
}

// Turn the scores of one row, `step` apart, into weights, in their place; return their sum. Where
// the k nearest points are equally near, and so is the next, the first k share evenly.
template <class Real>
inline Real weigh_row(const Map<Real>& map, Real limit, size_t step, Real* scores) {
    const size_t n = map.points.n_columns * step;
    Real sum = 0;
    for (size_t i = 0; i < n; i += step) sum += scores[i] < limit ? limit - scores[i] : Real(0);
    const bool is_even = sum == 0;
    for (size_t i = 0; i < n; i += step) {
        const bool is_first = is_even && scores[i] == limit && sum < Real(map.n_blended);
        const Real weight = scores[i] < limit ? limit - scores[i] : Real(0);
        scores[i] = is_first ? Real(1) : weight;
        sum += is_first;
    }
    return sum;
}

// The same for the rows of one vector, the padding behind the last point included.
template <class Real>
inline Vector<Real> weigh_vector(const Map<Real>& map, size_t n_padded, Real* scores, Real* lowest) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_points = map.points.n_columns;
    const Vector<Real> limits = bound_scores<Real, 1>(scores, n_points, map.n_blended + 1, lowest);
    Vector<Real> sums{};
    for (size_t i = 0; i < n_points; ++i) sums += below<Real>(limits, load(scores + i * height));
    bool is_even = false;
    for (size_t l = 0; l < lanes<Real>; ++l) is_even = is_even || !(sums[l] > 0);
    if (is_even)
        for (size_t l = 0; l < lanes<Real>; ++l)
            sums[l] = weigh_row(map, limits[l], height, scores + l);
    else
        for (size_t i = 0; i < n_points; ++i)
            store(scores + i * height, below<Real>(limits, load(scores + i * height)));
    for (size_t i = n_points; i < n_padded; ++i) store(scores + i * height, Vector<Real>{});
    return sums;
}

// values[row][value] of a tile.
template <class Real>
inline void blend_tile(const Map<Real>& map, const Real* panel, size_t n_rows, Real* partial,
                       const BlendRoom<Real>& room, Real* values) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_blocks = (map.points.n_columns + block - 1) / block;
    score_tile(panel, map, partial, room);
    Vector<Real> weights[row_vectors], sums[row_vectors] = {};
    for (size_t r = 0; r < row_vectors; ++r)
        weights[r] = weigh_vector(map, n_blocks * block, room.scores + r * lanes<Real>, room.lowest);
    scan_points(panel, map.every, partial, [&](size_t b, const Scores<Real>& negated) {
        const size_t number = b / n_blocks, first = b % n_blocks * block;
        for (size_t p = 0; p < block; ++p)
            for (size_t r = 0; r < row_vectors; ++r)
                sums[r] = subtract_product(
                    load(room.scores + (first + p) * height + r * lanes<Real>), negated.at[r][p],
                    sums[r]);
        if (first + block < n_blocks * block) return;
        for (size_t r = 0; r < row_vectors; ++r) {
            const Vector<Real> value = sums[r] / weights[r];
            for (size_t l = 0; l < lanes<Real> && r * lanes<Real> + l < n_rows; ++l)
                values[(r * lanes<Real> + l) * map.n_values + number] = value[l];
            sums[r] = Vector<Real>{};
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
    rank_all(room.scores, 1, map, room.ranked, room.near);
    const Real sum = weigh_row(map, room.ranked[map.n_blended], 1, room.scores);
    for (size_t c = 0; c < map.n_values; ++c) {
        Vector<Real> value{};
        for (size_t i = 0; i < n_points; ++i)
            if (room.scores[i] > 0)
                value = subtract_product(spread(room.scores[i]),
                                         spread(room.every[c * n_padded + i]), value);
        values[c] = value[0] / sum;
    }
}

}  // namespace
}  // namespace limes
