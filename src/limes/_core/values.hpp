// The values of one map, for a tile of rows or for one row.
#pragma once
#include "blend.hpp"
#include "linear.hpp"
#include "room.hpp"
#include "search.hpp"

namespace limes {
namespace {

// Blend the points that were ranked for n rows.
template <class Real>
inline void blend_rows(const Model<Real>& model, const Map<Real>& map, const Real* rows, size_t n,
                       Room<Real>& room) {
    const size_t size = ranking_size(map), n_near = map.n_blended, width = model.n_padded;
    for (size_t r = 0; r < n; ++r) {
        Real* weights = room.weights + r * n_near;
        weigh(room.blend.ranked + r * size, n_near, size > n_near, weights);
        for (size_t i = 0; i < n_near; ++i) {
            room.near[r * n_near + i] = room.blend.near[r * size + i];
            Real* to = room.weighted + (r * n_near + i) * width;
            for (size_t k = 0; k < width; ++k) to[k] = weights[i] * rows[r * width + k];
        }
    }
    const Winners<Real> winners{room.weighted, room.near, room.weights, n, n_near};
    apply_functions(map, winners, width, room.values);
}

// The nearest point of each row of a tile, in room.near.
template <class Real>
inline void nearest_of_tile(const Map<Real>& map, const Real* panel, size_t n, Room<Real>& room) {
    if (!try_groups(panel, map.groups, room.partial, n, room.groups, room.near))
        find_nearest(panel, map.points, room.partial, room.near);
}

// room.values[row][value] of one map for a tile.
template <class Real>
inline void tile_values(const Model<Real>& model, const Map<Real>& map, const Real* tile,
                        const Real* panel, size_t n, Room<Real>& room) {
    if (map.n_blended > 1) {
        rank_tile(panel, map, room.partial, n, room.blend);
        return blend_rows(model, map, tile, n, room);
    }
    nearest_of_tile(map, panel, n, room);
    const Winners<Real> winners{tile, room.near, nullptr, n, 1};
    apply_functions(map, winners, model.n_padded, room.values);
}

template <class Real>
inline int32_t nearest_of_row(const Panels<Real>& points, const Real* search, Room<Real>& room) {
    if (points.n_columns == 1) return 0;
    score_row(search, points, room.blend.scores);
    return lowest(room.blend.scores, points.n_columns);
}

// room.values[value] of one map for one row.
template <class Real>
inline void row_values(const Model<Real>& model, const Map<Real>& map, const Real* row,
                       const Real* search, Room<Real>& room) {
    if (map.n_blended > 1) {
        score_row(search, map.points, room.blend.scores);
        rank_all(room.blend.scores, 1, map, room.blend.ranked, room.blend.near);
        return blend_rows(model, map, row, 1, room);
    }
    room.near[0] = nearest_of_row(map.points, search, room);
    const Winners<Real> winners{row, room.near, nullptr, 1, 1};
    apply_functions(map, winners, model.n_padded, room.values);
}

}  // namespace
}  // namespace limes
