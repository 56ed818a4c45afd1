// Everything that one thread writes while it works, cut from one block of memory.
#pragma once
#include "blend.hpp"
#include "core.hpp"
#include "groups.hpp"
#include "search.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// Tiles that are prepared together, so that the points of each of many maps are read once for
// all of them: as many as stay in a second-level cache.
template <class Real>
inline size_t group_size(const Model<Real>& model) {
    constexpr size_t most_bytes = 96 * 1024, most_tiles = 16;
    if (model.n_maps == 1) return 1;
    const size_t bytes = (model.n_padded + model.n_search) * tile_rows<Real> * sizeof(Real);
    const size_t fit = most_bytes / bytes;
    return fit < 1 ? 1 : fit < most_tiles ? fit : most_tiles;
}

// Rows that are sorted by the maps they name before any is evaluated.
template <class Real>
inline size_t batch_size(const Model<Real>& model) {
    constexpr size_t most_bytes = 1 << 21, most_rows = 8192, fewest_rows = 256;
    const size_t fit = most_bytes / ((model.n_padded + model.n_search) * sizeof(Real));
    return fit < fewest_rows ? fewest_rows : fit < most_rows ? fit : most_rows;
}

// Whether rows name the maps that they want evaluated.
inline bool is_named(Task task) { return task == Task::decide_some || task == Task::walk; }

template <class Real>
struct Room {
    size_t n_tiles;     // in a group
    Real* tiles;        // [tile][row][n_padded]: centred rows
    Real* panels;       // [tile][term of the search][row]
    Real* raw;          // [feature][row]: a tile before its projection
    Real* partial;      // unfinished scores
    Real* values;       // [row][value]
    Real* base;         // [row][value]
    int32_t* near;      // [row]: the nearest point
    int32_t* votes;     // [row of the group][class]
    BlendRoom<Real> blend;
    GroupRoom<Real> groups;
    Real* gathered;     // [row of a tile][search_width], where maps are named or have a base
    // Where maps are named:
    Real* batch;        // [row][n_padded]
    Real* batch_search; // [row][search_width]
    uint32_t* named;    // the map at each place [row][slot]
    uint32_t* order;    // places that name a map, sorted by map
    size_t* ends;       // where each map ends in the order
    int32_t* forks;     // walk: where each row of the batch is
    Real* fork_values;  // walk: the value there
    size_t size = 0;

    Room(const Job<Real>& job, Real* memory) {
        const Model<Real>& model = *job.model;
        constexpr size_t height = tile_rows<Real>;
        const bool is_some = is_named(job.task), is_walk = job.task == Task::walk;
        n_tiles = is_some ? 1 : group_size(model);
        const size_t n_near = model.most_blended;
        tiles = cut(memory, n_tiles * height * model.n_padded);
        panels = cut(memory, n_tiles * height * round_up(model.n_search, 64));
        raw = cut(memory, model.projection ? height * model.n_padded : 0);
        partial = cut(memory, most_blocks * block * height);
        values = cut(memory, height * model.most_values);
        base = cut(memory, model.has_bases ? height * model.most_values : 0);
        near = cut_as<int32_t>(memory, height);
        votes = cut_as<int32_t>(memory, n_tiles * height * model.n_classes);
        const size_t n_points = round_up(model.most_points, 64);
        blend.scores = cut(memory, n_points * (n_near > 1 ? height : 1));
        blend.bits = cut_as<uint32_t>(memory, n_points / 32 * lanes<Real>);
        blend.ranked = cut(memory, n_near + 1);
        blend.weights = cut(memory, height * n_near + 1);
        blend.near = cut_as<int32_t>(memory, height * n_near + 1);
        blend.every = cut(memory, round_up(model.most_every, 64));
        const size_t n_groups = round_up(model.most_groups, 64);
        groups.scores = cut(memory, n_groups * height);
        groups.marks = cut_as<uint32_t>(memory, n_groups / 32 * height);
        groups.left = cut_as<uint32_t>(memory, model.most_group_vectors + 2 * strip);
        groups.waiting = groups.failures = 0;
        const size_t n_batch = batch_size(model);
        const size_t n_rows = !is_some ? 0 : job.rows.count < n_batch ? job.rows.count : n_batch;
        const size_t n_places = n_rows * (is_walk ? 1 : job.n_slots);
        batch = cut(memory, n_rows * model.n_padded);
        batch_search = cut(memory, model.projection ? n_rows * search_width(model) : 0);
        gathered = cut(memory, is_some || model.has_bases ? height * search_width(model) : 0);
        named = cut_as<uint32_t>(memory, n_places);
        order = cut_as<uint32_t>(memory, n_places);
        ends = cut_as<size_t>(memory, is_some ? model.n_maps + 1 : 0);
        forks = cut_as<int32_t>(memory, is_walk ? n_rows : 0);
        fork_values = cut(memory, is_walk ? n_rows : 0);
    }

    static inline size_t search_width(const Model<Real>& model) {
        return model.projection ? round_up(model.n_search, 64) : model.n_padded;
    }
    inline Real* tile(const Model<Real>& model, size_t number) const {
        return tiles + number * tile_rows<Real> * model.n_padded;
    }
    inline Real* panel(const Model<Real>& model, size_t number) const {
        return panels + number * tile_rows<Real> * round_up(model.n_search, 64);
    }

private:
    inline Real* cut(Real* memory, size_t n) { return cut_as<Real>(memory, n); }
    template <class Kind>
    inline Kind* cut_as(Real* memory, size_t n) {
        Real* from = memory ? memory + size : nullptr;
        size += round_up(n * sizeof(Kind), 64) / sizeof(Real);
        return reinterpret_cast<Kind*>(from);
    }
};

}  // namespace
}  // namespace limes
