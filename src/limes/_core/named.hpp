// The shortlist: each row names the maps that it wants evaluated.
//
// Rows that name the same map are brought together, so that each map is read once for a batch.
#pragma once
#include "core.hpp"
#include "room.hpp"
#include "rows.hpp"
#include "values.hpp"

namespace limes {
namespace {

// The number of a map at a place [row][slot]; n_maps for none. It is checked again here, since
// the caller's array may change while the threads run.
template <class Real>
inline size_t named_map(const Job<Real>& job, size_t place) {
    const int32_t number = job.which[place];
    const size_t n_maps = job.model->n_maps;
    return number < 0 || size_t(number) >= n_maps ? n_maps : size_t(number);
}

template <class Real>
inline void write_nothing(const Job<Real>& job, size_t place) {
    Real* to = job.values + place * job.model->most_values;
    for (size_t c = 0; c < job.model->most_values; ++c) to[c] = Real(__builtin_nan(""));
}

// Sort the places of a batch by the map they name. room.ends[m] is where map m ends in the order.
template <class Real>
inline void sort_places(const Job<Real>& job, size_t first, size_t n_places, Room<Real>& room) {
    const size_t n_maps = job.model->n_maps;
    for (size_t m = 0; m <= n_maps; ++m) room.ends[m] = 0;
    for (size_t i = 0; i < n_places; ++i) {
        const size_t map = named_map(job, first + i);
        room.named[i] = uint32_t(map);
        if (map == n_maps)
            write_nothing(job, first + i);
        else
            ++room.ends[map + 1];
    }
    for (size_t m = 0; m < n_maps; ++m) room.ends[m + 1] += room.ends[m];
    for (size_t i = 0; i < n_places; ++i)
        if (room.named[i] < n_maps) room.order[room.ends[room.named[i]]++] = uint32_t(i);
}

// Where the search reads a row of the batch.
template <class Real>
inline Real* search_row(const Model<Real>& model, size_t row, const Room<Real>& room) {
    Real* rows = model.projection ? room.batch_search : room.batch;
    return rows + row * Room<Real>::search_width(model);
}

// Project rows of the batch, at most a tile.
template <class Real>
inline void project_rows(const Model<Real>& model, size_t first, size_t n, Room<Real>& room) {
    constexpr size_t height = tile_rows<Real>;
    fill_tile(room.batch + first * model.n_padded, n * model.n_padded, height * model.n_padded,
              room.tiles);
    transpose_tile(room.tiles, model.n_padded, model.n_features, room.raw);
    Real* panel = room.panel(model, 0);
    project_tile(room.raw, *model.projection, room.partial, panel);
    for (size_t r = 0; r < n; ++r) {
        Real* row = search_row(model, first + r, room);
        for (size_t k = 0; k < Room<Real>::search_width(model); ++k)
            row[k] = k < model.n_search ? panel[k * height + r] : Real(0);
    }
}

// Centre, and project, all rows of a batch.
template <class Real>
inline void prepare_batch(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    for (size_t r = 0; r < n; ++r)
        center_row(model, job.rows, first + r, room.batch + r * model.n_padded);
    if (!model.projection) return;
    for (size_t r = 0; r < n; r += tile_rows<Real>)
        project_rows(model, r, n - r < tile_rows<Real> ? n - r : tile_rows<Real>, room);
}

// Bring the rows of some places together: room.tiles for the functions, room.panels to search.
template <class Real>
inline void gather_tile(const Job<Real>& job, const uint32_t* places, size_t n, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    constexpr size_t height = tile_rows<Real>;
    const size_t width = Room<Real>::search_width(model);
    for (size_t r = 0; r < height; ++r) {
        const size_t row = r < n ? places[r] / job.n_slots : 0, used = r < n;
        fill_tile(room.batch + row * model.n_padded, used * model.n_padded, model.n_padded,
                  room.tiles + r * model.n_padded);
        if (model.projection)
            fill_tile(search_row(model, row, room), used * width, width, room.gathered + r * width);
    }
    transpose_tile(model.projection ? room.gathered : room.tiles, width, model.n_search,
                   room.panels);
}

template <class Real>
inline void write_place(const Job<Real>& job, const Map<Real>& map, size_t place,
                        const Real* values) {
    Real* to = job.values + place * map.n_values;
    for (size_t c = 0; c < map.n_values; ++c) to[c] = values[c];
}

// One map, for at most a tile of the places that name it; `first` is the batch's first place.
template <class Real>
inline void run_places(const Job<Real>& job, const Map<Real>& map, const uint32_t* places,
                       size_t n, size_t first, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    if (n >= fewest_rows<Real>) {
        gather_tile(job, places, n, room);
        tile_values(model, map, room.tiles, room.panels, n, room);
        for (size_t r = 0; r < n; ++r)
            write_place(job, map, first + places[r], room.values + r * map.n_values);
        return;
    }
    for (size_t r = 0; r < n; ++r) {
        const size_t row = places[r] / job.n_slots;
        row_values(map, room.batch + row * model.n_padded, search_row(model, row, room), room);
        write_place(job, map, first + places[r], room.values);
    }
}

// All the maps that the n rows of a prepared batch name, from a place on.
template <class Real>
inline void run_batch(const Job<Real>& job, size_t first_place, size_t n, Room<Real>& room) {
    sort_places(job, first_place, n * job.n_slots, room);
    for (size_t m = 0, i = 0; m < job.model->n_maps; ++m)
        while (i < room.ends[m]) {
            const size_t left = room.ends[m] - i;
            const size_t count = left < tile_rows<Real> ? left : tile_rows<Real>;
            run_places(job, job.model->maps[m], room.order + i, count, first_place, room);
            i += count;
        }
}

// A batch of rows and all the maps that they name.
template <class Real>
inline void run_named(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    prepare_batch(job, first, n, room);
    run_batch(job, first * job.n_slots, n, room);
}

// One row, which is centred in room.tiles, and the maps that it names.
template <class Real>
inline void run_named_row(const Job<Real>& job, size_t row, const Real* search, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    for (size_t place = row * job.n_slots; place < (row + 1) * job.n_slots; ++place) {
        const size_t m = named_map(job, place);
        if (m == model.n_maps) {
            write_nothing(job, place);
            continue;
        }
        row_values(model.maps[m], room.tiles, search, room);
        write_place(job, model.maps[m], place, room.values);
    }
}

// Where a row goes from a fork: to its second side where the value is above zero; without a number,
// to the first class.
template <class Real>
inline int32_t leave_fork(const Job<Real>& job, int32_t fork, Real value) {
    return value != value ? -1 : job.children[2 * size_t(fork) + (value > 0)];
}

// Walk with all rows of a batch at once, fork by fork.
template <class Real>
inline void run_walk(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    prepare_batch(job, first, n, room);
    Job<Real> step = job;
    step.which = room.forks;
    step.n_slots = 1;
    step.values = room.fork_values;
    __builtin_memset(room.forks, 0, n * sizeof(int32_t));
    for (size_t n_walking = n; n_walking > 0;) {
        run_batch(step, 0, n, room);
        n_walking = 0;
        for (size_t r = 0; r < n; ++r) {
            if (room.forks[r] < 0) continue;
            room.forks[r] = leave_fork(job, room.forks[r], room.fork_values[r]);
            n_walking += room.forks[r] >= 0;
        }
    }
    for (size_t r = 0; r < n; ++r) job.indices[first + r] = -1 - room.forks[r];
}

// Walk with one row, which is centred in room.tiles.
template <class Real>
inline void walk_row(const Job<Real>& job, size_t row, const Real* search, Room<Real>& room) {
    int32_t fork = 0;
    while (fork >= 0) {
        row_values(job.model->maps[fork], room.tiles, search, room);
        fork = leave_fork(job, fork, room.values[0]);
    }
    job.indices[row] = -1 - fork;
}

}  // namespace
}  // namespace limes
