// One compiled path: this file is built several times, with other flags and another LIMES_PATH.
#include "blend.hpp"
#include "core.hpp"
#include "linear.hpp"
#include "rows.hpp"
#include "search.hpp"
#include "vectors.hpp"

#define LIMES_JOIN_(a, b) a##b
#define LIMES_JOIN(a, b) LIMES_JOIN_(a, b)
#define LIMES_TEXT_(a) #a
#define LIMES_TEXT(a) LIMES_TEXT_(a)

namespace limes {
namespace {

// Everything that one thread writes while it works, cut from one block of memory.
template <class Real>
struct Room {
    Real *tile, *panel, *projected, *partial, *values, *blended, *weights;
    int32_t *near, *votes;
    BlendRoom<Real> blend;
    size_t size = 0;

    Room(const Model<Real>& model, Real* base) {
        constexpr size_t height = tile_rows<Real>;
        const size_t ranks = model.most_blended + 1;
        const size_t n_points = round_up(model.most_points, 64);
        tile = cut(base, model.n_padded * height);
        panel = cut(base, model.n_padded * height);
        projected = cut(base, round_up(model.n_search, 64) * height);
        partial = cut(base, most_blocks * block * height);
        values = cut(base, height * model.most_blended * model.most_values);
        blended = cut(base, height * model.most_values);
        weights = cut(base, ranks);
        near = reinterpret_cast<int32_t*>(cut(base, height * ranks));
        votes = reinterpret_cast<int32_t*>(cut(base, height * model.n_classes));
        blend.near = reinterpret_cast<int32_t*>(cut(base, height * ranks));
        blend.scores = cut(base, n_points * (model.most_blended > 1 ? height : 1));
        blend.lowest = cut(base, n_points / block * height);
        blend.limits = cut(base, ranks * height);
        blend.ranked = cut(base, ranks * height);
    }

    inline Real* cut(Real* base, size_t n) {
        Real* from = base ? base + size : nullptr;
        size += round_up(n, 64 / sizeof(Real));
        return from;
    }
};

inline bool is_contiguous(const Rows& rows, float) {
    return !rows.is_double && rows.column_stride == ptrdiff_t(sizeof(float));
}
inline bool is_contiguous(const Rows&, double) { return false; }
inline void transpose_rows(const char*, ptrdiff_t, size_t, const double*, double*) {}

// Fill room.tile (if functions are wanted) and return the panel that the search reads.
template <class Real>
inline const Real* prepare_tile(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    const bool is_whole = n == tile_rows<Real> && is_contiguous(job.rows, Real());
    if (job.task == Task::nearest && is_whole) {
        transpose_rows(row_start(job.rows, first), job.rows.row_stride, model.n_features,
                       model.center, room.panel);
    } else {
        center_tile(model, job.rows, first, n, room.tile);
        transpose_tile(room.tile, model.n_padded, model.n_features, room.panel);
    }
    if (!model.projection) return room.panel;
    project_tile(room.panel, *model.projection, room.partial, room.projected);
    return room.projected;
}

// Copy the ranked points without the last, which only sets the radius, and blend.
template <class Real>
inline void blend_rows(const Map<Real>& map, const Real* rows, size_t width, size_t n,
                       Room<Real>& room) {
    const size_t size = ranking_size(map), n_near = map.n_blended;
    for (size_t r = 0; r < n; ++r)
        for (size_t i = 0; i < n_near; ++i) room.near[r * n_near + i] = room.blend.near[r * size + i];
    apply_functions(map, rows, width, n, room.near, n_near, room.values);
    for (size_t r = 0; r < n; ++r) {
        weigh(room.blend.ranked + r * size, n_near, size > n_near, room.weights);
        blend_values(room.values + r * n_near * map.n_values, room.weights, n_near, map.n_values,
                     room.blended + r * map.n_values);
    }
}

// The values of one map for a tile of rows: [row][value].
template <class Real>
inline const Real* tile_values(const Model<Real>& model, const Map<Real>& map, const Real* panel,
                               size_t n, Room<Real>& room) {
    if (map.n_blended > 1) {
        rank_tile(panel, map, room.partial, n, room.blend);
        blend_rows(map, room.tile, model.n_padded, n, room);
        return room.blended;
    }
    find_nearest(panel, map.points, room.partial, room.near);
    apply_functions(map, room.tile, model.n_padded, n, room.near, 1, room.values);
    return room.values;
}

// The values of one map for one row, which lies in room.tile.
template <class Real>
inline const Real* row_values(const Model<Real>& model, const Map<Real>& map, const Real* search,
                              Room<Real>& room) {
    if (map.points.n_columns > 1) score_row(search, map.points, room.blend.scores);
    if (map.n_blended > 1) {
        rank_row(room.blend.scores, map, room.blend.ranked, room.blend.near);
        blend_rows(map, room.tile, model.n_padded, 1, room);
        return room.blended;
    }
    const size_t n_points = map.points.n_columns;
    room.near[0] = n_points > 1 ? lowest(room.blend.scores, n_points) : 0;
    apply_functions(map, room.tile, model.n_padded, 1, room.near, 1, room.values);
    return room.values;
}

// The class that the values of one map name; NaN never wins, so that a NaN row is class 0.
template <class Real>
inline int32_t name_class(const Real* values, size_t n) {
    if (n == 1) return values[0] > 0;
    int32_t best = 0;
    Real most = -infinity<Real>;
    for (size_t c = 0; c < n; ++c)
        if (values[c] > most) most = values[c], best = int32_t(c);
    return best;
}

template <class Real>
inline void write_classes(const Job<Real>& job, size_t first, size_t n, const Map<Real>& map,
                          const Real* values) {
    for (size_t r = 0; r < n; ++r)
        job.indices[first + r] = name_class(values + r * map.n_values, map.n_values);
}

template <class Real>
inline void write_values(const Job<Real>& job, size_t first, size_t n, size_t column,
                         const Map<Real>& map, const Real* values) {
    Real* to = job.values + first * job.model->n_values + column;
    for (size_t r = 0; r < n; ++r, to += job.model->n_values)
        for (size_t c = 0; c < map.n_values; ++c) to[c] = values[r * map.n_values + c];
}

// Each map votes for the second class of its pair where its value is above zero.
template <class Real>
inline void add_votes(const Model<Real>& model, size_t map, size_t n, const Real* values,
                      int32_t* votes) {
    for (size_t r = 0; r < n; ++r)
        ++votes[r * model.n_classes + size_t(model.pairs[2 * map + (values[r] > 0)])];
}

// The class with most votes; the lowest among equals.
template <class Real>
inline void count_votes(const Job<Real>& job, size_t first, size_t n, const int32_t* votes) {
    const size_t n_classes = job.model->n_classes;
    for (size_t r = 0; r < n; ++r, votes += n_classes) {
        size_t best = 0;
        for (size_t c = 1; c < n_classes; ++c) best = votes[c] > votes[best] ? c : best;
        job.indices[first + r] = int32_t(best);
    }
}

// Bring the values of all maps, from `values_of(map)`, to where the job wants them.
template <class Real, class ValuesOf>
inline void run_maps(const Job<Real>& job, size_t first, size_t n, Room<Real>& room,
                     ValuesOf values_of) {
    const Model<Real>& model = *job.model;
    if (job.task == Task::classify)
        return write_classes(job, first, n, model.maps[0], values_of(model.maps[0]));
    if (job.task == Task::vote)
        __builtin_memset(room.votes, 0, n * model.n_classes * sizeof(int32_t));
    size_t column = 0;
    for (size_t i = 0; i < model.n_maps; ++i) {
        const Map<Real>& map = model.maps[i];
        if (job.task == Task::vote)
            add_votes(model, i, n, values_of(map), room.votes);
        else
            write_values(job, first, n, column, map, values_of(map));
        column += map.n_values;
    }
    if (job.task == Task::vote) count_votes(job, first, n, room.votes);
}

template <class Real>
inline void run_tile(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    const Real* panel = prepare_tile(job, first, n, room);
    if (job.task == Task::nearest) {
        find_nearest(panel, model.maps[job.index].points, room.partial, room.near);
        for (size_t r = 0; r < n; ++r) job.indices[first + r] = room.near[r];
        return;
    }
    run_maps(job, first, n, room, [&](const Map<Real>& map) {
        return tile_values(model, map, panel, n, room);
    });
}

// The values of the maps that a row names; NaN where it names none.
template <class Real>
inline void run_named(const Job<Real>& job, size_t row, const Real* search, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    const size_t n_values = model.most_values;
    for (size_t s = 0; s < job.n_slots; ++s) {
        const int32_t number = job.which[row * job.n_slots + s];
        const bool is_none = number < 0 || size_t(number) >= model.n_maps;
        const Real* values = is_none ? nullptr : row_values(model, model.maps[number], search, room);
        Real* to = job.values + (row * job.n_slots + s) * n_values;
        for (size_t c = 0; c < n_values; ++c) to[c] = values ? values[c] : Real(__builtin_nan(""));
    }
}

template <class Real>
inline void run_row(const Job<Real>& job, size_t row, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    center_row(model, job.rows, row, room.tile);
    const Real* search = room.tile;
    if (model.projection) {
        score_row(search, *model.projection, room.projected);
        search = room.projected;
    }
    if (job.task == Task::decide_some) return run_named(job, row, search, room);
    if (job.task == Task::nearest) {
        const Panels<Real>& points = model.maps[job.index].points;
        score_row(search, points, room.blend.scores);
        job.indices[row] = lowest(room.blend.scores, points.n_columns);
        return;
    }
    run_maps(job, row, 1, room, [&](const Map<Real>& map) {
        return row_values(model, map, search, room);
    });
}

template <class Real>
void run(const Job<Real>& job, size_t first, size_t last, Real* scratch) {
    Room<Real> room(*job.model, scratch);
    // A tile costs the same however many of its rows are used.
    constexpr size_t fewest = tile_rows<Real> / 3;
    while (first < last) {
        const size_t left = last - first;
        size_t n = left < tile_rows<Real> ? left : tile_rows<Real>;
        if (job.task == Task::decide_some || left < fewest)
            run_row(job, first, room), n = 1;
        else
            run_tile(job, first, n, room);
        first += n;
    }
}

template <class Real>
size_t scratch(const Job<Real>& job) {
    return Room<Real>(*job.model, nullptr).size;
}

template <class Real>
constexpr Kernel<Real> kernel = {
    {lanes<Real>, tile_rows<Real>, block}, &scratch<Real>, &run<Real>};

}  // namespace

extern const Path LIMES_JOIN(path_, LIMES_PATH);
const Path LIMES_JOIN(path_, LIMES_PATH) = {LIMES_TEXT(LIMES_PATH), kernel<float>, kernel<double>};

}  // namespace limes
