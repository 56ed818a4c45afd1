// Prediction kernel of one SIMD level.
#include "map_values.hpp"
#include "nearest.hpp"
#include "probabilities.hpp"
#include "row_tiles.hpp"
#include "selected_maps.hpp"
#include "simd.hpp"
#include "types.hpp"
#include "workspace.hpp"

namespace limes {
namespace {

inline bool is_contiguous(const Rows& rows, float) {
    return !rows.is_double && rows.column_stride == ptrdiff_t(sizeof(float));
}
inline bool is_contiguous(const Rows&, double) { return false; }
inline void transpose_rows(const char*, ptrdiff_t, size_t, const double*, double*) {}

// Fill the panel that the search reads, and the centred rows unless only the search needs them.
template <class Real>
inline void prepare_tile(const PredictJob<Real>& job, size_t first, size_t n, size_t number,
                         Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    Real* panel = model.projection ? workspace.raw : workspace.panel(model, number);
    if (job.task == Task::nearest && n == tile_rows<Real> && is_contiguous(job.rows, Real())) {
        transpose_rows(row_start(job.rows, first), job.rows.row_stride, model.n_features,
                       model.center, panel);
    } else {
        Real* tile = workspace.tile(model, number);
        center_tile(model, job.rows, first, n, tile);
        transpose_tile(tile, model.n_padded, model.n_features, panel);
    }
    if (model.projection)
        project_tile(panel, *model.projection, workspace.partial, workspace.panel(model, number));
}

template <class Real>
inline void run_nearest(const PredictJob<Real>& job, size_t first, size_t n,
                        Workspace<Real>& workspace) {
    prepare_tile(job, first, n, 0, workspace);
    nearest_of_tile(job.model->maps[job.index], workspace.panels, n, workspace);
    for (size_t r = 0; r < n; ++r) job.indices[first + r] = workspace.near[r];
}

template <class Real>
inline void clear_votes(const PredictJob<Real>& job, size_t n, Workspace<Real>& workspace) {
    __builtin_memset(workspace.votes, 0, n * job.model->n_classes * sizeof(int32_t));
}

template <class Real>
inline void count_votes(const PredictJob<Real>& job, size_t first, size_t n,
                        const Workspace<Real>& workspace) {
    if (job.task != Task::vote) return;
    const size_t n_classes = job.model->n_classes;
    for (size_t r = 0; r < n; ++r)
        job.indices[first + r] = most_voted_class(workspace.votes + r * n_classes, n_classes);
}

// All maps for a group of tiles, map by map.
template <class Real>
inline void run_group(const PredictJob<Real>& job, size_t first, size_t n,
                      Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    constexpr size_t height = tile_rows<Real>;
    const auto count = [n](size_t r) { return n - r < height ? n - r : height; };
    for (size_t r = 0; r < n; r += height)
        prepare_tile(job, first + r, count(r), r / height, workspace);
    clear_votes(job, n, workspace);
    for (size_t m = 0, column = 0; m < model.n_maps; column += model.maps[m++].n_values)
        for (size_t r = 0; r < n; r += height) {
            tile_values(model, model.maps[m], workspace.tile(model, r / height),
                        workspace.panel(model, r / height), count(r), workspace);
            store_results(job, m, column, first + r, count(r), workspace.values,
                          workspace.votes + r * model.n_classes);
        }
    count_votes(job, first, n, workspace);
}

template <class Real>
inline void run_row(const PredictJob<Real>& job, size_t row, Workspace<Real>& workspace) {
    const Model<Real>& model = *job.model;
    center_row(model, job.rows, row, workspace.tiles);
    const Real* search = workspace.tiles;
    if (model.projection) {
        score_row(search, *model.projection, workspace.panels);
        search = workspace.panels;
    }
    if (job.task == Task::nearest) {
        job.indices[row] = nearest_of_row(model.maps[job.index].points, search, workspace);
        return;
    }
    if (job.task == Task::decide_selected) return run_selected_row(job, row, search, workspace);
    if (job.task == Task::descend) return descend_row(job, row, search, workspace);
    clear_votes(job, 1, workspace);
    for (size_t m = 0, column = 0; m < model.n_maps; column += model.maps[m++].n_values) {
        row_values(model.maps[m], workspace.tiles, search, workspace);
        store_results(job, m, column, row, 1, workspace.values, workspace.votes);
    }
    count_votes(job, row, 1, workspace);
}

// Number of rows to run next, of those that are left.
template <class Real>
inline size_t next_rows(const PredictJob<Real>& job, size_t left,
                        const Workspace<Real>& workspace) {
    size_t most = tile_rows<Real>;
    if (selects_maps(job.task))
        most = batch_size(*job.model);
    else if (job.task != Task::nearest)
        most = workspace.n_tiles * tile_rows<Real>;
    if (left >= most) return most;
    // Whole tiles first: the remainder may be few enough to run row by row.
    const size_t over = left % tile_rows<Real>;
    return left > over && over < min_tile_rows<Real> ? left - over : left;
}

template <class Real>
void run(const PredictJob<Real>& job, size_t first, size_t last, Real* memory) {
    Workspace<Real> workspace(job, memory);
    while (first < last) {
        const size_t n = next_rows(job, last - first, workspace);
        if (n < min_tile_rows<Real>)
            for (size_t r = 0; r < n; ++r) run_row(job, first + r, workspace);
        else if (job.task == Task::decide_selected)
            run_selected(job, first, n, workspace);
        else if (job.task == Task::descend)
            descend_batch(job, first, n, workspace);
        else if (job.task == Task::nearest)
            run_nearest(job, first, n, workspace);
        else
            run_group(job, first, n, workspace);
        first += n;
    }
}

template <class Real>
size_t workspace_size(const PredictJob<Real>& job) {
    return Workspace<Real>(job, nullptr).size;
}

template <class Real>
constexpr PredictKernel<Real> kernel = {
    {lanes<Real>, tile_rows<Real>, block}, &workspace_size<Real>, &run<Real>, &probabilities<Real>};

}  // namespace

extern const PredictKernels LIMES_OF_LEVEL(predict);
const PredictKernels LIMES_OF_LEVEL(predict) = {kernel<float>, kernel<double>,
                                                &first_row_out_of_range, &convert_rows};

}  // namespace limes
