// Scratch memory of one thread, allocated as one block.
#pragma once
#include "blend_weights.hpp"
#include "curved_base.hpp"
#include "nearest.hpp"
#include "pruned_nearest.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Tiles that are prepared together, so that the points of each of many maps are read once for
// all of them: as many as stay in a second-level cache.
template <class Real>
inline size_t group_size(const Model<Real>& model) {
    constexpr size_t max_bytes = 96 * 1024, max_tiles = 16;
    if (model.n_maps == 1) return 1;
    const size_t bytes = (model.n_padded + model.n_search) * tile_rows<Real> * sizeof(Real);
    const size_t fit = max_bytes / bytes;
    return fit < 1 ? 1 : fit < max_tiles ? fit : max_tiles;
}

// Rows that are sorted by the maps they select before any is evaluated.
template <class Real>
inline size_t batch_size(const Model<Real>& model) {
    constexpr size_t max_bytes = 1 << 21, max_rows = 8192, min_rows = 256;
    const size_t fit = max_bytes / ((model.n_padded + model.n_search) * sizeof(Real));
    return fit < min_rows ? min_rows : fit < max_rows ? fit : max_rows;
}

// Whether rows select the maps that are evaluated.
inline bool selects_maps(Task task) {
    return task == Task::decide_selected || task == Task::descend;
}

template <class Real>
struct Workspace {
    size_t n_tiles;  // in a group
    Real* tiles;     // [tile][row][n_padded]: centred rows
    Real* panels;    // [tile][term of the search][row]
    Real* raw;       // [feature][row]: a tile before its projection
    Real* partial;   // unfinished scores
    Real* values;    // [row][value]
    Real* base;      // [row][value]
    int32_t* near;   // [row]: the nearest point
    int32_t* votes;  // [row of the group][class]
    BlendWorkspace<Real> blend;
    GroupWorkspace<Real> groups;
    CurveWorkspace<Real> curve;
    Real* gathered;  // [row of a tile][search_width], where maps are selected or have a base
    // Where maps are selected:
    Real* batch;         // [row][n_padded]
    Real* batch_search;  // [row][search_width]
    uint32_t* selected;  // [row][n_selected]: the map at each place
    uint32_t* order;     // places that select a map, sorted by map
    size_t* ends;        // where each map ends in the order
    int32_t* nodes;      // descend: the node of each row of the batch
    Real* node_values;   // descend: the value at that node
    size_t size = 0;

    Workspace(const PredictJob<Real>& job, Real* memory) {
        const Model<Real>& model = *job.model;
        constexpr size_t height = tile_rows<Real>;
        const bool is_some = selects_maps(job.task), is_descent = job.task == Task::descend;
        n_tiles = is_some ? 1 : group_size(model);
        const size_t n_near = model.max_blended;
        tiles = allocate(memory, n_tiles * height * model.n_padded);
        panels = allocate(memory, n_tiles * height * round_up(model.n_search, panel_padding));
        raw = allocate(memory, model.projection ? height * model.n_padded : 0);
        partial = allocate(memory, max_blocks * block * height);
        values = allocate(memory, height * model.max_values);
        base = allocate(memory, model.has_bases ? height * model.max_values : 0);
        near = allocate_as<int32_t>(memory, height);
        votes = allocate_as<int32_t>(memory, n_tiles * height * model.n_classes);
        const size_t n_points = round_up(model.max_points, panel_padding);
        blend.scores = allocate(memory, n_points * (n_near > 1 ? height : 1));
        blend.bits = allocate_as<uint32_t>(memory, n_points / 32 * lanes<Real>);
        blend.ranked = allocate(memory, n_near + 1);
        blend.weights = allocate(memory, height * n_near + 1);
        blend.near = allocate_as<int32_t>(memory, height * n_near + 1);
        blend.all_values = allocate(memory, round_up(model.max_all_functions, panel_padding));
        const size_t n_groups = round_up(model.max_groups, panel_padding);
        groups.scores = allocate(memory, n_groups * height);
        groups.marks = allocate_as<uint32_t>(memory, n_groups / 32 * height);
        groups.remaining =
            allocate_as<uint32_t>(memory, model.max_group_vectors + 2 * vectors_per_pass);
        groups.n_skipped = groups.failures = 0;
        allocate_curve(model.maps[0].curve, memory);
        const size_t n_batch = batch_size(model);
        const size_t n_rows = !is_some ? 0 : job.rows.count < n_batch ? job.rows.count : n_batch;
        const size_t n_places = n_rows * (is_descent ? 1 : job.n_selected);
        batch = allocate(memory, n_rows * model.n_padded);
        batch_search = allocate(memory, model.projection ? n_rows * search_width(model) : 0);
        gathered = allocate(memory, is_some || model.has_bases ? height * search_width(model) : 0);
        selected = allocate_as<uint32_t>(memory, n_places);
        order = allocate_as<uint32_t>(memory, n_places);
        ends = allocate_as<size_t>(memory, is_some ? model.n_maps + 1 : 0);
        nodes = allocate_as<int32_t>(memory, is_descent ? n_rows : 0);
        node_values = allocate(memory, is_descent ? n_rows : 0);
    }

    static inline size_t search_width(const Model<Real>& model) {
        return model.projection ? round_up(model.n_search, panel_padding) : model.n_padded;
    }
    inline Real* tile(const Model<Real>& model, size_t number) const {
        return tiles + number * tile_rows<Real> * model.n_padded;
    }
    inline Real* panel(const Model<Real>& model, size_t number) const {
        return panels + number * tile_rows<Real> * round_up(model.n_search, panel_padding);
    }

private:
    // A curved part is that of a single map.
    inline void allocate_curve(const Curve<Real>* of, Real* memory) {
        constexpr size_t height = tile_rows<Real>;
        const size_t n = of ? of->n_terms : 0, n_outputs = of ? of->plain.n_columns : 0;
        const bool is_listed = of && has_list(*of), is_diagonal = of && of->diagonal.n_columns > 0;
        curve.terms = allocate(memory, of ? round_up(n + 1, 2 * block) * height : 0);
        curve.squares = allocate(memory, is_diagonal ? n * height : 0);
        curve.sums = allocate(memory, n_outputs * height);
        curve.square_sums = allocate(memory, is_listed ? n_outputs * height : 0);
        curve.row = allocate(memory, is_listed ? n : 0);
        curve.inner = allocate(memory, row_outputs * round_up(n, lanes<Real>));
        curve.listed_values = allocate(memory, is_listed ? of->n_listed : 0);
        curve.listed = allocate_as<int32_t>(memory, is_listed ? of->n_listed : 0);
    }
    inline Real* allocate(Real* memory, size_t n) { return allocate_as<Real>(memory, n); }
    template <class Kind>
    inline Kind* allocate_as(Real* memory, size_t n) {
        Real* from = memory ? memory + size : nullptr;
        size += round_up(n * sizeof(Kind), 64) / sizeof(Real);
        return reinterpret_cast<Kind*>(from);
    }
};

}  // namespace
}  // namespace limes
