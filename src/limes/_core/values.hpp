// The values of one map, for a tile of rows or for one row.
#pragma once
#include "blend.hpp"
#include "dense.hpp"
#include "linear.hpp"
#include "room.hpp"
#include "search.hpp"

namespace limes {
namespace {

// Blend the points near each of n rows, which are `stride` apart.
template <class Real>
inline void blend_near(const Map<Real>& map, const Real* rows, size_t stride, size_t n,
                       Room<Real>& room) {
    const BlendRoom<Real>& own = room.blend;
    const Blends<Real> blends{rows, stride, own.near, own.weights, n, map.n_blended};
    blend_functions(map.functions, blends, room.values);
}

// Add the values of the base, if the map has one, to those of n rows.
template <class Real>
inline void add_base(const Map<Real>& map, const Real* rows, size_t n, Room<Real>& room) {
    if (!map.has_base) return;
    for (size_t r = 0; r < n; ++r) room.near[r] = 0;
    const Winners<Real> winners{rows, room.near, n};
    apply_functions(map.base, winners, room.base);
    for (size_t i = 0; i < n * map.n_values; ++i) room.values[i] += room.base[i];
}

// Lay a tile of the search out by row again, zero behind the last term.
template <class Real>
inline void gather_search(const Model<Real>& model, const Real* panel, size_t n, Room<Real>& room) {
    const size_t width = Room<Real>::search_width(model);
    for (size_t r = 0; r < n; ++r)
        for (size_t k = 0; k < width; ++k)
            room.gathered[r * width + k] =
                k < model.n_search ? panel[k * tile_rows<Real> + r] : Real(0);
}

// Blended values of a tile.
template <class Real>
inline void blend_tile_values(const Model<Real>& model, const Map<Real>& map, const Real* tile,
                              const Real* panel, size_t n, Room<Real>& room) {
    if (map.is_dense) {
        blend_tile(map, panel, n, room.partial, room.blend, room.values);
        return add_base(map, tile, n, room);
    }
    weigh_tile(panel, map, room.partial, n, room.blend);
    if (!map.has_base) return blend_near(map, tile, model.n_padded, n, room);
    gather_search(model, panel, n, room);
    blend_near(map, room.gathered, Room<Real>::search_width(model), n, room);
    add_base(map, tile, n, room);
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
    if (map.n_blended > 1) return blend_tile_values(model, map, tile, panel, n, room);
    nearest_of_tile(map, panel, n, room);
    const Winners<Real> winners{tile, room.near, n};
    apply_functions(map.functions, winners, room.values);
}

template <class Real>
inline int32_t nearest_of_row(const Panels<Real>& points, const Real* search, Room<Real>& room) {
    if (points.n_columns == 1) return 0;
    score_row(search, points, room.blend.scores);
    return lowest(room.blend.scores, points.n_columns);
}

// Blended values of one row.
template <class Real>
inline void blend_row_values(const Map<Real>& map, const Real* row, const Real* search,
                             Room<Real>& room) {
    if (map.is_dense) {
        blend_row(map, search, room.blend, room.values);
    } else {
        const BlendRoom<Real>& own = room.blend;
        score_row(search, map.points, own.scores);
        Near<Real> near{own.weights, own.near, map.n_blended};
        weigh_all(own.scores, 1, map.points.n_columns, own.ranked, near);
        blend_near(map, map.has_base ? search : row, 0, 1, room);
    }
    add_base(map, row, 1, room);
}

// room.values[value] of one map for one row.
template <class Real>
inline void row_values(const Map<Real>& map, const Real* row, const Real* search,
                       Room<Real>& room) {
    if (map.n_blended > 1) return blend_row_values(map, row, search, room);
    room.near[0] = nearest_of_row(map.points, search, room);
    const Winners<Real> winners{row, room.near, 1};
    apply_functions(map.functions, winners, room.values);
}

}  // namespace
}  // namespace limes
