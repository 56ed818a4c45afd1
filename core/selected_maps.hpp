// Rows that select which maps are evaluated: the pairs of a shortlist, or the nodes of a tree.
//
// Rows that select the same map are gathered, so that each map is read once per batch.
#pragma once
#include "map_values.hpp"
#include "row_tiles.hpp"
#include "types.hpp"
#include "workspace.hpp"

namespace limes {
namespace {

// The number of the map at a place [row][n_selected]; n_maps for none. It is checked again here,
// since the caller's array may change while the threads run.
template <class Real>
inline size_t selected_map(const PredictJob<Real>& job, size_t place) {
    const int32_t number = job.map_numbers[place];
    const size_t n_maps = job.model->n_maps;
    return number < 0 || size_t(number) >= n_maps ? n_maps : size_t(number);
}

template <class Real>
inline void write_nan(const PredictJob<Real>& job, size_t place) {
    Real* to = job.values + place * job.model->max_values;
    for (size_t c = 0; c < job.model->max_values; ++c) to[c] = Real(__builtin_nan(""));
}

// Sort the places of a batch by the map they select; workspace.ends[m] is the end of map m in the
// order.
template <class Real>
inline void sort_places(const PredictJob<Real>& job, size_t first, size_t n_places,
                        Workspace<Real>& workspace) {
    const size_t n_maps = job.model->n_maps;
    for (size_t m = 0; m <= n_maps; ++m) workspace.ends[m] = 0;
    for (size_t i = 0; i < n_places; ++i) {
        const size_t map = selected_map(job, first + i);
        workspace.selected[i] = uint32_t(map);
        if (map == n_maps)
            write_nan(job, first + i);
        else
            ++workspace.ends[map + 1];
    }
    for (size_t m = 0; m < n_maps; ++m) workspace.ends[m + 1] += workspace.ends[m];
    for (size_t i = 0; i < n_places; ++i)
        if (workspace.selected[i] < n_maps)
            workspace.order[workspace.ends[workspace.selected[i]]++] = uint32_t(i);
}

// Where the search reads a row of the batch.
template <class Real>
inline Real* search_row(const Model<Real>& model, size_t row, const Workspace<Real>& workspace) {
    Real* rows = model.projection ? workspace.batch_search : workspace.batch;
    return rows + row * Workspace<Real>::search_width(model);
}

// Project rows of the batch, at most a tile.
template <class Real>
inline void project_rows(const Model<Real>& model, size_t first, size_t n,
                         Workspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    fill_tile(workspace.batch + first * model.n_padded, n * model.n_padded, height * model.n_padded,
              workspace.tiles);
    transpose_tile(workspace.tiles, model.n_padded, model.n_features, workspace.raw);
    Real* panel = workspace.panel(model, 0);
    project_tile(workspace.raw, *model.projection, workspace.partial, panel);
    for (size_t r = 0; r < n; ++r) {
        Real* row = search_row(model, first + r, workspace);
        for (size_t k = 0; k < Workspace<Real>::search_width(model); ++k)
            row[k] = k < model.n_search ? panel[k * height + r] : Real(0);
    }
}

// Centre, and project, all rows of a batch.
template <class Real>
inline void prepare_batch(const PredictJob<Real>& job, size_t first, size_t n,
                          Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    for (size_t r = 0; r < n; ++r)
        center_row(model, job.rows, first + r, workspace.batch + r * model.n_padded);
    if (!model.projection) return;
    for (size_t r = 0; r < n; r += tile_rows<Real>)
        project_rows(model, r, n - r < tile_rows<Real> ? n - r : tile_rows<Real>, workspace);
}

// Gather the rows of some places: in workspace.tiles for the functions, in workspace.panels for
// the search.
template <class Real>
inline void gather_tile(const PredictJob<Real>& job, const uint32_t* places, size_t n,
                        Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    constexpr size_t height = tile_rows<Real>;
    const size_t width = Workspace<Real>::search_width(model);
    for (size_t r = 0; r < height; ++r) {
        const size_t row = r < n ? places[r] / job.n_selected : 0, used = r < n;
        fill_tile(workspace.batch + row * model.n_padded, used * model.n_padded, model.n_padded,
                  workspace.tiles + r * model.n_padded);
        if (model.projection)
            fill_tile(search_row(model, row, workspace), used * width, width,
                      workspace.gathered + r * width);
    }
    transpose_tile(model.projection ? workspace.gathered : workspace.tiles, width, model.n_search,
                   workspace.panels);
    // A curved part reads all features.
    if (model.projection && model.maps[0].curve)
        transpose_tile(workspace.tiles, model.n_padded, model.n_features, workspace.raw);
}

template <class Real>
inline void write_place(const PredictJob<Real>& job, const Map<Real>& map, size_t place,
                        const Real* values) {
    Real* to = job.values + place * map.n_values;
    for (size_t c = 0; c < map.n_values; ++c) to[c] = values[c];
}

// One map, for at most a tile of the places that select it; `first` is the batch's first place.
template <class Real>
inline void run_places(const PredictJob<Real>& job, const Map<Real>& map, const uint32_t* places,
                       size_t n, size_t first, Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    if (n >= min_tile_rows<Real>) {
        gather_tile(job, places, n, workspace);
        tile_values(model, map, workspace.tiles, workspace.panels, n, workspace);
        for (size_t r = 0; r < n; ++r)
            write_place(job, map, first + places[r], workspace.values + r * map.n_values);
        return;
    }
    for (size_t r = 0; r < n; ++r) {
        const size_t row = places[r] / job.n_selected;
        row_values(map, workspace.batch + row * model.n_padded, search_row(model, row, workspace),
                   workspace);
        write_place(job, map, first + places[r], workspace.values);
    }
}

// All maps that the n rows of a prepared batch select, from a place on.
template <class Real>
inline void run_batch(const PredictJob<Real>& job, size_t first_place, size_t n,
                      Workspace<Real>& workspace) {
    sort_places(job, first_place, n * job.n_selected, workspace);
    for (size_t m = 0, i = 0; m < job.model->n_maps; ++m)
        while (i < workspace.ends[m]) {
            const size_t left = workspace.ends[m] - i;
            const size_t count = left < tile_rows<Real> ? left : tile_rows<Real>;
            run_places(job, job.model->maps[m], workspace.order + i, count, first_place, workspace);
            i += count;
        }
}

// All maps that a batch of rows selects.
template <class Real>
inline void run_selected(const PredictJob<Real>& job, size_t first, size_t n,
                         Workspace<Real>& workspace) {
    prepare_batch(job, first, n, workspace);
    run_batch(job, first * job.n_selected, n, workspace);
}

// All maps that one row, centred in workspace.tiles, selects.
template <class Real>
inline void run_selected_row(const PredictJob<Real>& job, size_t row, const Real* search,
                             Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    for (size_t place = row * job.n_selected; place < (row + 1) * job.n_selected; ++place) {
        const size_t m = selected_map(job, place);
        if (m == model.n_maps) {
            write_nan(job, place);
            continue;
        }
        row_values(model.maps[m], workspace.tiles, search, workspace);
        write_place(job, model.maps[m], place, workspace.values);
    }
}

// The child that a row goes to: the second if the value is above zero; class 0 if it is NaN.
template <class Real>
inline int32_t next_node(const PredictJob<Real>& job, int32_t node, Real value) {
    return value != value ? -1 : job.children[2 * size_t(node) + (value > 0)];
}

// Descend the tree with all rows of a batch at once, level by level.
template <class Real>
inline void descend_batch(const PredictJob<Real>& job, size_t first, size_t n,
                          Workspace<Real>& workspace) {
    prepare_batch(job, first, n, workspace);
    PredictJob<Real> step = job;
    step.map_numbers = workspace.nodes;
    step.n_selected = 1;
    step.values = workspace.node_values;
    __builtin_memset(workspace.nodes, 0, n * sizeof(int32_t));
    for (size_t n_descending = n; n_descending > 0;) {
        run_batch(step, 0, n, workspace);
        n_descending = 0;
        for (size_t r = 0; r < n; ++r) {
            if (workspace.nodes[r] < 0) continue;
            workspace.nodes[r] = next_node(job, workspace.nodes[r], workspace.node_values[r]);
            n_descending += workspace.nodes[r] >= 0;
        }
    }
    for (size_t r = 0; r < n; ++r) job.indices[first + r] = -1 - workspace.nodes[r];
}

// Descend the tree with one row, centred in workspace.tiles.
template <class Real>
inline void descend_row(const PredictJob<Real>& job, size_t row, const Real* search,
                        Workspace<Real>& workspace) {
    int32_t node = 0;
    while (node >= 0) {
        row_values(job.model->maps[node], workspace.tiles, search, workspace);
        node = next_node(job, node, workspace.values[0]);
    }
    job.indices[row] = -1 - node;
}

}  // namespace
}  // namespace limes
