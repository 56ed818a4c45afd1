// One compiled path: this file is built several times, with other flags and another LIMES_PATH.
#include "answers.hpp"
#include "beyond.hpp"
#include "core.hpp"
#include "named.hpp"
#include "paths.hpp"
#include "room.hpp"
#include "rows.hpp"
#include "search.hpp"
#include "values.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

inline bool is_contiguous(const Rows& rows, float) {
    return !rows.is_double && rows.column_stride == ptrdiff_t(sizeof(float));
}
inline bool is_contiguous(const Rows&, double) { return false; }
inline void transpose_rows(const char*, ptrdiff_t, size_t, const double*, double*) {}

// Fill the panel that the search reads, and the centred rows unless only the search is wanted.
template <class Real>
inline void prepare_tile(const Job<Real>& job, size_t first, size_t n, size_t number,
                         Room<Real>& room) {
    const Model<Real>& model = *job.model;
    Real* panel = model.projection ? room.raw : room.panel(model, number);
    if (job.task == Task::nearest && n == tile_rows<Real> && is_contiguous(job.rows, Real())) {
        transpose_rows(row_start(job.rows, first), job.rows.row_stride, model.n_features,
                       model.center, panel);
    } else {
        Real* tile = room.tile(model, number);
        center_tile(model, job.rows, first, n, tile);
        transpose_tile(tile, model.n_padded, model.n_features, panel);
    }
    if (model.projection)
        project_tile(panel, *model.projection, room.partial, room.panel(model, number));
}

template <class Real>
inline void run_nearest(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    prepare_tile(job, first, n, 0, room);
    nearest_of_tile(job.model->maps[job.index], room.panels, n, room);
    for (size_t r = 0; r < n; ++r) job.indices[first + r] = room.near[r];
}

// Clear the votes of n rows before, or count them after, the maps have run.
template <class Real>
inline void clear_votes(const Job<Real>& job, size_t n, Room<Real>& room) {
    __builtin_memset(room.votes, 0, n * job.model->n_classes * sizeof(int32_t));
}

template <class Real>
inline void count_votes(const Job<Real>& job, size_t first, size_t n, const Room<Real>& room) {
    if (job.task != Task::vote) return;
    const size_t n_classes = job.model->n_classes;
    for (size_t r = 0; r < n; ++r)
        job.indices[first + r] = most_votes(room.votes + r * n_classes, n_classes);
}

// All maps for a group of tiles, map by map.
template <class Real>
inline void run_group(const Job<Real>& job, size_t first, size_t n, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    constexpr size_t height = tile_rows<Real>;
    const auto count = [n](size_t r) { return n - r < height ? n - r : height; };
    for (size_t r = 0; r < n; r += height)
        prepare_tile(job, first + r, count(r), r / height, room);
    clear_votes(job, n, room);
    for (size_t m = 0, column = 0; m < model.n_maps; column += model.maps[m++].n_values)
        for (size_t r = 0; r < n; r += height) {
            tile_values(model, model.maps[m], room.tile(model, r / height),
                        room.panel(model, r / height), count(r), room);
            deliver(job, m, column, first + r, count(r), room.values,
                    room.votes + r * model.n_classes);
        }
    count_votes(job, first, n, room);
}

template <class Real>
inline void run_row(const Job<Real>& job, size_t row, Room<Real>& room) {
    const Model<Real>& model = *job.model;
    center_row(model, job.rows, row, room.tiles);
    const Real* search = room.tiles;
    if (model.projection) {
        score_row(search, *model.projection, room.panels);
        search = room.panels;
    }
    if (job.task == Task::nearest) {
        job.indices[row] = nearest_of_row(model.maps[job.index].points, search, room);
        return;
    }
    if (job.task == Task::decide_some) return run_named_row(job, row, search, room);
    if (job.task == Task::walk) return walk_row(job, row, search, room);
    clear_votes(job, 1, room);
    for (size_t m = 0, column = 0; m < model.n_maps; column += model.maps[m++].n_values) {
        row_values(model.maps[m], room.tiles, search, room);
        deliver(job, m, column, row, 1, room.values, room.votes);
    }
    count_votes(job, row, 1, room);
}

// How many of the rows that are left to take next.
template <class Real>
inline size_t next_rows(const Job<Real>& job, size_t left, const Room<Real>& room) {
    size_t most = tile_rows<Real>;
    if (is_named(job.task)) most = batch_size(*job.model);
    else if (job.task != Task::nearest) most = room.n_tiles * tile_rows<Real>;
    if (left >= most) return most;
    // Whole tiles first: what is left over may be few enough to go row by row.
    const size_t over = left % tile_rows<Real>;
    return left > over && over < fewest_rows<Real> ? left - over : left;
}

template <class Real>
void run(const Job<Real>& job, size_t first, size_t last, Real* scratch) {
    Room<Real> room(job, scratch);
    while (first < last) {
        const size_t n = next_rows(job, last - first, room);
        if (n < fewest_rows<Real>)
            for (size_t r = 0; r < n; ++r) run_row(job, first + r, room);
        else if (job.task == Task::decide_some) run_named(job, first, n, room);
        else if (job.task == Task::walk) run_walk(job, first, n, room);
        else if (job.task == Task::nearest) run_nearest(job, first, n, room);
        else run_group(job, first, n, room);
        first += n;
    }
}

template <class Real>
size_t scratch(const Job<Real>& job) {
    return Room<Real>(job, nullptr).size;
}

template <class Real>
constexpr Kernel<Real> kernel = {
    {lanes<Real>, tile_rows<Real>, block}, &scratch<Real>, &run<Real>};

}  // namespace

extern const Path LIMES_JOIN(path_, LIMES_PATH);
const Path LIMES_JOIN(path_, LIMES_PATH) = {LIMES_TEXT(LIMES_PATH), kernel<float>, kernel<double>,
                                           &first_beyond};

}  // namespace limes
