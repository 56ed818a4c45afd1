// Fitting a map to its source: arguments checked, then handed to the path.
#include "fit_map.hpp"

#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "views.hpp"

namespace limes {
namespace {

float* read_floats(const View& view, const std::vector<size_t>& shape) {
    if (!view.is_float()) view.fail_type("must be float32, got elements of format '" + view.kind() + "'");
    view.require_shape(shape);
    view.require_plain();
    return static_cast<float*>(view.data());
}

void require(bool is_right, const char* text) {
    if (!is_right) throw nb::value_error(text);
}

// The number of columns of a two-dimensional array.
size_t width(const View& view) {
    if (view.dimensions() != 2) view.fail_value("must have two dimensions, got shape " + view.shape());
    return view.extent(1);
}

}  // namespace

double fit_map(nb::handle rows, nb::handle targets, nb::handle weights,
               nb::handle anchors, nb::handle components, nb::handle points, nb::handle slopes, nb::handle levels,
               nb::handle base_slopes, nb::handle base_levels, size_t n_blended, float radius,
               size_t n_epochs, size_t n_batch, std::array<float, 4> rates, float decay,
               uint64_t seed, const std::string& cpu) {
    const View x(rows, "rows"), t(targets, "targets"), w(weights, "weights");
    const View a(anchors, "anchors"), p(points, "points", true), s(slopes, "slopes", true);
    const View l(levels, "levels", true), bs(base_slopes, "base_slopes", true);
    const View bl(base_levels, "base_levels", true);
    FitJob job{};
    const bool is_projected = !components.is_none();
    job.n_features = width(x), job.n_search = width(p), job.n_outputs = width(t);
    job.n_rows = x.extent(0), job.n_points = p.extent(0);
    job.n_blended = n_blended;
    const size_t n = job.n_rows, d = job.n_features, r = job.n_search, q = job.n_outputs, m = job.n_points;
    require(n && d && r && q && m, "rows, features, outputs and points must not be empty");
    require(n < std::numeric_limits<uint32_t>::max(), "there must be fewer than 2**32 - 1 rows");
    require(m == 1 ? n_blended == 1 : n_blended >= 1 && n_blended < m,
            "n_blended must be at least 1 and less than the number of points");
    require(n_batch >= 1 && radius > 0, "n_batch and radius must be positive");
    job.rows = read_floats(x, {n, d});
    if (is_projected) job.components = read_floats(View(components, "components", true), {r, d});
    else require(r == d, "points must have as many features as rows, where there are no components");
    job.targets = read_floats(t, {n, q}), job.weights = read_floats(w, {n});
    job.anchors = read_floats(a, {m, r}), job.points = read_floats(p, {m, r});
    job.slopes = read_floats(s, {m, q, r}), job.levels = read_floats(l, {m, q});
    job.base_slopes = read_floats(bs, {q, d}), job.base_levels = read_floats(bl, {q});
    job.inverse_radius = 1 / radius;
    job.n_epochs = n_epochs, job.n_batch = n_batch < n ? n_batch : n;
    job.local_rate = rates[0], job.point_rate = rates[1], job.base_rate = rates[2];
    job.component_rate = rates[3];
    job.decay = decay, job.seed = seed;
    const FitPath* path = find_fit_path(cpu);
    require(path != nullptr, "cpu must name a path of this processor; see cpu_paths()");
    std::vector<float> room(path->room(job), 0.0f);
    std::vector<uint32_t> order(n);
    nb::gil_scoped_release released;
    return path->fit(job, room.data(), order.data());
}

}  // namespace limes
