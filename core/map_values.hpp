// Values of one map for a tile of rows or for one row, and the classes and votes that they give.
#pragma once
#include "blend_weights.hpp"
#include "curved_base.hpp"
#include "linear_functions.hpp"
#include "nearest.hpp"
#include "simd.hpp"
#include "types.hpp"
#include "workspace.hpp"

namespace limes {
namespace {

// Blend the functions of the points near each of n rows, `stride` elements apart.
template <class Real>
inline void blend_near(const Map<Real>& map, const Real* rows, size_t stride, size_t n,
                       Workspace<Real>& workspace) {
    const BlendWorkspace<Real>& own = workspace.blend;
    const BlendRows<Real> blends{rows, stride, own.near, own.weights, n, map.n_blended};
    blend_functions(map.functions, blends, workspace.values);
}

// Add the values of the base, if the map has one, to those of n rows.
template <class Real>
inline void add_base(const Map<Real>& map, const Real* rows, size_t n, Workspace<Real>& workspace) {
    if (!map.has_base) return;
    for (size_t r = 0; r < n; ++r) workspace.near[r] = 0;
    const NearestPoints<Real> nearest{rows, workspace.near, n};
    apply_functions(map.base, nearest, workspace.base);
    for (size_t i = 0; i < n * map.n_values; ++i) workspace.values[i] += workspace.base[i];
}

// Transpose a tile of the search back to rows, zero-padded.
template <class Real>
inline void gather_search(const Model<Real>& model, const Real* panel, size_t n,
                          Workspace<Real>& workspace) {
    const size_t width = Workspace<Real>::search_width(model);
    for (size_t r = 0; r < n; ++r)
        for (size_t k = 0; k < width; ++k)
            workspace.gathered[r * width + k] =
                k < model.n_search ? panel[k * tile_rows<Real> + r] : Real(0);
}

// Blended values of a tile.
template <class Real>
inline void blend_tile_values(const Model<Real>& model, const Map<Real>& map, const Real* tile,
                              const Real* panel, size_t n, Workspace<Real>& workspace) {
    if (map.is_dense) {
        blend_tile(map, panel, n, workspace.partial, workspace.blend, workspace.values);
        return add_base(map, tile, n, workspace);
    }
    weigh_tile(panel, map, workspace.partial, n, workspace.blend);
    if (!map.has_base) return blend_near(map, tile, model.n_padded, n, workspace);
    gather_search(model, panel, n, workspace);
    blend_near(map, workspace.gathered, Workspace<Real>::search_width(model), n, workspace);
    add_base(map, tile, n, workspace);
}

// The nearest point of each row of a tile, in workspace.near.
template <class Real>
inline void nearest_of_tile(const Map<Real>& map, const Real* panel, size_t n,
                            Workspace<Real>& workspace) {
    if (!try_group_search(panel, map.groups, workspace.partial, n, workspace.groups,
                          workspace.near))
        find_nearest(panel, map.points, workspace.partial, workspace.near);
}

// The piecewise linear part of the values of a tile.
template <class Real>
inline void piecewise_tile_values(const Model<Real>& model, const Map<Real>& map, const Real* tile,
                                  const Real* panel, size_t n, Workspace<Real>& workspace) {
    if (map.n_blended > 1) return blend_tile_values(model, map, tile, panel, n, workspace);
    nearest_of_tile(map, panel, n, workspace);
    const NearestPoints<Real> nearest{tile, workspace.near, n};
    apply_functions(map.functions, nearest, workspace.values);
}

// workspace.values[row][value] of one map for a tile. With a projection and a curved part,
// workspace.raw has the features of the tile.
template <class Real>
inline void tile_values(const Model<Real>& model, const Map<Real>& map, const Real* tile,
                        const Real* panel, size_t n, Workspace<Real>& workspace) {
    piecewise_tile_values(model, map, tile, panel, n, workspace);
    if (map.curve)
        add_tile_curve(*map.curve, model.projection ? workspace.raw : panel, n, workspace.partial,
                       workspace.curve, workspace.values);
}

template <class Real>
inline int32_t nearest_of_row(const Panels<Real>& points, const Real* search,
                              Workspace<Real>& workspace) {
    if (points.n_columns == 1) return 0;
    score_row(search, points, workspace.blend.scores);
    return first_lowest(workspace.blend.scores, points.n_columns);
}

// Blended values of one row.
template <class Real>
inline void blend_row_values(const Map<Real>& map, const Real* row, const Real* search,
                             Workspace<Real>& workspace) {
    if (map.is_dense) {
        blend_row(map, search, workspace.blend, workspace.values);
    } else {
        const BlendWorkspace<Real>& own = workspace.blend;
        score_row(search, map.points, own.scores);
        BlendedPoints<Real> near{own.weights, own.near, map.n_blended};
        weigh_all(own.scores, 1, map.points.n_columns, own.ranked, near);
        blend_near(map, map.has_base ? search : row, 0, 1, workspace);
    }
    add_base(map, row, 1, workspace);
}

// The piecewise linear part of the values of one row.
template <class Real>
inline void piecewise_row_values(const Map<Real>& map, const Real* row, const Real* search,
                                 Workspace<Real>& workspace) {
    if (map.n_blended > 1) return blend_row_values(map, row, search, workspace);
    workspace.near[0] = nearest_of_row(map.points, search, workspace);
    const NearestPoints<Real> nearest{row, workspace.near, 1};
    apply_functions(map.functions, nearest, workspace.values);
}

// workspace.values[value] of one map for one row.
template <class Real>
inline void row_values(const Map<Real>& map, const Real* row, const Real* search,
                       Workspace<Real>& workspace) {
    piecewise_row_values(map, row, search, workspace);
    if (map.curve) add_row_curve(*map.curve, row, workspace.curve, workspace.values);
}

// The class that the values of one map give; a row with a NaN is class 0.
template <class Real>
inline int32_t class_of_values(const Real* values, size_t n) {
    if (n == 1) return values[0] > 0;
    int32_t best = 0;
    Real most = -infinity<Real>;
    for (size_t c = 0; c < n; ++c)
        if (values[c] > most) most = values[c], best = int32_t(c);
    return best;
}

// Each map votes for the second class of its pair where its value is above zero.
template <class Real>
inline void add_votes(const Model<Real>& model, size_t map, size_t n, const Real* values,
                      int32_t* votes) {
    for (size_t r = 0; r < n; ++r)
        ++votes[r * model.n_classes + size_t(model.pairs[2 * map + (values[r] > 0)])];
}

// The class with the most votes; the lowest among equals.
inline int32_t most_voted_class(const int32_t* votes, size_t n_classes) {
    size_t best = 0;
    for (size_t c = 1; c < n_classes; ++c) best = votes[c] > votes[best] ? c : best;
    return int32_t(best);
}

// Store the requested results, from the values of one map for n rows.
template <class Real>
inline void store_results(const PredictJob<Real>& job, size_t map, size_t column, size_t first,
                          size_t n, const Real* values, int32_t* votes) {
    const Model<Real>& model = *job.model;
    const size_t n_values = model.maps[map].n_values;
    if (job.task == Task::vote) return add_votes(model, map, n, values, votes);
    for (size_t r = 0; r < n; ++r, values += n_values) {
        if (job.task == Task::classify) {
            job.indices[first + r] = class_of_values(values, n_values);
            continue;
        }
        Real* to = job.values + (first + r) * model.n_values + column;
        for (size_t c = 0; c < n_values; ++c) to[c] = values[c];
    }
}

}  // namespace
}  // namespace limes
